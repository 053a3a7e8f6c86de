"""HTTP under the engines: one request out, one answer back, whole or in blocks.

The transports have the same small seam. aiohttp's is the default where aiohttp is installed: measured here on
a small request it needs 0.14 ms of CPU where httpx needs 0.27 ms (sync) and 0.75 ms (async). httpx's serves a
client of the user's own, such as one over ``httpx.MockTransport``, and takes over where aiohttp is missing.
In a browser, where neither has a socket, the page's own ``fetch`` takes their place.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from jarvis_nb.core.errors import InvalidRequest

if TYPE_CHECKING:
    import ssl

Fault = Literal[
    "refused",
    "dns",
    "tls",
    "proxy",
    "connect_timeout",
    "read_timeout",
    "overdue",
    "reset",
    "protocol",
    "closed",
]
"""How a request can fail below HTTP. ``reset``: the server broke a connection that it had accepted;
``overdue``: the whole call took longer than it may."""

CLOSED = "the server closed the connection"


class TransportError(Exception):
    """A request that failed below HTTP. Never leaves the engine: it becomes an ``EngineError`` there."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(detail)
        self.fault: Fault = fault
        self.detail = detail


class Timeouts(NamedTuple):
    """Seconds to wait: for a connection, for the next byte of an answer, for a call as a whole."""

    connect: float | None = 5.0
    read: float | None = 120.0
    total: float | None = None


class Answer(ABC):
    """The answer to one request. It is read whole, read in blocks, or closed."""

    status: int
    headers: Mapping[str, str]
    """Looked up without case."""

    @abstractmethod
    async def read(self) -> bytes:
        """Return the whole body and free the connection."""

    @abstractmethod
    def blocks(self) -> AsyncGenerator[bytes]:
        """Yield the body as it comes."""

    @abstractmethod
    async def close(self) -> None:
        """Free the connection, also in the middle of the body."""


class Transport(ABC):
    """Sends requests to one server. Never follows a redirect: a key goes to no other host."""

    @abstractmethod
    async def send(self, method: str, url: str, body: bytes | None = None) -> Answer:
        """Send one request and wait for the head of its answer.

        Raises:
            TransportError: Nothing came, or nothing that is HTTP.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, from any loop. Safe to call twice."""


def make_transport(headers: Mapping[str, str], timeouts: Timeouts, url: str, client: Any = None) -> Transport:
    """Return the transport for a server.

    Args:
        headers: Sent with every request.
        timeouts: Seconds to wait.
        url: Any address of the server.
        client: An ``httpx.AsyncClient`` of the user's, or None.
    """
    if client is None and sys.platform == "emscripten":
        from jarvis_nb.engines.pyfetch_transport import PyfetchTransport

        return PyfetchTransport(headers, timeouts)
    if client is None and find_spec("aiohttp") is not None:
        from jarvis_nb.engines.aiohttp_transport import AiohttpTransport

        return AiohttpTransport(headers, timeouts, url)
    from jarvis_nb.engines.httpx_transport import HttpxTransport

    return HttpxTransport(headers, timeouts, url, client)


def check_client(client: Any) -> Any:
    """Return a client of the user's, if it is one that can be used here.

    Raises:
        InvalidRequest: It is none.
    """
    if client is None or (
        hasattr(client, "build_request") and iscoroutinefunction(getattr(client, "send", None))
    ):
        return client
    raise InvalidRequest(
        f"http_client is a {type(client).__name__}",
        value=client,
        valid=["httpx.AsyncClient"],
        hint="requests are asynchronous inside, also those of `ask`",
    )


def trust() -> ssl.SSLContext:
    """Return the TLS context: verified, with certifi's authorities, or those of SSL_CERT_FILE / SSL_CERT_DIR."""
    import os
    import ssl

    if "SSL_CERT_FILE" in os.environ or "SSL_CERT_DIR" in os.environ:
        return ssl.create_default_context(
            cafile=os.environ.get("SSL_CERT_FILE"), capath=os.environ.get("SSL_CERT_DIR")
        )
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for an address, with its credentials, or None.

    Loopback is never reached through a proxy, whatever NO_PROXY says.

    Raises:
        TransportError: The proxy speaks something else than HTTP.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    from urllib.request import getproxies, proxy_bypass

    found = getproxies()
    proxy = found.get(parts.scheme) or found.get("all")
    if not proxy or proxy_bypass(host):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise TransportError("proxy", f"{scheme} proxies are not spoken here")
    return proxy


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine.

    Example:
        >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("example.com")
        (True, True, False)
    """
    return host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")
