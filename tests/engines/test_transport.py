"""Connections: whose they are, who closes them, and which way they go."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading

import httpx
import pytest

from jarvis_nb.core.bridge import LoopThread, run_sync
from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.engines.transport import TransportError, is_loopback, proxy_for, trust
from jarvis_nb.testing import HANG, StrictServer, chunks, raw
from tests.engines.loopback import ask, engine_at, generate, stream


@pytest.fixture
def server():
    with StrictServer(lambda _: "Hello.") as running:
        yield running


def connections(server):
    return len(server._http._live)


def wait_until(condition, seconds=5.0):
    event = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return True
        event.wait(0.01)
    return condition()


# Closing


@pytest.mark.usefixtures("each_transport")
def test_loop_after_loop(server):
    """Each ``asyncio.run`` has connections of its own; they are closed with it, also without ``close()``."""
    engine = engine_at(server)
    for _ in range(3):
        assert asyncio.run(engine.generate(ask())).message["content"] == "Hello."
    gc.collect()
    assert wait_until(lambda: connections(server) == 0)


@pytest.mark.usefixtures("each_transport")
def test_two_loops_at_once_and_closed_from_a_third(server):
    engine = engine_at(server)
    one, two = LoopThread(), LoopThread()
    one.run(engine.generate(ask()))
    two.run(engine.generate(ask()))
    run_sync(engine.generate(ask()))
    assert wait_until(lambda: connections(server) == 3)
    asyncio.run(engine.close())
    assert wait_until(lambda: connections(server) == 0)
    one.stop()
    two.stop()


def test_closing_twice_and_asking_again(server):
    engine = engine_at(server)

    async def use():
        await engine.generate(ask())
        await engine.close()
        await engine.close()
        await engine.generate(ask())
        await engine.close()

    asyncio.run(use())
    assert wait_until(lambda: connections(server) == 0)


def test_closing_an_engine_that_was_never_asked():
    asyncio.run(OpenAIEngine("http://127.0.0.1:9/v1").close())


def test_an_idle_loop_closes_when_it_runs_again(server):
    """As in a terminal's IPython: the loop rests between two prompts."""
    engine = engine_at(server)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(engine.generate(ask()))
    asyncio.run(engine.close())
    loop.run_until_complete(asyncio.sleep(0.05))
    assert wait_until(lambda: connections(server) == 0)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


# asyncio's own warning: the loop was closed with open sockets
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_died_is_dropped(server, caplog):
    engine = engine_at(server)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(engine.generate(ask()))
    loop.close()
    assert asyncio.run(engine.generate(ask())).message["content"] == "Hello."
    asyncio.run(engine.close())
    del loop, engine
    gc.collect()
    assert not caplog.records


def test_an_engine_nobody_closed_is_collected(server):
    engine = engine_at(server)
    run_sync(engine.generate(ask()))
    assert wait_until(lambda: connections(server) == 1)
    del engine
    gc.collect()
    assert wait_until(lambda: connections(server) == 0)


@pytest.mark.parametrize("reply", [chunks("a", HANG, finish=None), raw(HANG)], ids=["body", "head"])
@pytest.mark.parametrize("way", [stream, generate])
@pytest.mark.usefixtures("each_transport")
def test_a_call_in_flight_when_the_engine_is_closed(reply, way):
    """It ends with an error at once, on its own loop; nobody waits for ever."""
    with StrictServer([reply]) as server:
        engine = engine_at(server, retries=0)
        failed = []

        def read():
            try:
                way(engine)
            except EngineError as error:
                failed.append(error)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        server.wait_for_requests(1)
        threading.Event().wait(0.05)
        asyncio.run(engine.close())
        reader.join(5)
        assert not reader.is_alive()
        assert failed[0].code in ("stream_broken", "connection")


SCRIPT = """
    import asyncio, sys
    from jarvis_nb.core.bridge import run_sync
    from jarvis_nb.engines.base import Request
    from jarvis_nb.engines.openai import OpenAIEngine
    from jarvis_nb.core.types import Message, Role
    engine = OpenAIEngine(sys.argv[1], "k")
    request = Request("m", [Message(Role.USER, "Hi")])
    if sys.argv[2] == "sync":
        print(run_sync(engine.generate(request)).message["content"])
    else:
        print(asyncio.run(engine.generate(request)).message["content"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_process_ends_in_silence(server, way):
    """No complaint of unclosed sessions on stderr when nobody called ``close()``."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT), server.url, way],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("Hello.\n", "")


def test_the_default_is_aiohttp_and_httpx_is_not_imported(server):
    """Issue 2: import time in the balance; httpx with rich beside it costs 0.1 s."""
    script = textwrap.dedent(SCRIPT) + "\nassert 'aiohttp' in sys.modules and 'httpx' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", script, server.url, "sync"], check=True, capture_output=True, timeout=60
    )


# The way


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("a.localhost", True),
        ("example.com", False),
        ("localhost.example.com", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback(host, own):
    assert is_loopback(host) is own


def test_loopback_never_goes_through_a_proxy(server, monkeypatch, each_transport):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert proxy_for(server.url) is None
    engine = engine_at(server)
    assert asyncio.run(engine.generate(ask())).message["content"] == "Hello."


def test_a_proxy_from_the_environment(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://user:p%40ss@proxy.example:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert proxy_for("https://api.example/v1") == "http://user:p%40ss@proxy.example:3128"
    assert proxy_for("http://api.example/v1") is None
    assert proxy_for("https://internal.example/v1") is None


def test_a_proxy_without_scheme(monkeypatch):
    monkeypatch.setenv("http_proxy", "proxy.example:3128")
    assert proxy_for("http://api.example/v1") == "http://proxy.example:3128"


def test_a_socks_proxy_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://proxy.example:1080")
    with pytest.raises(TransportError, match="socks5"):
        proxy_for("https://api.example/v1")


def test_requests_go_through_the_proxy(monkeypatch, each_transport):
    """The proxy sees the whole address, its credentials, and the request."""
    with StrictServer(lambda _: "through") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1").replace("//", "//user:pass@"))
        engine = OpenAIEngine("http://models.example/v1", "k")
        assert asyncio.run(engine.generate(ask())).message["content"] == "through"
        (request,) = proxy.requests
    assert request.path == "http://models.example/v1/chat/completions"
    assert request.headers["proxy-authorization"] == "Basic dXNlcjpwYXNz"
    assert request.headers["authorization"] == "Bearer k"


def test_a_proxy_on_the_way_to_tls_never_sees_the_key(monkeypatch, each_transport):
    """wire.md, Requests: the key is sent to the engine's own host alone, not with CONNECT."""
    heard = []

    async def main():
        async def proxy(reader, writer):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv("https_proxy", f"http://user:pass@127.0.0.1:{port}")
            engine = OpenAIEngine("https://models.example/v1", "sk-do-not-leak-me", retries=0)
            with pytest.raises(EngineError) as caught:
                await engine.generate(ask())
            await engine.close()
        return caught.value

    error = asyncio.run(main())
    assert heard[0].startswith(b"CONNECT models.example:443")
    assert b"Basic dXNlcjpwYXNz" in heard[0]
    assert b"sk-do-not-leak-me" not in b"".join(heard)
    assert "models.example" in error.message


def test_a_dead_proxy_is_named(monkeypatch, each_transport):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(EngineError) as caught:
        asyncio.run(OpenAIEngine("http://models.example/v1", "k", retries=0).generate(ask()))
    assert caught.value.code == "connection"
    assert "models.example" in caught.value.message


def test_tls_is_verified(monkeypatch):
    import ssl

    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    context = trust()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.get_ca_certs()


def test_ssl_cert_file_is_honoured(monkeypatch, tmp_path):
    import certifi

    first = certifi.contents().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    own = tmp_path / "own.pem"
    own.write_text(first)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert len(trust().get_ca_certs()) == 1


def test_a_client_of_ones_own_keeps_its_settings(server):
    """Its time-out is not replaced: it is the user's."""

    async def use():
        seen = []

        async def hook(request):
            seen.append(request.extensions["timeout"]["read"])

        async with httpx.AsyncClient(timeout=7, event_hooks={"request": [hook]}) as client:
            await engine_at(server, http_client=client).generate(ask())
        return seen

    assert asyncio.run(use()) == [7]
