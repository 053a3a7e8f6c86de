"""OpenAIEngine against a real llama.cpp server on loopback (issue 2): chat, tools, streaming."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Definitions, Message, Role, ToolCall
from jarvis_nb.engines.base import Piece, Request
from jarvis_nb.engines.models import model_path
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.engines.probe import probe
from jarvis_nb.engines.wire import normalise
from tests.engines.loopback import WEATHER, free_port, generate, stream

MODEL = Path(os.environ.get("JARVIS_NB_GGUF") or model_path()).expanduser()
TOOLS = Definitions([WEATHER])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed (extra: local)"),
    pytest.mark.skipif(not MODEL.is_file(), reason="the model is not on this machine: jarvis models fetch"),
]


@pytest.fixture(scope="module")
def llama():
    """Serve the model; give the base URL and the key."""
    port, key = free_port(), secrets.token_hex(16)
    script = Path(__file__).with_name("llamacpp_server.py")
    command = [sys.executable, str(script), str(MODEL), str(port), key]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        guard = threading.Timer(60, server.kill)
        guard.start()
        try:
            address = server.stdout.readline().strip()
            assert address, "the server did not start"
            yield f"{address}/v1", key
        finally:
            guard.cancel()
            server.kill()


@pytest.fixture
def engine(llama):
    url, key = llama
    return OpenAIEngine(url, key, preset="llamacpp")


def turn(city, weather, number):
    """Return one finished turn with a call: what the small model learns to call a tool from."""
    call = ToolCall(f"call_{number}", "get_weather", json.dumps({"city": city}))
    return [
        Message(Role.USER, f"What is the weather in {city}?"),
        Message(Role.ASSISTANT, None, [call]),
        Message(Role.TOOL, weather, tool_call_id=f"call_{number}"),
        Message(Role.ASSISTANT, f"The weather in {city} is {weather}."),
    ]


def question(choice="auto"):
    messages = [
        *turn("Rome", "sunny", 1),
        *turn("Oslo", "snowy", 2),
        Message(Role.USER, "What is the weather in Paris?"),
    ]
    return Request("", messages, TOOLS, choice, temperature=0.0, max_tokens=48)


def say(text, **options):
    return Request("", [Message(Role.USER, text)], temperature=0.0, max_tokens=16, **options)


def test_chat(engine):
    completion = generate(engine, say("Say hello."))
    assert completion.message["content"].strip()
    assert completion.usage.completion_tokens > 0
    assert completion.model == "smollm2"


def test_the_server_names_its_one_model(engine):
    async def look():
        found = await engine.list_models(), await engine.health()
        await engine.close()
        return found

    assert asyncio.run(look()) == (["smollm2"], True)


def test_streaming(engine):
    pieces, completion = stream(engine, say("Say hello."))
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == completion.message["content"]
    assert completion.usage.prompt_tokens > 0
    assert completion.finish_reason in ("stop", "length")
    assert completion.repairs == []


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_tool_call_and_the_answer_from_its_result(engine, choice, way):
    """A real model calls the tool; the closed history with the result is accepted and answered."""
    request = question(choice)
    completion = generate(engine, request) if way == "whole" else stream(engine, request)[1]
    taken = {"call_1", "call_2"}
    found = normalise(
        completion.message,
        finish_reason=completion.finish_reason,
        taken_ids=taken,
        known_names=["get_weather"],
    )
    (call,) = found.calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    assert found.refused == {}
    history = [*request.messages, found.message, Message(Role.TOOL, "rainy", tool_call_id=call.id)]
    answer = generate(engine, Request("", history, TOOLS, "auto", temperature=0.0, max_tokens=24))
    assert "rainy" in answer.message["content"]


def test_a_stream_can_be_left(engine):
    async def leave():
        pieces = engine.stream(say("Count to one hundred."))
        first = await anext(pieces)
        await pieces.aclose()
        again = await engine.generate(say("Say hello."))
        await engine.close()
        return first, again

    first, again = asyncio.run(leave())
    assert isinstance(first, Piece)
    assert again.message["content"].strip()


def test_eight_asks_at_once(engine):
    async def together():
        done = await asyncio.gather(*(engine.generate(say(f"Say the number {n}.")) for n in range(8)))
        await engine.close()
        return done

    assert all(completion.message["content"].strip() for completion in asyncio.run(together()))


def test_a_conversation_that_does_not_fit(engine):
    """wire.md, Requests: the error names the biggest messages."""
    with pytest.raises(EngineError) as caught:
        generate(engine, say("hello " * 5000))
    assert caught.value.code == "context_overflow"
    assert caught.value.value == [{"role": "user", "index": 0, "characters": 30_000}]


@pytest.mark.parametrize("way", [generate, stream])
def test_a_wrong_key(llama, way):
    url, _ = llama
    with pytest.raises(EngineError) as caught:
        way(OpenAIEngine(url, "wrong-key", preset="llamacpp", model="smollm2"), say("Hi"))
    assert (caught.value.code, caught.value.value) == ("http_error", 401)
    assert "was not accepted" in caught.value.hint


def test_discovery_does_not_take_what_asks_for_a_key(llama):
    assert "asks for a key" in probe(llama[0]).problem
