"""A toolset as an MCP server, called by the SDK's own client."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time

import pytest

from jarvis_nb import ToolContext, Toolset, action
from jarvis_nb.core.approval import Approve
from jarvis_nb.core.errors import InvalidRequest, ToolsetError
from jarvis_nb.toolsets.mcp import MCPSource, aserve, mcp_server
from jarvis_nb.toolsets.source import load_sources

pytestmark = pytest.mark.slow  # the SDK alone takes half a second to import


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action
def greet(name: str, punctuation: str = "!") -> str:
    """Greet somebody."""
    return f"Grüße, {name}{punctuation}"


@action
def fail() -> str:
    """Fail."""
    raise ValueError("no luck")


@action(requires_confirmation=True)
def refund(order_id: str, context: ToolContext) -> str:
    """Refund an order."""
    return f"refunded {order_id} for {context['tenant']}"


TOOLS = [lookup_order, greet, fail, refund]


def with_client(work, server):
    from mcp import Client

    async def go():
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(go())


def call(name, arguments, **options):
    result = with_client(lambda client: client.call_tool(name, arguments), mcp_server(TOOLS, **options))
    return result.is_error, result.content[0].text, result.structured_content


def listed(**options):
    return with_client(lambda client: client.list_tools(), mcp_server(TOOLS, **options)).tools


def test_tools_are_listed_as_defined_in_order():
    tools = listed()
    assert [(tool.name, tool.description) for tool in tools][:2] == [
        ("lookup_order", "Look up one order by ID."),
        ("greet", "Greet somebody."),
    ]
    assert tools[1].input_schema == Toolset([greet]).definitions()[0].parameters


def test_results_come_as_text_and_structured():
    assert call("lookup_order", {"order_id": "ORD-5"}) == (
        False,
        '{"order_id":"ORD-5","total_cents":4200}',
        {"order_id": "ORD-5", "total_cents": 4200},
    )
    assert call("greet", {"name": "Zoë"}) == (False, "Grüße, Zoë!", None)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "says"),
    [
        ("greet", {}, "invalid_arguments", "name"),
        ("greet", {"name": "a", "x": 1}, "invalid_arguments", "x"),
        ("nothing", {}, "unknown_tool", "greet"),
        ("fail", {}, "tool_failed", "no luck"),
        ("refund", {"order_id": "1"}, "approval_unavailable", ""),
    ],
)
def test_what_fails_is_an_error_result_with_its_code(name, arguments, code, says):
    is_error, text, structured = call(name, arguments)
    assert is_error
    assert structured is None
    assert json.loads(text)["error"]["code"] == code
    assert says in text
    assert "Traceback" not in text


def test_a_tool_that_needs_confirmation_runs_when_the_host_approves():
    async def approve(request):
        return Approve()

    outcome = call("refund", {"order_id": "1"}, approver=approve, context={"tenant": "acme"})
    assert outcome[:2] == (False, "refunded 1 for acme")


def test_a_policy_narrows_what_is_offered_and_what_runs():
    policy = {"visible": ["greet"]}
    assert [tool.name for tool in listed(tool_policy=policy)] == ["greet"]
    is_error, text, _ = call("lookup_order", {"order_id": "1"}, tool_policy=policy)
    assert is_error
    assert "ORD" not in text


def test_bad_toolsets_policies_and_transports_are_refused_where_they_are_given():
    with pytest.raises(ToolsetError):
        mcp_server([greet, greet])
    with pytest.raises(InvalidRequest):
        mcp_server(TOOLS, tool_policy={"visible": ["nothing"]})
    with pytest.raises(InvalidRequest) as caught:
        asyncio.run(aserve(TOOLS, transport="sse"))
    assert caught.value.valid == ("stdio", "http")


SCRIPT = """
import sys
from jarvis_nb import action
from jarvis_nb.toolsets.mcp import serve

@action
def add(a: int, b: int) -> dict:
    "Add two numbers."
    print("a stray print")
    return {"sum": a + b}

serve([add], transport=sys.argv[1], port=int(sys.argv[2]))
"""


def check(server):
    async def work(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, (await client.call_tool("add", {"a": 1, "b": 2})).structured_content

    assert with_client(work, server) == (["add"], {"sum": 3})


@pytest.fixture
def http_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "http", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield port
    child.terminate()
    assert child.wait(10) is not None


def test_over_stdio():
    from mcp import StdioServerParameters

    check(StdioServerParameters(command=sys.executable, args=["-c", SCRIPT, "stdio", "0"]))


def test_over_http(http_port):
    check(f"http://127.0.0.1:{http_port}/mcp")


def test_over_http_foreign_hosts_and_origins_are_refused(http_port):
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        connection = http.client.HTTPConnection("127.0.0.1", http_port, timeout=5)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", "/mcp", body, {**accept, **headers})
        assert connection.getresponse().status in (403, 421)
        connection.close()


def test_our_own_source_reads_our_own_server():
    source = MCPSource.stdio(sys.executable, ["-c", SCRIPT, "stdio", "0"], prefix="far_")

    async def go():
        try:
            (tool,) = await load_sources([source])
            return tool.name, await tool.invoke({"a": 2, "b": 3}, ToolContext())
        finally:
            await source.aclose()

    assert asyncio.run(go()) == ("far_add", {"sum": 5})


def test_the_command_serves_built_in_tools():
    from mcp import StdioServerParameters

    async def work(client):
        return (await client.call_tool("calculator", {"expression": "2+2"})).content[0].text

    command = [sys.executable, "-m", "jarvis_nb.cli", "mcp", "serve", "--tools", "calculator"]
    code = "import sys; sys.argv = ['jarvis', *sys.argv[1:]]; from jarvis_nb.cli import main; main()"
    parameters = StdioServerParameters(command=sys.executable, args=["-c", code, *command[3:]])
    assert with_client(work, parameters) == "4"
