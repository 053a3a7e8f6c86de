"""A run as a stream of events: tools.md 21."""

from __future__ import annotations

import asyncio
import time

import pytest

from jarvis_nb import EventType, Jarvis, ToolContext, action
from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.engines import OpenAIEngine, ScriptedEngine, call
from jarvis_nb.testing import StrictServer, chunks
from tests.run.shop import TOOLS


def jarvis(*steps, **options):
    return Jarvis(engine=ScriptedEngine(list(steps), **options), tools=TOOLS, config={})


async def collect(j, **options):
    return [event async for event in j.astream("x", **options)]


def test_21_what_happens_in_the_order_it_happens():
    """tools.md 21, 8: strictly increasing seq; the last event has the reply."""
    j = jarvis(["Let me see.", call("lookup_order", order_id="1")], "It costs $42.")
    events = asyncio.run(collect(j))
    assert [str(e.event_type) for e in events if not e.text] == [
        "run_start", "round_start", "inference_start", "inference_end", "tool_call_start", "tool_call_end",
        "round_end", "round_start", "inference_start", "inference_end", "run_end",
    ]  # fmt: skip
    assert [e.seq for e in events] == sorted({e.seq for e in events})
    assert [e.text for e in events if e.text] == ["Let ", "me ", "see.", "It ", "costs ", "$42."]
    assert events[-1].event_type is EventType.RUN_END
    assert events[-1].reply is j.last
    assert events[-1].reply.output == "It costs $42."
    assert all(e.reply is None for e in events[:-1])


def test_21_the_reply_is_that_of_an_ask():
    """One body: streamed or not, the same record."""
    steps = [[call("lookup_order", order_id="1"), call("nope")], "ok"]
    streamed = asyncio.run(collect(jarvis(*steps)))[-1].reply
    asked = jarvis(*steps).ask_full("x")
    assert streamed == asked


def test_21_pieces_of_a_server_come_as_they_come():
    """tools.md 21: text arrives before the answer is complete."""

    def reply(body):
        return chunks("one ", 0.3, "two")

    async def read():
        return [(event.text, time.perf_counter()) async for event in j.astream("x") if event.text]

    with StrictServer(reply) as server:
        j = Jarvis(engine=OpenAIEngine(server.url, api_key="k"), model="m", config={})
        (first, at_first), (second, at_second) = asyncio.run(read())
        server.assert_accepted()
    assert (first, second) == ("one ", "two")
    assert at_second - at_first > 0.15


def test_21_progress_of_a_tool_is_in_the_stream():
    """design: ToolContext.progress."""

    @action
    def work(context: ToolContext) -> str:
        """Work."""
        for n in (1, 2):
            context.progress(n, 2, f"step {n}")
        return "done"

    j = Jarvis(engine=ScriptedEngine([call("work"), "ok"]), tools=[work], config={})
    told = [e.data for e in asyncio.run(collect(j)) if e.event_type is EventType.TOOL_PROGRESS]
    assert [(d["done"], d["total"], d["text"], d["tool"]) for d in told] == [
        (1, 2, "step 1", "work"),
        (2, 2, "step 2", "work"),
    ]


def test_21_two_streams_do_not_mix():
    """Each stream has its own run's events, though one bus sees both."""

    async def both():
        return await asyncio.gather(
            *(
                collect(j, tools=["calculator"], tool_policy={"visible": [] if n else ["calculator"]})
                for n in (0, 1)
            )
        )

    j = Jarvis(engine=ScriptedEngine(["one two", "one two"], delay=0.01), config={})
    seen = []
    j.bus.subscribe(seen.append)
    first, second = asyncio.run(both())
    for events in (first, second):
        assert [e.event_type for e in events].count(EventType.RUN_START) == 1
        assert "".join(e.text or "" for e in events) == "one two"
    assert [e.event_type for e in seen].count(EventType.RUN_START) == 2
    assert len(seen) == len(first) + len(second)


@pytest.mark.parametrize(
    ("j", "options", "error"),
    [
        (jarvis(EngineError("down")), {}, EngineError),
        (jarvis("x"), {"tools": ["nope"]}, InvalidRequest),
        (jarvis("x"), {"nope": 1}, InvalidRequest),
    ],
    ids=["engine", "tools", "option"],
)
def test_21_what_an_ask_raises_a_stream_raises(j, options, error):
    """design: failures before the first answer raise."""
    with pytest.raises(error):
        asyncio.run(collect(j, **options))


def test_21_a_failure_afterwards_is_in_the_reply():
    """design: afterwards the reply has status failed and everything so far."""
    reply = asyncio.run(
        collect(jarvis(call("calculator", expression="1"), EngineError("down", code="connection")))
    )[-1].reply
    assert (reply.status, reply.error.code, len(reply.tool_attempts)) == ("failed", "connection", 1)


@pytest.mark.parametrize("at", ["text", "tool_call_start", "tool_call_end"])
def test_21_leaving_early_stops_the_run(at):
    """notebook.md 13: no tool started afterwards, the history closed."""
    ran = []

    @action
    async def slow(n: int) -> str:
        """Take a while."""
        ran.append(n)
        await asyncio.sleep(0.05)
        return "ok"

    async def leave():
        stream = j.astream("x")
        async for event in stream:
            if event.event_type == at:
                break
        await stream.aclose()
        left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        await asyncio.sleep(0.15)
        return left

    j = Jarvis(
        engine=ScriptedEngine([["a b", call("slow", n=1)], call("slow", n=2), "never"], delay=0.01),
        tools=[slow],
        config={},
    )
    assert asyncio.run(leave()) == []
    assert j.last.status == "cancelled"
    assert len(ran) <= 1
    calls = [c.id for m in j.last.messages for c in m.tool_calls or ()]
    assert [m.tool_call_id for m in j.last.messages if m.tool_call_id] == calls
