"""OpenAIEngine: one clear error in seconds, with a code, the host and the next step."""

from __future__ import annotations

import asyncio
import gc
import time
import traceback

import pytest

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.types import Message, Role
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.testing import CLOSE, HANG, answer, body, chunks, error, html, raw
from tests.engines.loopback import ask, engine_at, free_port, generate, stream

KEY = "sk-test-0123456789abcdef"

pytestmark = pytest.mark.usefixtures("each_transport")


def host_of(server):
    return server.url.split("/")[2]


def failure(engine, request=None, *, streamed=False):
    with pytest.raises(EngineError) as caught:
        (stream if streamed else generate)(engine, request)
    return caught.value


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request):
    return request.param


def test_connection_refused(streamed):
    port = free_port()
    began = time.monotonic()
    caught = failure(OpenAIEngine(f"http://127.0.0.1:{port}/v1", "k"), streamed=streamed)
    assert caught.code == "connection"
    assert f"127.0.0.1:{port}" in caught.message
    assert "base_url" in caught.hint
    assert time.monotonic() - began < 2


def test_connection_refused_by_a_local_server_says_how_to_start_it():
    assert "ollama serve" in failure(OpenAIEngine(f"http://127.0.0.1:{free_port()}/v1", preset="ollama")).hint


def test_an_unknown_host(streamed):
    caught = failure(OpenAIEngine("http://no-such-host.invalid/v1", "k", retries=0), streamed=streamed)
    assert caught.code == "connection"
    assert "no-such-host.invalid" in caught.message


def test_a_wrong_path(strict_server, streamed):
    server = strict_server([error(404, "Not Found")])
    caught = failure(engine_at(server.url.removesuffix("/v1")), streamed=streamed)
    assert (caught.code, caught.value) == ("http_error", 404)
    assert host_of(server) in caught.message
    assert "/v1" in caught.hint


def test_html_instead_of_json(strict_server, streamed):
    server = strict_server([html(200, "<html><title>Sign in</title><body>welcome</body></html>")])
    caught = failure(engine_at(server), streamed=streamed)
    assert caught.code == "bad_response"
    assert "HTML" in caught.message
    assert "Sign in" in caught.message
    assert host_of(server) in caught.message


@pytest.mark.parametrize("content", ["", "OK", "[]", "null", '{"cho', b"\xff\xfe", "[" * 5000, '{"id": 1}'])
def test_what_is_no_completion(strict_server, content):
    server = strict_server([body(content, headers={"Content-Type": "application/json"})])
    caught = failure(engine_at(server))
    assert caught.code == "bad_response"
    assert host_of(server) in caught.message


@pytest.mark.parametrize("choices", [[], None, [None], [{}], [{"message": None}], {"a": 1}, "x"])
def test_no_choices(strict_server, choices):
    """wire.md, no choices: a clear engine error with what was received."""
    server = strict_server([body({"choices": choices, "id": "chatcmpl-odd"})])
    caught = failure(engine_at(server))
    assert caught.code == "bad_response"
    assert "chatcmpl-odd" in caught.message


def test_a_stream_without_choices(strict_server):
    server = strict_server([chunks({"choices": [], "odd": 1}, finish=None)])
    caught = failure(engine_at(server), streamed=True)
    assert caught.code == "bad_response"
    assert host_of(server) in caught.message


def test_an_error_in_a_200(strict_server, streamed):
    """wire.md, no choices: an error body with status 200."""
    server = strict_server([body({"error": {"message": "model is loading", "code": 500}})])
    caught = failure(engine_at(server), streamed=streamed)
    assert "model is loading" in caught.message
    assert caught.code == "http_error"


def test_an_error_as_first_event_of_a_stream(strict_server):
    server = strict_server([chunks({"error": {"message": "the backend is gone"}}, finish=None)])
    caught = failure(engine_at(server), streamed=True)
    assert caught.code == "bad_response"
    assert "the backend is gone" in caught.message


def test_a_server_that_hangs(strict_server, streamed):
    server = strict_server([raw(HANG)])
    began = time.monotonic()
    caught = failure(engine_at(server, timeout=0.2), streamed=streamed)
    assert caught.code == "timeout"
    assert f"{host_of(server)} sent nothing within 0.2 s" in caught.message
    assert "timeout=" in caught.hint
    assert time.monotonic() - began < 3


def test_a_server_that_hangs_in_the_middle(strict_server):
    server = strict_server([raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", HANG)])
    assert failure(engine_at(server, timeout=0.2)).code == "timeout"


def test_a_server_that_takes_no_connection(streamed):
    # 192.0.2.0/24 is for documentation: nothing routes there, or it is refused at once in a sandbox
    engine = OpenAIEngine("http://192.0.2.1/v1", "k", connect_timeout=0.2, retries=0)
    began = time.monotonic()
    caught = failure(engine, streamed=streamed)
    assert caught.code in ("timeout", "connection")
    assert "192.0.2.1" in caught.message
    assert time.monotonic() - began < 3


def test_a_call_that_takes_too_long_as_a_whole(strict_server, streamed):
    """A server that drips keeps every read short, and is stopped all the same."""
    drip = [part for _ in range(40) for part in (b" ", 0.05)]
    whole = raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n", *drip)
    pieces = chunks(*[part for _ in range(40) for part in ("a ", 0.05)])
    server = strict_server([pieces if streamed else whole])
    began = time.monotonic()
    caught = failure(engine_at(server, total_timeout=0.3), streamed=streamed)
    assert caught.code == ("stream_broken" if streamed else "timeout")
    assert host_of(server) in caught.message
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    "reply",
    [
        raw(CLOSE),
        raw("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", CLOSE),
        raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", CLOSE),
    ],
    ids=["at once", "mid-body", "mid-chunk"],
)
def test_a_server_that_closes(strict_server, reply):
    server = strict_server([reply] * 3)
    caught = failure(engine_at(server))
    assert caught.code == "connection"
    assert host_of(server) in caught.message
    assert "tried 3 times" in caught.message
    server.assert_complete()


def test_a_server_that_speaks_something_else(strict_server, streamed):
    server = strict_server([raw("SSH-2.0-OpenSSH_9.6\r\n", CLOSE)] * 3)
    caught = failure(engine_at(server), streamed=streamed)
    assert caught.code == "connection"
    assert host_of(server) in caught.message


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused(strict_server, status, streamed):
    server = strict_server([error(status, f"Incorrect API key provided: {KEY}", code="invalid_api_key")] * 2)
    caught = failure(engine_at(server, api_key=KEY), streamed=streamed)
    assert (caught.code, caught.value) == ("http_error", status)
    assert "Incorrect API key provided: ***" in caught.message
    assert "was not accepted" in caught.hint
    assert len(server.requests) == 1
    assert "no key was sent" in failure(engine_at(server, api_key=""), streamed=streamed).hint


def test_401_names_the_variable(monkeypatch, strict_server):
    server = strict_server([error(401, "no")])
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert "OPENAI_API_KEY" in failure(OpenAIEngine()).hint


@pytest.mark.parametrize("status", [400, 404, 422, 500, 504])
def test_400s_show_the_servers_message_and_are_not_repeated(strict_server, status, streamed):
    """wire.md, Requests: 400s are never retried, and never silently re-sent without tools."""
    server = strict_server([error(status, "Unrecognized request argument: foo")])
    caught = failure(engine_at(server), ask(tools=True), streamed=streamed)
    assert caught.code == "http_error"
    assert f"{host_of(server)} answered {status}: Unrecognized request argument: foo" in caught.message
    assert len(server.requests) == 1
    assert "tools" in server.requests[0].body


def test_a_long_message_is_cut(strict_server):
    server = strict_server([error(400, "x" * 100_000)])
    assert len(failure(engine_at(server)).message) < 1000


def test_a_missing_model_lists_those_there_are(strict_server, streamed):
    server = strict_server(
        [error(404, "The model `m` does not exist.", code="model_not_found")], models=["a", "b"]
    )
    caught = failure(engine_at(server), streamed=streamed)
    assert caught.code == "no_model"
    assert caught.valid == ("a", "b")


# Retries


@pytest.mark.parametrize("status", [429, 502, 503, 529])
def test_what_is_retried(strict_server, status, streamed):
    """wire.md, Requests: 429, 502, 503, 529 are retried."""
    server = strict_server([error(status, "busy"), error(status, "busy"), "Hello."])
    engine = engine_at(server)
    if streamed:
        assert stream(engine)[1].message["content"] == "Hello."
    else:
        assert generate(engine).message["content"] == "Hello."
    server.assert_complete()


def test_a_reset_is_retried(strict_server, streamed):
    """wire.md, Requests: connection resets are retried."""
    server = strict_server([raw(CLOSE), "Hello."])
    engine = engine_at(server)
    completion = stream(engine)[1] if streamed else generate(engine)
    assert completion.message["content"] == "Hello."


def test_a_busy_gateway_in_a_200_is_retried(strict_server):
    server = strict_server([body({"error": {"message": "busy", "code": 503}}), "Hello."])
    assert generate(engine_at(server)).message["content"] == "Hello."


def test_retries_end(strict_server):
    server = strict_server([error(429, "slow down", retry_after=0)] * 3)
    caught = failure(engine_at(server))
    assert (caught.code, caught.value) == ("rate_limited", 429)
    assert "slow down" in caught.message
    assert "tried 3 times" in caught.message
    server.assert_complete()


def test_retries_can_be_switched_off(strict_server):
    server = strict_server([error(503, "busy")])
    assert "tried" not in failure(engine_at(server, retries=0)).message


def test_a_quota_that_is_used_up_is_not_retried(strict_server):
    server = strict_server([error(429, "You exceeded your current quota", code="insufficient_quota")])
    caught = failure(engine_at(server))
    assert caught.code == "rate_limited"
    assert "credit" in caught.hint
    assert len(server.requests) == 1


def test_retry_after_is_honoured_and_capped(strict_server):
    """wire.md, Requests: Retry-After honoured and capped."""
    server = strict_server([error(429, retry_after=0.3), error(429, retry_after=3600), "Hello."])
    began = time.monotonic()
    generate(engine_at(server, max_wait=0.5))
    assert 0.7 < time.monotonic() - began < 2.5


def test_a_retry_is_told_on_the_bus(strict_server):
    server = strict_server([error(429, "slow down", retry_after=0), "Hello."])
    bus = EventBus(record_history=True)
    generate(engine_at(server), ask(bus=bus))
    (event,) = bus.history
    assert event.event_type is EventType.WARNING
    assert event.data["text"].startswith(f"{host_of(server)} answered 429: slow down; retry 1 of 2 in ")
    assert event.data["retry"] == 1


def test_a_wait_can_be_cancelled(strict_server):
    server = strict_server([error(429, retry_after=60)])

    async def cancel():
        engine = engine_at(server, max_wait=60)
        call = asyncio.create_task(engine.generate(ask()))
        await asyncio.to_thread(server.wait_for_requests, 1)
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await engine.close()

    began = time.monotonic()
    asyncio.run(cancel())
    assert time.monotonic() - began < 5


# Context overflow


def test_context_overflow_names_the_biggest_messages(strict_server, streamed):
    """wire.md, Requests: an error of its own that names the biggest messages, and is not repeated."""
    server = strict_server(
        [error(400, "maximum context length is 8192 tokens", code="context_length_exceeded")]
    )
    history = [Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "x" * 50_000)]
    caught = failure(engine_at(server), ask(messages=history), streamed=streamed)
    assert caught.code == "context_overflow"
    assert "user message 1 (50,000 characters)" in caught.message
    assert host_of(server) in caught.message
    assert len(server.requests) == 1


def test_llama_cpp_says_it_in_a_200(strict_server, streamed):
    """Older llama.cpp sends the error without its status (oobabooga/textgen issue 7257)."""
    said = {
        "code": 400,
        "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error",
    }
    server = strict_server([body({"error": said})])
    assert failure(engine_at(server), streamed=streamed).code == "context_overflow"


# Forced choice


REFUSALS = [
    "Thinking mode does not support this tool_choice",
    "The tool_choice parameter does not support being set to required or object in thinking mode",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_forced_choice_that_is_refused(strict_server, words, streamed):
    """toolsets.md 19: the loop can downgrade it."""
    server = strict_server([error(400, words)])
    caught = failure(engine_at(server), ask(tools=True, choice="required"), streamed=streamed)
    assert caught.code == "forced_choice_refused"
    assert words in caught.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("request_", [ask(tools=True), ask()], ids=["auto", "no tools"])
def test_without_a_forced_choice_it_is_an_ordinary_error(strict_server, request_):
    server = strict_server([error(400, REFUSALS[0])])
    assert failure(engine_at(server), request_).code == "http_error"


def test_a_server_without_tools_is_no_matter_of_the_choice(strict_server):
    words = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    server = strict_server([error(400, words)])
    caught = failure(engine_at(server), ask(tools=True, choice="required"))
    assert caught.code == "http_error"
    assert "tool calling" in caught.hint


# The key


@pytest.mark.parametrize(
    "reply",
    [
        error(400, f"you sent Bearer {KEY}"),
        error(429, f"key {KEY} is busy"),
        error(500, f"secret {KEY}", code="context_length_exceeded"),
        error(400, f"tool_choice {KEY}"),
        error(404, f"model for {KEY} not found"),
        html(200, f"<title>{KEY}</title>"),
        body(f"no json {KEY}"),
        body({"choices": [], "key": KEY}),
        body({"error": {"message": KEY}}),
        chunks("a", {"error": {"message": f"broke for {KEY}"}}, finish=None),
        chunks({"error": {"message": f"no {KEY}"}}, finish=None),
        raw(f"HTTP/1.1 307 Moved\r\nLocation: http://x/{KEY}\r\nContent-Length: 0\r\n\r\n"),
        raw(CLOSE),
        raw("rubbish\r\n\r\n", CLOSE),
        raw(HANG),
    ],
)
def test_no_error_holds_the_key(strict_server, reply, streamed):
    """wire.md, Requests: keys are redacted everywhere: message, repr, traceback, and what hangs on it."""
    server = strict_server([reply] * 4)
    bus = EventBus(record_history=True)
    engine = engine_at(server, api_key=KEY, headers={"X-Api-Key": "hunter2hunter2"}, timeout=0.2)
    caught = failure(engine, ask(tools=True, choice="required", bus=bus), streamed=streamed)
    shown = [str(caught), repr(caught), repr(caught.value), repr(caught.info()), repr(bus.history)]
    shown += traceback.format_exception(caught)
    error_, seen = caught, []
    while error_ is not None and error_ not in seen:  # the chain that a debugger walks
        seen.append(error_)
        shown += [repr(error_), repr(vars(error_)), repr(getattr(error_, "request_info", ""))]
        error_ = error_.__cause__ or error_.__context__
    assert not any(KEY in text or "hunter2hunter2" in text for text in shown)
    gc.collect()


def test_an_echoed_secret_header_is_cut_out(strict_server):
    server = strict_server([error(400, "bad header hunter2hunter2")])
    caught = failure(engine_at(server, headers={"X-Auth-Token": "hunter2hunter2"}))
    assert "bad header ***" in caught.message


def test_the_engine_is_usable_after_an_error(strict_server):
    server = strict_server([error(400, "no"), answer("Hello.")])
    engine = engine_at(server)

    async def twice():
        with pytest.raises(EngineError):
            await engine.generate(ask())
        completion = await engine.generate(ask())
        await engine.close()
        return completion

    assert asyncio.run(twice()).message["content"] == "Hello."


# The list of models


def models_failure(engine):
    async def look():
        try:
            await engine.list_models()
        finally:
            await engine.close()

    with pytest.raises(EngineError) as caught:
        asyncio.run(look())
    return caught.value


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (html(200, "<title>Sign in</title>"), "bad_response", "HTML"),
        (body({"object": "list"}), "bad_response", "without a list of models"),
        (error(503, "busy"), "http_error", "busy"),
        (error(401, "no"), "http_error", "no"),
        (raw(CLOSE), "connection", "closed"),
        (raw(HANG), "timeout", "no list of models within 0.2 s"),
    ],
)
def test_models_that_cannot_be_listed(strict_server, monkeypatch, reply, code, says):
    server = strict_server()
    monkeypatch.setattr(server, "listing", lambda: reply)
    monkeypatch.setattr("jarvis_nb.engines.openai.LIST_SECONDS", 0.2)
    caught = models_failure(engine_at(server))
    assert caught.code == code
    assert says in caught.message
    assert host_of(server) in caught.message


def test_a_bare_list_of_models(strict_server, monkeypatch):
    """Together lists without ``data``."""
    server = strict_server(["a"])
    monkeypatch.setattr(server, "listing", lambda: body([{"id": "only"}, {"name": "no id"}, "odd"]))
    generate(engine_at(server), ask(model=""))
    assert server.requests[0].body["model"] == "only"


def test_a_missing_model_stays_the_error_where_models_cannot_be_listed(strict_server, monkeypatch):
    server = strict_server([error(404, "no such model: m")])
    monkeypatch.setattr(server, "listing", lambda: html(500))
    caught = failure(engine_at(server))
    assert (caught.code, caught.valid) == ("no_model", None)
    assert "no such model: m" in caught.message


def test_a_whole_answer_to_a_stream_that_takes_too_long(strict_server):
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
    server = strict_server([raw(head, *[part for _ in range(40) for part in (b" ", 0.05)])])
    caught = failure(engine_at(server, total_timeout=0.2), streamed=True)
    assert (caught.code, caught.hint) == ("timeout", "total_timeout= sets this")


def test_a_whole_answer_to_a_stream_that_is_an_error_that_may_pass(strict_server):
    server = strict_server([body({"error": {"message": "busy", "code": 503}})])
    caught = failure(engine_at(server), streamed=True)
    assert (caught.code, caught.value) == ("http_error", 503)


def test_the_wait_for_retries_counts_to_the_whole(strict_server, streamed):
    server = strict_server([error(429, retry_after=30)])
    began = time.monotonic()
    caught = failure(engine_at(server, max_wait=30, total_timeout=0.3), streamed=streamed)
    assert caught.code == "timeout"
    assert time.monotonic() - began < 2
