"""Where schemas stand inside a JSON Schema: the one table that every walk over a schema uses.

A key called ``title`` is an annotation in a schema but a property's name under ``properties``, and a
``$ref`` in a default value is data. So nothing here looks into what is not a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

Schema = dict[str, Any]

MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
SINGLES = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
"""Keywords whose value is one schema."""
IN_PLACE = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords that apply schemas to the very instance they stand at, not to a part of it."""
ANNOTATIONS = frozenset({
    "$comment", "default", "deprecated", "description", "discriminator", "examples", "readOnly", "title",
    "writeOnly",
})  # fmt: skip
"""Keywords that refuse no instance."""


def children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield ``(keyword, subschema)`` for each schema directly inside; boolean schemas are left out."""
    for keyword, value in schema.items():
        if keyword in MAPS and isinstance(value, dict):
            inner: list[Any] = list(value.values())
        elif (keyword in LISTS or keyword == "items") and isinstance(value, list):
            inner = value
        elif keyword in SINGLES:
            inner = [value]
        else:
            continue
        for item in inner:
            if isinstance(item, dict):
                yield keyword, item


def map_children(schema: Schema, change: Callable[[str, Schema], Any]) -> Schema:
    """Return a copy in which each schema directly inside was replaced by ``change(keyword, subschema)``."""

    def one(keyword: str, item: Any) -> Any:
        return change(keyword, item) if isinstance(item, dict) else item

    out: Schema = {}
    for keyword, value in schema.items():
        if keyword in MAPS and isinstance(value, dict):
            out[keyword] = {name: one(keyword, item) for name, item in value.items()}
        elif (keyword in LISTS or keyword == "items") and isinstance(value, list):
            out[keyword] = [one(keyword, item) for item in value]
        elif keyword in SINGLES:
            out[keyword] = one(keyword, value)
        else:
            out[keyword] = value
    return out


def walk(schema: Schema) -> Iterator[Schema]:
    """Yield the schema and every schema inside it, in document order, without following references."""
    todo = [schema]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed([child for _, child in children(node)]))


def resolve_pointer(root: Schema, ref: Any) -> Schema | None:
    """Return what a local reference (``#`` or ``#/…``) points at, or None.

    Example:
        >>> resolve_pointer({"$defs": {"Day": {"type": "string"}}}, "#/$defs/Day")
        {'type': 'string'}
    """
    if not isinstance(ref, str) or (ref != "#" and not ref.startswith("#/")):
        return None
    node: Any = root
    for token in unquote(ref[1:]).split("/")[1:]:
        inside = {str(i): item for i, item in enumerate(node)} if isinstance(node, list) else node
        key = token.replace("~1", "/").replace("~0", "~")
        if not isinstance(inside, dict) or key not in inside:
            return None
        node = inside[key]
    return node if isinstance(node, dict) else None


def has_type(schema: Schema, kind: str) -> bool:
    """Return whether ``type`` is, or lists, the kind."""
    kinds = schema.get("type")
    return kinds == kind or (isinstance(kinds, list) and kind in kinds)


def is_object(schema: Schema) -> bool:
    """Return whether the schema describes an object."""
    return has_type(schema, "object") or "properties" in schema
