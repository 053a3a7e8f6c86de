"""MCP servers as a source, over both transports, and a toolset as an MCP server: toolsets.md 5, 21 to 26."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jarvis_nb import Jarvis, Secret, ToolContext, ToolError
from jarvis_nb.core.errors import InvalidRequest, JarvisError, NotPortable, SourceError
from jarvis_nb.core.events import EventBus
from jarvis_nb.engines import ScriptedEngine
from jarvis_nb.engines import call as scripted
from jarvis_nb.tools.images import ImageContent
from jarvis_nb.toolsets.mcp import MCPSource
from jarvis_nb.toolsets.source import SourceSpec, load_sources

SERVERS = Path(__file__).parent / "mcp_servers"
slow = pytest.mark.slow


def honest(**options):
    return MCPSource.stdio(sys.executable, [SERVERS / "honest.py"], **options)


def hostile(mode, *args, **options):
    return MCPSource.stdio(sys.executable, [SERVERS / "hostile.py", mode, *args], **options)


def load(source, timeout=20.0, **options):
    return {tool.name: tool for tool in asyncio.run(load_sources([source], timeout=timeout, **options))}


def call(tool, context=None, **arguments):
    return asyncio.run(tool.invoke(arguments, ToolContext() if context is None else context))


def close(source):
    asyncio.run(source.aclose())


@contextmanager
def closing(source):
    try:
        yield source
    finally:
        close(source)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def process(*args):
    """A server in a process of its own that listens on a port; its URL."""
    port = free_port()
    child = subprocess.Popen([sys.executable, *args, str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", child
    finally:
        child.kill()
        child.wait()


# What it is, without a server


def test_a_source_says_what_it_is_without_secrets():
    source = MCPSource.http("https://user:pw@example.com:8443/mcp?key=k1", prefix="ex_")
    assert repr(source) == "MCPSource('mcp:https://example.com:8443/mcp (prefix ex_)')"
    assert MCPSource.stdio("/usr/bin/npx", ["-y", "server"]).id == "mcp:npx"
    assert MCPSource.stdio("npx", id="github").id == "github"


def test_23_its_spec_is_portable_and_holds_references():
    source = MCPSource.stdio("npx", ["a", Secret("ARG")], {"TOKEN": Secret("GH_TOKEN")}, cwd=Path("/srv"))
    assert SourceSpec.of(source).to_dict() == {
        "source": "mcp:npx",
        "config": {
            "command": "npx",
            "args": ["a", {"$secret": "ARG"}],
            "env": {"TOKEN": {"$secret": "GH_TOKEN"}},
            "cwd": "/srv",
        },
    }
    with pytest.raises(NotPortable, match="headers"):
        MCPSource.http("http://127.0.0.1/mcp", headers={"x": object()})


@pytest.mark.parametrize("prefix", ["Gh_", "1", "a b", "-"])
def test_05_a_prefix_has_to_begin_a_name(prefix):
    with pytest.raises(InvalidRequest) as caught:
        MCPSource.stdio("npx", prefix=prefix)
    assert caught.value.code == "invalid_name"


@pytest.mark.parametrize("url", ["example.com/mcp", "ftp://x/mcp", "http://", "file:///etc/passwd"])
def test_an_http_source_needs_an_http_url(url):
    with pytest.raises(InvalidRequest):
        MCPSource.http(url)


def test_05_names_are_reversible():
    source = MCPSource.stdio("npx", prefix="gh_", names={"getMe": "me", "x": None})
    assert [source.server_name(name) for name in ("gh_list", "gh_gh_list", "me")] == [
        "list",
        "gh_list",
        "getMe",
    ]


def test_a_missing_sdk_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr("jarvis_nb.toolsets.mcp.connection.find_spec", lambda name: None)
    with pytest.raises(SourceError) as caught:
        load(MCPSource.stdio("npx"))
    assert caught.value.code == "missing_extra"
    assert "jarvis-nb[mcp]" in caught.value.hint


def test_importing_the_source_does_not_import_the_sdk():
    code = "import sys, jarvis_nb.toolsets.mcp; print('mcp' in sys.modules, 'httpx2' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False False\n"


def test_closing_an_unused_source_does_nothing():
    close(MCPSource.stdio("npx"))


# A real server, over both transports


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(request):
    if request.param == "stdio":
        with closing(honest(prefix="t_", env={"GIVEN": Secret("MCP_TEST_SECRET")})) as source:
            yield source
    else:
        with process(SERVERS / "honest.py") as (url, _), closing(MCPSource.http(url, prefix="t_")) as source:
            yield source


SECRETS = ToolContext(secrets={"MCP_TEST_SECRET": "s3cr3t-value"})


@pytest.fixture
def tools(server):
    return load(server, context=SECRETS)


def run(tool, **arguments):
    return call(tool, SECRETS, **arguments)


@slow
class TestServer:
    def test_21_tools_come_in_the_servers_order_under_the_prefix(self, tools, server):
        assert list(tools) == [
            f"t_{n}"
            for n in (
                "add",
                "greet",
                "picture",
                "several",
                "order",
                "fail",
                "sleep",
                "steps",
                "environment",
                "die",
            )
        ]
        tool = tools["t_add"]
        assert (tool.kind, tool.source) == ("source", server.id)
        assert "(prefix t_)" in tool.source
        assert tool.definition.description == "Add two numbers."
        assert tool.definition.parameters["additionalProperties"] is False
        assert tool.definition.parameters["required"] == ["a"]

    def test_annotations_are_kept_as_data(self, tools):
        assert tools["t_add"].spec.metadata["annotations"] == {
            "server_name": "add",
            "prefix": "t_",
            "readOnlyHint": True,
            "title": "Addition",
        }
        assert tools["t_add"].spec.requires_confirmation is False

    @pytest.mark.parametrize(
        ("name", "arguments", "value"),
        [
            ("t_add", {"a": 1, "b": 2}, {"result": 3}),
            ("t_greet", {"name": "Zoë"}, "Grüße, Zoë"),
            ("t_order", {"order_id": "ORD-5"}, {"order_id": "ORD-5", "total_cents": 4200}),
            ("t_several", {}, ["one", "two"]),
            ("t_picture", {}, ImageContent(b"\x89PNG\r\n\x1a\n", "image/png")),
        ],
    )
    def test_results_are_mapped_to_values(self, tools, name, arguments, value):
        assert run(tools[name], **arguments) == value

    def test_26_a_tool_that_fails_is_a_tool_error(self, tools):
        with pytest.raises(ToolError, match="no such order") as caught:
            run(tools["t_fail"], reason="no such order")
        assert caught.value.code == "tool_error"

    def test_progress_becomes_events(self, tools):
        bus = EventBus(record_history=True)
        context = SECRETS.for_call("call_1", "t_steps", bus)
        assert call(tools["t_steps"], context) == {"result": "done"}
        seen = [(event.data["done"], event.data["total"], event.data["text"]) for event in bus.history]
        assert seen == [(1, 2, "half"), (2, 2, "all")]

    def test_calls_run_together_and_from_any_loop(self, tools):
        async def both():
            context = SECRETS
            return await asyncio.gather(
                *(tools["t_sleep"].invoke({"seconds": 0.4}, context) for _ in range(5))
            )

        start = time.perf_counter()
        results = []
        threads = [threading.Thread(target=lambda: results.append(asyncio.run(both()))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [[{"result": "awake"}] * 5] * 2
        assert time.perf_counter() - start < 1.8

    def test_a_call_that_is_given_up_leaves_the_session_usable(self, tools):
        async def give_up():
            await asyncio.wait_for(tools["t_sleep"].invoke({"seconds": 60}, SECRETS), 0.2)

        start = time.perf_counter()
        with pytest.raises(TimeoutError):
            asyncio.run(give_up())
        assert time.perf_counter() - start < 1
        assert run(tools["t_add"], a=1, b=1) == {"result": 2}

    def test_it_may_be_used_again_after_it_was_closed(self, server, tools):
        close(server)
        close(server)
        assert run(tools["t_add"], a=2, b=2) == {"result": 4}
        assert list(load(server, context=SECRETS)) == list(tools)


@slow
def test_23_a_child_gets_what_it_was_given_and_no_more_and_its_secrets_are_scrubbed(monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "not-for-servers")
    monkeypatch.setenv("MCP_TEST_SECRET", "s3cr3t-value")
    with closing(honest(env={"GIVEN": Secret("MCP_TEST_SECRET"), "PLAIN": "p"})) as source:
        tool = load(source)["environment"]
        assert call(tool, name="PLAIN") == {"result": "p"}
        assert call(tool, name="HOST_SECRET") == {"result": "(not set)"}
        assert call(tool, name="GIVEN") == {"result": "[secret MCP_TEST_SECRET]"}


@slow
def test_23_what_a_dying_server_says_is_scrubbed(monkeypatch):
    monkeypatch.setenv("MCP_TEST_SECRET", "s3cr3t-value")
    with (
        closing(honest(env={"GIVEN": Secret("MCP_TEST_SECRET")})) as source,
        pytest.raises(ToolError) as caught,
    ):
        call(load(source)["die"], message="bad token s3cr3t-value")
    assert caught.value.code == "mcp_disconnected"
    assert caught.value.message.endswith("it wrote: bad token [secret MCP_TEST_SECRET]")


@slow
def test_a_server_that_dies_is_a_clear_error_and_the_next_call_has_a_new_one():
    with closing(honest()) as source:
        tools = load(source)
        with pytest.raises(ToolError) as caught:
            call(tools["die"], message="goodbye")
        assert caught.value.code == "mcp_disconnected"
        assert "goodbye" in caught.value.message
        assert call(tools["add"], a=1) == {"result": 11}


@slow
def test_an_http_server_that_is_gone_is_a_clear_error_and_one_that_is_back_is_used():
    with process(SERVERS / "honest.py") as (url, child), closing(MCPSource.http(url)) as source:
        tools = load(source)
        child.kill()
        child.wait()
        for _ in range(2):
            with pytest.raises(ToolError) as caught:
                call(tools["add"], a=1)
            assert caught.value.code == "mcp_disconnected"
        with pytest.raises(SourceError) as listing:
            load(source)
        assert "cannot be reached" in listing.value.message
        assert source.id in listing.value.message
        again = subprocess.Popen(
            [sys.executable, SERVERS / "honest.py", url.split(":")[2].split("/")[0]],
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 15
            while True:
                try:
                    assert call(load(source)["add"], a=1) == {"result": 11}
                    break
                except SourceError:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
        finally:
            again.kill()
            again.wait()


@slow
def test_confirmation_is_the_hosts_to_ask_for():
    with closing(honest(prefix="t_", requires_confirmation=["t_die"])) as source:
        tools = load(source)
        assert [n for n, tool in tools.items() if tool.spec.requires_confirmation] == ["t_die"]
    with (
        closing(hostile("fine", requires_confirmation=["tol"])) as source,
        pytest.raises(SourceError) as caught,
    ):
        load(source)
    assert caught.value.code == "unknown_tools"
    assert caught.value.valid == ("tool",)


@slow
def test_an_interpreter_that_ends_without_closing_leaves_no_server(tmp_path):
    pid = tmp_path / "pid"
    code = (
        "import asyncio, sys\n"
        "from jarvis_nb.toolsets.mcp import MCPSource\n"
        "from jarvis_nb.toolsets.source import load_sources\n"
        f"s = MCPSource.stdio(sys.executable, [{str(SERVERS / 'hostile.py')!r}, 'has a child', {str(pid)!r}])\n"
        "print(asyncio.run(load_sources([s])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr) == ("[SourceTool('tool')]\n", "")
    assert not alive(int(pid.read_text()))


def alive(pid):
    """Whether a process runs; a zombie whose parent is gone does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# Hostile servers over stdio


@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("exit at start", "mcp_disconnected", "no configuration found"),
        ("exit at list", "mcp_disconnected", "out of tools"),
        ("error at list", "mcp_error", "no tools/list"),
        ("too many", "too_many_tools", "more than 1,000"),
        ("endless pages", "too_many_tools", "pages"),
        ("illegal names", "invalid_name", "'getWeather', 'a b'"),
        ("giant name", "invalid_name", "xxx"),
        ("duplicate names", "tool_name_clash", "'tool'"),
        ("remote ref", "invalid_schema", "127.0.0.1:9"),
        ("no object", "mcp_error", "object"),
        ("giant description", "description_too_long", "100,000 bytes"),
        ("no list", "mcp_error", "tools"),
        ("no names", "mcp_error", "name"),
        ("endless line at list", "mcp_disconnected", "16,777,216 bytes"),
    ],
)
@slow
def test_26_a_server_that_lists_badly_is_an_error_that_names_it(mode, code, says):
    start = time.perf_counter()
    with closing(hostile(mode)) as source, pytest.raises(SourceError) as caught:
        load(source)
    assert time.perf_counter() - start < 8
    assert caught.value.code == code
    assert says in caught.value.message
    assert source.id in caught.value.message
    assert len(str(caught.value)) < 4_000


@slow
@pytest.mark.parametrize(
    "mode", ["hang at start", "hang at list", "endless junk at list", "endless complaints at list"]
)
def test_26_a_server_that_hangs_costs_its_time_and_no_more_and_is_ended(mode, tmp_path):
    pid = tmp_path / "pid"
    start = time.perf_counter()
    with closing(hostile(mode, str(pid))) as source, pytest.raises(SourceError) as caught:
        load(source, timeout=0.5)
    assert time.perf_counter() - start < 5
    assert caught.value.code == "source_timeout"
    assert not alive(int(pid.read_text()))


def test_26_a_command_that_does_not_exist():
    with closing(MCPSource.stdio("/nonexistent/server")) as source, pytest.raises(SourceError) as caught:
        load(source)
    assert caught.value.code == "mcp_disconnected"
    assert "No such file" in caught.value.message


@slow
@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("exit at call", "mcp_disconnected", "the disk is on fire"),
        ("too large output", "mcp_disconnected", "16,777,216 bytes"),
        ("endless line at call", "mcp_disconnected", "16,777,216 bytes"),
        ("no result", "mcp_error", "not what MCP says"),
        ("strange content", "mcp_error", "not what MCP says"),
        ("giant error", "tool_error", "95,904 more characters"),
        ("silent error", "tool_error", "no reason given"),
        ("too deep", "mcp_disconnected", "a message that cannot be read"),
        ("changes", "mcp_error", "no tools/call"),
    ],
)
def test_26_a_server_that_answers_badly_is_a_tool_error(mode, code, says):
    with closing(hostile(mode)) as source:
        (tool,) = load(source).values()
        start = time.perf_counter()
        with pytest.raises(ToolError) as caught:
            call(tool, n=1)
    assert time.perf_counter() - start < 8
    assert caught.value.code == code
    assert says in caught.value.message
    assert len(caught.value.message) < 5_000


@slow
def test_a_giant_output_comes_whole():
    with closing(hostile("giant output")) as source:
        assert call(load(source)["tool"]) == "x" * 3_000_000


@slow
def test_a_servers_own_output_schema_is_not_run_on_its_results():
    """Its pattern would take longer than the universe."""
    with closing(hostile("hostile output schema")) as source:
        assert call(load(source)["tool"]) == {"x": "a" * 40 + "!"}


@slow
def test_a_call_that_hangs_is_given_up_and_the_source_closes_in_time():
    source = hostile("hang at call")
    (tool,) = load(source).values()

    async def give_up():
        await asyncio.wait_for(tool.invoke({}, ToolContext()), 0.3)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    start = time.perf_counter()
    close(source)
    assert time.perf_counter() - start < 5


@slow
def test_a_server_that_ignores_its_end_is_killed():
    source = hostile("stubborn")
    load(source)
    start = time.perf_counter()
    close(source)
    assert time.perf_counter() - start < 5


@slow
def test_a_servers_children_end_with_it(tmp_path):
    pid = tmp_path / "pid"
    with closing(hostile("has a child", str(pid))) as source:
        load(source)
        assert alive(int(pid.read_text()))
    time.sleep(0.1)
    assert not alive(int(pid.read_text()))


@slow
def test_06_a_source_that_nobody_has_any_more_ends_its_server(tmp_path):
    """toolsets.md 6: the cell that makes it ran again."""
    pid = tmp_path / "pid"
    source = hostile("has a child", str(pid))
    load(source)
    assert alive(int(pid.read_text()))
    del source
    gc.collect()
    deadline = time.monotonic() + 5
    while alive(int(pid.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@slow
def test_a_jarvis_uses_a_server_and_ends_it_when_it_is_closed(tmp_path):
    pid = tmp_path / "pid"
    source = hostile("has a child", str(pid), prefix="far_")
    engine = ScriptedEngine([scripted("far_tool", n=1), "Done.", "Again."])
    with Jarvis(engine=engine, tool_sources=[source]) as j:
        reply = j.ask_full("Use it")
        (attempt,) = reply.tool_attempts
        assert attempt.output == '{"n": 1}'
        assert (attempt.tool.kind, attempt.tool.name) == ("source", "far_tool")
        (entry,) = reply.offers[0].entries
        assert (entry.name, entry.source) == ("far_tool", source.id)
        assert source.id.endswith("(prefix far_)")
        assert j.ask("Again") == "Again."
        assert alive(int(pid.read_text()))
    time.sleep(0.1)
    assert not alive(int(pid.read_text()))


@slow
def test_a_noisy_server_is_listened_to():
    """Half a million lines on stderr and a greeting on stdout disturb nothing."""
    with closing(hostile("noisy")) as source:
        assert call(load(source)["tool"], n=1) == '{"n": 1}'


@slow
def test_pages_are_followed_and_a_cursor_that_stays_ends_them():
    with closing(hostile("many pages")) as source:
        assert list(load(source)) == ["t0", "t1", "t2", "t3"]
    with closing(hostile("same cursor")) as source, pytest.raises(JarvisError):
        load(source)


@slow
def test_a_blank_description_is_filled_from_the_title():
    with closing(hostile("no description")) as source:
        tools = load(source)
    assert [tool.definition.description for tool in tools.values()] == ["A title", "The tool other."]


@slow
def test_what_a_server_lists_later_is_not_offered_now_and_is_at_the_next_ask():
    with closing(hostile("changes")) as source:
        assert list(load(source)) == ["before"]
        assert list(load(source)) == ["after"]


@slow
def test_05_illegal_names_can_be_renamed_or_left_out_and_the_hint_says_how():
    with closing(hostile("illegal names")) as source, pytest.raises(SourceError) as caught:
        load(source)
    assert "{'getWeather': 'get_weather', 'a b': 'a_b'}" in caught.value.hint
    with closing(
        hostile("illegal names", names={"getWeather": "weather", "a b": None}, prefix="x_")
    ) as source:
        tools = load(source)
        assert list(tools) == ["weather", "x_fine"]
        assert tools["weather"].spec.metadata["annotations"]["server_name"] == "getWeather"
    with closing(hostile("illegal names", names={"getWether": "weather"})) as source:
        with pytest.raises(SourceError) as caught:
            load(source)
        assert caught.value.code == "unknown_tools"
        assert caught.value.valid == ("getWeather", "a b", "fine")


# Hostile servers over HTTP


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mode = ""
    seen: list[dict[str, str]] = []  # noqa: RUF012

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.reply(405, b"")

    do_DELETE = do_GET  # noqa: N815 - what http.server looks for

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append({"path": self.path, **{k.lower(): v for k, v in self.headers.items()}})
        if self.path == "/elsewhere" or "id" not in message:
            self.reply(202, b"")
            return
        method = message["method"]
        if self.mode == "redirect":
            host = "localhost" if "127" in self.headers["host"] else "127.0.0.1"
            self.reply(307, b"", Location=f"http://{host}:{self.server.server_port}/elsewhere")
            return
        if self.mode == "hang":
            time.sleep(2)
        if self.mode == "500":
            self.reply(500, b"oops")
            return
        if self.mode == "html":
            self.reply(200, b"<html>log in</html>", **{"Content-Type": "text/html"})
            return
        if method == "initialize":
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "h", "version": "1"},
            }
        elif method == "tools/list":
            result = {
                "tools": [{"name": "tool", "description": "A tool.", "inputSchema": {"type": "object"}}]
            }
            if self.mode == "bomb":
                result["pad"] = " " * 40_000_000
        elif method == "tools/call" and self.mode == "giant":
            result = {"content": [{"type": "text", "text": "x" * 17_000_000}]}
        else:
            self.rpc(message, error={"code": -32601, "message": "no"})
            return
        self.rpc(message, result=result)

    def rpc(self, message, **body):
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}).encode()
        extra = {}
        if self.mode == "bomb":
            data, extra = gzip.compress(data), {"Content-Encoding": "gzip"}
        self.reply(200, data, **{"Content-Type": "application/json"}, **extra)

    def reply(self, status, data, **headers):
        try:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@contextmanager
def http_server(mode):
    handler = type("Mode", (Handler,), {"mode": mode, "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", handler.seen
    finally:
        server.shutdown()
        server.server_close()


@slow
def test_headers_are_sent_with_their_secrets_resolved_and_never_shown(monkeypatch):
    monkeypatch.setenv("MCP_TEST_SECRET", "Bearer s3cr3t-value")
    headers = {"Authorization": Secret("MCP_TEST_SECRET")}
    with http_server("fine") as (url, seen), closing(MCPSource.http(url, headers)) as source:
        assert list(load(source)) == ["tool"]
        assert {request["authorization"] for request in seen} == {"Bearer s3cr3t-value"}
        assert "s3cr3t" not in repr(source) + repr(source.config)


@slow
def test_a_redirect_to_another_origin_is_not_followed():
    with (
        http_server("redirect") as (url, seen),
        closing(MCPSource.http(url, {"Authorization": "x"})) as source,
    ):
        with pytest.raises(SourceError):
            load(source)
        assert {request["path"] for request in seen} == {"/mcp"}


@slow
@pytest.mark.parametrize(
    ("mode", "says"), [("500", "error response"), ("html", "text/html"), ("bomb", "gzip"), ("hang", "0.5 s")]
)
def test_26_an_http_server_that_lists_badly_is_an_error_that_names_it(mode, says):
    start = time.perf_counter()
    with (
        http_server(mode) as (url, _),
        closing(MCPSource.http(url)) as source,
        pytest.raises(SourceError) as caught,
    ):
        load(source, timeout=0.5 if mode == "hang" else 20)
    assert time.perf_counter() - start < 5
    assert says in caught.value.message
    assert url in caught.value.message


@slow
def test_26_a_giant_http_answer_is_a_tool_error():
    with (
        http_server("giant") as (url, _),
        closing(MCPSource.http(url)) as source,
        pytest.raises(ToolError) as caught,
    ):
        call(load(source)["tool"])
    assert "16,777,216 bytes" in caught.value.message


# Results as values


def text(words):
    return {"type": "text", "text": words}


PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"content": []}, None),
        ({"content": [text("")]}, ""),
        ({"content": [text("a")]}, "a"),
        ({"content": [text("a"), text("b")]}, ["a", "b"]),
        ({"content": [text('{"a":1}')], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": [1]}, [1]),
        ({"content": [text("null")], "structuredContent": None}, "null"),
        (
            {
                "content": [text("x"), {"type": "image", "data": PNG, "mimeType": "image/png"}],
                "structuredContent": {"a": 1},
            },
            {"structured": {"a": 1}, "content": [ImageContent(b"\x89PNG\r\n\x1a\n", "image/png")]},
        ),
        (
            {"content": [{"type": "image", "data": "?!", "mimeType": "image/png"}]},
            {"type": "image", "data": "?!", "mimeType": "image/png"},
        ),
        (
            {"content": [{"type": "audio", "data": "AAEC", "mimeType": "audio/wav"}]},
            {"type": "audio", "data": b"\0\1\2", "mimeType": "audio/wav"},
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAEC"}}]},
            {"type": "resource", "resource": {"uri": "file:///a", "blob": b"\0\1\2"}},
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}]},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}},
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
        ),
    ],
)
def test_content_is_mapped_block_by_block(result, value):
    from mcp_types import CallToolResult

    from jarvis_nb.toolsets.mcp.content import value_of

    assert value_of(CallToolResult.model_validate(result)) == value
