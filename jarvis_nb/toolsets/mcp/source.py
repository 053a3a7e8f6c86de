"""An MCP server as a tool source: over stdio or streamable HTTP."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from jarvis_nb.core.errors import InvalidRequest, JarvisError, SourceError, ToolError
from jarvis_nb.core.portable import Secret, portable
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.toolsets.mcp.connection import Connection, Lost
from jarvis_nb.toolsets.mcp.content import value_of
from jarvis_nb.toolsets.scrub import resolve_secrets
from jarvis_nb.toolsets.tool_source import ToolSource
from jarvis_nb.toolsets.toolset import SOURCE_NAME

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp_types import Tool

T = TypeVar("T")

MAX_PAGES = 200
"""Pages of one tool list."""


class MCPSource(ToolSource):
    """The tools of one MCP server. Make it with :meth:`stdio` or :meth:`http`.

    The connection is opened when tools are first listed, is kept from ask to ask and is closed by
    ``aclose()``; the ``Jarvis`` that has the source does that when it is closed. A connection that ended is
    opened anew at the next listing or call; a call that was under way is never repeated.

    What the server says of its tools (``readOnlyHint`` and so on) is kept as data and decides nothing:
    a server may claim what it likes.

    Example:
        >>> MCPSource.http("https://example.com/mcp", headers={"Authorization": Secret("MCP_AUTH")}, prefix="ex_")
        MCPSource('mcp:https://example.com/mcp (prefix ex_)')
    """

    max_tools = 1_000

    def __init__(
        self,
        config: dict[str, Any],
        *,
        label: str,
        prefix: str = "",
        names: Mapping[str, str | None] | None = None,
        requires_confirmation: bool | Sequence[str] = False,
        id: str | None = None,  # noqa: A002 - the public name of a source's id
        timeout_seconds: float = 30.0,
    ) -> None:
        if prefix and not SOURCE_NAME.fullmatch(prefix):
            raise InvalidRequest(
                f"{prefix!r:.100} cannot begin a tool name",
                code="invalid_name",
                value=prefix,
                hint="such as 'gh_'",
            )
        self.config = portable(config, "MCPSource", secrets=True)
        self.prefix = prefix
        self.names = dict(names or {})
        self.id = id or f"mcp:{label}" + (f" (prefix {prefix})" if prefix else "")
        self.timeout_seconds = timeout_seconds
        self._confirm = requires_confirmation
        self._connection = Connection(self.id)
        # A notebook's cell that makes the source runs again: the one before is gone, and so is its server.
        weakref.finalize(self, self._connection.abandon).atexit = False

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str | os.PathLike[str] | Secret] = (),
        env: Mapping[str, str | Secret] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Self:
        """Start a server as a child process and talk to it over its standard streams.

        Args:
            command: The program.
            args: Its arguments.
            env: Variables beside the few harmless ones a child gets (``PATH``, ``HOME``, …).
            cwd: Where it runs.
            **options: ``prefix``: what its tools' names get in front. ``names``: other names for single
                tools, such as ``{"getWeather": "get_weather"}``; None leaves a tool out.
                ``requires_confirmation``: True, or the names (as the model sees them) of the tools that need
                it. ``id``, ``timeout_seconds``.

        Raises:
            InvalidRequest: The prefix cannot begin a tool name.
            NotPortable: An argument is not plain data.
        """
        config = {
            "command": os.fspath(command),
            "args": [arg if isinstance(arg, Secret) else os.fspath(arg) for arg in args],
            "env": dict(env or {}),
            "cwd": None if cwd is None else os.fspath(cwd),
        }
        return cls(config, label=PurePath(command).name, **options)

    @classmethod
    def http(cls, url: str, headers: Mapping[str, str | Secret] | None = None, **options: Any) -> Self:
        """Talk to a server over streamable HTTP.

        Args:
            url: The endpoint, such as ``http://127.0.0.1:8808/mcp``.
            headers: Sent with each request. A redirect to another origin is not followed.
            **options: As for :meth:`stdio`.

        Raises:
            InvalidRequest: No HTTP URL, or the prefix cannot begin a tool name.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest(f"{url!r:.100} is no HTTP URL", code="invalid_source", value=url)
        place = parts.hostname + (f":{parts.port}" if parts.port else "") + parts.path
        return cls({"url": url, "headers": dict(headers or {})}, label=f"{parts.scheme}://{place}", **options)

    async def list_tools(self, config: Any, context: ToolContext) -> list[dict[str, Any]]:
        """List the server's tools under the names the model sees.

        Raises:
            SourceError: The server cannot be reached, ended, or lists what cannot be used.
        """
        resolved = resolve_secrets(config, context.secrets)
        try:
            tools = await self._connection.run(partial(_all_tools, most=self.max_tools), resolved)
        except BaseException:
            self._connection.drop()  # the next ask starts afresh, also after a server that hangs
            raise
        unknown = [name for name in self.names if name not in {tool.name for tool in tools}]
        if unknown:
            raise SourceError(
                f"`names` renames {unknown[0]!r:.100}, which the server does not list",
                code="unknown_tools",
                value=unknown,
                valid=[tool.name for tool in tools[:50]],
            )
        listed = [
            self._listed(tool, shown) for tool in tools if (shown := self._shown(tool.name)) is not None
        ]
        _check_names(tools, listed)
        self._check_confirmed(listed)
        return listed

    async def run_tool(self, name: str, arguments: dict[str, Any], config: Any, context: ToolContext) -> Any:
        """Call the server's tool.

        Raises:
            ToolError: What the server answers instead of a result; ``mcp_disconnected``: it ended meanwhile.
        """
        work = partial(_call, name=self.server_name(name), arguments=arguments, context=context)
        try:
            return await self._connection.run(work, config)
        except Lost as lost:
            raise ToolError(lost.message, code=lost.code) from lost

    def server_name(self, name: str) -> str:
        """Return what the server calls the tool that the model calls ``name``."""
        for original, shown in self.names.items():
            if shown == name:
                return original
        return name.removeprefix(self.prefix)

    async def aclose(self) -> None:
        """End the connection and, over stdio, the server."""
        await self._connection.aclose()

    def __repr__(self) -> str:
        return f"MCPSource({self.id!r})"

    def _check_confirmed(self, listed: Sequence[dict[str, Any]]) -> None:
        """A typo must not leave a tool unconfirmed."""
        if isinstance(self._confirm, bool):
            return
        names = [item["name"] for item in listed]
        unknown = [name for name in self._confirm if name not in names]
        if unknown:
            raise SourceError(
                f"`requires_confirmation` names {unknown[0]!r:.100}, which the source does not list",
                code="unknown_tools",
                value=unknown,
                valid=names[:50],
            )

    def _shown(self, name: str) -> str | None:
        return self.names.get(name, f"{self.prefix}{name}")

    def _listed(self, tool: Tool, shown: str) -> dict[str, Any]:
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
        title = tool.title or hints.get("title")
        confirm = self._confirm if isinstance(self._confirm, bool) else shown in self._confirm
        return {
            "name": shown,
            "description": tool.description
            if (tool.description or "").strip()
            else (title or f"The tool {tool.name}."),
            "parameter_schema": tool.input_schema,
            "annotations": {"server_name": tool.name, "prefix": self.prefix, **hints},
            "requires_confirmation": confirm,
        }


def _check_names(tools: Sequence[Tool], listed: Sequence[dict[str, Any]]) -> None:
    from jarvis_nb.toolsets.source_tool import legal_name

    illegal = {
        item["annotations"]["server_name"]: item["name"]
        for item in listed
        if not SOURCE_NAME.fullmatch(item["name"])
    }
    if illegal:
        renamed = {name: legal_name(shown) for name, shown in list(illegal.items())[:10]}
        raise SourceError(
            f"{len(illegal)} of its {len(tools)} tools have names that no model is offered: "
            + ", ".join(f"{name!r:.80}" for name in renamed),
            code="invalid_name",
            value=list(illegal)[:10],
            hint=f"rename them: names={renamed!r:.1000} (None leaves a tool out)",
        )


async def _all_tools(session: ClientSession, *, most: int) -> list[Tool]:
    from mcp_types import PaginatedRequestParams

    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        page = await _answer(session.list_tools(params=params), SourceError)
        tools += page.tools
        if len(tools) > most:
            raise SourceError(f"the server lists more than {most:,} tools", code="too_many_tools")
        if not page.next_cursor or page.next_cursor == cursor:
            return tools
        cursor = page.next_cursor
    raise SourceError(f"the server's tool list has more than {MAX_PAGES} pages", code="too_many_tools")


async def _call(session: ClientSession, *, name: str, arguments: dict[str, Any], context: ToolContext) -> Any:
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    async def report(progress: float, total: float | None, message: str | None) -> None:
        context.progress(progress, total, message or "")

    # Not session.call_tool: it would run the server's own output schema, patterns included, on the result.
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
    sent = session.send_request(request, CallToolResult, progress_callback=report)
    return value_of(await _answer(sent, ToolError))


async def _answer(sent: Awaitable[T], error: type[JarvisError]) -> T:
    """Return a server's answer, or raise what it says instead as an error of ours."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    try:
        return await sent
    except MCPError as refused:
        if refused.code == CONNECTION_CLOSED or refused.message == "Session terminated":
            raise
        raise error(f"the server refuses: {refused.message:.2000}", code="mcp_error") from None
    except ValueError as wrong:  # pydantic's
        raise error(f"the server's answer is not what MCP says: {wrong!s:.300}", code="mcp_error") from None
