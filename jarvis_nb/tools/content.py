"""What a tool returned, as data and as text for the model: never a crash, always the same for the same value."""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from math import isfinite, isnan
from typing import Any, cast

from jarvis_nb.core.types import dumps
from jarvis_nb.tools.images import ImageContent, find_image
from jarvis_nb.tools.tables import records

MAX_TEXT = 16_384
"""Characters of one result that a model reads, by default."""
MAX_VALUES = 1_000_000
"""Values of one result that are kept, however they are nested."""
MAX_ITEMS = 10_000
"""Items taken from a generator, which may have no end."""
MAX_DEPTH = 64
MAX_REPR = 10_000
"""Characters of an object's own repr."""
MAX_INT = 10**4000
"""Python refuses to write an integer of more than 4,300 digits."""

_ADDRESS = re.compile(r" (?:object )?at 0x[0-9A-Fa-f]+| id='\d+'")


def json_value(value: Any) -> Any:
    """Return any value as JSON-ready data.

    What JSON knows is copied. Dates become ISO text, sets sorted lists, tables lists of records, records
    (dataclasses, pydantic models, named tuples) objects, images one line of text, NaN null, the infinities
    text; whatever else there is becomes its repr without memory addresses.

    Example:
        >>> json_value({"days": {3, 1, 2}, "rate": float("nan"), (1, 2): b"text"})
        {'days': [1, 2, 3], 'rate': None, '[1,2]': 'text'}
    """
    return convert(value)[0]


def convert(value: Any) -> tuple[Any, list[ImageContent]]:
    """Return any value as JSON-ready data, with the images that stand in it as text."""
    kind = type(value)
    if (kind is str and value.isascii()) or kind is bool or value is None:
        return value, []
    if kind is int and -MAX_INT < value < MAX_INT:
        return value, []
    converter = _Converter()
    return converter.convert(value, 0), converter.images


def render(value: Any) -> str:
    """Return any value as text for the model: text as it is, everything else as compact JSON.

    Example:
        >>> render({"order_id": "ORD-5", "total_cents": 4200})
        '{"order_id":"ORD-5","total_cents":4200}'
        >>> render("日本語")
        '日本語'
    """
    return plain_text(json_value(value))


def plain_text(value: Any) -> str:
    """Return JSON-ready data as text for the model."""
    kind = type(value)
    return value if kind is str else str(value) if kind is int else dumps(value)


def cap_text(text: str, limit: int = MAX_TEXT) -> tuple[str, bool]:
    r"""Return the text cut to ``limit`` characters, and whether it was: its head and its tail are kept.

    Example:
        >>> cap_text("a" * 50 + "b" * 50, 60)
        ('aaaaaaaaaaaaaaaa\n… 69 characters were cut …\nbbbbbbbbbbbbbbb', True)
    """
    if len(text) <= limit:
        return text, False
    room = limit - len(_gap(len(text)))
    if room <= 0:
        return text[: max(limit, 0)], True
    head, tail = room - room // 2, room // 2
    return f"{text[:head]}{_gap(len(text) - room)}{text[len(text) - tail :]}", True


def _gap(count: int) -> str:
    return f"\n… {count:,} characters were cut …\n"


def clean_text(text: str) -> str:
    r"""Return text that can be encoded: surrogate pairs joined, lone surrogates replaced.

    Example:
        >>> clean_text("a\ud83c\udf89b\ud800")
        'a🎉b\ufffd'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class _Converter:
    """One walk over one value."""

    def __init__(self) -> None:
        self.images: list[ImageContent] = []
        self._room = MAX_VALUES
        self._open: set[int] = set()
        """Ids of the containers around the value at hand: one of them again is a loop."""

    def convert(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return clean_text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -MAX_INT < value < MAX_INT else f"<integer of {value.bit_length():,} bits>"
        if kind is float:
            return _float(value)
        if id(value) in self._open:
            return f"<recursive {_name(value)}>"
        if depth >= MAX_DEPTH:
            return f"<{_name(value)} nested too deep>"
        self._open.add(id(value))
        try:
            return self._convert(value, depth + 1)
        except Exception:  # its own code raised: there is nothing to show but what it is
            return f"<{_name(value)}>"
        finally:
            self._open.discard(id(value))

    def _convert(self, value: Any, depth: int) -> Any:
        if type(value) is dict or isinstance(value, Mapping):
            return self._object(cast("Mapping[Any, Any]", value).items(), depth)
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return self._list(cast("Sequence[Any]", value), depth)
        for read in (_scalar, self._image, self._table, self._record, self._collection):
            found = read(value, depth)
            if found is not _NOT_THIS:
                return found
        return _described(value)

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in items:
            if self._room <= 0:
                out["…"] = "more was left out"
                break
            self._room -= 1
            name = plain_text(self.convert(key, depth))
            while name in out:  # 1 and "1" are two keys in Python and one in JSON
                name = f"{name} ({_name(key)})"
            out[name] = self.convert(item, depth)
        return out

    def _list(self, items: Iterable[Any], depth: int) -> list[Any]:
        out: list[Any] = []
        for item in items:
            if self._room <= 0:
                out.append("… more was left out")
                break
            self._room -= 1
            out.append(self.convert(item, depth))
        return out

    def _image(self, value: Any, _: int) -> Any:
        image = find_image(value)
        if image is None:
            return _text_of_bytes(value)
        self.images.append(image)
        return str(image)

    def _record(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if isinstance(value, tuple):  # a named one
            return self._object(cast("Any", value)._asdict().items(), depth)
        if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
            return self.convert(_dump_model(value), depth)
        if is_dataclass(kind):
            return self._object(((f.name, getattr(value, f.name)) for f in fields(value)), depth)
        if hasattr(kind, "__attrs_attrs__"):
            return self._object(((a.name, getattr(value, a.name)) for a in kind.__attrs_attrs__), depth)
        if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):  # a database's row
            return self._object(((key, value[key]) for key in value.keys()), depth)  # noqa: SIM118 - its protocol
        return _NOT_THIS

    def _table(self, value: Any, depth: int) -> Any:
        rows = records(value)
        return _NOT_THIS if rows is None else self.convert(rows[0], depth)

    def _collection(self, value: Any, depth: int) -> Any:
        if isinstance(value, AbstractSet) and not isinstance(value, KeysView | ItemsView):
            return _sorted(self._list(value, depth))
        if isinstance(value, Sequence | KeysView | ItemsView | ValuesView):
            return self._list(value, depth)
        if isinstance(value, Iterator) and not hasattr(type(value), "read"):  # an open file is no result
            items = list(islice(cast("Iterator[Any]", value), MAX_ITEMS + 1))
            more = ["… more was left out"] if len(items) > MAX_ITEMS else []
            return self._list(items[:MAX_ITEMS], depth) + more
        return _NOT_THIS


_NOT_THIS = object()


def _float(value: float) -> float | str | None:
    if isfinite(value):
        return value
    if isnan(value):
        return None  # as JavaScript, pandas and pydantic write it
    return "Infinity" if value > 0 else "-Infinity"


def _plain_subclass(value: Any) -> Any:
    """Return an enumeration's member, or an instance of a subclass of a JSON type, as the plain value."""
    if isinstance(value, Enum):
        return json_value(value.value)
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, int):
        return json_value(int.__int__(value))
    if isinstance(value, float):
        return _float(float.__float__(value))
    return _NOT_THIS


def _iso(value: Any) -> str | None:
    return value.isoformat() if value == value else None  # noqa: PLR0124 - pandas' NaT differs from itself


_AS_TEXT: dict[str, Callable[[Any], Any]] = {
    "builtins.complex": lambda v: str(v).strip("()"),
    "builtins.type": lambda v: f"<class {v.__qualname__}>",
    "datetime.date": _iso,
    "datetime.time": _iso,
    "datetime.timedelta": str,
    "datetime.tzinfo": str,
    "decimal.Decimal": str,
    "fractions.Fraction": str,
    "ipaddress._IPAddressBase": str,
    "pathlib.PurePath": lambda v: clean_text(str(v)),
    "pathlib._local.PurePath": lambda v: clean_text(str(v)),  # Python 3.13
    "pandas._libs.missing.NAType": lambda _: None,
    "pandas.api.typing.NAType": lambda _: None,  # pandas 3
    "re.Pattern": lambda v: v.pattern if isinstance(v.pattern, str) else repr(v.pattern),
    "uuid.UUID": str,
}
"""By qualified name, looked up along a class's bases: none of these modules is imported for it."""


def _scalar(value: Any, _: int) -> Any:
    plain = _plain_subclass(value)
    if plain is not _NOT_THIS:
        return plain
    for base in type(value).__mro__:
        write = _AS_TEXT.get(f"{base.__module__}.{base.__qualname__}")
        if write is not None:
            return write(value)
    if isinstance(value, BaseException):
        return describe_error(value)
    return _NOT_THIS


def _text_of_bytes(value: Any) -> Any:
    if not isinstance(value, bytes | bytearray | memoryview):
        return _NOT_THIS
    data = bytes(value)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"<{len(data):,} bytes of binary data>"


def _dump_model(value: Any) -> Any:
    try:
        return value.model_dump(mode="json", warnings=False)
    except Exception:  # a field of a type that pydantic cannot write
        return {name: getattr(value, name) for name in type(value).model_fields}


def _sorted(items: list[Any]) -> list[Any]:
    numbers = all(type(item) in (int, float) for item in items)
    return sorted(items) if numbers else sorted(items, key=dumps)


def describe_error(error: BaseException, limit: int = 300) -> str:
    r"""Return an exception as one short line: its type and its message, no traceback.

    Example:
        >>> describe_error(ValueError("no such city\nsee the log"))
        'ValueError: no such city see the log'
    """
    try:
        message = clean_text(" ".join(str(error).split()))
    except Exception:  # its own __str__ raised
        message = ""
    if len(message) > limit:
        message = message[: limit - 1] + "…"
    return f"{_name(error)}: {message}" if message else _name(error)


def _described(value: Any) -> str:
    kind = type(value)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(name, str):  # a function, a module: their reprs are an address or a path of this machine
        return f"<{_name(value)} {name[:200]}>"
    write = (
        repr if kind.__repr__ is not object.__repr__ else str if kind.__str__ is not object.__str__ else None
    )
    if write is None:
        return f"<{_name(value)}>"
    text = write(value)
    return clean_text(_ADDRESS.sub("", cap_text(str.__str__(text), MAX_REPR)[0]))


def _name(value: Any) -> str:
    return type(value).__name__
