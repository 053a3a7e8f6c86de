"""A model server for measurements: chat completions on loopback, with answers that a plan in the question sets.

A question holds ``bench rounds=R calls=P latency_ms=L chunks=C tool=NAME``, each part but the first optional.
The server then asks for R rounds of P calls ``NAME(a=round, b=index)`` and answers ``done R=… P=…``, or C pieces
of text. The plan travels in every call id, so that a request is answered without parsing its JSON: the server's
own work stays small and does not grow with the history.

``GET /stats`` returns, and resets, the number of requests and the *gaps*: for every request that continues a
conversation, the seconds from the last write of the answer before to the last byte of this request. That is the
client's time per round, without the server's.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

TOOLS = ["add", "add_async", "slow", "slow_async"]
ASKED = re.compile(
    rb"bench rounds=(\d+)(?: calls=(\d+))?(?: latency_ms=(\d+))?(?: chunks=(\d+))?(?: tool=(\w+))?"
)
CALLED = re.compile(rb"bm_(\d+)_(\d+)_(\d+)_(\d+)_(\d)_(\d+)_")
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Plan(NamedTuple):
    """What one conversation asks for, and how far it is."""

    rounds: int
    calls: int
    latency_ms: int
    chunks: int
    tool: int
    done: int = 0

    @classmethod
    def read(cls, body: bytes) -> Plan:
        """Find the plan in a request: the newest call id goes before the question, unless a question is newer."""
        asked_at, called_at = body.rfind(b"bench rounds="), body.rfind(b'"bm_')
        if called_at > asked_at:
            called = CALLED.match(body, called_at + 1)
            assert called, "a call id of this server came back changed"
            plan = cls(*map(int, called.groups()))
            return plan._replace(done=plan.done + 1)
        asked = ASKED.match(body, asked_at) if asked_at >= 0 else None
        rounds, calls, latency, chunks, tool = asked.groups() if asked else (b"0", None, None, None, None)
        which = TOOLS.index((tool or b"add").decode())
        return cls(int(rounds), int(calls or 1), int(latency or 0), int(chunks or 1), which)

    @property
    def pieces(self) -> list[str]:
        if self.chunks > 1:
            return [f"tok{i} " for i in range(self.chunks)]
        return [f"done R={self.rounds} P={self.calls}"]

    def message(self) -> tuple[dict[str, Any], str]:
        """Return the assistant message that comes next, and its finish reason."""
        if self.done >= self.rounds:
            return {"role": "assistant", "content": "".join(self.pieces)}, "stop"
        marks = "_".join(map(str, self))
        calls = [
            {
                "id": f"bm_{marks}_{i}",
                "type": "function",
                "function": {"name": TOOLS[self.tool], "arguments": f'{{"a":{self.done},"b":{i}}}'},
            }
            for i in range(self.calls)
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


class Stats:
    """What happened since it was last asked for."""

    def __init__(self) -> None:
        self.requests = 0
        self.gaps: list[float] = []
        self.last_write = 0.0

    def take(self) -> dict[str, Any]:
        taken = {"requests": self.requests, "gaps": self.gaps}
        self.__init__()
        return taken


STATS = Stats()


class Http(asyncio.Protocol):
    """One connection that stays open."""

    def connection_made(self, transport: Any) -> None:
        self.out = transport
        self.buffer = bytearray()
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head_end = self.buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self.buffer[:head_end]).lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self.buffer) < head_end + 4 + length:
            return
        body = bytes(self.buffer[head_end + 4 : head_end + 4 + length])
        del self.buffer[: head_end + 4 + length]
        self.answer(head.split(b" ", 2)[1], body)

    def answer(self, path: bytes, body: bytes) -> None:
        if not path.endswith(b"/chat/completions"):
            self.out.write(whole(STATS.take()))
            return
        now = perf_counter()
        plan = Plan.read(body)
        STATS.requests += 1
        if plan.done and STATS.last_write:
            STATS.gaps.append(now - STATS.last_write)
        send = self.stream if re.search(rb'"stream"\s*:\s*true', body) else self.send
        if plan.latency_ms:
            asyncio.get_running_loop().call_later(plan.latency_ms / 1000, send, plan)
        else:
            send(plan)

    def send(self, plan: Plan) -> None:
        message, why = plan.message()
        choice = {"index": 0, "message": message, "finish_reason": why}
        self.out.write(whole({"id": "c", "model": "bench", "choices": [choice], "usage": USAGE}))
        STATS.last_write = perf_counter()

    def stream(self, plan: Plan) -> None:
        """Send the final text, each piece in a write of its own."""
        deltas = [{"content": piece} for piece in plan.pieces]
        events = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        end = event([{"index": 0, "delta": {}, "finish_reason": "stop"}]) + event([], usage=USAGE)
        self.out.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        rest = iter([*events, end + chunk(b"data: [DONE]\n\n") + chunk(b"")])
        loop = asyncio.get_running_loop()

        def pump() -> None:
            block = next(rest, None)
            if block is not None:
                self.out.write(block)
                loop.call_soon(pump)

        pump()


def whole(value: object) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(choices: list[Any], **more: Any) -> bytes:
    data = json.dumps({"id": "c", "model": "bench", "choices": choices, **more}, separators=(",", ":"))
    return chunk(b"data: " + data.encode() + b"\n\n")


async def serve(tell: Callable[[str], object]) -> None:
    """Serve for ever on a free port of loopback; ``tell`` gets the base URL."""
    server = await asyncio.get_running_loop().create_server(Http, "127.0.0.1", 0, backlog=512)
    tell(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(lambda url: print(url, flush=True)))
