"""Arguments against a JSON Schema: lossless coercion, every problem named, never a hang."""

from __future__ import annotations

import contextlib
import copy
import socket
import time

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidArguments
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.tools.validate import validate_arguments


def schema(required=(), **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


INT, NUM, STR, BOOL = ({"type": t} for t in ("integer", "number", "string", "boolean"))
ADD = schema(("a", "b"), a=INT, b=INT)


def fields(parameters, arguments):
    with pytest.raises(InvalidArguments) as info:
        validate_arguments(parameters, arguments)
    assert info.value.code == "invalid_arguments"
    assert info.value.info().details == {"fields": info.value.problems}
    return {p["field"]: p["message"] for p in info.value.problems}


@pytest.mark.parametrize(
    ("part", "sent", "got"),
    [
        (INT, "2", 2),
        (INT, " -2 ", -2),
        (INT, 2.0, 2),
        (INT, "2.0", 2),
        (INT, "1" * 100, int("1" * 100)),
        (NUM, "2.5", 2.5),
        (NUM, "2", 2),
        (NUM, "1e3", 1000),
        (NUM, 2, 2),
        (BOOL, "true", True),
        (BOOL, "False", False),
        (STR, "2", "2"),
        ({"type": ["integer", "null"]}, "2", 2),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": ["string", "integer"]}, "2", "2"),
        ({"anyOf": [INT, {"type": "null"}]}, "2", 2),
        ({"anyOf": [{"type": "array", "items": INT}, {"type": "null"}]}, ["1", 2], [1, 2]),
        ({"oneOf": [schema(("n",), n=INT), schema(("m",), m=INT)]}, {"m": "1"}, {"m": 1}),
        ({"type": "array", "items": {"type": "array", "items": INT}}, [["1"], [2.0]], [[1], [2]]),
        ({"type": "object", "additionalProperties": INT}, {"x": "1"}, {"x": 1}),
        ({}, {"any": ["thing"]}, {"any": ["thing"]}),
        ({"enum": [1, "a"]}, "a", "a"),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "string", "pattern": "^a+$"}, "aaa", "aaa"),
    ],
)
def test_lossless_coercion(part, sent, got):
    """wire.md wrong field: "2" -> 2 is lossless and accepted."""
    value = validate_arguments(schema(("v",), v=part), {"v": sent})["v"]
    assert value == got
    assert type(value) is type(got)


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (INT, "x"),
        (INT, "2.5"),
        (INT, 2.5),
        (INT, ""),
        (INT, "٢"),
        (INT, "0x10"),
        (INT, "1_000"),
        (INT, True),
        (INT, [1]),
        (INT, None),
        (NUM, "nan"),
        (NUM, "inf"),
        (NUM, "1e999"),
        (NUM, "1" * 500),
        (NUM, False),
        (BOOL, "yes"),
        (BOOL, "1"),
        (BOOL, 1),
        (BOOL, 0),
        (STR, 2),
        (STR, None),
        ({"enum": [1, 2]}, True),
        ({"type": "string", "enum": ["a", "b"]}, "c"),
        ({"anyOf": [INT, {"type": "null"}]}, "x"),
        ({"type": "string", "pattern": "^a+$"}, "aab"),
        ({"type": "integer", "minimum": 3}, "2"),
        ({"type": "array", "uniqueItems": True}, [1, 1.0]),
        ({"type": "array", "uniqueItems": True}, [{"a": [1]}, {"a": [1]}]),
    ],
)
def test_nothing_is_guessed(part, sent):
    """wire.md wrong field: "x" is not accepted; true never comes from "yes"."""
    found = fields(schema(("v",), v=part), {"v": sent})
    assert list(found) == ["v"]
    assert 0 < len(found["v"]) <= 200


def test_all_problems_are_named_with_their_path():
    """wire.md extra / missing / wrong field: the field named."""
    order = schema(("id", "lines"), id=STR, lines={"type": "array", "items": schema(("qty",), qty=INT)})
    found = fields(
        schema(("order", "city"), order=order, city=STR),
        {"order": {"id": 5, "lines": [{"qty": 1}, {"qty": "x"}, {}], "extra": 1}, "units": "C"},
    )
    assert found == {
        "order.id": "expected string, got 5",
        "order.lines[1].qty": 'expected integer, got "x"',
        "order.lines[2].qty": "is missing",
        "order.extra": "is not expected; valid: id, lines",
        "city": "is missing",
        "units": "is not expected; valid: order, city",
    }


def test_only_what_stays_wrong_is_told():
    assert fields(ADD, {"a": "2", "b": "x"}) == {"b": 'expected integer, got "x"'}


def test_problems_are_bounded():
    found = fields(schema(), {f"field_{i}" * 100: "x" * 10_000 for i in range(500)})
    assert len(found) == 21
    assert found[""] == "and 480 more"
    assert all(len(message) <= 200 and len(field) <= 200 for field, message in found.items())


@pytest.mark.parametrize("sent", [["Paris"], 7, "text", None])
def test_arguments_are_an_object(sent):
    """wire.md list, number, text: expected an object."""
    assert fields(ADD, sent)[""].startswith("expected an object")


def test_extra_fields_are_refused_only_where_the_schema_is_closed():
    """toolsets.md 9: canonical definitions are closed."""
    open_schema = {"type": "object", "properties": {"a": INT}}
    assert validate_arguments(open_schema, {"a": "1", "b": 2}) == {"a": 1, "b": 2}
    assert fields(canonical_schema(open_schema), {"a": 1, "b": 2}) == {"b": "is not expected; valid: a"}
    assert validate_arguments({}, {"b": 2}) == {"b": 2}


def test_defaults_are_filled_and_not_shared():
    """toolsets.md 9."""
    parameters = schema((), a={"type": "integer", "default": 1}, tags={"type": "array", "default": []})
    first = validate_arguments(parameters, {})
    assert first == {"a": 1, "tags": []}
    first["tags"].append("x")
    assert validate_arguments(parameters, {"a": 2}) == {"a": 2, "tags": []}
    nested = schema((), o=schema((), n={"type": "integer", "default": 5}))
    assert validate_arguments(nested, {"o": {}}) == {"o": {"n": 5}}
    # The author's own default is not judged: None for an integer is the way to say "none given".
    assert validate_arguments(schema((), a={"type": "integer", "default": None}), {}) == {"a": None}


@pytest.mark.parametrize(
    ("part", "got"),
    [
        ({"type": "integer", "default": 5}, {"v": 5}),
        ({"type": "integer"}, {}),
        ({"enum": ["a"], "default": "a"}, {"v": "a"}),
        ({"allOf": [INT], "default": 1}, {"v": 1}),
        ({"type": ["integer", "null"], "default": 5}, {"v": None}),
        ({"anyOf": [INT, {"type": "null"}], "default": 5}, {"v": None}),
        ({"enum": ["a", None], "default": "a"}, {"v": None}),
        ({"default": 5}, {"v": None}),
        ({"$ref": "#/$defs/N", "default": 5}, {"v": 5}),
        ({"$ref": "#/$defs/M", "default": 5}, {"v": None}),
    ],
)
def test_null_means_use_the_default_where_null_is_no_value(part, got):
    """toolsets.md 10: in every dialect a null for a defaulted field whose type excludes null."""
    parameters = schema((), v=part) | {"$defs": {"N": INT, "M": {"type": ["integer", "null"]}}}
    assert validate_arguments(parameters, {"v": None}) == got
    nested = schema((), o=schema((), v=part)) | {"$defs": parameters["$defs"]}
    assert validate_arguments(nested, {"o": {"v": None}}) == {"o": got}


def test_null_for_a_required_field_is_a_mistake():
    assert fields(ADD, {"a": None, "b": 1}) == {"a": "expected integer, got null"}


def test_references_are_followed():
    """toolsets.md 12: canonical schemas may keep local references."""
    tree = canonical_schema(
        {
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/Node"}},
            "required": ["root"],
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {"n": INT, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
                    "required": ["n"],
                }
            },
        }
    )
    sent = {"root": {"n": "1", "next": {"n": 2.0, "next": None}}}
    assert validate_arguments(tree, sent) == {"root": {"n": 1, "next": {"n": 2, "next": None}}}
    assert list(fields(tree, {"root": {"n": 1, "next": {"n": 1, "x": 2}}})) == ["root.next.x"]


def test_composed_objects_are_closed_as_a_whole():
    """toolsets.md 9."""
    parameters = canonical_schema(
        {"type": "object", "allOf": [{"properties": {"a": INT}}, {"properties": {"b": INT}}]}
    )
    assert validate_arguments(parameters, {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert "c" in str(fields(parameters, {"a": 1, "c": 2}))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(scalars, lambda i: st.lists(i, max_size=3) | st.dictionaries(st.sampled_from("abc"), i))
parts = st.recursive(
    st.sampled_from(
        [INT, NUM, STR, BOOL, {"type": "null"}, {}, {"enum": ["a", 1, None]}, {"type": ["integer", "null"]}]
    ),
    lambda inner: (
        st.builds(lambda i: {"type": "array", "items": i}, inner)
        | st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner)
        | st.builds(
            lambda p, r: {"type": "object", "properties": p, "required": r, "additionalProperties": False},
            st.dictionaries(st.sampled_from("abc"), inner),
            st.lists(st.sampled_from("abc"), unique=True),
        )
    ),
    max_leaves=6,
)
objects = st.builds(
    lambda p, r: {"type": "object", "properties": p, "required": r},
    st.dictionaries(st.sampled_from("abc"), parts),
    st.lists(st.sampled_from("abc"), unique=True),
)


@given(objects, st.dictionaries(st.sampled_from("abcd"), values, max_size=3))
def test_what_is_accepted_is_what_json_schema_accepts(parameters, arguments):
    """What is valid comes back as it was (nulls for absent aside), and what comes back is valid."""
    before = copy.deepcopy(arguments)
    judge = jsonschema.Draft202012Validator(parameters)
    if judge.is_valid(arguments):
        assert validate_arguments(parameters, arguments) == arguments
    else:
        with contextlib.suppress(InvalidArguments):
            assert judge.is_valid(validate_arguments(parameters, arguments))
    assert arguments == before


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "(a|aa)+$",
        "(.*a){25}",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        "((a{0,9}){0,9}){0,9}$",
        "(a{1000}){1000}",
    ],
)
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_hostile_pattern_does_not_hang(pattern, keyword):
    """toolsets.md 25: bounded; a pattern runs in linear time."""
    text = "a" * 5000 + "!"
    before = time.perf_counter()
    part = (
        {"type": "string", "pattern": pattern}
        if keyword == "pattern"
        else {"patternProperties": {pattern: INT}}
    )
    parameters = {"type": "object", "properties": {"v": part}, "additionalProperties": False}
    with contextlib.suppress(InvalidArguments):
        validate_arguments(parameters, {"v": text if keyword == "pattern" else {text: "x"}})
    assert time.perf_counter() - before < 1


def test_pattern_properties_open_and_close_an_object():
    parameters = {"type": "object", "patternProperties": {"^x_": INT}, "additionalProperties": False}
    assert validate_arguments(parameters, {"x_a": "1"}) == {"x_a": 1}
    assert fields(parameters, {"y": 1}) == {"y": "is not expected"}
    assert fields(parameters, {"x_a": "z"}) == {"x_a": 'expected integer, got "z"'}


@pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1", "("])
def test_a_pattern_without_a_linear_form_is_not_checked(pattern):
    assert validate_arguments(schema(v={"type": "string", "pattern": pattern}), {"v": "b"}) == {"v": "b"}


def deep(levels):
    value: dict = {}
    for _ in range(levels):
        value = {"next": value}
    return value


MULTIPLYING = {
    "type": "object",
    "properties": {"v": {"$ref": "#/$defs/d0"}},
    "$defs": {
        **{f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)},
        "d40": INT,
    },
}


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}, deep(900)),
        ({"type": "object", "properties": {"v": {"$ref": "#/properties/v"}}}, {"v": 1}),
        (MULTIPLYING, {"v": "x"}),
        (
            schema(v={"type": "array", "uniqueItems": True}),
            {"v": [{"n": 0}, *({"n": i} for i in range(3000)), {"n": 0}]},
        ),
        (schema(v={"type": "array", "items": {"enum": list(range(5000))}}), {"v": [-1] * 3000}),
        (schema(v={"type": "number", "multipleOf": 0}), {"v": 1}),
        (schema(v={"type": "number", "multipleOf": 0.1}), {"v": 10**4000}),
        (schema(v={"type": "unheard_of"}), {"v": 1}),
        (schema(v={"minimum": "x"}), {"v": 1}),
        (schema(v={"$ref": "#/$defs/missing"}), {"v": 1}),
        ({"type": "object", "properties": [], "required": 7}, {"v": 1}),
        ({"type": "object", "required": 7}, {"v": 1}),
    ],
)
def test_an_unusable_schema_is_data_and_never_a_hang(parameters, arguments):
    """toolsets.md 25, tools.md 4: never an exception but the refusal."""
    before = time.perf_counter()
    assert fields(parameters, arguments)
    assert time.perf_counter() - before < 1.5


def test_a_multiplying_schema_is_judged_once_for_null():
    before = time.perf_counter()
    assert validate_arguments(MULTIPLYING, {"v": None}) == {}
    assert time.perf_counter() - before < 0.5


def test_remote_references_are_not_fetched(monkeypatch):
    """toolsets.md 25: no remote $ref."""

    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for ref in ("http://127.0.0.1:9/x.json", "file:///etc/passwd", "x.json"):
        assert "cannot be checked" in fields(schema(v={"$ref": ref}), {"v": 1})[""]


def test_the_schema_and_the_arguments_are_left_alone():
    parameters = schema(("a",), a=INT, b={"type": "array", "items": INT, "default": [1]})
    arguments = {"a": "1", "b": ["2"]}
    before = copy.deepcopy((parameters, arguments))
    assert validate_arguments(parameters, arguments) == {"a": 1, "b": [2]}
    assert (parameters, arguments) == before


def test_many_schemas_are_kept_apart():
    for i in range(3000):
        assert validate_arguments(schema((), a={"type": "integer", "default": i}), {}) == {"a": i}


@pytest.mark.slow
def test_the_usual_call_needs_no_jsonschema():
    """design.md rule 7: light."""
    import subprocess
    import sys

    code = (
        "import sys; from jarvis_nb.tools.validate import validate_arguments as v\n"
        f"assert v({ADD!r}, {{'a': 1, 'b': 2}}) == {{'a': 1, 'b': 2}}\n"
        "assert 'jsonschema' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
