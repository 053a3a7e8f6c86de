"""A real chat-completions server on loopback that refuses what OpenAI refuses and answers by a script."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Self

from jarvis_nb.core import bridge
from jarvis_nb.core.types import JSON
from jarvis_nb.testing.checks import check_request
from jarvis_nb.testing.replies import Mark, Scripted, ServerReply, body, error, reply_to

if TYPE_CHECKING:
    from jarvis_nb.testing.inpage import PageListener


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came."""

    path: str
    body: JSON
    problems: tuple[str, ...] = ()
    """Why it was refused; empty if it was not."""
    raw: bytes = field(default=b"", repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """By lower-case name."""

    @property
    def messages(self) -> list[JSON]:
        """The messages sent."""
        return self.body["messages"]


class StrictServer:
    """Serves ``POST {url}/chat/completions``, streamed and not, and ``GET {url}/models``, on 127.0.0.1.

    Every request is checked by :func:`~jarvis_nb.testing.check_request`; one that a strict server refuses gets
    status 400 with OpenAI's error, takes no reply from the script, and is listed in :attr:`problems`.

    Args:
        replies: One item a request: text, an assistant message, what a function of
            :mod:`jarvis_nb.testing.replies` makes, or a function of the request's body. Instead of a list, one
            function that answers every request.
        models: What ``/models`` lists.
        api_key: Demanded as a bearer token, if given.
        allow_origin: The origin whose pages may ask (CORS): ``"*"`` for all, None for none.
        extra_keys: Keys of a request that are accepted beside OpenAI's.
        strict: False to accept any request.

    Example:
        >>> with StrictServer(["Hello."]) as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(
        self,
        replies: Iterable[Scripted] | Callable[[JSON], Any] = (),
        *,
        models: Sequence[str] = ("test-model",),
        api_key: str | None = None,
        allow_origin: str | None = None,
        extra_keys: Collection[str] = (),
        strict: bool = True,
    ) -> None:
        self.models = tuple(models)
        self.api_key = api_key
        self.allow_origin = allow_origin
        self.extra_keys = frozenset(extra_keys)
        self.strict = strict
        self.requests: list[RecordedRequest] = []
        self.failures: list[str] = []
        """What went wrong in the script itself: it ran out, or a function of it raised."""
        self._every = replies if callable(replies) else None
        self._script: deque[Scripted] = deque(() if callable(replies) else replies)
        self._came = threading.Condition()
        self.closing = threading.Event()
        self._http: _Listener | PageListener | None = None

    @property
    def url(self) -> str:
        """The base URL, such as ``http://127.0.0.1:40123/v1``."""
        return f"http://127.0.0.1:{self._listening().server_port}/v1"

    @property
    def problems(self) -> list[str]:
        """Why requests were refused, and what went wrong in the script."""
        refused = (f"request {n}: {p}" for n, r in enumerate(self.requests, 1) for p in r.problems)
        return [*refused, *self.failures]

    def start(self) -> Self:
        """Start to serve; ``with`` does it too."""
        if not bridge.HAS_THREADS:  # a browser: no sockets either
            from jarvis_nb.testing.inpage import PageListener

            self._http = PageListener(self)
            return self
        self._http = _Listener(self)
        threading.Thread(
            target=self._http.serve_forever, args=(0.01,), name="strict-server", daemon=True
        ).start()
        return self

    def close(self) -> None:
        """Stop at once, also where a reply hangs. Safe to call twice."""
        if self._http is not None and not self.closing.is_set():
            self.closing.set()
            self._http.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def wait_for_requests(self, count: int, seconds: float = 5.0) -> None:
        """Wait until ``count`` requests have come.

        Raises:
            TimeoutError: They have not.
        """
        with self._came:
            if not self._came.wait_for(lambda: len(self.requests) >= count, seconds):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came in {seconds} s")

    def assert_accepted(self) -> None:
        """Raise AssertionError if a request was refused or the script failed."""
        assert not self.problems, "\n".join(self.problems)

    def assert_complete(self) -> None:
        """Raise AssertionError if replies are left, a request was refused or the script failed."""
        self.assert_accepted()
        assert not self._script, f"{len(self._script)} replies were not asked for"

    def answer(self, path: str, headers: dict[str, str], raw: bytes) -> ServerReply:
        """Return the response to one POST, and record it."""
        data, problems = self._checked(raw)
        refused = tuple(problems) if self.strict else ()
        with self._came:
            self.requests.append(RecordedRequest(path, data, refused, raw, headers))
            self._came.notify_all()
            if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
                return error(401, "Incorrect API key provided", code="invalid_api_key")
            if not path.endswith("/chat/completions"):
                return error(404, f"no such path: {path}")
            if refused:
                return error(400, "; ".join(refused))
            if self._every is None and not self._script:
                self.failures.append(f"request {len(self.requests)}: the script has no more replies")
                return error(400, "the script has no more replies")
            item = self._every or self._script.popleft()
        try:
            return reply_to(item, data)
        except Exception as failure:
            self.failures.append(f"a function of the script raised {failure!r}")
            return error(500, f"a function of the script raised {failure!r}")

    def listing(self) -> ServerReply:
        """Return the response to ``GET /models``."""
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
        return body({"object": "list", "data": models})

    def _checked(self, raw: bytes) -> tuple[JSON, list[str]]:
        try:
            data = json.loads(raw.decode(), parse_constant=_refuse)
            json.dumps(data, ensure_ascii=False).encode()
        except ValueError as problem:
            return {}, [f"the body is not JSON in UTF-8: {problem}"]
        if not isinstance(data, dict):
            return {}, check_request(data)
        return data, check_request({key: data[key] for key in data if key not in self.extra_keys})

    def _listening(self) -> _Listener | PageListener:
        if self._http is None:
            raise RuntimeError("the server is not started: use `with StrictServer(…) as server`")
        return self._http

    def __repr__(self) -> str:
        return f"StrictServer({len(self.requests)} requests, {len(self._script)} replies left)"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class _Listener(ThreadingHTTPServer):
    """The sockets of one server: a thread a connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: StrictServer) -> None:
        self.owner = owner
        self._live: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Connection)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own asks the resolver for a name, which can take seconds
        self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._live.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._live.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base's signature
        """A client that went away is not the server's failure; anything else is recorded."""
        import sys

        failure = sys.exception()
        if not isinstance(failure, OSError):
            self.owner.failures.append(f"the test server itself failed: {failure!r}")

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in tuple(self._live):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed by its own thread meanwhile
                continue


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride] - the one that made it

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send(self.server.owner.listing())
        else:
            self._send(error(404, f"no such path: {self.path}"))

    def do_OPTIONS(self) -> None:
        """Answer a browser that asks whether its page may ask."""
        allowed = {
            "Access-Control-Allow-Headers": "authorization, content-type",
            "Access-Control-Max-Age": "60",
        }
        self._send(ServerReply(status=204, headers=allowed if self.server.owner.allow_origin else {}))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(self.server.owner.answer(self.path, headers, raw))

    def _send(self, reply: ServerReply) -> None:
        closing = self.server.owner.closing
        if closing.wait(reply.delay):
            self.close_connection = True
            return
        if not reply.bare:
            self._head(reply)
        for part in reply.parts:
            if isinstance(part, bytes):
                chunk = part if not reply.stream else b"%x\r\n%b\r\n" % (len(part), part)
                self.wfile.write(chunk)
            elif part is Mark.CLOSE or closing.wait(None if part is Mark.HANG else float(part)):
                self.close_connection = True
                return
        if reply.stream:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = self.close_connection or reply.bare

    def _head(self, reply: ServerReply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if self.server.owner.allow_origin:
            self.send_header("Access-Control-Allow-Origin", self.server.owner.allow_origin)
        if reply.stream:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            length = sum(len(part) for part in reply.parts if isinstance(part, bytes))
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
        """Requests are recorded, not logged."""
