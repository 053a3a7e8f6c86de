"""OpenAIEngine: streams."""

from __future__ import annotations

import asyncio

import pytest

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Usage
from jarvis_nb.engines.base import Piece
from jarvis_nb.engines.stream import StreamBroken
from jarvis_nb.testing import CLOSE, HANG, answer, body, chunks, raw
from tests.engines.loopback import ask, engine_at, stream

pytestmark = pytest.mark.usefixtures("each_transport")

CALL = {
    "tool_calls": [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    ]
}
ARGUMENTS = {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":"Paris"}'}}]}


def test_pieces_then_the_completion(strict_server):
    server = strict_server([answer("Hello there", prompt_tokens=7, completion_tokens=2)])
    pieces, completion = stream(engine_at(server))
    assert pieces == [Piece("Hello"), Piece(" there")]
    assert completion.message == {"role": "assistant", "content": "Hello there"}
    assert (completion.finish_reason, completion.repairs) == ("stop", [])
    sent = server.requests[0].body
    assert sent["stream"] is True
    assert sent["stream_options"] == {"include_usage": True}


def test_the_usage_chunk(strict_server):
    """wire.md, Streams: the usage chunk has ``choices: []``."""
    server = strict_server([answer("a", prompt_tokens=7, completion_tokens=2)])
    assert stream(engine_at(server))[1].usage == Usage(7, 2)


def test_a_call_in_pieces(strict_server):
    server = strict_server([chunks(CALL, ARGUMENTS, finish="tool_calls")])
    pieces, completion = stream(engine_at(server), ask(tools=True))
    assert pieces == []
    (call,) = completion.message["tool_calls"]
    assert (call["id"], call["function"]) == (
        "call_1",
        {"name": "get_weather", "arguments": '{"city":"Paris"}'},
    )


def test_reasoning_comes_apart(strict_server):
    server = strict_server([chunks({"reasoning_content": "hmm"}, "done")])
    pieces, completion = stream(engine_at(server))
    assert pieces == [Piece(reasoning="hmm"), Piece("done")]
    assert completion.message["reasoning_content"] == "hmm"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_borders_of_blocks_do_not_matter(strict_server, size):
    events = 'data: {"choices":[{"delta":{"content":"日本語 🎉"}}]}\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n'.encode()
    cut = [part for i in range(0, len(events), size) for part in (events[i : i + size], 0.0005)]
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    server = strict_server([raw(head, *cut)])
    pieces, completion = stream(engine_at(server))
    assert pieces == [Piece("日本語 🎉")]
    assert [r.code for r in completion.repairs] == ["no_finish_reason"]


def test_a_server_that_answers_whole(strict_server):
    server = strict_server([body({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]})])
    pieces, completion = stream(engine_at(server))
    assert pieces == [Piece("Hello.")]
    assert [r.code for r in completion.repairs] == ["not_streamed"]


def test_what_comes_after_done_is_ignored(strict_server):
    """wire.md, Streams: events after the end are ignored."""
    server = strict_server([chunks("a", after=[b"data: [DONE]\n\n", "late"])])
    pieces, completion = stream(engine_at(server))
    assert (pieces, completion.message["content"]) == ([Piece("a")], "a")


def test_a_server_that_does_not_end_after_done(strict_server):
    """The answer is given at once; the connection is dropped, not waited for."""
    server = strict_server([chunks("a", after=[b"data: [DONE]\n\n", HANG])])

    async def timed():
        engine = engine_at(server, timeout=30)
        began = asyncio.get_running_loop().time()
        items = [item async for item in engine.stream(ask())]
        await engine.close()
        return items, asyncio.get_running_loop().time() - began

    items, seconds = asyncio.run(timed())
    assert items[-1].message["content"] == "a"
    assert seconds < 2


def test_the_connection_is_used_again(strict_server):
    server = strict_server([chunks("a"), chunks("b"), "c"])
    ports = []

    async def thrice():
        engine = engine_at(server)
        for _ in range(2):
            _ = [item async for item in engine.stream(ask())]
        await engine.generate(ask())
        await engine.close()

    accept = server._http.get_request

    def counted():
        connection, address = accept()
        ports.append(address[1])
        return connection, address

    server._http.get_request = counted
    asyncio.run(thrice())
    assert len(ports) == 1


@pytest.mark.parametrize("end", [CLOSE, b"data: {broken\n\n", HANG], ids=["closed", "rubbish", "silent"])
def test_a_stream_that_breaks_in_a_call(strict_server, end):
    """wire.md, Streams: what came is kept, code ``stream_broken``."""
    server = strict_server([chunks("Let me see.", CALL, end, finish=None, done=False)])
    seen = []
    with pytest.raises(StreamBroken) as caught:
        stream(engine_at(server, timeout=0.2), ask(tools=True), seen)
    assert caught.value.code == "stream_broken"
    assert server.url.split("/")[2] in caught.value.message
    assert seen == [Piece("Let me see.")]
    assert caught.value.partial.message["content"] == "Let me see."
    assert caught.value.partial.message["tool_calls"][0]["function"]["name"] == "get_weather"


def test_a_stream_that_ends_in_a_call(strict_server):
    server = strict_server([chunks(CALL, finish=None)])
    with pytest.raises(StreamBroken):
        stream(engine_at(server), ask(tools=True))


def test_an_error_in_the_middle(strict_server):
    server = strict_server([chunks("Hel", {"error": {"message": "out of memory"}}, finish=None)])
    seen = []
    with pytest.raises(StreamBroken, match="out of memory") as caught:
        stream(engine_at(server), seen=seen)
    assert caught.value.partial.message["content"] == "Hel"


def test_a_stream_that_is_cut_before_anything_came(strict_server):
    server = strict_server([chunks(CLOSE, finish=None, done=False)])
    with pytest.raises(EngineError) as caught:
        stream(engine_at(server))
    assert caught.value.code == "connection"


def test_breaking_off_after_the_finish_reason_does_not_matter(strict_server):
    server = strict_server([chunks("a", after=[CLOSE], done=False)])
    assert stream(engine_at(server))[1].message["content"] == "a"


def test_a_reader_that_stops_early_frees_the_connection(strict_server):
    server = strict_server([chunks("a", 0.05, "b", HANG, finish=None), "next"])

    async def first():
        engine = engine_at(server)
        pieces = engine.stream(ask())
        async for _ in pieces:
            break
        await pieces.aclose()
        completion = await engine.generate(ask())
        await engine.close()
        return completion

    assert asyncio.run(first()).message["content"] == "next"


def test_a_cancelled_stream_ends_at_once(strict_server):
    server = strict_server([chunks("a", HANG, finish=None)])

    async def cancel():
        engine = engine_at(server)

        async def read():
            async for _ in engine.stream(ask()):
                came.set()

        came = asyncio.Event()
        task = asyncio.create_task(read())
        await came.wait()
        began = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await engine.close()
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(cancel()) < 0.5
