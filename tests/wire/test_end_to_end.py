"""wire.md from end to end: what a real server sends, through the engine, the loop and the facade, and back."""

from __future__ import annotations

import asyncio
import datetime as dt
import math

import pytest

from jarvis_nb import Jarvis
from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.events import EventType
from jarvis_nb.engines import OpenAIEngine
from jarvis_nb.testing import CLOSE, HANG, StrictServer, answer, body, chunks, error, html
from jarvis_nb.testing.oddities import ODDITIES, Oddity

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ENGINE_REFUSES = ("message is text", "message is null")
"""No message at all is no answer: the engine says so."""


class Tools:
    """Two tools that write down what they were given."""

    def __init__(self):
        self.ran = []

        def get_weather(city: str) -> str:
            """Return the weather of a city."""
            self.ran.append(("get_weather", {"city": city}))
            return "sunny"

        def add(a: int, b: int) -> int:
            """Add two numbers."""
            self.ran.append(("add", {"a": a, "b": b}))
            return a + b

        self.all = [get_weather, add]


def whole(j, question, **options):
    return j.ask_full(question, **options)


def streamed(j, question, **options):
    async def run():
        async for event in j.astream(question, **options):
            if event.reply is not None:
                return event.reply
        raise AssertionError("the stream had no reply")

    return asyncio.run(run())


WAYS = [pytest.param(whole, id="whole"), pytest.param(streamed, id="streamed")]
ROWS = [
    pytest.param(odd, way, id=f"{odd}-{way.__name__}")
    for odd in ODDITIES
    for way in (whole, streamed)
    if odd.name not in ENGINE_REFUSES and (odd.streams or way is whole)
]


@pytest.fixture
def served():
    """Start a server with a script and a Jarvis that asks it."""
    opened = []

    def start(*script, **options):
        server = StrictServer(script).start()
        engine = OpenAIEngine(base_url=server.url, api_key="test-key", **options)
        tools = Tools()
        j = Jarvis(engine=engine, model="m", tools=tools.all)
        opened.append((server, engine, j))
        return server, j, tools

    yield start
    for server, engine, j in opened:
        j.close()
        asyncio.run(engine.close())
        server.close()


@pytest.mark.parametrize(("odd", "way"), ROWS)
def test_row(served, odd: Oddity, way):
    """wire.md "Non-streamed cases": each row runs what may run, and a strict server takes what is sent again."""
    last = "Done." if odd.calls else odd.text
    script = [answer(odd.message, odd.finish_reason), *(["Done."] if odd.calls else []), "And more."]
    server, j, tools = served(*script)
    reply = way(j, "?")
    assert tools.ran == [(c.name, c.arguments) for c in odd.calls if c.code == "ok"]
    assert [a.error.code if a.error else a.status for a in reply.tool_attempts] == [c.code for c in odd.calls]
    assert [a.ran for a in reply.tool_attempts] == [c.code == "ok" for c in odd.calls]
    assert [r.code for r in reply.repairs] == list(odd.repairs)
    assert (reply.output, reply.reasoning) == (last, odd.reasoning)
    way(j, "And?", history=reply.messages)
    server.assert_complete()


@pytest.mark.parametrize("way", WAYS)
def test_what_the_model_is_told(served, way):
    """wire.md "malformed", "name", "cut off": position, valid names and the closest, and that it was cut off."""
    malformed = {**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Paris"'}}
    wrong = {**CALL, "id": "call_2", "function": {"name": "get_wether", "arguments": "{}"}}
    server, j, _ = served(
        answer({**CALLS, "tool_calls": [malformed, wrong]}), answer(CALLS, "length"), "Done."
    )
    way(j, "?")
    told = [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"]
    assert "char 16" in told[0]
    assert "get_weather" in told[1]
    assert "add" in told[1]
    assert "cut off" in told[2]
    sent = server.requests[1].messages[-3]["tool_calls"]
    assert [c["function"]["arguments"] for c in sent] == ["{}", "{}"]
    server.assert_complete()


@pytest.mark.parametrize("way", WAYS)
def test_ids_are_unique_across_turns(served, way):
    """wire.md "Normal form": repeated across turns, the provider's id is kept beside it."""
    server, j, tools = served(answer(CALLS), answer(CALLS), "Done.")
    reply = way(j, "?", history=[{"role": "user", "content": "a"}])
    assert [(a.call_id, a.provider_id) for a in reply.tool_attempts] == [
        ("call_1", None),
        ("call_2", "call_1"),
    ]
    assert [str(r) for r in reply.repairs] == [
        "round 2: id call_1 was used in an earlier turn: the call was renamed call_2"
    ]
    assert len(tools.ran) == 2
    server.assert_complete()


@pytest.mark.parametrize("way", WAYS)
def test_a_repair_is_an_event(served, way):
    """wire.md: each repair is recorded on the reply and shown."""
    _, j, _ = served(answer({**CALLS, "tool_calls": [CALL, CALL]}), "Done.")
    seen = []
    j.bus.subscribe(lambda event: seen.append(event.data["text"]), EventType.REPAIR)
    way(j, "?")
    assert seen == ["two calls shared id call_1: the second was renamed call_2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_raises(served, way):
    """wire.md "tool raises": the run goes on; a short typed reason to the model."""

    def secretive(city: str) -> str:
        """Return the weather of a city."""
        raise KeyError("secret\npath")

    server, j, _ = served(
        answer(
            {
                **CALLS,
                "tool_calls": [{**CALL, "function": {"name": "secretive", "arguments": '{"city":"Paris"}'}}],
            }
        ),
        "Done.",
    )
    reply = way(j, "?", tools=[secretive])
    told = server.requests[1].messages[-1]["content"]
    assert (reply.output, reply.tool_attempts[0].status, reply.tool_attempts[0].ran) == (
        "Done.",
        "failed",
        True,
    )
    assert "KeyError" in told
    assert "Traceback" not in told
    assert __file__ not in told
    server.assert_complete()


ODD_RESULTS = {
    "datetime": dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
    "set": {"b", "a"},
    "object": object(),
    "NaN": {"x": math.nan},
    "bytes": b"\xff\x00",
    "exception": ValueError("odd"),
    "surrogate": "\ud83c",
    "nothing": None,
}


@pytest.mark.parametrize("name", ODD_RESULTS)
def test_odd_results_are_taken_by_a_strict_server(served, name):
    """wire.md "odd results": deterministic text, no memory addresses, no bare NaN."""

    def odd() -> object:
        """Return something odd."""
        return ODD_RESULTS[name]

    call = {**CALL, "function": {"name": "odd", "arguments": ""}}
    server, j, _ = served(answer({**CALLS, "tool_calls": [call]}), "Done.")
    assert j.ask("?", tools=[odd]) == "Done."
    told = server.requests[1].messages[-1]["content"]
    assert "0x" not in told
    assert "NaN" not in told.replace('"NaN"', "")
    server.assert_complete()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("reply", "received"),
    [
        pytest.param(body({"choices": []}), "choices", id="no choices"),
        pytest.param(
            body({"error": {"message": "model is loading"}}), "model is loading", id="error with 200"
        ),
        pytest.param(body({"object": "x"}), "object", id="no completion"),
        pytest.param(html(200), "Bad Gateway", id="a page"),
        pytest.param(body({"choices": [{"message": "done"}]}), "done", id="no message"),
    ],
)
def test_no_choices(served, reply, received, way):
    """wire.md "no choices": a clear engine error with what was received."""
    server, j, _ = served(reply)
    with pytest.raises(EngineError) as caught:
        way(j, "?")
    assert caught.value.code in ("bad_response", "http_error")
    assert received in str(caught.value)
    server.assert_complete()


def test_no_tools_no_keys(served):
    """wire.md "Requests": neither tools nor tool_choice is sent."""
    server, j, _ = served("Hi")
    j.ask("?", tools=[])
    assert not server.requests[0].body.keys() & {"tools", "tool_choice"}
    server.assert_complete()


def test_text_is_sent_as_it_is(served):
    """wire.md "Normal form": UTF-8, no escapes; a lone surrogate never crashes."""
    server, j, _ = served("日本語 🎉", "b")
    reply = j.ask_full("日本語 🎉 \ud83c")
    j.ask("?", history=reply.messages)
    assert "日本語 🎉 \ufffd".encode() in server.requests[0].raw
    assert "日本語 🎉".encode() in server.requests[1].raw
    server.assert_complete()


# Streams


def piece(index=0, call_id=None, name=None, arguments=None):
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    entry = {k: v for k, v in (("index", index), ("id", call_id)) if v is not None}
    return {"tool_calls": [{**entry, "function": function}]}


STREAMS = {
    "name and id in pieces": [
        piece(0, "call", "get_"),
        piece(0, "_7", "weather", '{"city":'),
        piece(0, arguments='"Paris"}'),
    ],
    "no index": [piece(None, "a", "get_weather", '{"city":'), piece(None, arguments='"Paris"}')],
    "stray index": [piece(0, "a", "get_weather", '{"city":'), piece(1, arguments='"Paris"}')],
    "all repeated": [piece(0, "a", "get_weather", '{"city":'), piece(0, "a", "get_weather", '"Paris"}')],
    "empty later": [piece(0, "a", "get_weather", '{"city":'), piece(0, "", "", '"Paris"}')],
    "object": [piece(0, "a", "get_weather", {"city": "Paris"})],
}


@pytest.mark.parametrize("name", STREAMS)
def test_pieces_of_a_call(served, name):
    """wire.md "Streams"."""
    server, j, tools = served(chunks(*STREAMS[name], finish="tool_calls"), "Done.")
    reply = streamed(j, "?")
    assert (reply.output, tools.ran) == ("Done.", [("get_weather", {"city": "Paris"})])
    server.assert_complete()


def test_events_after_the_end(served):
    """wire.md "Streams": ignored, after the finish reason and after [DONE]."""
    late = [piece(0, "a", "get_weather", '{"city":"Paris"}'), b"data: [DONE]\n\n", " more"]
    server, j, tools = served(chunks("Hi", after=late))
    reply = streamed(j, "?")
    assert (reply.output, tools.ran, [r.code for r in reply.repairs]) == ("Hi", [], ["after_end"])
    server.assert_complete()


@pytest.mark.parametrize("done", [True, False])
def test_text_without_finish_reason_is_complete(served, done):
    """wire.md "Streams": a repair is recorded."""
    _, j, _ = served(chunks("Hi", " there", finish=None, done=done))
    reply = streamed(j, "?")
    assert (reply.output, reply.status, [r.code for r in reply.repairs]) == (
        "Hi there",
        "completed",
        ["no_finish_reason"],
    )


@pytest.mark.parametrize(
    "script",
    [
        chunks("Let me see.", piece(0, "a", "get_weather", '{"city":"Paris"}'), finish=None, done=False),
        chunks("Let me see.", piece(0, "a", "get_weather", '{"city":"Paris"}'), finish=None),
        chunks("Let me see.", piece(0, "a", "get_weather", '{"city":"Par'), CLOSE),
        chunks(
            "Let me see.",
            piece(0, "a", "get_weather", '{"city":"Par'),
            {"error": {"message": "overloaded"}},
            finish=None,
        ),
    ],
    ids=["ends", "says it is done", "breaks", "error"],
)
@pytest.mark.parametrize("round_", [1, 2])
def test_a_stream_that_breaks_while_a_call_is_open(served, script, round_):
    """wire.md "Streams": what came is kept, no call of it runs, status failed, code stream_broken."""
    server, j, tools = served(*([answer(CALLS)] if round_ == 2 else []), script, "Go on.")
    reply = streamed(j, "?")
    assert (reply.status, reply.error.code, reply.output) == ("failed", "stream_broken", "Let me see.")
    assert len(tools.ran) == round_ - 1
    assert [(a.ran, a.error.code) for a in reply.tool_attempts[round_ - 1 :]] == [(False, "stream_broken")]
    streamed(j, "And?", history=reply.messages)
    server.assert_complete()


def test_a_stream_that_hangs_can_be_left(served):
    server, j, _ = served(chunks("Hi", HANG))

    async def run():
        async for event in j.astream("?"):
            if event.text:
                return event.text
        return None

    assert asyncio.run(run()) == "Hi"
    assert j.last.status == "cancelled"
    server.assert_accepted()


def test_thinking_is_not_streamed_as_the_answer(served):
    """wire.md "thinking"."""
    _, j, _ = served(chunks("<th", "ink>hm", "m</think>", "\ndone"))

    async def run():
        return [
            (e.event_type.value, e.data["text"])
            async for e in j.astream("?")
            if e.event_type in (EventType.TEXT, EventType.REASONING)
        ]

    assert asyncio.run(run()) == [("reasoning", "hm"), ("reasoning", "m"), ("text", "done")]


# Requests


@pytest.mark.parametrize("way", WAYS)
def test_finished_results_are_kept_over_a_retry(served, way):
    """wire.md "Requests": 429 and 503 are retried; a tool does not run twice."""
    server, j, tools = served(
        answer(CALLS), error(429, "slow down", retry_after=0), error(503, "busy", retry_after=0), "Done."
    )
    assert way(j, "?").output == "Done."
    assert len(tools.ran) == 1
    assert server.requests[1].body == server.requests[2].body == server.requests[3].body
    server.assert_complete()


@pytest.mark.parametrize("way", WAYS)
def test_a_400_is_not_sent_again(served, way):
    """wire.md "Requests": never retried, never re-sent without tools; the error shows the server's message."""
    server, j, _ = served(error(400, "this model takes no tools"))
    with pytest.raises(EngineError, match="this model takes no tools"):
        way(j, "?")
    assert len(server.requests) == 1
    server.assert_complete()
