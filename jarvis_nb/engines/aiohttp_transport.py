"""The default transport: aiohttp."""

from __future__ import annotations

import contextlib
import errno
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict

from jarvis_nb.engines.perloop import PerLoop
from jarvis_nb.engines.transport import (
    CLOSED,
    Answer,
    Fault,
    Timeouts,
    Transport,
    TransportError,
    proxy_for,
    trust,
)


class _ClosedError(Exception):
    """Wakes who still reads when the engine is closed: aiohttp would leave him waiting for ever."""


class _Session(NamedTuple):
    """A session and the answers that are still read on it."""

    http: aiohttp.ClientSession
    live: set[aiohttp.ClientResponse]


class AiohttpTransport(Transport):
    """Requests over ``aiohttp``, without a limit of connections.

    Args:
        headers: Sent with every request.
        timeouts: Seconds to wait.
        url: Any address of the server: decides about TLS and proxy.
    """

    def __init__(self, headers: Mapping[str, str], timeouts: Timeouts, url: str) -> None:
        # Given with each request: aiohttp sends a session's own headers, and so the key, to a proxy too.
        self._headers = CIMultiDict(headers)
        self._timeouts, self._url = timeouts, url
        self._proxy: str | None = None
        self._sessions = PerLoop(self._session, _close_session, _drop_session)

    def _session(self) -> _Session:
        self._proxy = proxy_for(self._url)
        secure = self._url.startswith("https:")
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trust() if secure else True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._timeouts.connect, sock_read=self._timeouts.read
            ),
        )
        return _Session(http, set())

    async def send(self, method: str, url: str, body: bytes | None = None) -> Answer:  # noqa: D102 - as the seam says
        session = await self._sessions.get()
        try:
            response = await session.http.request(
                method, url, data=body, headers=self._headers, allow_redirects=False, proxy=self._proxy
            )
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        else:
            return AiohttpAnswer(response, session.live)
        raise fault  # outside the handler: aiohttp's errors hold the request's headers, and so the key

    async def close(self) -> None:  # noqa: D102
        await self._sessions.close()


class AiohttpAnswer(Answer):
    """An answer over aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse, live: set[aiohttp.ClientResponse]) -> None:
        self._response, self._live = response, live
        self.status = response.status
        self.headers = response.headers
        live.add(response)

    async def read(self) -> bytes:  # noqa: D102
        try:
            return await self._response.read()
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        finally:
            self._live.discard(self._response)
        raise fault

    async def blocks(self) -> AsyncGenerator[bytes]:  # noqa: D102
        content = self._response.content
        try:
            while block := await content.readany():
                yield block
            return
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        raise fault

    async def close(self) -> None:  # noqa: D102
        self._live.discard(self._response)
        self._response.close()


_FAULTS: tuple[tuple[tuple[type[Exception], ...], Fault, str], ...] = (
    ((aiohttp.ConnectionTimeoutError,), "connect_timeout", "no connection"),
    ((TimeoutError,), "read_timeout", "no byte came"),  # aiohttp's read time-outs are this too
    ((aiohttp.ClientConnectorDNSError,), "dns", ""),
    ((aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError, ssl.SSLError), "tls", ""),
    ((aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError), "proxy", "it took no connection"),
    ((aiohttp.ClientConnectorError,), "refused", ""),
    ((aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, OSError), "reset", CLOSED),
    ((aiohttp.ClientError,), "protocol", "no valid HTTP came back"),
)
"""What an error means; the first line that fits counts."""


def _fault(error: Exception) -> TransportError | None:
    """Name what went wrong; None for what is not a matter of HTTP."""
    for kinds, fault, words in _FAULTS:
        if isinstance(error, kinds):
            return TransportError(fault, words or _reason(error))
    if isinstance(error, _ClosedError) or (
        isinstance(error, RuntimeError) and "closed" in str(error).lower()
    ):
        return TransportError("closed", "the engine was closed meanwhile")
    return None


def _reason(error: Exception) -> str:
    """Return the system's words, without aiohttp's, which repeat host and settings."""
    cause: Any = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    number = getattr(cause, "errno", None) or 0
    return os.strerror(number) if number in errno.errorcode else str(cause)


async def _close_session(session: _Session) -> None:
    for response in tuple(session.live):
        response.content.set_exception(_ClosedError())
    await session.http.close()


def _drop_session(session: _Session) -> None:
    # Its loop is dead: there is nothing to wait for, so the coroutine ends at its first step.
    closing = session.http.close()
    with contextlib.suppress(StopIteration):
        closing.send(None)
