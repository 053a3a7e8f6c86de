"""local.md 5: what the model writes is held to the tool's schema, and every repetition in it has an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jarvis_nb.engines.bounding import bounded, grammar

TEXT = {"type": "string", "maxLength": 200}
NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["value"],
}


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        ({"type": "string"}, TEXT),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 5}),
        ({"type": "string", "minLength": 300}, {"type": "string", "minLength": 300, "maxLength": 300}),
        ({"type": "string", "maxLength": 9999}, TEXT),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "colour"}, TEXT),
        ({"type": "string", "pattern": "^a+$"}, {**TEXT, "pattern": "^a+$"}),
        ({"type": "integer", "minimum": 1, "title": "N"}, {"type": "integer", "minimum": 1}),
        ({"type": ["string", "null"]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"const": 3}, {"const": 3}),
        ({}, TEXT),
        (True, TEXT),
        (False, None),
        ({"enum": []}, None),
        ({"oneOf": [{"type": "null"}, False]}, {"type": "null"}),
        ({"$ref": "#/nowhere"}, None),
        ({"$ref": "#"}, None),  # itself, without end
        ({"type": "array"}, {"type": "array", "minItems": 0, "maxItems": 16, "items": TEXT}),
        (
            {"type": "array", "items": False, "prefixItems": [{"type": "null"}]},
            {
                "type": "array",
                "minItems": 0,
                "maxItems": 1,
                "items": False,
                "prefixItems": [{"type": "null"}],
            },
        ),
        ({"type": "array", "items": False, "minItems": 2}, None),
        (
            {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"required": ["a"]}]},
            {
                "type": "object",
                "properties": {"a": {"type": "null"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "properties": {}, "required": [], "additionalProperties": {"type": "integer"}},
        ),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, None),
    ],
)
def test_table(schema: Any, result: Any) -> None:
    assert bounded(schema) == result


def test_a_recursive_definition_ends() -> None:
    found = bounded({"$ref": "#/$defs/Node", "$defs": {"Node": NODE}})
    depth, node = 0, found
    while node is not None:
        depth, node = depth + 1, node["properties"].get("next")
    assert depth == 3
    assert "$ref" not in json.dumps(found)


def test_a_recursion_that_cannot_end_has_no_value() -> None:
    endless = {**NODE, "required": ["value", "next"]}
    assert bounded({"$ref": "#/$defs/Node", "$defs": {"Node": endless}}) is None
    assert grammar({"$ref": "#/$defs/Node", "$defs": {"Node": endless}}) is None


def test_a_known_argument_is_the_only_one_that_can_be_written() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
    }
    rules = json.loads((grammar(schema, {"path": "a.txt"}) or "").split("%json ")[1])
    assert rules["properties"]["path"] == {"const": "a.txt"}
    assert rules["required"] == ["path"]
    assert rules["x-guidance"]["whitespace_flexible"] is False
