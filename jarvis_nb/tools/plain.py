"""The schemas of plain annotations, written down: an action of plain types is made without importing pydantic."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from jarvis_nb.core.subschemas import Schema

_TYPES: dict[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": True},
}


def plain_schema(annotation: Any) -> Schema | None:
    """Return what pydantic writes for a plain annotation; None for one that has to be left to it.

    Example:
        >>> plain_schema(list[str] | None)
        {'anyOf': [{'type': 'array', 'items': {'type': 'string'}}, {'type': 'null'}]}
    """
    try:
        known = _TYPES.get(annotation)
    except TypeError:  # not hashable
        return None
    if known is not None:
        return dict(known)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _enumeration(inner)
    if origin is list:
        items = plain_schema(inner[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and inner[0] is str:
        values = plain_schema(inner[1])
        # pydantic writes the looser of two ways to say "anything"
        return None if values is None else {"type": "object", "additionalProperties": values or True}
    if origin in (Union, types.UnionType):
        return _union(inner)
    return None


def _union(inner: tuple[Any, ...]) -> Schema | None:
    branches: list[Schema] = []
    for part in sorted(inner, key=lambda part: part is type(None)):  # pydantic writes null last
        schema = plain_schema(part)
        if schema is None:
            return None
        if schema not in branches:
            branches.append(schema)
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _enumeration(values: tuple[Any, ...]) -> Schema | None:
    for kind, name in ((str, "string"), (int, "integer")):
        if all(type(value) is kind for value in values):
            values_part: Schema = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
            return {**values_part, "type": name}
    return None
