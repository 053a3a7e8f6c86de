"""The two transports, bounded: a server that never ends a line or a body costs a message, not the memory.

The SDK's own stdio transport reads lines of any length and gives the child our ``stderr``, which a kernel's
``sys.stderr`` cannot (it has no file descriptor: modelcontextprotocol/python-sdk issue 156). This one bounds
a message, and keeps the end of what the server wrote to its ``stderr`` for the error that follows.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from httpx2 import Response
    from mcp.shared.message import SessionMessage

MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message of a server."""
MAX_TAIL = 2_000
"""Characters kept of what a server wrote to its ``stderr``."""
GRACE_SECONDS = 1.0
"""How long a server may take to end by itself, and then after being asked to."""


class Tail:
    """The end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self._kept = (self._kept + piece)[-MAX_TAIL:]

    def text(self) -> str:
        """Return what is kept, on one line."""
        return " ".join(self._kept.decode(errors="replace").split())


@asynccontextmanager
async def stdio_transport(
    config: dict[str, Any], tail: Tail, ended: Callable[[], None]
) -> AsyncGenerator[Any]:
    """Start a server and yield the streams of its messages.

    Args:
        config: ``command``, ``args``, ``env``, ``cwd``.
        tail: Gets what the server writes to its ``stderr``.
        ended: Called when the server closed its output.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await anyio.open_process(
        [config["command"], *config["args"]],
        env={**get_default_environment(), **config["env"]},
        cwd=config["cwd"],
        start_new_session=os.name == "posix",  # its children end with it
    )
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - open_process makes pipes
    to_session, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, from_session = anyio.create_memory_object_stream[Any](0)
    try:
        async with to_session, from_server, to_server, from_session, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process.stdout, to_session, tail, ended)
            tasks.start_soon(_write, process.stdin, from_session)
            tasks.start_soon(_drain, process.stderr, tail)
            try:
                yield from_server, to_server
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _read(
    stdout: ByteReceiveStream, to_session: MemoryObjectSendStream[Any], tail: Tail, ended: Callable[[], None]
) -> None:
    import anyio
    import anyio.lowlevel
    from anyio.streams.buffered import BufferedByteReceiveStream
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    lines = BufferedByteReceiveStream(stdout)
    try:
        async with to_session:
            while True:
                line = await lines.receive_until(b"\n", MAX_MESSAGE)
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    if b'"jsonrpc"' in line:  # whoever waits for it would wait for ever
                        tail.add(b"\n(a message that cannot be read)")
                        return
                    # A stray print or log: the session goes on, and the loop too, whose turn a flood would take.
                    await anyio.lowlevel.checkpoint()
                else:
                    await to_session.send(message)
    except anyio.DelimiterNotFound:
        tail.add(f"\n(a message of more than {MAX_MESSAGE:,} bytes)".encode())
    except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the server or the session ended: `ended` tells it
    finally:
        ended()


async def _write(stdin: ByteSendStream, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    import anyio

    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the reader sees the end too
        async for item in from_session:
            await stdin.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


async def _drain(stderr: ByteReceiveStream, tail: Tail) -> None:
    import anyio
    import anyio.lowlevel

    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for piece in stderr:
            tail.add(piece)
            await anyio.lowlevel.checkpoint()


async def _end(process: Process) -> None:
    """Close its input, which tells a server to end; then ask, then kill, it and its children."""
    import anyio

    assert process.stdin  # noqa: S101 - as above
    try:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
        if not await _ended(process):
            _signal(process, signal.SIGTERM)
            await _ended(process)
    finally:  # also when this is cancelled; and children may have outlived it
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    await _ended(process)
    await process.aclose()


async def _ended(process: Process) -> bool:
    import anyio

    with anyio.move_on_after(GRACE_SECONDS):
        await process.wait()
    return process.returncode is not None


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


@asynccontextmanager
async def http_transport(config: dict[str, Any]) -> AsyncGenerator[Any]:
    """Yield the streams of a server's messages over streamable HTTP.

    Args:
        config: ``url`` and ``headers``.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    client = httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **config["headers"]},
        timeout=httpx2.Timeout(30.0, read=300.0),
        event_hooks={"response": [_bound]},
    )
    async with (
        client,
        streamable_http_client(config["url"], http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams


async def _bound(response: Response) -> None:
    """Bound a body as it is read; an event stream is bounded by event, and a packed body could unpack to anything."""
    import httpx2

    packing = response.headers.get("content-encoding", "identity")
    if packing != "identity":
        raise httpx2.DecodingError(
            f"the server packs its answers ({packing:.40}), though it was asked not to"
        )
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > MAX_MESSAGE:
                    raise httpx2.ReadError(f"a message of more than {MAX_MESSAGE:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
