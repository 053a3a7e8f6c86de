"""Requests of a page: the browser's transport, and the strict server inside the page.

What only a browser can show (``fetch`` itself, CORS) is tested in one: tests/lite.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import AsyncIterator

import pytest

from jarvis_nb import EngineError, Jarvis
from jarvis_nb.core import bridge
from jarvis_nb.engines.discovery import Found
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.engines.pyfetch_transport import HERE, Head, PyfetchTransport
from jarvis_nb.engines.transport import Timeouts, TransportError, make_transport
from jarvis_nb.testing import CLOSE, HANG, StrictServer, answer, body, chunks, error, raw
from tests.engines.loopback import ask


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch):
    """Be a browser, as far as the package looks: no threads, no sockets."""
    monkeypatch.setattr(bridge, "HAS_THREADS", False)
    monkeypatch.setattr(sys, "platform", "emscripten")
    HERE.clear()
    yield
    assert not HERE, "a server was not closed"


def engine_at(server: StrictServer, **options) -> OpenAIEngine:
    return OpenAIEngine(base_url=server.url, api_key="key", **{"retries": 0, **options})


def test_a_page_has_its_own_transport():
    assert isinstance(make_transport({}, Timeouts(), "https://example.com"), PyfetchTransport)


def test_whole_and_streamed_answers_come_from_inside_the_page():
    with StrictServer([answer("Hello there."), answer("Hello there.")], api_key="key") as server:
        engine = engine_at(server)
        assert asyncio.run(engine.generate(ask())).message["content"] == "Hello there."
        events = asyncio.run(_collect(engine))
        assert len(events) > 1
        assert asyncio.run(engine.list_models()) == ["test-model"]
    server.assert_complete()
    assert "user-agent" not in server.requests[0].headers


async def _collect(engine: OpenAIEngine) -> list:
    return [event async for event in engine.stream(ask())]


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (error(401, "no"), "http_error", "answered 401: no"),
        (error(503, "busy"), "http_error", "answered 503: busy"),
        (raw("HTTP/1.1 418 I'm a teapot\r\nContent-Length: 3\r\n\r\ntea"), "http_error", "answered 418: tea"),
        (raw("rubbish\r\n\r\n"), "connection", "no valid HTTP"),
        (raw(CLOSE), "connection", "closed the connection"),
        (body({}, 302, headers={"Location": "https://elsewhere.example"}), "http_error", "redirects"),
        (chunks("a", HANG, finish=None), "timeout", "sent nothing within 0.05 s"),
        (answer("late", delay=5), "timeout", "sent nothing within 0.05 s"),
    ],
)
def test_failures_are_those_of_any_server(reply, code, words):
    with StrictServer([reply]) as server:
        engine = engine_at(server, timeout=0.05)
        with pytest.raises(EngineError, match=words) as caught:
            asyncio.run(engine.generate(ask()))
    assert caught.value.code == code


def test_a_closed_server_breaks_what_hangs():
    async def go() -> None:
        with StrictServer([chunks("a", HANG, finish=None)]) as server:
            asking = asyncio.ensure_future(engine_at(server).generate(ask()))
            await asyncio.sleep(0.05)
        with pytest.raises(EngineError, match="closed the connection"):
            await asking

    asyncio.run(go())


def test_a_closed_engine_ends_what_is_read():
    """Nobody waits for ever."""

    async def go() -> None:
        with StrictServer([chunks("a", HANG, finish=None)]) as server:
            engine = engine_at(server)
            asking = asyncio.ensure_future(engine.generate(ask()))
            await asyncio.sleep(0.05)
            await engine.close()
            with pytest.raises(EngineError, match="closed meanwhile"):
                await asyncio.wait_for(asking, 2)

    asyncio.run(go())


def test_a_cancelled_call_lets_go_of_the_body():
    left = []

    async def body_of() -> AsyncIterator[bytes]:
        try:
            yield b"a"
            await asyncio.sleep(30)
        finally:
            left.append(True)

    async def server(*_) -> Head:
        return Head(200, {}, body_of())

    async def go() -> None:
        HERE["127.0.0.1:1"] = server
        got = await PyfetchTransport({}, Timeouts()).send("GET", "http://127.0.0.1:1/v1/models")
        reading = asyncio.ensure_future(got.read())
        await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        del HERE["127.0.0.1:1"]

    asyncio.run(go())
    assert left == [True]


def test_an_engine_that_nobody_named(monkeypatch: pytest.MonkeyPatch):
    """A page has none of what is looked for elsewhere, and the error does not pretend so."""
    from jarvis_nb.engines.presets import PRESETS

    for name in [name for preset in PRESETS.values() for name in preset.key_names]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        "jarvis_nb.engines.discovery._embedded", lambda: Found("local", "embedded", usable=False, reason="")
    )
    with pytest.raises(EngineError, match="in a page") as caught:
        asyncio.run(Jarvis().aask_full("Anyone?"))
    assert caught.value.code == "no_engine"
    assert "ScriptedEngine" in caught.value.hint


class Page:
    """What the browser gives: one answer, or none."""

    def __init__(self, **answer) -> None:
        self.answer = answer
        self.asked: dict = {}

    async def pyfetch(self, url: str, **options):
        self.asked = {"url": url, **options}
        if not self.answer:
            raise OSError("Failed to fetch")
        return types.SimpleNamespace(**self.answer)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Page:
        monkeypatch.setitem(sys.modules, "pyodide", types.ModuleType("pyodide"))
        monkeypatch.setitem(sys.modules, "pyodide.http", types.SimpleNamespace(pyfetch=self.pyfetch))
        return self


def send(page: Page, body: bytes | None = None):
    async def go():
        headers = {"authorization": "Bearer key", "user-agent": "us"}
        return await PyfetchTransport(headers, Timeouts()).send("POST", "https://api.example/v1", body)

    return asyncio.run(go()), page.asked


def test_a_key_goes_to_no_other_place(monkeypatch: pytest.MonkeyPatch):
    """A redirect is not followed, no cookie is sent, nothing is kept; the browser names itself."""
    page = Page(type="opaqueredirect").install(monkeypatch)
    with pytest.raises(TransportError, match="redirects") as caught:
        send(page, b"{}")
    assert caught.value.fault == "protocol"
    assert page.asked["redirect"] == "manual"
    assert page.asked["credentials"] == "omit"
    assert page.asked["headers"] == {"authorization": "Bearer key"}
    assert page.asked["body"] == b"{}"


def test_a_browser_that_gets_no_answer_says_what_it_may_be(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TransportError, match="CORS") as caught:
        send(Page().install(monkeypatch))
    assert caught.value.fault == "refused"
    assert "key" not in str(caught.value)
