"""Lowering per dialect: tables against schemas of real models, and what holds for every schema."""

from __future__ import annotations

import datetime as dt
import enum
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.inlining import MAX_SCHEMAS
from jarvis_nb.core.schema import (
    canonical_schema,
    encode_tools,
    lower_schema,
    openai_tools,
    strict_problems,
)
from jarvis_nb.core.strict import KEPT, MAX_DEPTH, MAX_ENUM, MAX_PROPERTIES
from jarvis_nb.core.subschemas import walk
from jarvis_nb.core.types import Definitions, ToolDefinition
from tests.core.schemas import schemas_with_instances


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    """Where to."""

    street: str
    zip: str = "00000"


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Left(BaseModel):
    right: Right | None = None


class Right(BaseModel):
    left: Left


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


ADDRESS = {
    "type": "object",
    "description": "Where to.",
    "properties": {"street": {"type": "string"}, "zip": {"type": "string", "default": "00000"}},
    "required": ["street"],
    "additionalProperties": False,
}
STRICT_ADDRESS = {
    **ADDRESS,
    "properties": {
        "street": {"type": "string"},
        "zip": {"type": ["string", "null"], "description": '(default: "00000")'},
    },
    "required": ["street", "zip"],
}
CAT = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": ["cat"]}, "lives": {"type": "integer", "default": 9}},
    "required": ["kind"],
    "additionalProperties": False,
}
DOG = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["dog"]},
        "tricks": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
STRICT_CAT = {
    **CAT,
    "properties": {
        "kind": {"type": "string", "enum": ["cat"]},
        "lives": {"type": ["integer", "null"], "description": "(default: 9)"},
    },
    "required": ["kind", "lives"],
}
STRICT_DOG = {
    **DOG,
    "properties": {
        "kind": {"type": "string", "enum": ["dog"]},
        "tricks": {"type": ["array", "null"], "items": {"type": "string"}, "description": "(default: [])"},
    },
    "required": ["kind", "tricks"],
}
DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"

FIELDS: dict[str, tuple[Any, Any, Any]] = {
    # name: (annotation, default form, strict form or the problem)
    "scalar": (int, {"type": "integer"}, {"type": "integer"}),
    "enum behind a reference": (
        Colour,
        {"type": "string", "enum": ["red", "blue"]},
        {"type": "string", "enum": ["red", "blue"]},
    ),
    "enum of integers": (Level, {"type": "integer", "enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
    "constant": (Literal["a"], {"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
    "enum of two types": (
        Literal["a", 1] | None,
        {"type": ["string", "integer", "null"], "enum": ["a", 1, None]},
        {"type": ["string", "integer", "null"], "enum": ["a", 1, None]},
    ),
    "nullable": (int | None, {"type": ["integer", "null"]}, {"type": ["integer", "null"]}),
    "nullable enum": (
        Colour | None,
        {"type": ["string", "null"], "enum": ["red", "blue", None]},
        {"type": ["string", "null"], "enum": ["red", "blue", None]},
    ),
    "nullable model": (
        Address | None,
        {**ADDRESS, "type": ["object", "null"]},
        {**STRICT_ADDRESS, "type": ["object", "null"]},
    ),
    "described": (
        Annotated[Address | None, Field(description="Home.")],
        {**ADDRESS, "type": ["object", "null"], "description": "Home."},
        {**STRICT_ADDRESS, "type": ["object", "null"], "description": "Home."},
    ),
    "nested": (Address, ADDRESS, STRICT_ADDRESS),
    "list of models": (
        list[Address],
        {"type": "array", "items": ADDRESS},
        {"type": "array", "items": STRICT_ADDRESS},
    ),
    "union": (
        int | str | None,
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
    ),
    "tagged union": (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        {"anyOf": [CAT, DOG]},
        {"anyOf": [STRICT_CAT, STRICT_DOG]},
    ),
    "dict": (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        "parameters.f is an open dictionary",
    ),
    "dict of models": (
        dict[str, Address],
        {"type": "object", "additionalProperties": ADDRESS},
        "parameters.f is an open dictionary",
    ),
    "bare dict": (
        dict,
        {"type": "object", "additionalProperties": True},
        "parameters.f is an open dictionary",
    ),
    "anything": (Any, {}, "parameters.f may be anything"),
    "list of anything": (list, {"type": "array", "items": {}}, "parameters.f[] may be anything"),
    "tuple": (
        tuple[int, Address],
        {"type": "array", "prefixItems": [{"type": "integer"}, ADDRESS], "minItems": 2, "maxItems": 2},
        {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, STRICT_ADDRESS]},
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    "bounds outside the subset": (
        Annotated[str, Field(min_length=2, max_length=3)],
        {"type": "string", "minLength": 2, "maxLength": 3},
        {"type": "string", "description": "(maxLength: 3; minLength: 2)"},
    ),
    "bounds inside the subset": (
        Annotated[int, Field(ge=1, lt=9, multiple_of=2)],
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
    ),
    "format inside the subset": (
        dt.date,
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date"},
    ),
    "format outside the subset": (
        bytes,
        {"type": "string", "description": '(format: "binary")'},
        {"type": "string", "description": '(format: "binary")'},
    ),
}


def one_field(annotation: Any) -> dict[str, Any]:
    """Return canonical parameters with the one required field ``f``."""
    field = TypeAdapter(annotation).json_schema()
    definitions = {"$defs": field.pop("$defs")} if "$defs" in field else {}
    return canonical_schema({"properties": {"f": field}, "required": ["f"], **definitions})


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("name", FIELDS)
def test_12_default_dialect(name):
    """toolsets.md 12: references inlined, nullable collapsed, enum kept."""
    annotation, expected, _ = FIELDS[name]
    lowered = lower_schema(one_field(annotation))
    assert lowered["properties"]["f"] == expected
    assert "$defs" not in lowered
    assert lowered["required"] == ["f"]


@pytest.mark.parametrize("name", FIELDS)
def test_10_strict_dialect(name):
    """toolsets.md 10: what OpenAI's documented subset accepts, or a problem with its place."""
    annotation, _, expected = FIELDS[name]
    canonical = one_field(annotation)
    if isinstance(expected, str):
        assert strict_problems(canonical) == [expected]
        with pytest.raises(ToolsetError, match=r"strict mode cannot express") as caught:
            lower_schema(canonical, "strict")
        assert caught.value.code == "not_strict"
        return
    assert strict_problems(canonical) == []
    assert lower_schema(canonical, "strict")["properties"]["f"] == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "integer", "default": 3}, {"type": ["integer", "null"], "description": "(default: 3)"}),
        ({"enum": ["a", "b"], "default": "a"}, {"type": ["string", "null"], "enum": ["a", "b", None], "description": '(default: "a")'}),
        ({"type": ["integer", "null"], "default": None}, {"type": ["integer", "null"], "description": "(default: null)"}),
        ({"type": "string"}, {"type": ["string", "null"]}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "D"},
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "description": "D"},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        ),
    ],
)  # fmt: skip
def test_10_what_may_be_left_out_is_required_and_nullable_in_strict(field, expected):
    """toolsets.md 10."""
    canonical = canonical_schema(
        {"properties": {"f": field}, "required": ["f"] if "default" in field else []}
    )
    assert canonical["required"] == [], "not in the definition (9)"
    lowered = lower_schema(canonical, "strict")
    assert lowered["properties"]["f"] == expected
    assert lowered["required"] == ["f"]
    assert lower_schema(canonical)["required"] == []


def test_recursion_keeps_one_reference_and_its_definition():
    lowered = lower_schema(canonical_schema(Node.model_json_schema()))
    assert lowered["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert list(lowered["$defs"]) == ["Node"]
    inside = lower_schema(one_field(Node | None))
    assert inside["properties"]["f"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    for schema, wrap in ((lowered, lambda v: v), (inside, lambda v: {"f": v})):
        assert accepts(schema, wrap({"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}))
        assert not accepts(
            schema, wrap({"value": 1, "children": [{"value": 2, "children": [{"value": "x"}]}]})
        )


def test_mutual_recursion():
    canonical = canonical_schema(Left.model_json_schema())
    for dialect in ("default", "strict"):
        lowered = lower_schema(canonical, dialect)
        assert accepts(lowered, {"right": {"left": {"right": {"left": {"right": None}}}}})
        assert not accepts(lowered, {"right": {"left": {"right": {"left": {"right": 1}}}}})


def test_recursion_in_strict_has_nothing_beside_a_reference():
    schema = {"type": "object", "properties": {"next": {"$ref": "#", "description": "The next one."}}}
    lowered = lower_schema(canonical_schema(schema), "strict")
    assert lowered["properties"]["next"] == {
        "anyOf": [{"$ref": "#/$defs/schema"}, {"type": "null"}],
        "description": "The next one.",
    }
    assert all(len(node) == 1 for node in walk(lowered) if "$ref" in node)


def test_a_pointer_into_properties_is_a_reference_too():
    """zod-to-json-schema, which many MCP servers use, points at the first use of a schema."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": {"type": "string"}}},
            "b": {"$ref": "#/properties/a"},
        },
    }
    lowered = lower_schema(canonical_schema(schema))
    assert lowered["properties"]["b"] == lowered["properties"]["a"]


def test_a_pattern_with_lookaround_moves_into_the_description():
    """OpenAI and llama.cpp refuse the request for one (pydantic-ai issue 5508)."""
    canonical = canonical_schema(
        {"properties": {"f": {"type": "string", "pattern": DECIMAL, "description": "D."}}}
    )
    assert lower_schema(canonical)["properties"]["f"] == {
        "type": "string",
        "description": f"D. (pattern: {json.dumps(DECIMAL)})",
    }
    kept = canonical_schema({"properties": {"f": {"type": "string", "pattern": "^(?:a|b)$"}}})
    assert lower_schema(kept)["properties"]["f"]["pattern"] == "^(?:a|b)$"


def test_all_of_is_merged_where_the_parts_agree():
    canonical = canonical_schema(
        {
            "properties": {
                "f": {
                    "allOf": [
                        {"$ref": "#/$defs/A"},
                        {"properties": {"y": {"type": "string"}}, "required": ["y"]},
                    ]
                }
            },
            "$defs": {"A": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        }
    )
    expected = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    assert lower_schema(canonical)["properties"]["f"] == expected
    assert lower_schema(canonical, "strict")["properties"]["f"]["required"] == ["x", "y"]


def test_all_of_that_contradicts_itself_stays_and_is_no_strict_form():
    field = {
        "type": "object",
        "allOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"maxLength": 2}}}],
    }
    canonical = canonical_schema({"properties": {"f": field}})
    lowered = lower_schema(canonical)
    assert accepts(lowered, {"f": {"x": "ab"}})
    assert not accepts(lowered, {"f": {"x": "abc"}})
    assert accepts(lowered, {"f": {"y": 1}}), "looser: nobody reads unevaluatedProperties"
    assert not accepts(canonical, {"f": {"y": 1}})
    assert not [node for node in walk(lowered) if "unevaluatedProperties" in node]
    assert "parameters.f combines schemas that cannot be merged" in strict_problems(canonical)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {}, "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}, "a choice of several objects"),
        ({"properties": {f"p{i}": {"type": "string"} for i in range(MAX_PROPERTIES + 1)}}, "properties"),
        ({"properties": {"f": {"type": "integer", "enum": list(range(MAX_ENUM + 1))}}}, "enum values"),
        ({"properties": {"f": {"type": "string", "enum": [f"{i:080}" for i in range(251)]}}}, "is an enum of 20,080 characters"),
        ({"properties": {"f": {"type": "array", "prefixItems": [{"type": "string"}]}}}, "parameters.f[] may be anything"),
        ({"properties": {"f": {"type": "object", "patternProperties": {"^a": {}}}}}, "parameters.f is an open dictionary"),
        ({"properties": {"f": False}}, "parameters.f can be nothing"),
    ],
)  # fmt: skip
def test_what_strict_cannot_express_is_reported(schema, problem):
    problems = strict_problems(canonical_schema(schema))
    assert any(problem in text for text in problems), problems


def test_nesting_beyond_strict_is_reported():
    field: dict[str, Any] = {"type": "string"}
    for _ in range(MAX_DEPTH):
        field = {"type": "object", "properties": {"f": field}}
    assert strict_problems(canonical_schema({"properties": {"f": field["properties"]["f"]}})) == []
    assert "levels of nesting" in strict_problems(canonical_schema({"properties": {"f": field}}))[0]


def test_reuse_that_doubles_at_every_level_stays_bounded():
    definitions: dict[str, Any] = {
        f"L{i}": {"type": "object", "properties": {n: {"$ref": f"#/$defs/L{i + 1}"} for n in "ab"}}
        for i in range(60)
    }
    canonical = canonical_schema(
        {
            "properties": {"f": {"$ref": "#/$defs/L0"}},
            "$defs": {**definitions, "L60": {"type": "string"}},
        }
    )
    for dialect in ("default", "strict", "gemini"):
        if dialect != "strict":
            assert sum(1 for _ in walk(lower_schema(canonical, dialect))) < 4 * MAX_SCHEMAS
    assert strict_problems(canonical)
    value: Any = "x"
    for _ in range(60):
        value = {"a": value, "b": value}
    small: Any = "x"
    for _ in range(60):
        small = {"a": small}
    assert accepts(lower_schema(canonical), {"f": small})
    assert not accepts(lower_schema(canonical), {"f": {"a": {"a": 1}}})


def test_an_unknown_dialect_is_an_error_that_lists_what_exists():
    for make in (
        lambda: lower_schema({}, "lax"),
        lambda: encode_tools(Definitions(), "lax"),
        lambda: openai_tools([], "lax"),
    ):
        with pytest.raises(ToolsetError) as caught:
            make()
        assert caught.value.code == "unknown_dialect"
        assert caught.value.valid == ("default", "strict", "gemini")


LOOKUP = ToolDefinition(
    "lookup_order",
    "Look up one order by ID",
    canonical_schema({"properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}),
)
OPEN = ToolDefinition(
    "tag",
    "Tag it: 日本語",
    canonical_schema({"properties": {"tags": {"type": "object"}}, "required": ["tags"]}),
)


def test_openai_tools():
    assert openai_tools([LOOKUP]) == [
        {
            "type": "function",
            "function": {
                "name": "lookup_order",
                "description": "Look up one order by ID",
                "parameters": {
                    "type": "object",
                    "properties": {"order_id": {"type": "string"}},
                    "required": ["order_id"],
                    "additionalProperties": False,
                },
            },
        }
    ]


def test_strict_tools_fall_back_one_by_one():
    strict, loose = openai_tools([LOOKUP, OPEN], "strict")
    assert strict["function"]["strict"] is True
    assert loose["function"]["strict"] is False
    assert loose["function"]["parameters"] == lower_schema(OPEN.parameters)


def test_encode_tools_is_made_once_for_each_dialect():
    definitions = Definitions([LOOKUP, OPEN])
    encoded = encode_tools(definitions)
    assert json.loads(encoded) == openai_tools(definitions)
    assert "日本語".encode() in encoded
    assert encode_tools(definitions) is encoded
    assert json.loads(encode_tools(definitions, "strict")) == openai_tools(definitions, "strict")
    assert set(definitions.encoded) == {"default", "strict"}


def filled(schema: dict[str, Any], root: dict[str, Any], value: Any) -> Any:
    """Return the instance with null for what it leaves out, as strict mode has it."""
    if "$ref" in schema:
        return filled(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, value)
    for case in schema.get("anyOf", ()):
        candidate = filled(case, root, value)
        if accepts({**case, "$defs": root.get("$defs", {})}, candidate):
            return candidate
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [filled(schema["items"], root, item) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        return {name: filled(s, root, value.get(name)) for name, s in schema["properties"].items()} | {
            name: item for name, item in value.items() if name not in schema["properties"]
        }
    return value


def as_json_schema(schema: Any) -> Any:
    """Translate OpenAPI's ``nullable`` back, to judge instances."""
    out = {k: v for k, v in schema.items() if k != "nullable"}
    if "properties" in out:
        out["properties"] = {name: as_json_schema(inner) for name, inner in out["properties"].items()}
    if "items" in out:
        out["items"] = as_json_schema(out["items"])
    if "anyOf" in out:
        out["anyOf"] = [as_json_schema(case) for case in out["anyOf"]]
    return {"anyOf": [out, {"type": "null"}]} if schema.get("nullable") else out


def check_default(schema: dict[str, Any], instance: Any) -> None:
    canonical = canonical_schema(schema)
    before = json.dumps(canonical)
    lowered = lower_schema(canonical)
    assert json.dumps(canonical) == before
    assert json.dumps(lowered) == json.dumps(lower_schema(canonical))
    Draft202012Validator.check_schema(lowered)
    assert accepts(canonical, instance)
    assert accepts(lowered, instance)


def check_strict(schema: dict[str, Any], instance: Any) -> None:
    canonical = canonical_schema(schema)
    if strict_problems(canonical):
        with pytest.raises(ToolsetError):
            lower_schema(canonical, "strict")
        return
    lowered = lower_schema(canonical, "strict")
    Draft202012Validator.check_schema(lowered)
    assert accepts(lowered, filled(lowered, lowered, instance))
    assert lowered["type"] == "object"
    assert "anyOf" not in lowered
    for node in walk(lowered):
        assert set(node) <= KEPT
        if "$ref" in node:
            assert set(node) == {"$ref"}
        if "properties" in node:
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
        assert "$ref" in node or "anyOf" in node or "type" in node


def check_gemini(schema: dict[str, Any], instance: Any) -> None:
    lowered = lower_schema(canonical_schema(schema), "gemini")
    assert accepts(as_json_schema(lowered), instance)
    for node in walk(lowered):
        assert isinstance(node.get("type", ""), str)
        assert (
            not {"$ref", "$defs", "const", "oneOf", "allOf", "additionalProperties", "prefixItems"}
            & node.keys()
        )
        assert node.get("type") != "array" or "items" in node
        assert all(isinstance(value, str) for value in node.get("enum", ()))


CHECKS = {"default": check_default, "strict": check_strict, "gemini": check_gemini}


@pytest.mark.parametrize("dialect", CHECKS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pair=schemas_with_instances())
def test_lowering_keeps_every_valid_instance_valid(dialect, pair):
    """In strict with null for what is left out; each form has only what its provider documents."""
    CHECKS[dialect](*pair)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CHECKS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pair=schemas_with_instances())
def test_lowering_keeps_every_valid_instance_valid_at_length(dialect, pair):
    CHECKS[dialect](*pair)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int | None, {"type": "integer", "nullable": True}),
        (Colour | None, {"type": "string", "enum": ["red", "blue"], "nullable": True}),
        (Level, {"type": "integer", "description": "(enum: [1,2])"}),
        (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}], "nullable": True}),
        (Literal["a", 1], {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": '(enum: ["a",1])'}),
        (list, {"type": "array", "items": {}}),
        (
            tuple[int, str],
            {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "minItems": 2, "maxItems": 2},
        ),
        (dict[str, int], {"type": "object", "description": '(values: {"type":"integer"})'}),
        (dt.date, {"type": "string", "description": '(format: "date")'}),
    ],
)  # fmt: skip
def test_gemini_dialect(annotation, expected):
    """Its OpenAI-compatible address refuses lists of types, enums of numbers and arrays without items."""
    assert lower_schema(one_field(annotation), "gemini")["properties"]["f"] == expected


def test_gemini_unfolds_recursion_a_few_levels():
    lowered = lower_schema(canonical_schema(Node.model_json_schema()), "gemini")
    assert "$ref" not in json.dumps(lowered)
    value: dict[str, Any] = {"value": 1}
    for _ in range(9):
        value = {"value": 1, "children": [value]}
    assert accepts(as_json_schema(lowered), value)
