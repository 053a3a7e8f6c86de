"""A strategy of its own: a parameter schema together with an instance of it (hypothesis-jsonschema rests)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "title", "$ref", "type"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "a", "x y", "é"]), st.just(1.5)
)
NOTES = st.dictionaries(
    st.sampled_from(["title", "description"]), st.sampled_from(["T", "Some words."]), max_size=2
)

Pair = tuple[dict[str, Any], Any]


@st.composite
def scalars(draw: st.DrawFn) -> Pair:
    kind = draw(st.sampled_from(["integer", "number", "string", "boolean", "null", "enum", "const", "any"]))
    value = {
        "integer": st.integers(-5, 5),
        "number": st.floats(-5, 5),
        "string": st.text(max_size=5),
        "boolean": st.booleans(),
        "null": st.none(),
    }.get(kind, SCALARS)
    instance = draw(value)
    if kind == "any":
        return {}, instance
    if kind == "const":
        return {"const": instance}, instance
    if kind == "enum":
        others = [v for v in draw(st.lists(SCALARS, max_size=3)) if not same(v, instance)]
        unique = [v for i, v in enumerate(others) if not any(same(v, w) for w in others[:i])]
        return {"enum": [*unique, instance]}, instance
    bounds = {
        "integer": {"minimum": -5, "exclusiveMaximum": 6},
        "number": {"maximum": 5},
        "string": {
            "maxLength": 5,
            "minLength": 0,
            "pattern": draw(st.sampled_from(["", "^(?!\n\n\n\n\n\n)"])),
        },
    }.get(kind, {})
    return {"type": kind, **{k: v for k, v in bounds.items() if draw(st.booleans())}}, instance


def same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


@st.composite
def lists(draw: st.DrawFn, depth: int, names: list[str]) -> Pair:
    schema, item = draw(schemas(depth - 1, names))
    if draw(st.booleans()):
        return {"type": "array", "items": schema, "maxItems": 3}, [item] * draw(st.integers(0, 3))
    second, other = draw(schemas(depth - 1, names))
    closed = draw(st.sampled_from([{"items": False}, {"minItems": 2, "maxItems": 2}, {}]))
    return {"type": "array", "prefixItems": [schema, second], **closed}, [item, other]


@st.composite
def objects(draw: st.DrawFn, depth: int, names: list[str]) -> Pair:
    fields = draw(st.dictionaries(NAMES, schemas(depth - 1, names), max_size=3))
    properties: dict[str, Any] = {}
    instance: dict[str, Any] = {}
    required: list[str] = []
    for name, (schema, value) in fields.items():
        if draw(st.booleans()):
            schema = {**schema, "default": value}  # noqa: PLW2901 - the field's own schema
        properties[name] = schema
        if draw(st.booleans()):
            instance[name] = value
            required.extend([name] if draw(st.booleans()) else [])
    schema = {"type": "object", "properties": properties, "required": required}
    shape = draw(st.sampled_from(["plain", "closed", "typed", "all_of", "any_of"]))
    if shape == "closed":
        schema["additionalProperties"] = False
    elif shape == "typed":
        value_schema, value = draw(schemas(depth - 1, names))
        schema["additionalProperties"] = value_schema
        instance["more"] = value
    elif shape == "all_of":
        part, more = draw(schemas(depth - 1, names))
        schema["allOf"] = [{"properties": {"part": part}}, {"required": sorted(required)}]
        instance["part"] = more
    elif shape == "any_of":
        part, more = draw(schemas(depth - 1, names))
        schema["anyOf"] = [{"properties": {"part": part}, "required": ["part"]}, {"required": ["never"]}]
        instance["part"] = more
    return schema, instance


@st.composite
def choices(draw: st.DrawFn, depth: int, names: list[str]) -> Pair:
    pairs = draw(st.lists(schemas(depth - 1, names), min_size=1, max_size=3))
    _, instance = draw(st.sampled_from(pairs))
    branches = [schema for schema, _ in pairs]
    if draw(st.booleans()):
        branches.append({"type": "null"})
        instance = draw(st.sampled_from([instance, None]))
    return {"anyOf": branches}, instance


@st.composite
def references(draw: st.DrawFn, names: list[str]) -> Pair:
    return {"$ref": f"#/$defs/{draw(st.sampled_from(names))}"}, {"next": None}


@st.composite
def schemas(draw: st.DrawFn, depth: int, names: list[str]) -> Pair:
    """Draw a schema and an instance; every definition in ``names`` takes ``{"next": None}``."""
    if depth <= 0:
        schema, instance = draw(scalars())
    else:
        kinds = [scalars(), objects(depth, names), lists(depth, names), choices(depth, names)]
        schema, instance = draw(st.one_of(*kinds, *([references(names)] if names else [])))
    return {**draw(NOTES), **schema}, instance


@st.composite
def schemas_with_instances(draw: st.DrawFn) -> Pair:
    """Draw a tool's parameters, with definitions that may refer to each other, and an instance."""
    names = draw(st.sampled_from([[], ["A"], ["A", "B"]]))
    schema, instance = draw(objects(3, names))
    definitions: dict[str, Any] = {}
    for name in names:
        other = draw(st.sampled_from(names))
        inner, _ = draw(schemas(1, names))
        definitions[name] = {
            "type": "object",
            "title": name,
            "properties": {
                "next": {"anyOf": [{"$ref": f"#/$defs/{other}"}, {"type": "null"}]},
                "more": {**inner, "description": "more"},
            },
            "required": ["next"],
        }
    return ({**schema, "$defs": definitions} if names else schema), instance
