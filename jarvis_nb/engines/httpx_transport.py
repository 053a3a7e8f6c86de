"""The transport over a client of the user's own, and where aiohttp is missing: httpx."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import httpx

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


class HttpxTransport(Transport):
    """Requests over ``httpx.AsyncClient``: the given one, or one of its own a loop.

    Args:
        headers: Sent with every request.
        timeouts: Seconds to wait.
        url: Any address of the server.
        client: A client of the user's, which is never closed here.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        url: str,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._headers, self._url, self._given = headers, url, client
        self._clients = PerLoop(self._client, _close_client, _drop_client)
        # A client of the user's keeps its own time-outs where none were asked for.
        asked = timeouts.connect is not None or timeouts.read is not None
        limits = httpx.Timeout(timeouts.read, connect=timeouts.connect)
        self._timeout = limits if asked else httpx.USE_CLIENT_DEFAULT

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            trust_env=False,
            verify=trust() if self._url.startswith("https:") else False,  # http has nothing to verify with
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            proxy=proxy_for(self._url),
        )

    async def send(self, method: str, url: str, body: bytes | None = None) -> Answer:  # noqa: D102
        client = self._given or await self._clients.get()
        try:
            request = client.build_request(
                method, url, content=body, headers=self._headers, timeout=self._timeout
            )
            return HttpxAnswer(await client.send(request, stream=True, follow_redirects=False))
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        raise fault  # outside the handler: httpx's errors hold the request, and so the key

    async def close(self) -> None:  # noqa: D102
        await self._clients.close()


class HttpxAnswer(Answer):
    """An answer over httpx."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = response.headers

    async def read(self) -> bytes:  # noqa: D102
        try:
            return await self._response.aread()
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        finally:
            await self._response.aclose()
        raise fault

    async def blocks(self) -> AsyncGenerator[bytes]:  # noqa: D102
        try:
            async for block in self._response.aiter_bytes():
                yield block
            return
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
        raise fault

    async def close(self) -> None:  # noqa: D102
        await self._response.aclose()


_FAULTS: tuple[tuple[tuple[type[Exception], ...], Fault, str], ...] = (
    ((httpx.ConnectTimeout, httpx.PoolTimeout), "connect_timeout", "no connection"),
    ((httpx.TimeoutException,), "read_timeout", "no byte came"),
    ((httpx.ConnectError,), "refused", ""),
    ((httpx.ProxyError,), "proxy", ""),
    ((httpx.NetworkError, httpx.RemoteProtocolError), "reset", CLOSED),
    ((httpx.HTTPError,), "protocol", "no valid HTTP came back"),
)
"""What an error means; the first line that fits counts."""

_CONNECT_FAULTS: tuple[tuple[tuple[str, ...], Fault], ...] = (
    (("certificate", "ssl"), "tls"),
    (("name or service", "getaddrinfo", "nodename", "name resolution", "no address"), "dns"),
)
"""httpx has one error for these and tells them apart in its text only."""


def _fault(error: Exception) -> TransportError | None:
    """Name what went wrong; None for what is not a matter of HTTP."""
    text = str(error)
    for kinds, fault, words in _FAULTS:
        if isinstance(error, kinds):
            return TransportError(_connect_fault(text) if fault == "refused" else fault, words or text)
    if isinstance(error, RuntimeError) and "closed" in text.lower():
        return TransportError("closed", "the client was closed meanwhile")
    return None


def _connect_fault(text: str) -> Fault:
    for hints, fault in _CONNECT_FAULTS:
        if any(hint in text.lower() for hint in hints):
            return fault
    return "refused"


async def _close_client(client: httpx.AsyncClient) -> None:
    await client.aclose()


def _drop_client(client: httpx.AsyncClient) -> None:
    """Nothing to do: a client does not complain."""
