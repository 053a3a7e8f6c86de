"""OpenAI's strict mode: the subset of JSON Schema its structured-outputs guide documents."""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.subschemas import Schema

KEPT = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "exclusiveMaximum", "exclusiveMinimum",
    "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required",
    "type",
})  # fmt: skip
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
SILENT = frozenset(
    {"examples", "deprecated", "readOnly", "writeOnly", "title", "contentMediaType", "contentEncoding"}
)
"""Keywords that refuse nothing and say nothing a description needs."""
MAX_DEPTH = 10
MAX_PROPERTIES = 5_000
MAX_ENUM = 1_000


def strict_form(schema: Schema) -> tuple[Schema, list[str]]:
    """Return a schema of the default dialect in strict form, and what that form cannot express.

    * Every property is required; one that was not is nullable (null then means "use the default").
    * Every object is closed.
    * Keywords outside the subset move into the description.
    * An open dictionary, a value of any type and tuples with an open end cannot be expressed.
    """
    state = _Strict()
    out = state.lower(schema, "parameters", 1)
    state.check_limits()
    return out, state.problems


class _Strict:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.properties = 0
        self.enums = 0
        self.depth = 0

    def check_limits(self) -> None:
        limits = (
            ("levels of nesting", self.depth, MAX_DEPTH),
            ("properties", self.properties, MAX_PROPERTIES),
            ("enum values", self.enums, MAX_ENUM),
        )
        self.problems.extend(
            f"{have:,} {what}, at most {most:,}" for what, have, most in limits if have > most
        )

    def lower(self, schema: Any, path: str, depth: int) -> Schema:
        if not isinstance(schema, dict):
            self.problems.append(f"{path} may be anything" if schema is True else f"{path} can be nothing")
            return {}
        self.depth = max(self.depth, depth)
        if "$ref" in schema:
            return {k: v for k, v in schema.items() if k in ("$ref", "description")}
        source = self._tuple(schema, path)
        out = {k: v for k, v in source.items() if k in KEPT}
        notes = _notes(source, out)
        self.enums += len(out.get("enum") or ())
        if "anyOf" in out:
            out["anyOf"] = [self.lower(b, f"{path} (case {i})", depth) for i, b in enumerate(out["anyOf"], 1)]
            if depth == 1 and path == "parameters":
                self.problems.append(f"{path} is a choice of several objects")
        elif "type" not in out and "enum" not in out:
            self.problems.append(f"{path} may be anything")
        if "items" in out:
            out["items"] = self.lower(out["items"], f"{path}[]", depth + 1)
        elif _has_type(out, "array"):
            self.problems.append(f"{path}[] may be anything")
        if _has_type(out, "object"):
            self._object(source, out, path, depth)
        if notes:
            out["description"] = " ".join(
                [*([out["description"]] if out.get("description") else ()), f"({notes})"]
            )
        if "$defs" in out:
            out["$defs"] = {name: self.lower(d, f"$defs.{name}", 1) for name, d in out["$defs"].items()}
        return out

    def _object(self, source: Schema, out: Schema, path: str, depth: int) -> None:
        properties = source.get("properties") or {}
        open_by = [
            key for key in ("patternProperties", "propertyNames", "unevaluatedProperties") if key in source
        ]
        if source.get("additionalProperties", bool(not properties)) is not False or open_by:
            self.problems.append(f"{path} is an open dictionary")
        self.properties += len(properties)
        required = source.get("required") or ()
        lowered = {
            name: self.lower(schema, f"{path}.{name}", depth + 1) for name, schema in properties.items()
        }
        out["properties"] = {
            name: schema if name in required else _or_null(schema) for name, schema in lowered.items()
        }
        out["required"] = list(properties)
        out["additionalProperties"] = False

    def _tuple(self, schema: Schema, path: str) -> Schema:
        """Write a tuple as a list of any of its items' schemas."""
        prefix = schema.get("prefixItems")
        if not isinstance(prefix, list):
            return schema
        rest = schema.get("items", True)
        cases = [item for i, item in enumerate(prefix) if item not in prefix[:i]]
        if rest is True and schema.get("maxItems", len(prefix) + 1) > len(prefix):
            self.problems.append(f"{path} has an open end")
        if isinstance(rest, dict) and rest not in cases:
            cases.append(rest)
        out = {k: v for k, v in schema.items() if k != "prefixItems"}
        return {**out, "items": cases[0] if len(cases) == 1 else {"anyOf": cases}}


def _has_type(schema: Schema, kind: str) -> bool:
    kinds = schema.get("type")
    return kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _or_null(schema: Schema) -> Schema:
    """Return the schema that takes null too."""
    from jarvis_nb.core.lowering import with_null

    widened = with_null(schema)
    if widened is not None:
        return widened
    if "anyOf" in schema and "type" not in schema:
        branches = schema["anyOf"]
        if any(_has_type(b, "null") for b in branches):
            return schema
        return {**schema, "anyOf": [*branches, {"type": "null"}]}
    if "enum" in schema:
        return schema if None in schema["enum"] else {**schema, "enum": [*schema["enum"], None]}
    description = {"description": schema["description"]} if "description" in schema else {}
    bare = {k: v for k, v in schema.items() if k != "description"}
    return {"anyOf": [bare, {"type": "null"}], **description}


def _notes(source: Schema, out: Schema) -> str:
    """Say in words what the subset has no keyword for."""
    from jarvis_nb.core.types import dumps

    if "format" in out and out["format"] not in FORMATS:
        del out["format"]
    silent = SILENT | {"patternProperties", "propertyNames", "unevaluatedProperties", "prefixItems"}
    moved = [k for k in source if k not in out and k not in silent]
    return "; ".join(f"{keyword}: {dumps(source[keyword])}" for keyword in moved)
