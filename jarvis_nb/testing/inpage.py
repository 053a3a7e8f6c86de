"""The strict server inside a page: a browser's Python cannot listen, so its requests are answered in place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from jarvis_nb.engines.pyfetch_transport import HERE, Head
from jarvis_nb.engines.transport import CLOSED, TransportError
from jarvis_nb.testing.replies import Mark, ServerReply, error

if TYPE_CHECKING:
    from jarvis_nb.testing.server import StrictServer

POLL_SECONDS = 0.02
_ports = count(49_152)


class PageListener:
    """Takes the requests that go to one address, as the sockets of a server would.

    Args:
        owner: The server that answers.
    """

    def __init__(self, owner: StrictServer) -> None:
        self._owner = owner
        self.server_port = next(_ports)
        self._name = f"127.0.0.1:{self.server_port}"
        HERE[self._name] = self._answer

    def stop(self) -> None:
        """Answer nothing more."""
        HERE.pop(self._name, None)

    async def _answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Head:
        path = urlsplit(url).path
        if method == "POST":
            reply = self._owner.answer(path, dict(headers), body or b"")
        else:
            reply = self._owner.listing() if path.endswith("/models") else error(404, f"no such path: {path}")
        await self._pause(reply.delay)
        if reply.bare:
            return await self._bare(reply)
        names = {name.lower(): value for name, value in reply.headers.items()}
        return Head(reply.status, names, self._parts(reply))

    async def _parts(self, reply: ServerReply) -> AsyncGenerator[bytes]:
        for part in reply.parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, Mark):
                if part is Mark.HANG:
                    await self._pause(None)
                raise TransportError("reset", CLOSED)
            else:
                await self._pause(part)

    async def _bare(self, reply: ServerReply) -> Head:
        """Read what is sent as it stands, as far as it is HTTP."""
        sent, broken = b"", False
        try:
            async for part in self._parts(reply):
                sent += part
        except TransportError:
            broken = True
        try:
            response = HTTPResponse(cast("Any", _Bytes(sent)))
            response.begin()
            body = response.read()
        except HTTPException:
            raise TransportError(
                *(("reset", CLOSED) if broken or not sent else ("protocol", "no valid HTTP came back"))
            ) from None
        return Head(response.status, {k.lower(): v for k, v in response.getheaders()}, _whole(body))

    async def _pause(self, seconds: float | None) -> None:
        """Wait, but not beyond the server's end, which breaks the connection."""
        waited = 0.0
        while seconds is None or waited < seconds:
            if self._owner.closing.is_set():
                raise TransportError("reset", CLOSED)
            rest = POLL_SECONDS if seconds is None else min(POLL_SECONDS, seconds - waited)
            await asyncio.sleep(rest)
            waited += rest


class _Bytes:
    """Bytes as the socket that ``http.client`` reads from."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent

    def makefile(self, mode: str) -> BytesIO:  # noqa: ARG002 - the socket's signature
        return BytesIO(self._sent)


async def _whole(body: bytes) -> AsyncGenerator[bytes]:
    yield body
