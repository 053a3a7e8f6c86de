"""From an annotation to what a model is told of a value and what is done with the one it sends.

Everything here belongs to an annotation and is remembered with it: a thousand functions that take an
``int`` and a ``str`` build two validators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, get_args, get_origin

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.subschemas import Schema, walk
from jarvis_nb.tools.json_schema import field_path
from jarvis_nb.tools.plain import plain_schema

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.fields import FieldInfo


class Shape:
    """What one annotation means. The schema is made at once, what checks a value when one has to be checked.

    Raises:
        ToolsetError: ``unsupported_annotation``: JSON has no such value.
    """

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.exact = _exact_type(annotation)
        """A type whose instances need no check at all."""
        self.description = _own_description(annotation)
        """What the annotation itself says (``Field(description=…)`` or a string), not a class's docstring."""
        self.default = _own_default(annotation)
        """The ``Field`` that holds a default, where one stands in the annotation."""
        self.definitions: Schema = {}
        """The ``$defs`` of :attr:`schema`."""
        self._closed = False
        plain = plain_schema(annotation)
        if plain is None:
            whole = self._ask_pydantic()
            plain = whole["properties"]["value"]
            self.definitions = whole.get("$defs", {})
            self._closed = _is_closed(whole)
        self.schema: Schema = plain
        """Canonical, without the definitions it refers to."""

    def _ask_pydantic(self) -> Schema:
        try:
            written = _written(self.adapter)
        except (
            Exception
        ) as error:  # pydantic's five kinds, and whatever a class of the user's raises in there
            reason = str(error).split("\n", 1)[0]
            raise ToolsetError(
                f"{type_name(self.annotation)} has no JSON form: {reason:.300}",
                code="unsupported_annotation",
                value=self.annotation,
                hint="use str, int, float, bool, list, dict, Literal, Enum, a dataclass, a TypedDict or a "
                "pydantic model",
            ) from error
        definitions = written.pop("$defs", {})
        return canonical_schema({"properties": {"value": written}, "$defs": definitions})

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """What pydantic makes of the annotation."""
        from pydantic import TypeAdapter

        from jarvis_nb.tools.lossless import lossless

        return TypeAdapter(lossless(self.annotation))

    @cached_property
    def check(self) -> Callable[[Any], Any]:
        """Return the value as Python takes it. Raises pydantic's ValidationError."""
        check = self.adapter.validator.validate_python
        if not self._closed or not _knows_extra():
            return check
        # A pydantic model ignores fields it does not know; the model was told that there are none.
        return lambda value: check(value, extra="forbid")

    @cached_property
    def takes_null(self) -> bool:
        """Whether null is a value."""
        try:
            self.check(None)
        except Exception:  # a ValidationError, or whatever a validator of the user's raises for it
            return False
        return True


def shape_of(annotation: Any) -> Shape:
    """Return what an annotation means, from memory if it was seen before.

    Raises:
        ToolsetError: ``unsupported_annotation``: JSON has no such value.
    """
    try:
        return _remembered(annotation)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return Shape(annotation)


_remembered = lru_cache(maxsize=4096)(Shape)


def _written(adapter: TypeAdapter[Any]) -> Schema:
    if adapter.core_schema["type"] == "is-subclass":  # pydantic writes {} for it
        raise TypeError("a class is no JSON value")
    return adapter.json_schema()


@cache
def _knows_extra() -> bool:
    from pydantic import TypeAdapter

    return "extra" in signature(TypeAdapter.validate_python).parameters  # from pydantic 2.12 on


def _is_closed(whole: Schema) -> bool:
    """Whether there are records in it, and all of them are closed."""
    inner = [part for part in walk(whole) if part is not whole and "properties" in part]
    return bool(inner) and all(
        part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False
        for part in inner
    )


def is_field(value: Any) -> TypeGuard[FieldInfo]:
    """Whether ``value`` is what pydantic's ``Field()`` gives."""
    fields = sys.modules.get("pydantic.fields")  # before pydantic was imported there are none
    return fields is not None and isinstance(value, fields.FieldInfo)


def _notes(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if get_origin(annotation) is Annotated else ()


def _exact_type(annotation: Any) -> type | None:
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if base not in (str, int, bool):
        return None
    plain = all(
        isinstance(note, str) or _documentation(note) or (is_field(note) and not note.metadata)
        for note in _notes(annotation)
    )
    return base if plain else None


def _documentation(note: Any) -> str:
    """Return the text of a ``typing_extensions.Doc``."""
    text = getattr(note, "documentation", None)
    return text if isinstance(text, str) else ""


def _own_description(annotation: Any) -> str:
    for note in _notes(annotation):
        text = note.description if is_field(note) else note if isinstance(note, str) else None
        text = text or _documentation(note)
        if text:
            return text
    return ""


def _own_default(annotation: Any) -> FieldInfo | None:
    for note in _notes(annotation):
        if is_field(note) and not note.is_required():
            return note
    return None


def problems_of(error: ValidationError, name: str, value: Any) -> list[dict[str, str]]:
    """Return what pydantic found, a field and a sentence each; the branches of a union together."""
    found: dict[str, list[str]] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        messages = found.setdefault(field_path([name, *_real_path(one["loc"], value)]), [])
        message = (
            "is not expected"
            if one["type"] in _EXTRA
            else "is missing"
            if one["type"] in _MISSING
            else one["msg"]
        )
        if message not in messages:
            messages.append(message)
    return [
        {"field": field, "message": " or: ".join(messages[:4])[:400]} for field, messages in found.items()
    ]


_EXTRA = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})


def _real_path(loc: tuple[int | str, ...], value: Any) -> list[int | str]:
    """Return the part of pydantic's location that leads through the value; it also names union branches."""
    path: list[int | str] = []
    for place, part in enumerate(loc):
        if isinstance(value, dict) and (part in value or place == len(loc) - 1):
            path.append(part)
            value = value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int) and part < len(value):
            path.append(part)
            value = value[part]
    return path


def output_schema_of(annotation: Any) -> Schema | None:
    """Return the JSON Schema of what a function returns, or None where its annotation does not tell."""
    try:
        return _output(annotation)
    except TypeError:  # not hashable
        return _make_output(annotation)


def _make_output(annotation: Any) -> Schema | None:
    origin = get_origin(annotation)
    if getattr(origin, "__module__", "") == "collections.abc" and origin.__name__ in {
        "Awaitable",
        "Coroutine",
    }:
        annotation = get_args(annotation)[-1]
    from pydantic import TypeAdapter

    try:
        schema = TypeAdapter(annotation).json_schema(mode="serialization")
    except Exception:  # any class may be returned: that pydantic cannot tell its form is no fault
        return None
    whole = canonical_schema({"properties": {"value": schema}, "$defs": schema.pop("$defs", {})})
    out: Schema = whole["properties"]["value"]
    if not out:
        return None
    return {**out, "$defs": whole["$defs"]} if whole.get("$defs") else out


_output = lru_cache(maxsize=1024)(_make_output)


def type_name(annotation: Any) -> str:
    """Return an annotation as its author wrote it, as far as that can be told."""
    if isinstance(annotation, str):
        return annotation
    return (
        annotation.__qualname__
        if isinstance(annotation, type) and not get_args(annotation)
        else _short(annotation)
    )


def _short(annotation: Any) -> str:
    return repr(annotation).replace("typing.", "")[:200]
