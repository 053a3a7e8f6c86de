"""OpenAI's strict mode: the subset of JSON Schema that its structured-outputs guide documents.

See "Supported schemas" there. A rule that stands in no guide but in the API's answers: a ``$ref`` has no
other keyword beside it. Patterns with lookaround and unknown formats are gone in the default form already.
"""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.rewrites import noted, tuple_to_list, unsaid, with_null
from jarvis_nb.core.subschemas import ANNOTATIONS, Schema, has_type, is_object

KEPT = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf",
    "pattern", "properties", "required", "type",
})  # fmt: skip
OPEN = frozenset({"patternProperties", "propertyNames", "unevaluatedProperties"})
"""What lets an object have properties that are not listed."""
SILENT = OPEN | frozenset({
    "allOf", "contentEncoding", "contentMediaType", "contentSchema", "deprecated", "examples", "readOnly",
    "writeOnly",
})  # fmt: skip
"""Keywords that are reported instead, or that a description does not need."""

MAX_DEPTH = 10
MAX_PROPERTIES = 5_000
MAX_ENUM = 1_000
MAX_CHARACTERS = 120_000
"""Of all property names, definition names and enum values."""
LONG_ENUM = 250
MAX_LONG_ENUM = 15_000
"""Characters of an enum with more than ``LONG_ENUM`` values."""


def strict_form(schema: Schema) -> tuple[Schema, list[str]]:
    """Return a schema of the default dialect in strict form, and what that form cannot express.

    * Every property is required; one that was not takes null too, and null then means "not given".
    * Every object is closed.
    * Keywords outside the subset, and defaults, move into the description.
    * An open dictionary, a value of any type, an ``allOf`` that could not be merged and what exceeds the
      guide's limits are problems; with one the form must not be sent as strict.
    """
    form = _StrictForm()
    out = form.lower(schema, "parameters", 0)
    if "anyOf" in out:
        form.problems.append("parameters is a choice of several objects")
    form.check_limits()
    return out, form.problems


class _StrictForm:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.properties = 0
        self.enums = 0
        self.depth = 0
        self.characters = 0

    def check_limits(self) -> None:
        limits = (
            (self.depth, MAX_DEPTH, "levels of nesting"),
            (self.properties, MAX_PROPERTIES, "properties"),
            (self.enums, MAX_ENUM, "enum values"),
            (self.characters, MAX_CHARACTERS, "characters of names and enum values"),
        )
        for have, most, what in limits:
            if have > most:
                self.problems.append(f"parameters has {have:,} {what}, at most {most:,}")

    def lower(self, schema: Any, path: str, depth: int) -> Schema:
        if not isinstance(schema, dict):
            self.problems.append(f"{path} {'may be anything' if schema else 'can be nothing'}")
            return {}
        if "$ref" in schema:
            if schema.keys() - ANNOTATIONS - {"$ref", "unevaluatedProperties"}:
                self.problems.append(f"{path} adds to what it refers to")
            return _reference(schema)
        source = tuple_to_list(schema)
        out = {k: v for k, v in source.items() if k in KEPT}
        lost = unsaid(source, out, SILENT)
        self._count_enum(out.get("enum") or [], path)
        if "allOf" in source:
            self.problems.append(f"{path} combines schemas that cannot be merged")
        if "anyOf" in out:
            out["anyOf"] = [
                self.lower(case, f"{path} (case {i})", depth) for i, case in enumerate(out["anyOf"], 1)
            ]
        elif "type" not in out and "properties" not in out:
            self.problems.append(f"{path} may be anything")
        if has_type(out, "array"):
            out["items"] = self.lower(out.get("items", True), f"{path}[]", depth)
        if is_object(out):
            self._close(source, out, path, depth + 1)
        if "$defs" in out:
            self.characters += sum(map(len, out["$defs"]))
            out["$defs"] = {name: self.lower(case, name, 0) for name, case in out["$defs"].items()}
        return noted(out, lost)

    def _close(self, source: Schema, out: Schema, path: str, depth: int) -> None:
        properties = source.get("properties") or {}
        more = "properties" not in source or "anyOf" in source
        if source.get("additionalProperties", more) is not False or OPEN & source.keys():
            self.problems.append(f"{path} is an open dictionary")
        self.depth = max(self.depth, depth)
        self.properties += len(properties)
        self.characters += sum(map(len, properties))
        required = source.get("required") or ()
        lowered = {name: self.lower(inner, f"{path}.{name}", depth) for name, inner in properties.items()}
        out["properties"] = {n: inner if n in required else _or_null(inner) for n, inner in lowered.items()}
        out["required"] = list(properties)
        out["additionalProperties"] = False

    def _count_enum(self, values: list[Any], path: str) -> None:
        characters = sum(len(value) for value in values if isinstance(value, str))
        self.enums += len(values)
        self.characters += characters
        if len(values) > LONG_ENUM and characters > MAX_LONG_ENUM:
            self.problems.append(f"{path} is an enum of {characters:,} characters, at most {MAX_LONG_ENUM:,}")


def _reference(schema: Schema) -> Schema:
    reference = {"$ref": schema["$ref"]}
    if "description" not in schema:
        return reference
    return {"anyOf": [reference], "description": schema["description"]}


def _or_null(schema: Schema) -> Schema:
    """Return the schema that takes null too."""
    widened = with_null(schema)
    if widened is not None:
        return widened
    if schema.keys() <= {"anyOf", "description"} and "anyOf" in schema:
        has_null = any(has_type(case, "null") for case in schema["anyOf"])
        return schema if has_null else {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    about = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [{k: v for k, v in schema.items() if k != "description"}, {"type": "null"}], **about}
