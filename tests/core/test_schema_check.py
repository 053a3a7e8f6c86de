"""toolsets.md 25: a schema from outside is an object schema, valid, bounded, and refers to itself only."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.schema import (
    canonical_schema,
    check_schema,
    lower_schema,
    schema_problem,
    strict_problems,
)
from jarvis_nb.core.schema_check import MAX_BYTES, MAX_CHAIN, MAX_IN_PLACE, MAX_PROPERTIES
from tests.core.schemas import schemas_with_instances

OWNER = "the tool 'exchange_rate' of rates"


def with_field(field: Any, **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": field}, "$defs": definitions}


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema["properties"]["b"] = schema
    return schema


def shared() -> dict[str, Any]:
    value: Any = {"type": "string"}
    for _ in range(25):
        value = {"anyOf": [value, value]}
    return with_field(value)


def nested(depth: int) -> dict[str, Any]:
    value: Any = {"type": "string"}
    for _ in range(depth):
        value = {"type": "array", "items": value}
    return with_field(value)


def chain(length: int) -> dict[str, Any]:
    links = {f"L{i}": {"$ref": f"#/$defs/L{i + 1}"} for i in range(length)}
    return with_field({"$ref": "#/$defs/L0"}, **links, **{f"L{length}": {"type": "string"}})


def doubling(levels: int) -> dict[str, Any]:
    steps = {f"L{i}": {"allOf": [{"$ref": f"#/$defs/L{i + 1}"}] * 2} for i in range(levels)}
    return with_field({"$ref": "#/$defs/L0"}, **steps, **{f"L{levels}": {"type": "string"}})


REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ("text", "not {"),
    "None": (None, "not {"),
    "a list": ([{"type": "object"}], "not {"),
    "another root": ({"type": "string"}, "not {"),
    "a root without a type": ({"properties": {}}, "not {"),
    "a root of two types": ({"type": ["object", "null"]}, "not {"),
    "a root that is a choice": ({"anyOf": [{"type": "object"}]}, "not {"),
    "a root that refers to itself": ({"$ref": "#"}, "not {"),
    "a remote reference": (with_field({"$ref": "http://evil.example/x"}), "is not local"),
    "a file reference": (with_field({"$ref": "file:///etc/passwd"}), "is not local"),
    "a relative reference": (with_field({"$ref": "other.json#/x"}), "is not local"),
    "a reference that is no text": (with_field({"$ref": 7}), "is not local"),
    "a reference to an anchor": (with_field({"$ref": "#anchor"}), "points at no schema"),
    "a reference to nothing": (with_field({"$ref": "#/$defs/Missing"}), "points at no schema"),
    "a reference into data": (with_field({"$ref": "#/properties/f/default", "default": {}}), "points at no schema"),
    "a hidden remote reference": (with_field({"items": {"anyOf": [{"not": {"$ref": "http://a/b"}}]}}), "is not local"),
    "dynamicRef": (with_field({"$dynamicRef": "#x"}), "$dynamicRef is not taken"),
    "dynamicAnchor": (with_field({"$dynamicAnchor": "x"}), "$dynamicAnchor is not taken"),
    "recursiveRef": (with_field({"$recursiveRef": "#"}), "$recursiveRef is not taken"),
    "an inner id": (with_field({"$id": "http://a/b"}), "$id"),
    "a reference in a circle": (with_field({"$ref": "#/$defs/A"}, A={"$ref": "#/$defs/A"}), "back to itself"),
    "a choice in a circle": (with_field({"$ref": "#/$defs/A"}, A={"anyOf": [{"$ref": "#/$defs/A"}]}), "back to itself"),
    "a root in a circle": ({"type": "object", "allOf": [{"$ref": "#"}]}, "back to itself"),
    "a chain of references": (chain(MAX_CHAIN + 2), "lead from one to the next"),
    "a doubling of references": (doubling(12), f"more than {MAX_IN_PLACE:,} schemas apply"),
    "containers in a circle": (cyclic(), "more than"),
    "shared containers": (shared(), "more than"),
    "too deep": (nested(40), "nested"),
    "too big": (with_field({"description": "x" * MAX_BYTES}), "characters"),
    "too big in bytes": (with_field({"description": "日" * (MAX_BYTES // 2)}), "bytes"),
    "too many properties": ({"type": "object", "properties": {f"p{i}": {} for i in range(MAX_PROPERTIES + 1)}}, "properties"),
    "a huge number": (with_field({"maximum": 10**5000}), "4300"),
    "not a number": (with_field({"maximum": float("nan")}), "not a finite number"),
    "not plain data": (with_field({"default": print}), "not plain data"),
    "a key that is no text": (with_field({1: 2}), "keys are strings"),
    "an unknown type": (with_field({"type": "strng"}), "$.properties.f.type"),
    "required that is no list": ({"type": "object", "required": "f"}, "$.required"),
    "properties that are no map": ({"type": "object", "properties": ["f"]}, "$.properties"),
    "a schema that is a text": (with_field("string"), "$.properties.f"),
    "a limit that is a text": (with_field({"minimum": "1"}), "$.properties.f.minimum"),
    "an enum that is no list": (with_field({"enum": "a"}), "$.properties.f.enum"),
    "an empty choice": (with_field({"anyOf": []}), "$.properties.f.anyOf"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_25_what_is_refused(name):
    """toolsets.md 25: quickly, and the error names the owner."""
    schema, reason = REFUSED[name]
    began = time.perf_counter()
    with pytest.raises(ToolsetError) as caught:
        check_schema(schema, OWNER)
    assert time.perf_counter() - began < 1
    assert caught.value.code == "invalid_schema"
    assert str(caught.value).startswith(OWNER)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 600


TAKEN: dict[str, Any] = {
    "no fields": {"type": "object"},
    "a reference in the root": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {}}}},
    "recursion": with_field({"$ref": "#/$defs/A"}, A={"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}),
    "recursion to the root": with_field({"$ref": "#"}),
    "a pointer into properties": {"type": "object", "properties": {"a": {"type": "array", "items": {}}, "b": {"$ref": "#/properties/a/items"}}},
    "an escaped pointer": with_field({"$ref": "#/$defs/a~1b%20c"}, **{"a/b c": {"type": "string"}}),
    "a property called $ref": {"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {}, "$anchor": {}}},
    "a reference in data": with_field({"default": {"$ref": "http://a/b"}, "enum": [{"$ref": 1}]}),
    "another draft": {"$schema": "http://json-schema.org/draft-07/schema#", **with_field({"items": [{"type": "string"}]})},
    "an id of the whole": {"$id": "https://example.com/x", **with_field({"$ref": "#/$defs/A"}, A={})},
    "unknown keywords": with_field({"x-order": 3, "nullable": True}),
    "boolean schemas": with_field(True, A=False),
    "a short chain": chain(9),
    "a wide one": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(MAX_PROPERTIES)}},
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_25_what_is_taken_can_be_made_canonical_and_lowered(name):
    """toolsets.md 25."""
    check_schema(TAKEN[name], OWNER)
    canonical = canonical_schema(TAKEN[name])
    assert schema_problem(canonical) is None
    for dialect in ("default", "gemini"):
        assert lower_schema(canonical, dialect)["type"] == "object"
    assert isinstance(strict_problems(canonical), list)


def fan(count: int) -> dict[str, Any]:
    """Return definitions that all refer to each other: the worst for finding recursion."""
    links = {
        f"L{i}": {"properties": {"x": {"$ref": f"#/$defs/L{(i * 7 + 1) % count}"}}} for i in range(count)
    }
    return with_field({"$ref": "#/$defs/L0"}, **links)


@pytest.mark.parametrize(
    "schema",
    [
        fan(900),
        with_field(
            {"anyOf": [{"$ref": "#/$defs/L0"}] * 450}, L0={"properties": {str(i): {} for i in range(900)}}
        ),
        {"type": "object", "properties": {str(i): {"anyOf": [{}] * 16} for i in range(950)}},
        with_field({"pattern": "(a+)+$" * 500, "patternProperties": {"(x+x+)+y": {}}}),
    ],
)
def test_the_worst_that_is_taken_is_still_quick(schema):
    began = time.perf_counter()
    check_schema(schema, OWNER)
    canonical = canonical_schema(schema)
    for dialect in ("default", "gemini"):
        lower_schema(canonical, dialect)
    strict_problems(canonical)
    assert time.perf_counter() - began < 10


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas_with_instances())
def test_every_ordinary_schema_is_taken(pair):
    check_schema(pair[0], OWNER)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["object", "#", "#/$defs/A"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "properties", "$ref", "$defs", "A", "allOf", "items", "required", "not", "enum", "default"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JUNK)
def test_anything_is_either_refused_or_usable(junk):
    schema = {"type": "object", **junk} if isinstance(junk, dict) else junk
    refusal = None
    try:
        check_schema(schema, OWNER)
    except ToolsetError as error:
        refusal = error
    if refusal is not None:
        assert refusal.code == "invalid_schema"
        assert str(refusal).startswith(OWNER)
    else:
        canonical = canonical_schema(schema)
        assert canonical_schema(canonical) == canonical
        assert lower_schema(canonical)["type"] == "object"
        assert strict_problems(canonical) is not None


def test_schema_problem_is_none_for_json_schema():
    assert schema_problem({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}) is None
    assert "$.properties.a.type" in str(schema_problem({"properties": {"a": {"type": "strng"}}}))


LEAF = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["string", "integer", "null", "strng", 7, None, ["string"], ["string", "string"]]
        ),
        "description": st.sampled_from(["D", 7, None]),
        "default": st.sampled_from([None, 1, "a", []]),
        "minimum": st.sampled_from([1, 1.5, "1", True, None]),
        "enum": st.sampled_from([["a"], [], "a", None]),
        "format": st.sampled_from(["date", 7]),
        "pattern": st.sampled_from(["a", 7]),
    },
)
FIELD = st.recursive(
    LEAF | st.booleans() | st.just("string"),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(inner, max_size=3) | inner,
            "items": inner,
            "additionalProperties": inner,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2) | inner,
        },
    ),
    max_leaves=6,
)
PLAIN = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "object", "objekt"])},
    optional={
        "properties": st.dictionaries(st.sampled_from("abc"), FIELD, max_size=3),
        "required": st.sampled_from([[], ["a"], ["a", "a"], "a", [1]]),
        "additionalProperties": st.sampled_from([True, False, {}, None, 0]),
    },
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLAIN)
def test_what_is_valid_at_a_glance_is_valid_for_jsonschema(schema):
    problem = schema_problem(schema)
    assert (problem is None) == Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)


def test_ordinary_tools_need_no_jsonschema():
    code = (
        "import sys; from jarvis_nb.toolsets.toolset import Toolset; from jarvis_nb.tools.calculator import CalculatorTool;"
        "from jarvis_nb.tools.think import ThinkTool; Toolset([CalculatorTool(), ThinkTool()]); print('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
