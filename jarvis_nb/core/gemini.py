"""Google's function declarations: a subset of OpenAPI 3.0's schema object.

Its OpenAI-compatible address converts what it is sent into the same message and refuses the whole request
for a list of types ("Proto field is not repeating, cannot start list"), an enum of numbers ("only allowed
for STRING type") or an array without items ("missing field").
"""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.rewrites import is_null, noted, tuple_to_list, unsaid
from jarvis_nb.core.subschemas import Schema, has_type, resolve_pointer

KEPT = frozenset({
    "anyOf", "default", "description", "enum", "items", "maxItems", "maxLength", "maxProperties", "maximum",
    "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties", "required", "type",
})  # fmt: skip
SILENT = frozenset(
    {"$defs", "$ref", "additionalProperties", "allOf", "unevaluatedProperties", "examples", "propertyNames"}
)
ONLY_FOR = {
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "minProperties", "maxProperties"},
    "string": {"minLength", "maxLength", "pattern"},
    "number": {"minimum", "maximum"},
    "integer": {"minimum", "maximum"},
}
TYPED = frozenset().union(*ONLY_FOR.values(), {"type", "enum"})
MAX_UNFOLDED = 3
"""Levels of a recursive definition that are written out; below them any value is taken."""
MAX_SCHEMAS = 5_000
"""Schemas after which nothing more is written out."""


def gemini_form(schema: Schema) -> Schema:
    """Return a schema of the default dialect as Gemini takes it; null is ``"nullable": true`` there."""
    return _Form(schema).lower(schema, 0)


class _Form:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.left = MAX_SCHEMAS

    def lower(self, schema: Any, unfolded: int) -> Schema:
        if not isinstance(schema, dict):
            return {}
        self.left -= 1
        target = resolve_pointer(self.root, schema.get("$ref"))
        if target is not None:
            about = {k: v for k, v in schema.items() if k in ("description", "default")}
            more = unfolded < MAX_UNFOLDED and self.left > 0
            return {**(self.lower(target, unfolded + 1) if more else {}), **about}
        source = tuple_to_list(schema)
        out = {k: v for k, v in source.items() if k in KEPT}
        lost = unsaid(source, out, SILENT)
        if isinstance(source.get("additionalProperties"), dict):
            lost["values"] = source["additionalProperties"]
        if "enum" in out:
            values = [value for value in out.pop("enum") if value is not None]
            if values and all(isinstance(value, str) for value in values):
                out["enum"] = values
            else:
                lost["enum"] = values
        if has_type(out, "array"):
            out["items"] = self.lower(out.get("items", {}), unfolded)
        if "properties" in out:
            out["properties"] = {
                name: self.lower(inner, unfolded) for name, inner in out["properties"].items()
            }
        if "anyOf" in out:
            out["anyOf"] = [self.lower(case, unfolded) for case in out["anyOf"]]
        return noted(_without_null_case(_one_type(out)), lost)


def _one_type(out: Schema) -> Schema:
    """Write a list of types as one type, nullable, or as a choice of types."""
    kinds = out.get("type")
    if not isinstance(kinds, list):
        return out
    others = [kind for kind in kinds if kind != "null"]
    rest = {k: v for k, v in out.items() if k != "type"}
    if len(others) < len(kinds):
        rest["nullable"] = True
    if len(others) <= 1:
        return {"type": others[0] if others else "null", **rest}
    outer = {k: v for k, v in rest.items() if k not in TYPED}
    cases = [{"type": k, **{w: rest[w] for w in rest if w in ONLY_FOR.get(k, ())}} for k in others]
    return {**outer, "anyOf": cases}


def _without_null_case(out: Schema) -> Schema:
    """Write a choice that has null in it as nullable."""
    cases = out.get("anyOf")
    if not isinstance(cases, list):
        return out
    others = [case for case in cases if not is_null(case)]
    if len(others) == len(cases):
        return out
    return {**out, "anyOf": others, "nullable": True}
