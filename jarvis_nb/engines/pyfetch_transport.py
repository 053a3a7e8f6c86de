"""The transport in a browser, where Python has no sockets: the page's own ``fetch``, by Pyodide's ``pyfetch``.

The browser decides about connections, TLS and proxies, tells no reasons, and asks a server of another origin
only if that allows it (CORS). It also cannot listen: a server inside the page registers in :data:`HERE`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jarvis_nb.engines.transport import CLOSED, Answer, Timeouts, Transport, TransportError

UNSENT = frozenset({"user-agent"})
"""The browser sends its own, and a server that allows pages rarely allows this one of theirs."""


class Head(NamedTuple):
    """What has come of an answer, and the body that is still to come."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: AsyncGenerator[bytes]


Server = Callable[[str, str, Mapping[str, str], bytes | None], Awaitable[Head]]
"""Answers method, URL, headers and body; raises :class:`TransportError` for a connection that fails."""

HERE: dict[str, Server] = {}
"""Servers inside this page, by host and port."""


class PyfetchTransport(Transport):
    """Requests by the browser.

    Args:
        headers: Sent with every request.
        timeouts: Seconds to wait. A connection cannot be told from an answer: it has the time of both.
    """

    def __init__(self, headers: Mapping[str, str], timeouts: Timeouts) -> None:
        self._headers = {name: value for name, value in headers.items() if name not in UNSENT}
        self._timeouts = timeouts
        self._live: set[BrowserAnswer] = set()

    async def send(self, method: str, url: str, body: bytes | None = None) -> Answer:  # noqa: D102 - as the seam says
        server = HERE.get(urlsplit(url).netloc, _fetch)
        head = await _in_time(server(method, url, self._headers, body), self._timeouts.read)
        return BrowserAnswer(head, self._timeouts.read, self._live)

    async def close(self) -> None:  # noqa: D102
        for answer in tuple(self._live):
            answer.cut()


class BrowserAnswer(Answer):
    """An answer that comes through the browser, piece by piece."""

    def __init__(self, head: Head, seconds: float | None, live: set[BrowserAnswer]) -> None:
        self.status, self.headers = head.status, head.headers
        self._body, self._seconds, self._live = head.body, seconds, live
        self._cut = asyncio.get_running_loop().create_future()
        live.add(self)

    async def read(self) -> bytes:  # noqa: D102
        return b"".join([block async for block in self.blocks()])

    async def blocks(self) -> AsyncGenerator[bytes]:  # noqa: D102
        try:
            while (block := await self._next()) is not None:
                yield block
        finally:
            await self.close()

    async def _next(self) -> bytes | None:
        """Return the next piece, or None at the end; stop waiting when the engine is closed."""
        piece = asyncio.ensure_future(_piece(self._body))
        try:
            await asyncio.wait([piece, self._cut], timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if piece.done():
                return piece.result()
        finally:
            piece.cancel()
            with contextlib.suppress(asyncio.CancelledError, TransportError):
                await piece
        if self._cut.done():
            raise TransportError("closed", "the engine was closed meanwhile")
        raise TransportError("read_timeout", "no byte came")

    def cut(self) -> None:
        """Wake who reads: the engine is being closed."""
        if not self._cut.done():
            self._cut.set_result(None)

    async def close(self) -> None:  # noqa: D102
        self._live.discard(self)
        self._cut.cancel()
        await self._body.aclose()


async def _piece(body: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(body, None)


async def _in_time(coming: Awaitable[Head], seconds: float | None) -> Head:
    try:
        return await asyncio.wait_for(coming, seconds)
    except TimeoutError:
        pass
    raise TransportError("read_timeout", "no byte came")


async def _fetch(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Head:
    from pyodide.http import pyfetch  # pyright: ignore[reportMissingImports] - in a browser only

    options: dict[str, Any] = {
        "method": method,
        "headers": dict(headers),
        "redirect": "manual",
        "credentials": "omit",
        "cache": "no-store",
        "referrerPolicy": "no-referrer",
    }
    try:
        response = await pyfetch(url, **options, **({} if body is None else {"body": body}))
    except OSError as error:
        words = f"{error}. A page reaches only a server that runs and allows pages of other origins (CORS)"
        fault = TransportError("refused", words)
    else:
        if response.type != "opaqueredirect":
            return Head(response.status, response.headers, _stream(response))
        fault = TransportError(
            "protocol", "it redirects, which is not followed: a key goes to no other place"
        )
    raise fault


async def _stream(response: Any) -> AsyncGenerator[bytes]:
    """Yield the body as the browser gives it; letting go in the middle ends the request."""
    from pyodide.ffi import JsException  # pyright: ignore[reportMissingImports] - in a browser only

    stream = response.js_response.body
    if stream is None:
        return
    reader = stream.getReader()
    broken = False
    try:
        while not (step := await reader.read()).done:
            yield step.value.to_bytes()
    except JsException:  # the browser does not say why
        broken = True
    finally:
        response.abort()  # nothing, where all of it has come
    if broken:
        raise TransportError("reset", CLOSED)
