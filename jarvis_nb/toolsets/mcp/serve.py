"""A toolset as an MCP server: other programs call its tools under the same checks as a model does."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from jarvis_nb.core.bridge import run_sync
from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.types import ToolCall
from jarvis_nb.tools.base import ToolContext, ToolLike
from jarvis_nb.toolsets.policy import ToolPolicy, resolve
from jarvis_nb.toolsets.toolset import Toolset

if TYPE_CHECKING:
    from mcp.server import Server

    from jarvis_nb.core.approval import Approver

HOST = "127.0.0.1"


def mcp_server(
    tools: Toolset | Iterable[ToolLike],
    *,
    name: str = "jarvis_nb",
    tool_policy: ToolPolicy | Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    approver: Approver | None = None,
) -> Server[Any]:
    """Return an MCP server that offers a toolset.

    Args:
        tools: What it offers.
        name: How it introduces itself.
        tool_policy: Narrows what is offered, and what runs.
        context: The host's run context.
        approver: Decides on calls of tools that need confirmation; without one they are denied.

    Raises:
        ToolsetError: The toolset is not valid.
        InvalidRequest: The policy is not.
    """
    import mcp_types as types
    from mcp.server import Server

    from jarvis_nb import __version__
    from jarvis_nb.tools.executor import ToolExecutor

    offer = resolve(tools if isinstance(tools, Toolset) else Toolset(tools), tool_policy)
    given = context if isinstance(context, ToolContext) else ToolContext(context)
    executor = ToolExecutor(list(offer.tools), approver=approver, context=given)
    listed = [
        types.Tool(name=d.name, description=d.description, input_schema=d.parameters)
        for d in offer.definitions
    ]
    ids = itertools.count(1)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:  # noqa: ARG001 - the SDK's interface
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ARG001
        call = ToolCall(f"mcp_{next(ids)}", params.name, params.arguments or {})
        outcome = await executor.run(call, offered=offer.names)
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.result.content)],
            structured_content=outcome.output if isinstance(outcome.output, dict) else None,
            is_error=outcome.status != "ok",
        )

    return Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def serve(
    tools: Toolset | Iterable[ToolLike],
    *,
    transport: Literal["stdio", "http"] | str = "stdio",  # noqa: PYI051 - the first two are the ones there are
    port: int = 8808,
    **options: Any,
) -> None:
    """Offer a toolset as an MCP server until it is interrupted. See :func:`aserve`."""
    run_sync(aserve(tools, transport=transport, port=port, **options))


async def aserve(
    tools: Toolset | Iterable[ToolLike], *, transport: str = "stdio", port: int = 8808, **options: Any
) -> None:
    """Offer a toolset as an MCP server until it is cancelled or, over stdio, until the input ends.

    Args:
        tools: What it offers.
        transport: ``stdio``, or ``http``: streamable HTTP at ``http://127.0.0.1:port/mcp``, for this machine
            only; requests with a foreign ``Host`` or ``Origin`` are refused.
        port: For ``http``.
        **options: Of :func:`mcp_server`.

    Raises:
        InvalidRequest: ``unknown_transport``, or the policy is not valid.
        ToolsetError: The toolset is not valid.
    """
    if transport not in ("stdio", "http"):
        raise InvalidRequest(
            f"no transport {transport!r:.80}",
            code="unknown_transport",
            value=transport,
            valid=["stdio", "http"],
        )
    server = mcp_server(tools, **options)
    if transport == "stdio":
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return
    import uvicorn

    config = uvicorn.Config(server.streamable_http_app(host=HOST), host=HOST, port=port, log_level="warning")
    await uvicorn.Server(config).serve()
