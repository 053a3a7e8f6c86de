"""Annotations made lossless: what pydantic takes is a little more than what loses nothing.

Left alone it takes "yes" for true, true for 1 and "nan" for a number, and a model would not learn that it
sent something odd.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

_CONTAINERS: frozenset[Any] = frozenset({list, set, frozenset, tuple, dict, Sequence, Mapping})


def lossless(annotation: Any, seen: tuple[Any, ...] = ()) -> Any:
    """Return the annotation with its plain leaves made lossless; pydantic models inside keep their own rules."""
    if annotation in (int, float, bool):
        return Annotated[annotation, *_LEAVES[annotation]]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        base, *notes = inner
        if base in (int, float, bool):
            return Annotated[base, *notes, *_LEAVES[base]]
        return Annotated[lossless(base, seen), *notes]
    if origin in (Union, types.UnionType):
        return Union[tuple(lossless(part, seen) for part in inner)]  # noqa: UP007 - made at run time
    if origin in _CONTAINERS:
        return origin[tuple(part if part is ... else lossless(part, seen) for part in inner)]
    if sys.version_info < (3, 12) and typing.is_typeddict(annotation) and annotation not in seen:
        return _typed_dict(annotation, (*seen, annotation))
    return annotation


def _typed_dict(annotation: Any, seen: tuple[Any, ...]) -> Any:
    """Return a ``typing.TypedDict`` as the one of typing_extensions, which pydantic needs before Python 3.12."""
    import typing_extensions as te

    if type(annotation).__module__ == "typing_extensions":
        return annotation
    hints = typing.get_type_hints(annotation, include_extras=True)
    fields: dict[str, Any] = {
        name: lossless(hint, seen)
        if name in annotation.__required_keys__
        else te.NotRequired[lossless(hint, seen)]
        for name, hint in hints.items()
    }
    make = cast("Any", te.TypedDict)  # with a name that is known at run time only
    made = make(annotation.__name__, fields)
    made.__doc__ = annotation.__doc__
    return made


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "Input should be a number, not a boolean")
    return value


def _true_or_false(value: Any) -> Any:
    if isinstance(value, str) and value.strip().casefold() in {"true", "false"}:
        return value.strip().casefold() == "true"
    if isinstance(value, bool):
        return value
    raise PydanticCustomError("bool_type", "Input should be true or false")


_LEAVES: dict[Any, tuple[Any, ...]] = {
    int: (BeforeValidator(_no_boolean),),
    float: (Field(allow_inf_nan=False), BeforeValidator(_no_boolean)),
    bool: (BeforeValidator(_true_or_false),),
}
