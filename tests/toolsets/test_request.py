"""Requests from untrusted JSON: toolsets.md 13, 15, 22."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.toolsets.request import KEYS, MAX_BYTES, MAX_INPUT, Request, parse_request

GOOD = {"input": "Show order ORD-5.", "tool_policy": {"visible": ["lookup_order"]}}


def refused(data):
    with pytest.raises(InvalidRequest) as caught:
        parse_request(data)
    return caught.value


@pytest.mark.parametrize("form", [dict, json.dumps, lambda d: json.dumps(d).encode()])
def test_a_request_is_read_from_data_text_and_bytes(form):
    assert parse_request(form(GOOD)) == Request("Show order ORD-5.", {"visible": ["lookup_order"]})


@pytest.mark.parametrize("data", [{"input": "Hi"}, {"input": "Hi", "tool_policy": None}])
def test_the_policy_may_be_absent(data):
    assert parse_request(data) == Request("Hi", None)


@pytest.mark.parametrize(
    "key",
    [
        "tool_sources", "sources", "source", "jido_ai_tool_sources", "tools", "skills", "mcp", "mcp_servers", "context",
        "tool_context", "secrets", "config", "approve", "TOOL_SOURCES",
    ],
)  # fmt: skip
def test_22_a_source_like_key_is_rejected_and_says_who_gives_sources(key):
    error = refused({**GOOD, key: []})
    assert error.code == "invalid_request"
    assert repr(key) in error.message
    assert error.value == key
    assert "given by the host" in error.hint
    assert error.valid == KEYS


@pytest.mark.parametrize(
    "key", ["model", "system", "agent", "Input", "tool_policy ", "", "__class__", "history"]
)
def test_22_any_other_key_is_rejected_by_name(key):
    error = refused({**GOOD, key: "x"})
    assert error.code == "invalid_request"
    assert repr(key) in error.message or "tool_policy " in error.message


def test_22_a_source_like_key_inside_the_policy_is_rejected():
    error = refused({"input": "Hi", "tool_policy": {"sources": ["x"]}})
    assert error.code == "invalid_policy"
    assert "sources" in error.message


def test_a_giant_key_is_shown_short():
    assert len(str(refused({**GOOD, "x" * 100_000: 1}))) < 500


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "not a list"),
        (None, "not a NoneType"),
        ("[1]", "not a list"),
        ("", "no JSON"),
        ("{", "no JSON"),
        (b"\xff", "no JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"input": NaN}', "NaN is no JSON"),
        ('{"input": "a", "input": "b"}', "'input' stands twice"),
        ('{"input": "a", "tool_policy": {"hidden": [], "hidden": []}}', "'hidden' stands twice"),
        ({}, "no input"),
        ({"tool_policy": {}}, "no input"),
        ({"input": None}, "the input is a NoneType"),
        ({"input": 5}, "the input is a int"),
        ({"input": ["a"]}, "the input is a list"),
        ({"input": " \n\t"}, "blank"),
        ({"input": "x" * (MAX_INPUT + 1)}, "262,145 characters"),
        ('{"input": "\\ud800"}', "surrogate"),
        (" " * (MAX_BYTES + 1), "bytes, at most"),
        ({"input": "Hi", "tool_policy": []}, "tool_policy is a list"),
        ({"input": "Hi", "tool_policy": "auto"}, "tool_policy is a str"),
        ({"input": "Hi", "tool_policy": {"visible": [print]}}, "tool_policy.visible[0]"),
        ({"input": "Hi", "tool_policy": {"visible": ["x" * 300_000]}}, "300,0"),
    ],
)
def test_wrong_shapes_types_and_sizes_are_invalid_requests(data, says):
    error = refused(data)
    assert error.code == "invalid_request"
    assert says in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    "policy",
    [
        {"visible": "lookup_order"},
        {"hidden": [1]},
        {"requirement": "maybe"},
        {"requirement": {"tool": 1}},
        {"x": 1},
    ],
)
def test_15_a_policy_of_the_wrong_shape_is_refused_before_anything_runs(policy):
    assert refused({"input": "Hi", "tool_policy": policy}).code == "invalid_policy"


def test_the_policy_is_a_copy():
    data = {"input": "Hi", "tool_policy": {"visible": ["a"]}}
    request = parse_request(data)
    data["tool_policy"]["visible"].append("b")
    assert request.tool_policy == {"visible": ["a"]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(json_values)
def test_whatever_comes_is_a_request_or_an_invalid_request(data):
    for form in (data, json.dumps(data)):
        try:
            request = parse_request(form)
        except InvalidRequest:
            continue
        source = json.loads(form) if isinstance(form, str) and not isinstance(data, str) else form
        assert set(source) <= set(KEYS)
        assert request.input.strip()
