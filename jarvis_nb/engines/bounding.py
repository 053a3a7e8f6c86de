"""From a tool's schema to a grammar that a small model can only fill with valid, finite JSON.

A grammar cannot express all of JSON Schema, and llama.cpp drops one it cannot compile without a word. So the
grammar holds the part that constrains structure, every repetition in it has an end, and the whole schema is
checked afterwards (:mod:`jarvis_nb.engines.filling`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jarvis_nb.core.subschemas import resolve_pointer

Schema = dict[str, Any]

MAX_TEXT = 200
"""Characters of a string the model writes, unless the schema allows fewer."""
MAX_ITEMS = 16
MAX_UNFOLD = 2
"""How often a recursive definition is unfolded."""
MAX_DEPTH = 12

NUMBER_KEYS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
FORMATS = frozenset(
    {"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}
)
"""Formats that llguidance can hold a string to."""


def grammar(
    schema: Schema, fixed: Mapping[str, Any] | None = None, narrow: Callable[[Schema], Schema] | None = None
) -> str | None:
    """Return a Lark grammar (llguidance) for the arguments of a tool, or None if no finite value fits.

    Args:
        schema: The parameters of a tool.
        fixed: Arguments that are known already; the model writes the others around them.
        narrow: Makes the bounded schema narrower still.
    """
    closed = bounded(schema)
    if closed is None:
        return None
    if narrow is not None:
        closed = narrow(closed)
    for name, value in (fixed or {}).items():
        closed["properties"] = {**closed.get("properties", {}), name: {"const": value}}
        closed["required"] = [*dict.fromkeys([*closed.get("required", ()), name])]
    # Compact JSON: a small model left to choose its own white space fills lines with it.
    guidance = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":", "lenient": True}
    return f"%llguidance {{}}\nstart: %json {json.dumps({**closed, 'x-guidance': guidance})}\n"


def bounded(schema: Schema) -> Schema | None:
    """Return the structural part of a schema with an end to every repetition; None if nothing finite fits.

    Example:
        >>> bounded({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})["properties"]
        {'q': {'type': 'string', 'maxLength': 200}}
    """
    return _Bounding(schema).node(schema, (), 0)


class _Bounding:
    def __init__(self, root: Schema) -> None:
        self.root = root

    def node(self, schema: Any, refs: tuple[str, ...], depth: int) -> Schema | None:  # noqa: PLR0911 - a dispatch table
        """Bound one schema; ``refs`` are the references followed on the way here."""
        if schema is False or depth > MAX_DEPTH:
            return None
        if not isinstance(schema, dict) or not schema:
            return {"type": "string", "maxLength": MAX_TEXT}
        if "const" in schema:
            return {"const": schema["const"]}
        if "enum" in schema:
            return {"enum": schema["enum"]} if schema["enum"] else None
        if "$ref" in schema:
            return self._reference(schema["$ref"], refs, depth)
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                return self._any_of(schema, keyword, refs, depth)
        if schema.get("allOf"):
            return self._all_of(schema, refs, depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            options = [self._typed(schema, one, refs, depth) for one in kind]
            return _one_of([option for option in options if option is not None])
        return self._typed(schema, kind, refs, depth)

    def _reference(self, ref: Any, refs: tuple[str, ...], depth: int) -> Schema | None:
        target = resolve_pointer(self.root, ref)
        if target is None or refs.count(ref) > MAX_UNFOLD:
            return None
        return self.node(target, (*refs, ref), depth + 1)

    def _any_of(self, schema: Schema, keyword: str, refs: tuple[str, ...], depth: int) -> Schema | None:
        beside = {k: v for k, v in schema.items() if k != keyword}
        options = [
            self.node({**beside, **option} if isinstance(option, dict) else option, refs, depth + 1)
            for option in schema[keyword]
        ]
        return _one_of([option for option in options if option is not None])

    def _all_of(self, schema: Schema, refs: tuple[str, ...], depth: int) -> Schema | None:
        """Lay the parts over each other; what they say about one property comes from the last part."""
        merged: Schema = {k: v for k, v in schema.items() if k != "allOf"}
        for part in schema["allOf"]:
            whole = part
            for _ in range(MAX_DEPTH):
                if not isinstance(whole, dict) or "$ref" not in whole:
                    break
                whole = resolve_pointer(self.root, whole["$ref"])
            if not isinstance(whole, dict):
                continue
            required = [*merged.get("required", ()), *whole.get("required", ())]
            properties = {**merged.get("properties", {}), **whole.get("properties", {})}
            merged |= whole
            if required:
                merged["required"] = required
            if properties:
                merged["properties"] = properties
        return self.node(merged, refs, depth + 1)

    def _typed(self, schema: Schema, kind: Any, refs: tuple[str, ...], depth: int) -> Schema | None:
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, refs, depth)
        if kind == "array" or (kind is None and ("items" in schema or "prefixItems" in schema)):
            return self._array(schema, refs, depth)
        if kind in ("integer", "number"):
            return {"type": kind, **{k: schema[k] for k in NUMBER_KEYS if k in schema}}
        if kind in ("boolean", "null"):
            return {"type": kind}
        return _string(schema)

    def _object(self, schema: Schema, refs: tuple[str, ...], depth: int) -> Schema | None:
        required = list(dict.fromkeys(schema.get("required") or ()))
        properties: Schema = {}
        for name, inner in (schema.get("properties") or {}).items():
            value = self.node(inner, refs, depth + 1)
            if value is not None:
                properties[name] = value
            elif name in required:
                return None
        more = schema.get("additionalProperties")
        for name in required:
            if name not in properties:
                value = (
                    None
                    if more is False
                    else self.node(more if isinstance(more, dict) else {}, refs, depth + 1)
                )
                if value is None:
                    return None
                properties[name] = value
        out: Schema = {"type": "object", "properties": properties, "required": required}
        # A map with free keys: a model that may go on with keys does so, hence only where there are no others.
        values = self.node(more, refs, depth + 1) if isinstance(more, dict) and not properties else None
        return {**out, "additionalProperties": False if values is None else values}

    def _array(self, schema: Schema, refs: tuple[str, ...], depth: int) -> Schema | None:
        first = [self.node(one, refs, depth + 1) for one in schema.get("prefixItems") or ()]
        least = schema.get("minItems", 0)
        rest = (
            self.node(schema.get("items", {}), refs, depth + 1) if schema.get("items") is not False else None
        )
        if None in first or (rest is None and least > len(first)):
            return None
        most = min(schema.get("maxItems", MAX_ITEMS), max(MAX_ITEMS, least))
        out: Schema = {"type": "array", "minItems": least, "maxItems": len(first) if rest is None else most}
        if first:
            out["prefixItems"] = first
        return {**out, "items": False if rest is None else rest}


def _one_of(options: list[Schema]) -> Schema | None:
    if len(options) > 1:
        return {"anyOf": options}
    return options[0] if options else None


def _string(schema: Schema) -> Schema:
    out: Schema = {"type": "string"}
    least = schema.get("minLength", 0)
    if least:
        out["minLength"] = least
    out["maxLength"] = max(min(schema.get("maxLength", MAX_TEXT), max(MAX_TEXT, least)), least)
    if schema.get("format") in FORMATS:
        return {"type": "string", "format": schema["format"]}
    if isinstance(schema.get("pattern"), str):
        out["pattern"] = schema["pattern"]
    return out
