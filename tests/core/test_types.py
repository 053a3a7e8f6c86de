"""Messages, calls, results and usage: to and from OpenAI's form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.types import (
    Definitions,
    Message,
    Repair,
    Role,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
    dumps,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_tool_result_has_the_fields_and_defaults_of_the_table():
    """tools.md 1: ToolResult."""
    result = ToolResult("calculator", "4")
    assert (result.tool_name, result.content, result.success) == ("calculator", "4", True)
    assert (result.usage, result.cost_usd, result.latency_seconds, result.metadata) == ({}, 0.0, 0.0, {})
    assert ToolResult("a", "").metadata is not ToolResult("b", "").metadata


def test_a_call_goes_out_with_its_arguments_as_a_string():
    """wire.md normal form: on replay always a JSON object string."""
    assert ToolCall("call_1", "f", {"city": "京都"}).to_openai() == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "f", "arguments": '{"city":"京都"}'},
    }
    assert ToolCall("call_1", "f", '{"a": 1}').to_openai()["function"]["arguments"] == '{"a": 1}'


def test_what_the_model_really_sent_does_not_count_in_comparisons():
    assert ToolCall("call_1", "f", "{}", provider_id="") == ToolCall("call_1", "f", "{}", raw_name="f!")


MESSAGES = [
    Message(Role.SYSTEM, "Be brief."),
    Message(Role.USER, "日本語 🎉"),
    Message(Role.USER, [{"type": "text", "text": "a"}]),
    Message(Role.ASSISTANT, None, [ToolCall("call_1", "f", "{}"), ToolCall("call_2", "g", '{"a":1}')]),
    Message(Role.ASSISTANT, "both", [ToolCall("call_1", "f", "{}")]),
    Message(Role.TOOL, "4", tool_call_id="call_1"),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_survive_the_way_to_openai_and_back(message):
    """design.md: history takes reply.messages or OpenAI dicts."""
    data = json.loads(json.dumps(message.to_openai()))
    assert Message.from_openai(data) == message
    assert Message.from_openai(data).to_openai() == data


def test_an_assistant_with_calls_only_has_null_content():
    """wire.md normal form: content null beside calls."""
    assert MESSAGES[3].to_openai()["content"] is None
    assert "tool_calls" not in MESSAGES[1].to_openai()
    assert "tool_call_id" not in MESSAGES[1].to_openai()


def test_text_joins_parts():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "b"},
    ]
    assert Message(Role.USER, parts).text == "ab"
    assert Message(Role.ASSISTANT, None).text == ""


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"role": "robot", "content": "x"},
        {"role": None},
        {"role": []},
        "text",
        7,
        None,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": None, "tool_calls": ["x"]},
        {"role": "assistant", "content": None, "tool_calls": 7},
    ],
)
def test_a_message_of_another_shape_is_the_callers_error(data):
    """tools.md 20: nothing is dropped silently."""
    with pytest.raises(InvalidRequest) as info:
        Message.from_openai(data)
    assert info.value.code == "invalid_request"


def test_usage_adds_up():
    assert (Usage(10, 5) + Usage(1, 2)).to_dict() == {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
    }


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 9}, Usage(3, 4)),
        ({"prompt_tokens": None}, Usage()),
        ({"prompt_tokens": "3", "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, Usage()),
        ({"prompt_tokens": 3.0, "completion_tokens": 10**400}, Usage(3, 10**400)),
        (None, Usage()),
        ([], Usage()),
    ],
)
def test_usage_is_read_from_whatever_a_server_sends(data, usage):
    assert Usage.from_openai(data) == usage


def test_definitions_are_a_tuple_that_remembers_encodings():
    definition = ToolDefinition("a", "A.", {"type": "object"})
    definitions = Definitions([definition])
    assert definitions == (definition,)
    definitions.encoded["default"] = b"[]"
    assert Definitions([definition]).encoded == {}


def test_a_repair_reads_as_a_sentence():
    """wire.md: each repair is recorded and shown."""
    assert str(Repair("duplicate_id", "the second was renamed", 1)) == "round 1: the second was renamed"
    assert str(Repair("duplicate_id", "the second was renamed")) == "the second was renamed"


@given(json_values)
def test_dumps_gives_the_value_back_and_can_always_be_encoded(value):
    """toolsets.md 33, wire.md: compact JSON, text as it is, a lone surrogate never crashes."""
    text = dumps(value)
    assert json.loads(text) == value
    assert text.encode()


def test_dumps_keeps_text_as_it_is_and_escapes_lone_surrogates():
    assert dumps({"a": ["日本語 🎉", 1]}) == '{"a":["日本語 🎉",1]}'
    assert dumps("x\ud800") == '"x\\ud800"'
