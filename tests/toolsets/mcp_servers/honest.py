"""A real MCP server made with the SDK: over stdio, or over HTTP on a port of loopback."""

from __future__ import annotations

import os
import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("honest")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Addition"))
def add(a: int, b: int = 10) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Grüße, {name}"


@server.tool(structured_output=False)
def picture() -> Image:
    """Draw a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool(structured_output=False)
def several() -> list[str]:
    """Say two things."""
    return ["one", "two"]


@server.tool()
def order(order_id: str) -> dict[str, int | str]:
    """Look up an order."""
    return {"order_id": order_id, "total_cents": 4200}


@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ToolError(reason)


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleep."""
    await anyio.sleep(seconds)
    return "awake"


@server.tool()
async def steps(ctx: Context) -> str:
    """Report progress."""
    await ctx.report_progress(1, 2, "half")
    await ctx.report_progress(2, 2, "all")
    return "done"


@server.tool()
def environment(name: str) -> str:
    """Read a variable of the environment."""
    return os.environ.get(name, "(not set)")


@server.tool()
def die(message: str) -> str:
    """End the server."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
