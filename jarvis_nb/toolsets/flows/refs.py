"""References: how a step's parameters name a flow input, an earlier result or a context value.

A reference is data. It has no value until the flow runs, so using one as a value is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Self

from jarvis_nb.core.errors import JarvisError
from jarvis_nb.core.pictured import Pictured

Path = tuple[str | int, ...]


class _Missing(Enum):
    """The default of a reference that has none: None is a value. One object, copied and pickled too."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return self.name


MISSING: Any = _Missing.MISSING


class MissingValue(JarvisError, LookupError):  # noqa: N818 - it says what is missing
    """A reference that leads to nothing: ``missing_path`` or ``missing_context``."""

    code = "missing_path"


def _no_value(ref: Ref, use: str) -> TypeError:
    return TypeError(f"{ref!r} has no value before the flow runs, so it cannot be {use}: pass it to a step")


@dataclass(frozen=True, slots=True, repr=False)
class Ref(Pictured):
    """The base of references. ``ref["key"]`` and ``ref.get("key", default=…)`` are references into it.

    Example:
        >>> order = StepRef("discount_order", name="order")
        >>> order["items"][0]["sku"]
        result("order").items[0].sku
        >>> order.get("note", default="")
        result("order").note
    """

    word: ClassVar[str] = "ref"

    flow: str
    """The name of the flow it belongs to."""
    name: str
    """The input, step or context key."""
    path: Path = field(default=(), kw_only=True)
    default: Any = field(default=MISSING, kw_only=True)
    """Used when the path leads to nothing; a present None is a value."""

    def __getitem__(self, key: str | int | tuple[str | int, ...]) -> Self:
        return self.get(*(key if isinstance(key, tuple) else (key,)))

    def get(self, *path: str | int, default: Any = MISSING) -> Self:
        """Return a reference to a place inside this one.

        Args:
            path: Keys of mappings (str) and indexes of lists (int), outermost first.
            default: What to use when nothing is there; plain data.

        Raises:
            TypeError: A part of the path is neither a str nor an int.
        """
        for part in path:
            if type(part) not in (str, int):
                raise TypeError(
                    f"a path into {self!r} is made of str keys and int indexes, got {part!r:.100}"
                )
        return replace(self, path=self.path + path, default=default)

    @property
    def root(self) -> str:
        """How the reference's start is written."""
        return f'{self.word}("{self.name}")'

    def __repr__(self) -> str:
        return self.root + path_text(self.path)

    # A reference used as a value is a mistake that would else go unnoticed.

    __contains__ = None

    def __iter__(self) -> Iterator[Any]:
        raise _no_value(self, "iterated")

    def __bool__(self) -> bool:
        raise _no_value(self, "tested")

    def __format__(self, spec: str) -> str:
        raise _no_value(self, "put into a text")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that probe: copy, pickle, IPython
            raise AttributeError(name)
        raise AttributeError(f"{self!r} has no attribute {name!r}: a path into it is written [{name!r}]")


class InputRef(Ref):
    """A declared input of the flow: ``flow.input("order_id")``."""

    __slots__ = ()
    word: ClassVar[str] = "input"


class StepRef(Ref):
    """The result of a step: ``flow.result("order")``, and what ``flow.step(…)`` returns."""

    __slots__ = ()
    word: ClassVar[str] = "result"


class ContextRef(Ref):
    """A value of the host's run context: ``flow.context("tenant")``."""

    __slots__ = ()
    word: ClassVar[str] = "context"


def path_text(path: Path) -> str:
    """Return a path as references write it.

    Example:
        >>> path_text(("items", 0, "unit price"))
        ".items[0]['unit price']"
    """
    return "".join(f".{p}" if isinstance(p, str) and p.isidentifier() else f"[{p!r}]" for p in path)


def follow(value: Any, ref: Ref) -> Any:
    """Return what the reference's path leads to inside ``value``.

    Raises:
        MissingValue: Names the path up to the part that is not there, and what is there instead.
    """
    for depth, part in enumerate(ref.path):
        inner = _part(value, part)
        if inner is MISSING:
            if ref.default is not MISSING:
                return ref.default
            raise _missing(ref, depth, value)
        value = inner
    return value


def _part(value: Any, part: str | int) -> Any:
    """Return what a mapping has under a str key, or a list at an int index; else MISSING."""
    if isinstance(part, str):
        return value[part] if isinstance(value, Mapping) and part in value else MISSING
    if not isinstance(value, list | tuple) or not -len(value) <= part < len(value):
        return MISSING
    return value[part]


def _missing(ref: Ref, depth: int, value: Any) -> MissingValue:
    where = ref.root + path_text(ref.path[:depth])
    if isinstance(value, Mapping):
        names = [str(key) for key in value]
        there = f"{where} has {', '.join(names[:10]) or 'no keys'}{', …' if len(names) > 10 else ''}"  # noqa: PLR2004
    elif isinstance(value, list | tuple):
        there = f"{where} has {len(value)} items"
    else:
        there = f"{where} is {'None' if value is None else f'a {type(value).__name__}'}"
    return MissingValue(
        f"there is no {ref.root}{path_text(ref.path[: depth + 1])}: {there}",
        value=str(ref),
        hint="a reference may carry a default: .get(…, default=…)",
    )


def refs_in(template: Any) -> Iterator[tuple[str, Ref]]:
    """Yield each reference in a parameter with its place, in order.

    Example:
        >>> list(refs_in({"who": InputRef("f", "name"), "n": [1, InputRef("f", "n")]}))
        [('.who', input("name")), ('.n[1]', input("n"))]
    """
    if isinstance(template, Ref):
        yield "", template
    elif isinstance(template, dict):
        for key, item in template.items():
            for place, ref in refs_in(item):
                yield path_text((key,)) + place, ref
    elif isinstance(template, list):
        for index, item in enumerate(template):
            for place, ref in refs_in(item):
                yield path_text((index,)) + place, ref


def fill(template: Any, value_of: Callable[[Ref], Any]) -> Any:
    """Return a fresh copy of a parameter with each reference replaced by ``value_of(reference)``.

    Containers are always copied, so that one step cannot change what another reads.
    """
    if isinstance(template, Ref):
        return value_of(template)
    if isinstance(template, dict):
        return {key: fill(item, value_of) for key, item in template.items()}
    if isinstance(template, list):
        return [fill(item, value_of) for item in template]
    return template
