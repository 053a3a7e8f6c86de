"""The canonical form: closed, defaults optional, one form, references kept."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from jarvis_nb.core.errors import JarvisError, ToolsetError
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.subschemas import walk
from tests.core.schemas import schemas_with_instances

NO_FIELDS = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where to."""

    street: str
    zip: str = "00000"


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Order(BaseModel):
    address: Address
    back: Address | None = None
    colour: Colour = Colour.RED
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    prices: dict[str, int] = {}
    lines: dict[str, Address]
    tree: Node
    anything: Any = None
    title: str
    pair: tuple[int, str] = (1, "a")


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("empty", [None, {}, {"type": "object"}, {"properties": {}}, {"required": []}])
def test_11_an_action_without_fields_has_empty_properties_and_required(empty):
    """toolsets.md 11."""
    assert canonical_schema(empty) == NO_FIELDS


def test_9_objects_are_closed_recursively():
    """toolsets.md 9."""
    canonical = canonical_schema(Order.model_json_schema())
    named = [node for node in walk(canonical) if "properties" in node]
    assert len(named) == 5
    assert all(node["additionalProperties"] is False for node in named)


def test_9_a_field_with_a_default_is_not_required():
    """toolsets.md 9."""
    schema = {"type": "object", "properties": {"a": {"default": None}, "b": {}, "c": {"default": 1}}}
    assert canonical_schema({**schema, "required": ["a", "b", "b"]})["required"] == ["b"]
    nested = canonical_schema({"properties": {"o": {**schema, "required": ["a"]}}})["properties"]["o"]
    assert "required" not in nested


def test_pydantic_models_keep_their_meaning():
    canonical = canonical_schema(Order.model_json_schema())
    assert canonical["required"] == ["address", "pet", "lines", "tree", "title"]
    assert canonical["properties"]["prices"]["additionalProperties"] == {"type": "integer"}
    assert canonical["properties"]["lines"]["additionalProperties"] == {"$ref": "#/$defs/Address"}
    assert canonical["properties"]["title"] == {"type": "string"}, "a field may be called title"
    assert not [node for node in walk(canonical) if isinstance(node.get("title"), str)]
    good = {
        "address": {"street": "x"},
        "pet": {"kind": "cat"},
        "lines": {"a": {"street": "y", "zip": "1"}},
        "tree": {"value": 1, "children": [{"value": 2}]},
        "title": "T",
    }
    assert accepts(canonical, good)
    assert not accepts(canonical, {**good, "extra": 1})
    assert not accepts(canonical, {**good, "address": {"street": "x", "extra": 1}})
    assert not accepts(canonical, {**good, "tree": {"value": 1, "children": [{"value": 2, "extra": 1}]}})


def test_a_recursive_root_is_an_object_and_stays_recursive():
    canonical = canonical_schema(Node.model_json_schema())
    assert canonical["type"] == "object"
    assert accepts(canonical, {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]})
    assert not accepts(canonical, {"value": 1, "children": [{"value": 2, "children": [{"value": "x"}]}]})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "object"}, {"type": "object", "additionalProperties": True}),
        (
            {"type": "object", "minProperties": 1},
            {"type": "object", "minProperties": 1, "additionalProperties": True},
        ),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        (
            {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
            {
                "type": ["object", "null"],
                "properties": {"a": {"type": "string"}},
                "additionalProperties": False,
            },
        ),
        ({"properties": {}}, {"properties": {}, "additionalProperties": False}),
        (
            {"type": "object", "patternProperties": {"^x": {}}},
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
        ),
        (
            {"properties": {}, "required": ["a"]},
            {"properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
        ),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"const": {"title": "kept"}, "title": "T"}, {"const": {"title": "kept"}}),
        (
            {"not": {"type": "object", "properties": {"a": {}}, "title": "T"}},
            {"not": {"type": "object", "properties": {"a": {}}}},
        ),
    ],
)
def test_table_of_fields(field, expected):
    assert canonical_schema({"properties": {"f": field}})["properties"]["f"] == expected


COMPOSED = {
    "allOf with own properties": (
        {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/C"}]},
        [{"a": 1, "b": 2, "c": 3}, {}],
        [{"a": 1, "x": 2}],
    ),
    "two parts in allOf": (
        {"type": "object", "allOf": [{"$ref": "#/$defs/C"}, {"properties": {"b": {}}}]},
        [{"b": 1, "c": 2}],
        [{"x": 1}],
    ),
    "one reference in allOf": ({"allOf": [{"$ref": "#/$defs/C"}]}, [{"c": 1}], [{"x": 1}]),
    "choice beside properties": (
        {
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"$ref": "#/$defs/C"}],
        },
        [{"a": 1, "b": 2}, {"a": 1, "c": 2}],
        [{"a": 1, "x": 2}],
    ),
    "choice of what is required": (
        {"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "x": 2}],
    ),
    "choice alone": (
        {"type": "object", "anyOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/C"}]},
        [{"b": 1}, {"c": 1}],
        [{"x": 1}, {"b": 1, "c": 1}],
    ),
    "condition": (
        {
            "properties": {"a": {}},
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"properties": {"b": {}}},
        },
        [{"a": 1, "b": 2}, {"a": 2}],
        [{"a": 2, "b": 2}],
    ),
    "reference beside properties": (
        {"$ref": "#/$defs/C", "properties": {"a": {}}},
        [{"a": 1, "c": 2}],
        [{"x": 1}],
    ),
    "shared definition used alone": ({"$ref": "#/$defs/C"}, [{"c": 1}], [{"x": 1}]),
}


@pytest.mark.parametrize("case", COMPOSED)
def test_objects_described_by_several_schemas_are_closed_as_a_whole(case):
    """toolsets.md 9: closing each part alone would refuse what the others declare."""
    field, good, bad = COMPOSED[case]
    canonical = canonical_schema(
        {
            "properties": {"f": field, "g": {"allOf": [{"$ref": "#/$defs/C"}, {"properties": {"z": {}}}]}},
            "$defs": {"C": {"type": "object", "properties": {"c": {}}}},
        }
    )
    for value in good:
        assert accepts(canonical, {"f": value}), value
    for value in bad:
        assert not accepts(canonical, {"f": value}), value
    assert accepts(canonical, {"g": {"c": 1, "z": 2}})
    assert not accepts(canonical, {"g": {"c": 1, "x": 2}})
    assert canonical_schema(canonical) == canonical


@pytest.mark.parametrize(
    "root",
    [
        "text", 7, [1], True, {"type": "string"}, {"type": ["object", "null"]}, {"$ref": "#/$defs/Missing"},
        {"$ref": "#"}, {"$ref": "http://a/b"}, {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
    ],
)  # fmt: skip
def test_a_root_that_is_no_object_is_refused(root):
    with pytest.raises(ToolsetError) as caught:
        canonical_schema(root)
    assert caught.value.code == "invalid_schema"


def test_what_is_not_plain_data_is_refused_with_its_path():
    with pytest.raises(JarvisError) as caught:
        canonical_schema({"properties": {"f": {"default": print}}})
    assert caught.value.code == "not_portable"
    assert "parameters.properties.f.default" in str(caught.value)


def test_nothing_is_shared_with_the_input():
    given_ = {"type": "object", "properties": {"f": {"enum": ["a"]}}}
    canonical = canonical_schema(given_)
    given_["properties"]["f"]["enum"].append("b")
    assert canonical["properties"]["f"]["enum"] == ["a"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas_with_instances())
def test_canonical_is_idempotent_deterministic_and_keeps_closed_instances(pair):
    schema, instance = pair
    before = json.dumps(schema)
    canonical = canonical_schema(schema)
    assert json.dumps(schema) == before
    assert json.dumps(canonical) == json.dumps(canonical_schema(schema))
    assert json.dumps(canonical_schema(canonical)) == json.dumps(canonical)
    Draft202012Validator.check_schema(canonical)
    assert accepts(schema, instance)
    assert accepts(canonical, instance)
