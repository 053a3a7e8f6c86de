"""wire.md "Normal form": what is sent, byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.types import Message, Role, ToolCall
from jarvis_nb.engines import encode
from jarvis_nb.engines.encode import OPENAI, Dialect, encode_message, encode_messages

CALL = ToolCall("call_1", "add", '{"a":1}')


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (Message(Role.SYSTEM, "Be brief."), '{"role":"system","content":"Be brief."}'),
        (Message(Role.USER, "日本語 🎉"), '{"role":"user","content":"日本語 🎉"}'),
        (Message(Role.USER, None), '{"role":"user","content":""}'),
        (
            Message(Role.USER, [{"type": "text", "text": "é"}]),
            '{"role":"user","content":[{"type":"text","text":"é"}]}',
        ),
        (
            Message(Role.TOOL, "4", tool_call_id="call_1"),
            '{"role":"tool","content":"4","tool_call_id":"call_1"}',
        ),
        (Message(Role.ASSISTANT, "4"), '{"role":"assistant","content":"4"}'),
        (Message(Role.ASSISTANT, "4", reasoning="hmm"), '{"role":"assistant","content":"4"}'),
        (
            Message(Role.ASSISTANT, None, [CALL]),
            '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\\"a\\":1}"}}]}',
        ),
    ],
)
def test_message(message, sent):
    assert encode_message(message).decode() == sent


@pytest.mark.parametrize(
    ("option", "content"), [("null", {"content": None}), ("empty", {"content": ""}), ("omit", {})]
)
def test_content_of_a_message_that_only_calls(option, content):
    """wire.md "Normal form": null, or by engine option an empty string or no key."""
    dialect = Dialect(call_content=option)
    for message in (Message(Role.ASSISTANT, None, [CALL]), Message(Role.ASSISTANT, "", [CALL])):
        sent = json.loads(encode_message(message, dialect))
        del sent["tool_calls"], sent["role"]
        assert sent == content
    assert json.loads(encode_message(Message(Role.ASSISTANT, "So", [CALL]), dialect))["content"] == "So"


@pytest.mark.parametrize(
    ("arguments", "text", "value"),
    [
        ('{"a":1}', '{"a":1}', {"a": 1}),
        ({"a": "é"}, '{"a":"é"}', {"a": "é"}),
        ("", "{}", {}),
        ("{", "{}", {}),
        ("[1]", "{}", {}),
        ({"a": float("nan")}, "{}", {}),
    ],
)
def test_arguments_as_text_and_as_an_object(arguments, text, value):
    """wire.md "Normal form": always a JSON object string; native Ollama wants an object."""
    message = Message(Role.ASSISTANT, None, [ToolCall("a", "add", arguments)])

    def sent(dialect):
        return json.loads(encode_message(message, dialect))["tool_calls"][0]["function"]["arguments"]

    assert (sent(OPENAI), sent(Dialect(arguments="object"))) == (text, value)


def test_an_illegal_name_is_sanitised():
    """wire.md "Normal form": some servers refuse the rest of the conversation otherwise."""
    sent = json.loads(encode_message(Message(Role.ASSISTANT, None, [ToolCall("a", "get weather!", "{}")])))
    assert sent["tool_calls"][0]["function"]["name"] == "get_weather_"


def test_an_empty_assistant_turn_is_never_sent():
    """wire.md "Normal form"."""
    empty = [Message(Role.ASSISTANT, text) for text in (None, "", " \n")]
    assert encode_messages([Message(Role.USER, "a"), *empty]) == b'[{"role":"user","content":"a"}]'
    assert encode_messages([]) == b"[]"


@given(st.text(st.characters(categories=["Cs", "L", "So", "Cc"]), max_size=20))
def test_text_is_utf8_as_it_is_and_a_lone_surrogate_never_crashes(text):
    """wire.md "Normal form"."""
    sent = encode_message(Message(Role.USER, text))
    back = json.loads(sent.decode())["content"]
    mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert back == mended
    assert b"\\ud" not in sent


def test_other_text_beside_a_lone_surrogate_stays_as_it_is():
    assert (
        encode_message(Message(Role.USER, "日本語 \ud83c 🎉")).decode()
        == '{"role":"user","content":"日本語 \ufffd 🎉"}'
    )


def test_a_history_is_encoded_once(monkeypatch):
    """Growth is flat: in round 200 only the new messages are dumped."""
    dumped = []
    real = encode.to_bytes
    monkeypatch.setattr(encode, "to_bytes", lambda value: dumped.append(value) or real(value))
    messages = []
    for n in range(200):
        messages += [
            Message(Role.ASSISTANT, None, [ToolCall(f"c{n}", "add", "{}")]),
            Message(Role.TOOL, "4", tool_call_id=f"c{n}"),
        ]
        body = encode_messages(messages)
    assert len(dumped) == len(messages) == len(json.loads(body)) == 400


def test_each_dialect_keeps_its_own_bytes():
    message = Message(Role.ASSISTANT, None, [CALL])
    first = encode_message(message)
    assert encode_message(message, Dialect(arguments="object")) != first
    assert encode_message(message) is first
