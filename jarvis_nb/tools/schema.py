"""From an annotation to what a model is told of a value and what is done with the one it sends.

Everything here belongs to an annotation and is remembered with it: a thousand functions that take an
``int`` and a ``str`` build two validators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from inspect import signature
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.subschemas import Schema, walk
from jarvis_nb.tools.json_schema import field_path
from jarvis_nb.tools.lossless import lossless


@dataclass(frozen=True, slots=True)
class Shape:
    """What one annotation means."""

    adapter: TypeAdapter[Any]
    schema: Schema
    """Canonical, without the definitions it refers to."""
    definitions: Schema
    """The ``$defs`` of :attr:`schema`."""
    check: Callable[[Any], Any]
    """Return the value as Python takes it. Raises pydantic's ValidationError."""
    exact: type | None
    """A type whose instances need no check at all."""
    takes_null: bool
    description: str
    """What the annotation itself says (``Field(description=…)`` or a string), not a class's docstring."""
    default: FieldInfo | None
    """The ``Field`` that holds a default, where one stands in the annotation."""


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
        return _make(annotation)


def _make(annotation: Any) -> Shape:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(lossless(annotation))
        written = _written(adapter)
    except Exception as error:  # pydantic's five kinds, and whatever a class of the user's raises in there
        reason = str(error).split("\n", 1)[0]
        raise ToolsetError(
            f"{type_name(annotation)} has no JSON form: {reason:.300}",
            code="unsupported_annotation",
            value=annotation,
            hint="use str, int, float, bool, list, dict, Literal, Enum, a dataclass, a TypedDict or a pydantic model",
        ) from error
    definitions = written.pop("$defs", {})
    whole = canonical_schema({"properties": {"value": written}, "$defs": definitions})
    schema = whole["properties"]["value"]
    check = _checked(adapter, whole)
    return Shape(
        adapter,
        schema,
        whole.get("$defs", {}),
        check,
        _exact_type(annotation),
        _passes(check, None),
        _own_description(annotation),
        _own_default(annotation),
    )


_remembered = lru_cache(maxsize=4096)(_make)


def _written(adapter: TypeAdapter[Any]) -> Schema:
    if adapter.core_schema["type"] == "is-subclass":  # pydantic writes {} for it
        raise TypeError("a class is no JSON value")
    return adapter.json_schema()


def _checked(adapter: TypeAdapter[Any], whole: Schema) -> Callable[[Any], Any]:
    check = adapter.validator.validate_python
    if not _knows_extra() or not _is_closed(whole):
        return check
    # A pydantic model ignores fields it does not know; the model was told that there are none.
    return lambda value: check(value, extra="forbid")


@cache
def _knows_extra() -> bool:
    return "extra" in signature(TypeAdapter.validate_python).parameters  # from pydantic 2.12 on


def _is_closed(whole: Schema) -> bool:
    """Whether there are records in it, and all of them are closed."""
    inner = [part for part in walk(whole) if part is not whole and "properties" in part]
    return bool(inner) and all(
        part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False
        for part in inner
    )


def _passes(check: Callable[[Any], Any], value: Any) -> bool:
    try:
        check(value)
    except Exception:  # a ValidationError, or whatever a validator of the user's raises for it
        return False
    return True


def _notes(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if get_origin(annotation) is Annotated else ()


def _exact_type(annotation: Any) -> type | None:
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if base not in (str, int, bool):
        return None
    plain = all(
        isinstance(note, str) or _documentation(note) or (isinstance(note, FieldInfo) and not note.metadata)
        for note in _notes(annotation)
    )
    return base if plain else None


def _documentation(note: Any) -> str:
    """Return the text of a ``typing_extensions.Doc``."""
    text = getattr(note, "documentation", None)
    return text if isinstance(text, str) else ""


def _own_description(annotation: Any) -> str:
    for note in _notes(annotation):
        text = note.description if isinstance(note, FieldInfo) else note if isinstance(note, str) else None
        text = text or _documentation(note)
        if text:
            return text
    return ""


def _own_default(annotation: Any) -> FieldInfo | None:
    for note in _notes(annotation):
        if isinstance(note, FieldInfo) and not note.is_required():
            return note
    return None


def with_field(shape: Shape, annotation: Any, info: FieldInfo) -> Shape:
    """Return the shape of ``x: annotation = Field(…)``, pydantic's way to write a default and more."""
    made = shape_of(Annotated[annotation, info])
    return replace(made, description=made.description or shape.description)


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


def is_literal(annotation: Any) -> bool:
    """Whether the arguments of an annotation are values, not types."""
    return get_origin(annotation) is Literal


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
