"""What a scripted server answers: good answers, odd ones, errors, and connections that fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from jarvis_nb.core.types import JSON


class Mark(Enum):
    """What a reply does instead of sending bytes."""

    HANG = "keep the connection open and send nothing more"
    CLOSE = "close the connection, though the reply is not complete"

    def __repr__(self) -> str:
        return self.name


HANG, CLOSE = Mark.HANG, Mark.CLOSE

Part = bytes | float | Mark
"""Bytes are sent, a number is a pause in seconds, a mark ends the reply."""

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True, slots=True)
class ServerReply:
    """One HTTP response, part by part."""

    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    """Seconds before the first byte."""
    stream: bool = False
    """Sent in chunks, each part at once; else whole, with its length."""
    bare: bool = False
    """The parts are all that is sent: they hold the status line and the headers, or rubbish."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion that is sent whole or in pieces, as the request asks."""

    message: Any
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    delay: float = 0.0

    def reply(self, request: Mapping[str, Any]) -> ServerReply:
        """Return the response to one request."""
        if request.get("stream"):
            wanted = bool((request.get("stream_options") or {}).get("include_usage"))
            tail = [{"choices": [], "usage": self.usage}] if wanted and self.usage else []
            return chunks(*deltas(self.message), finish=self._reason(), after=tail, delay=self.delay)
        choice = {"index": 0, "message": self.message, "finish_reason": self._reason(), "logprobs": None}
        model = str(request.get("model", ""))
        whole: JSON = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model}
        whole["choices"] = [choice]
        return body({**whole, "usage": self.usage} if self.usage else whole, delay=self.delay)

    def _reason(self) -> str:
        calls = isinstance(self.message, Mapping) and self.message.get("tool_calls")
        return self.finish_reason or ("tool_calls" if calls else "stop")


def answer(message: Any, finish_reason: str | None = None, *, delay: float = 0.0, **usage: Any) -> Answer:
    """Answer with a message: text, or a whole assistant message however odd.

    Args:
        message: Text, or the message as the server sends it.
        finish_reason: By default ``tool_calls`` or ``stop``, as fits.
        delay: Seconds before the first byte.
        **usage: The usage to report, instead of :data:`USAGE`.

    Example:
        >>> answer("Hi").message
        {'role': 'assistant', 'content': 'Hi'}
    """
    whole = {"role": "assistant", "content": message} if isinstance(message, str) else message
    return Answer(whole, finish_reason, usage or USAGE, delay)


def chunks(
    *items: Any,
    finish: str | None = "stop",
    after: Sequence[Any] = (),
    done: bool = True,
    delay: float = 0.0,
) -> ServerReply:
    """Answer with server-sent events, each its own write.

    Args:
        *items: Text, a delta, a whole chunk (it has ``choices``, ``usage`` or ``error``), bytes as they are,
            a pause in seconds, or ``HANG`` or ``CLOSE``.
        finish: The finish reason of a last chunk; None for no such chunk.
        after: Items after the finish reason, such as the usage chunk.
        done: Whether ``[DONE]`` comes at the end.
        delay: Seconds before the first byte.

    Example:
        >>> chunks("Hi", CLOSE).parts[1:2]
        (CLOSE,)
    """
    parts = [_event(item) for item in items]
    if finish is not None:
        parts.append(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    parts += [_event(item) for item in after]
    if done:
        parts.append(b"data: [DONE]\n\n")
    return ServerReply(tuple(parts), 200, {"Content-Type": "text/event-stream"}, delay, stream=True)


def body(
    data: Any, status: int = 200, *, headers: Mapping[str, str] | None = None, delay: float = 0.0
) -> ServerReply:
    """Answer with one body: JSON-ready data, or text or bytes as they are.

    Example:
        >>> body({"choices": []}).parts
        (b'{"choices": []}',)
    """
    kind = "text/plain; charset=utf-8" if isinstance(data, str | bytes) else "application/json"
    whole = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else _json(data)
    return ServerReply((whole,), status, {"Content-Type": kind, **(headers or {})}, delay)


def error(
    status: int, message: str = "", *, code: str | None = None, retry_after: float | str | None = None
) -> ServerReply:
    """Answer with an error in OpenAI's shape.

    Example:
        >>> error(429, "slow down", retry_after=1).headers["Retry-After"]
        '1'
    """
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004 - HTTP's own border
    data = {"error": {"message": message or f"HTTP {status}", "type": kind, "param": None, "code": code}}
    return body(data, status, headers=None if retry_after is None else {"Retry-After": str(retry_after)})


def html(status: int = 502, text: str = "<html><body><h1>Bad Gateway</h1></body></html>") -> ServerReply:
    """Answer with a page, as proxies and captive portals do."""
    return body(text, status, headers={"Content-Type": "text/html"})


def raw(*parts: Part | str, delay: float = 0.0) -> ServerReply:
    """Answer with exactly these parts and close: no status line and no header is added."""
    exact = tuple(part.encode() if isinstance(part, str) else part for part in parts)
    return ServerReply(exact, delay=delay, bare=True)


Scripted = ServerReply | Answer | str | Mapping[str, Any] | Callable[[JSON], Any]
"""A reply, an answer, its text, its message, or a function from the request's body to one of these."""


def reply_to(item: Any, request: JSON) -> ServerReply:
    """Return the response that a scripted item gives to a request."""
    if callable(item):
        item = item(request)
    if isinstance(item, str | Mapping):
        item = answer(item)
    return item.reply(request) if isinstance(item, Answer) else item


def sse(chunks_: Iterable[Mapping[str, Any]]) -> bytes:
    """Return chunks as the bytes of a whole event stream, with ``[DONE]``."""
    return b"".join(b"data: " + _json(chunk) + b"\n\n" for chunk in chunks_) + b"data: [DONE]\n\n"


def _event(item: Any) -> Part:
    if isinstance(item, bytes | Mark | int | float):
        return item
    if isinstance(item, str):
        item = {"content": item}
    if isinstance(item, Mapping) and not item.keys() & {"choices", "usage", "error"}:
        item = {"choices": [{"index": 0, "delta": item, "finish_reason": None}]}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "test-model"}
    whole = {**head, **item} if isinstance(item, Mapping) and "error" not in item else item
    return b"data: " + _json(whole) + b"\n\n"


def deltas(message: Any) -> list[Any]:
    """Cut a message into the deltas of a stream: its text by words, its calls one after another.

    Example:
        >>> deltas({"content": "Hello there"})
        [{'role': 'assistant', 'content': ''}, {'content': 'Hello'}, {'content': ' there'}]
    """
    return list(_deltas(message))


def _deltas(message: Any) -> Iterator[Any]:
    if not isinstance(message, Mapping):
        yield {"role": "assistant", "content": message}
        return
    yield {"role": "assistant", "content": ""}
    for key, value in message.items():
        if key in ("role", "tool_calls") or value is None:
            continue
        for piece in _pieces(value):
            yield {key: piece}
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        yield from _call_deltas(index, call)
    if calls and not isinstance(calls, list):
        yield {"tool_calls": calls}


def _pieces(value: Any) -> list[Any]:
    if not isinstance(value, str):
        return [value]
    words = value.split(" ")
    return [word if place == 0 else f" {word}" for place, word in enumerate(words)]


def _call_deltas(index: int, call: Any) -> Iterator[JSON]:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping) or not isinstance(arguments, str):
        whole = {"index": index, **call} if isinstance(call, Mapping) else call
        yield {"tool_calls": [whole]}
        return
    yield {"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
    half = len(arguments) // 2
    for piece in (arguments[:half], arguments[half:]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _json(data: Any) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate goes out as an escape, as from a server in Python
        return json.dumps(data).encode()
