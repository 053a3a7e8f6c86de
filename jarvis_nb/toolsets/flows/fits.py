"""Whether a value of one schema can go where another is wanted. Pure; an unknown schema fits everything."""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.subschemas import resolve_pointer
from jarvis_nb.toolsets.flows.problems import did_you_mean
from jarvis_nb.toolsets.flows.refs import Path

Schema = dict[str, Any]

SCALARS = frozenset({"string", "number", "integer", "boolean"})


def resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema with its own local references followed; {} for anything unknown."""
    for _ in range(32):  # a chain of references that never ends says nothing
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return schema
        target = resolve_pointer(root, schema["$ref"])
        schema = None if target is None else {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
    return {}


def branches(schema: Schema, root: Schema, depth: int = 8) -> list[Schema]:
    """Return the alternatives of a schema, flattened; a schema without alternatives is its only one."""
    schema = resolved(schema, root) if depth else {}  # alternatives of alternatives without end say nothing
    inner = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(inner, list):
        return [schema]
    return [branch for item in inner for branch in branches(item, root, depth - 1)]


def types_of(schema: Schema, root: Schema) -> frozenset[str] | None:
    """Return the JSON types a schema allows; None where it does not say.

    Example:
        >>> sorted(types_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {}))
        ['integer', 'null']
        >>> types_of({}, {}) is None
        True
    """
    found: set[str] = set()
    for branch in branches(schema, root):
        kind = branch.get("type")
        if isinstance(kind, str):
            found.add(kind)
        elif isinstance(kind, list):
            found.update(kind)
        elif "const" in branch or "enum" in branch:
            values = branch["enum"] if "enum" in branch else [branch["const"]]
            found.update(map(type_name, values))
        else:
            return None
    return frozenset(found)


def type_name(value: Any) -> str:
    """Return the JSON type of plain data."""
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"


def input_fits(given: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Whether some value of the given types is one of the wanted types as it stands."""
    if given is None or wanted is None:
        return True
    return bool(given & wanted) or ("integer" in given and "number" in wanted)


def result_fits(given: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Whether a step's result may fit: scalars may be converted without loss when the step runs.

    ``-> None`` says nothing: functions that always raise have it too.
    """
    if given is None or wanted is None or given == frozenset({"null"}):
        return True
    return input_fits(given, wanted) or bool(given & SCALARS and wanted & SCALARS)


def constant_problem(value: Any, schema: Schema, root: Schema) -> str | None:
    """Return why a constant is refused by a parameter's schema, or None. Nothing is converted."""
    from jarvis_nb.tools.json_schema import find_errors, make_validator, problems

    found = problems(find_errors(make_validator(root).evolve(schema=schema), value), 1)
    return "; ".join(f"{p['field']}: {p['message']}" if p["field"] else p["message"] for p in found) or None


def field_schema(schema: Schema, path: Path, root: Schema) -> Schema | str:
    """Return the schema at a path of a declared output, or why there is none.

    A part of a schema that does not say what it holds may hold anything.

    Example:
        >>> order = {"type": "object", "properties": {"total_cents": {"type": "integer"}}}
        >>> field_schema(order, ("total_cents",), order)
        {'type': 'integer'}
        >>> field_schema(order, ("total",), order)
        "there is no 'total' (did you mean 'total_cents'?)"
    """
    schema = resolved(schema, root)
    if not path:
        return schema
    found: list[Schema | str] = [_step_into(branch, path[0], root) for branch in branches(schema, root)]
    inner = [item for item in found if isinstance(item, dict)]
    if not inner:
        return str(found[0])
    reached = [field_schema(item, path[1:], root) for item in inner]
    return next((item for item in reached if isinstance(item, dict)), reached[0])


def _step_into(schema: Schema, part: str | int, root: Schema) -> Schema | str:
    types = types_of(schema, root)
    if types is None and "properties" not in schema:
        return {}
    return _item(schema, part, types, root) if isinstance(part, int) else _field(schema, part, types, root)


def _item(schema: Schema, index: int, types: frozenset[str] | None, root: Schema) -> Schema | str:
    if types is not None and "array" not in types:
        return f"[{index}] is an index, but it is no list"
    prefix = schema.get("prefixItems") or []
    if 0 <= index < len(prefix):
        return resolved(prefix[index], root)
    if schema.get("items") is False:
        return f"there is no item {index}"
    return resolved(schema.get("items"), root)


def _field(schema: Schema, name: str, types: frozenset[str] | None, root: Schema) -> Schema | str:
    if types is not None and "object" not in types:
        return f"there is no {name!r}: it is {' or '.join(sorted(types))}"
    properties = schema.get("properties") or {}
    if name in properties:
        return resolved(properties[name], root)
    more = schema.get("additionalProperties", not properties or "allOf" in schema)
    if more is False:
        return f"there is no {name!r} ({did_you_mean(name, properties, 'field')})"
    return resolved(more, root)
