"""What refusals mean: tables of what servers really say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Message, Role, ToolCall
from jarvis_nb.engines.failures import Host, biggest, read_refusal, refused, unreachable
from jarvis_nb.engines.retry import STATUSES, PassingFailure
from jarvis_nb.engines.transport import TransportError
from tests.engines.loopback import ask

HOST = Host(
    "models.example", "https://models.example/v1", "EXAMPLE_KEY", has_key=True, secrets=("hunter2hunter2",)
)


def read(status, words, code=None, request=None, headers=None):
    body = json.dumps({"error": {"message": words, "type": "x", "code": code}}).encode()
    return refused(HOST, request or ask(), status, body, headers or {})


def settled(failure):
    return failure.error if isinstance(failure, PassingFailure) else failure


OVERFLOWS = [
    (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        None,
    ),
    (400, "whatever", "context_length_exceeded"),
    (400, "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it", None),
    (500, "Context size has been exceeded.", None),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", None),
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", None),
    (400, "input length exceeds the context length", None),
    (400, "prompt is too long: 213462 tokens > 200000 maximum", None),
    (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)", None),
    (400, "Please reduce the length of the messages or completion.", None),
    (413, "This model's maximum prompt length is 131072 but the request contains 537812 tokens", None),
    (400, "Trying to keep the first 5000 tokens when context the overflows.", None),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4097", None),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", None),
    (400, "Your input exceeds the context window of this model.", None),
]


@pytest.mark.parametrize(("status", "words", "code"), OVERFLOWS)
def test_context_overflow(status, words, code):
    """wire.md, Requests: context overflow is an error of its own that names the biggest messages."""
    history = [
        Message(Role.SYSTEM, "Be brief."),
        Message(Role.USER, "x" * 50_000),
        Message(Role.ASSISTANT, "y" * 300),
        Message(Role.USER, "z" * 2_000),
    ]
    error = read(status, words, code, ask(messages=history))
    assert isinstance(error, EngineError)
    assert error.code == "context_overflow"
    assert error.value == [
        {"role": "user", "index": 1, "characters": 50_000},
        {"role": "user", "index": 3, "characters": 2_000},
        {"role": "assistant", "index": 2, "characters": 300},
    ]
    assert "models.example" in error.message


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached: tokens per min. Request too large",
        "max_tokens is too large",
        "tool context missing",
        "messages: at least one message is required",
        "Invalid 'messages[0].content': string too long",
        "The model produced too many tokens",
    ],
)
def test_what_is_no_overflow(words):
    assert settled(read(400, words)).code == "http_error"


@pytest.mark.parametrize(
    ("body", "status", "words", "code"),
    [
        ('{"error": "does not exist"}', 400, "does not exist", ""),
        ('{"error": {"message": "no", "type": "kind", "code": "c"}}', 400, "no", "c"),
        ('{"error": {"message": "no", "type": "kind", "code": null}}', 400, "no", "kind"),
        ('{"error": {"message": "no", "code": "429"}}', 200, "no", ""),
        (
            '{"error": {"message": "no", "metadata": {"raw": "upstream said so"}}}',
            400,
            "no: upstream said so",
            "",
        ),
        ('{"error": {"reason": "odd"}}', 400, '{"reason": "odd"}', ""),
        ('{"detail": "Not Found"}', 404, "Not Found", ""),
        ('{"detail": [{"loc": ["body", "messages"], "msg": "missing"}]}', 422, "body.messages: missing", ""),
        ('{"object": "error", "message": "bad", "code": 400}', 400, "bad", ""),
        ('[{"error": {"message": "in a list"}}]', 400, "in a list", ""),
        ("[]", 400, "[]", ""),
        ("null", 400, "null", ""),
        ("<html><head><title>400 Bad\nRequest</title></head></html>", 400, "400 Bad Request", ""),
        ("  <!doctype html><p>Sign  in</p>", 400, "Sign in", ""),
        ("plain words", 400, "plain words", ""),
        ("", 400, "", ""),
    ],
)
def test_refusals_in_every_shape(body, status, words, code):
    refusal = read_refusal(status, body.encode())
    assert (refusal.words, refusal.code) == (words, code)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "code", "loc", "msg", "type", "metadata"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(
    json_values.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60),
    st.sampled_from([200, 301, 400, 429, 500]),
)
def test_any_body_gives_one_error(body, status):
    error = settled(refused(HOST, ask(), status, body, {}))
    assert isinstance(error, EngineError)
    assert error.message.startswith("models.example") or error.code == "context_overflow"


def test_only_these_may_pass():
    """wire.md, Requests: 429, 502, 503 and 529."""
    passing = {status for status in range(400, 600) if isinstance(read(status, "x"), PassingFailure)}
    assert passing == STATUSES == {429, 502, 503, 529}


def test_retry_after_goes_with_the_failure():
    assert read(429, "x", headers={"retry-after": "7"}).after == 7.0


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (404, "The model `m` does not exist.", None),
        (404, 'model "m" not found, try pulling it first', None),
        (400, "Model Not Exist", None),
        (404, "x", "model_not_found"),
        (404, "No such model: m", None),
    ],
)
def test_a_missing_model(status, words, code):
    assert read(status, words, code).code == "no_model"


@pytest.mark.parametrize(
    ("fault", "code", "passes"),
    [
        ("refused", "connection", False),
        ("dns", "connection", False),
        ("tls", "connection", False),
        ("proxy", "connection", False),
        ("protocol", "connection", False),
        ("closed", "connection", False),
        ("reset", "connection", True),
        ("connect_timeout", "timeout", False),
        ("read_timeout", "timeout", False),
    ],
)
def test_faults(fault, code, passes):
    failure = unreachable(HOST, TransportError(fault, "why, hunter2hunter2"))
    assert isinstance(failure, PassingFailure) == passes
    error = settled(failure)
    assert error.code == code
    assert "models.example" in error.message
    assert "hunter2" not in str(error)
    assert error.hint


def test_secrets_are_cut_out_of_texts():
    """wire.md, Requests: keys are redacted everywhere, those of others too."""
    text = "hunter2hunter2 sk-abcdefghijklmnop Bearer abc.def-123456"
    assert HOST.clean(text) == "*** *** Bearer ***"
    assert "hunter2" not in repr(HOST)


@pytest.mark.parametrize("key", ["k", "none", "test", "a.b"])
def test_a_stand_in_for_a_key_breaks_no_words(key):
    """wire.md, Requests: local servers get keys such as `none`; what they say stays readable."""
    host = HOST._replace(secrets=(key,))
    assert (
        host.clean("a task of the latest kind, nonetheless; axb")
        == "a task of the latest kind, nonetheless; axb"
    )
    assert host.clean(f"the key {key!r} ({key}) is wrong") == "the key '***' (***) is wrong"


def test_the_biggest_messages_count_calls_and_parts():
    call = ToolCall("c", "f", {"text": "x" * 50})
    image = [{"type": "image_url", "image_url": {"url": "data:" + "x" * 500}}, {"type": "text", "text": "hi"}]
    messages = [Message(Role.ASSISTANT, None, [call]), Message(Role.USER, image), Message(Role.USER, "hello")]
    assert [m["index"] for m in biggest(messages)] == [1, 0, 2]
    assert biggest([]) == []
