"""Secrets: toolsets.md 23. They reach neither a repr, an event, a picture, a saved turn nor an error."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from jarvis_nb import EventBus, Jarvis, Reply, Secret, ToolError, ToolSource
from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines import OpenAIEngine, ScriptedEngine, call
from jarvis_nb.testing import StrictServer, error

KEY = "sk-live-4f9c2b7a81d3e65f"
TOKEN = "tok/&ü-91c4d7aa35b8f0e2"


def everything(j: Jarvis, reply: Reply | None, events: list, tmp_path) -> str:
    """Return all that a person or a file may see of a run."""
    said = [
        repr(j),
        str(j),
        repr(j.config),
        repr(j.bus),
        repr(events),
        *(json.dumps(e.data, default=str) for e in events),
    ]
    if reply is not None:
        said += [
            repr(reply),
            str(dict(reply)),
            reply.save(tmp_path / "turn.json").read_text(),
            reply.to_html(times=True),
            json.dumps(reply._repr_mimebundle_()),
            reply.to_test(),
            repr(reply.tool_attempts),
            repr(reply.messages),
            repr(reply.replay().reply),
        ]
    return "\n".join(said)


def forms(secret: str) -> list[str]:
    from urllib.parse import quote, quote_plus

    return [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]]


def assert_hidden(text: str, *secrets: str) -> None:
    found = [form for secret in secrets for form in forms(secret) if form in text]
    assert found == []


def watched(**options):
    j = Jarvis(config={}, **options)
    events: list = []
    j.bus.subscribe(events.append)
    return j, events


def test_23_the_key_of_an_engine(tmp_path, caplog):
    """toolsets.md 23: it goes to the server, and nowhere else."""
    caplog.set_level(logging.DEBUG)
    with StrictServer(["Hi.", "Hi."], api_key=KEY) as server:
        engine = OpenAIEngine(server.url, api_key=KEY)
        j, events = watched(engine=engine, model="m")
        reply = j.ask_full("x")
        streamed = asyncio.run(_last(j))
        j.close()
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    text = everything(j, reply, events, tmp_path) + repr(engine) + repr(vars(engine).keys()) + repr(streamed)
    assert_hidden(text + caplog.text, KEY)


async def _last(j):
    return [event async for event in j.astream("x")][-1].reply


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_23_a_server_that_repeats_the_key_in_its_error(status, tmp_path, caplog):
    """toolsets.md 23: what a server echoes is scrubbed, before the first answer and after it."""
    caplog.set_level(logging.DEBUG)
    refusal = error(status, f"Incorrect API key provided: {KEY}. Header was Bearer {KEY}")
    function = {"name": "think", "arguments": '{"thought": "x"}'}
    calls = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    with StrictServer([refusal, calls, refusal]) as server:
        j, events = watched(engine=OpenAIEngine(server.url, api_key=KEY, retries=0), model="m")
        with pytest.raises(EngineError) as caught:
            j.ask_full("x")
        reply = j.ask_full("x", tools=["think"])
        j.close()
    assert reply.status == "failed"
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    text = everything(j, reply, events, tmp_path) + "".join(f"{e!r}{e}{vars(e) if e else ''}" for e in chain)
    assert_hidden(text + caplog.text, KEY)


def test_23_the_configs_key_and_secrets(tmp_path):
    """toolsets.md 23: the settings' own."""
    with StrictServer(["Hi."], api_key=KEY) as server:
        j = Jarvis(
            config={"base_url": server.url, "api_key": KEY, "model": "m", "secrets": {"RATES_TOKEN": TOKEN}}
        )
        events: list = []
        j.bus.subscribe(events.append)
        reply = j.ask_full("x")
        j.close()
    assert_hidden(everything(j, reply, events, tmp_path), KEY, TOKEN)


SEEN: list[str] = []


class Rates(ToolSource):
    """A source that is careless with its token in every way."""

    def list_tools(self, config, context):
        assert config["token"] == Secret("RATES_TOKEN")
        return [
            {"name": name, "description": "A rate.", "parameter_schema": {"type": "object", "properties": {}}}
            for name in ("rate", "failing_rate", "refusing_rate")
        ]

    def run_tool(self, name, arguments, config, context):
        token = config["token"]
        SEEN.append(token)
        context.progress(1, 2, f"asking with {token}")
        if name == "failing_rate":
            raise RuntimeError(f"401 for https://rates.example/?token={token}")
        if name == "refusing_rate":
            raise ToolError(f"the token {token} is not valid", code="refused")
        return {
            "rate": 0.92,
            "url": f"https://rates.example/?token={token}",
            "headers": [f"Bearer {token}"],
            token: token,
        }


@pytest.mark.parametrize("where", ["environment", "config"])
def test_23_the_secret_of_a_source(where, tmp_path, monkeypatch, caplog):
    """toolsets.md 23: resolved when the source runs, and scrubbed from whatever comes back."""
    caplog.set_level(logging.DEBUG)
    SEEN.clear()
    if where == "environment":
        monkeypatch.setenv("RATES_TOKEN", TOKEN)
    engine = ScriptedEngine([[call("rate"), call("failing_rate"), call("refusing_rate")], "ok"])
    j = Jarvis(
        engine=engine,
        tool_sources=[(Rates, {"token": Secret("RATES_TOKEN")})],
        config={"secrets": {"RATES_TOKEN": TOKEN}} if where == "config" else {},
    )
    events: list = []
    j.bus.subscribe(events.append)
    preview = j.preview("x")
    reply = j.ask_full("x")
    assert SEEN == [TOKEN] * 3
    assert [a.status for a in reply.tool_attempts] == ["ok", "failed", "failed"]
    assert reply.tool_attempts[0].output["rate"] == 0.92
    text = (
        everything(j, reply, events, tmp_path) + repr(preview) + repr(preview.payload) + repr(engine.requests)
    )
    assert_hidden(text + caplog.text, TOKEN)
    assert "[secret RATES_TOKEN]" in reply.tool_attempts[0].content


def test_23_a_secret_shows_its_name_alone():
    assert repr(Secret("RATES_TOKEN")) == "Secret('RATES_TOKEN')"


def test_23_history_of_a_bus_holds_no_key():
    """One bus sees everything, and keeps it where asked to."""
    bus = EventBus(record_history=True)
    with StrictServer(["Hi."], api_key=KEY) as server:
        j = Jarvis(engine=OpenAIEngine(server.url, api_key=KEY), model="m", config={})
        j.bus.subscribe(lambda e: bus.publish(e.event_type, **e.data))
        j.ask("x")
        j.close()
    assert bus.history
    assert_hidden(repr(bus.history), KEY)
