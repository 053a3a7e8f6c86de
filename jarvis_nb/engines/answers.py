"""What a chat-completions server answers, read into what an engine gives back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Repair, Usage
from jarvis_nb.engines.base import Completion, Piece, Request
from jarvis_nb.engines.failures import Host, not_json, overdue, refused, unreachable, unreadable
from jarvis_nb.engines.retry import PassingFailure
from jarvis_nb.engines.sse import DONE, EventDecoder
from jarvis_nb.engines.stream import Assembler
from jarvis_nb.engines.transport import Answer, TransportError

log = logging.getLogger("jarvis_nb.engines")

DRAIN_SECONDS = 0.1
"""Seconds that a stream may take from its last event to its end, for its connection to be kept."""


async def read_body(host: Host, answer: Answer) -> bytes:
    """Read an answer to its end.

    Raises:
        EngineError: The server fell silent.
        PassingFailure: It closed the connection in the middle.
    """
    try:
        return await answer.read()
    except TransportError as error:
        failure = unreachable(host, error)
    raise failure


def read_completion(host: Host, request: Request, body: bytes, headers: Mapping[str, str]) -> Completion:
    """Read the body of an answer with a status that says success.

    Raises:
        EngineError: ``bad_response`` for what is no completion, or what the error in the body means.
        PassingFailure: Around the error in the body, where it may pass.
    """
    data = _loads(body)
    if not isinstance(data, dict):
        raise not_json(host, body)
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        if data.get("error") or "choices" not in data:
            raise refused(host, request, 200, body, headers)
        raise unreadable(host, "answered without a choice", body.decode(errors="replace"))
    reason = choice.get("finish_reason")
    return Completion(
        message,
        reason if isinstance(reason, str) else None,
        Usage.from_openai(data.get("usage")),
        str(data.get("model") or ""),
    )


def read_models(host: Host, body: bytes) -> list[dict[str, Any]]:
    """Read a list of models, sorted by id: OpenAI's ``data``, or a bare list (Together).

    Raises:
        EngineError: ``bad_response``: it is no such list.
    """
    data = _loads(body)
    if data is None:
        raise not_json(host, body)
    entries = data.get("data") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise unreadable(host, "answered without a list of models", body.decode(errors="replace"))
    named = {e["id"]: e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str)}
    return [named[key] for key in sorted(named)]


async def read_whole(
    host: Host, request: Request, answer: Answer, until: float | None = None
) -> AsyncIterator[Piece | Completion]:
    """Read the answer of a server that was asked to stream and does not.

    Raises:
        EngineError: As :func:`read_completion`.
    """
    try:
        async with asyncio.timeout_at(until):
            body = await read_body(host, answer)
        completion = read_completion(host, request, body, answer.headers)
    except TimeoutError:
        raise overdue(host) from None
    except PassingFailure as passing:
        raise passing.error from None
    completion.repairs.append(Repair("not_streamed", "a stream was asked for: the answer came whole"))
    content = completion.message.get("content")
    if isinstance(content, str) and content:
        yield Piece(content)
    yield completion


async def read_stream(
    host: Host, request: Request, answer: Answer, until: float | None = None
) -> AsyncIterator[Piece | Completion]:
    """Read a stream of chunks: pieces as they come, the completion last.

    Args:
        host: Where it comes from.
        request: What was asked.
        answer: The open answer.
        until: When the call is overdue, by the loop's clock.

    Raises:
        EngineError: What the server's error means, or ``timeout``, before anything came; else
            :class:`~jarvis_nb.engines.stream.StreamBroken`.
    """
    decoder, joining = EventDecoder(), Assembler()
    blocks = answer.blocks() if until is None else _in_time(answer.blocks(), until)
    broken: Exception | None = None
    try:
        async for block in blocks:
            ended = False
            for data in decoder.feed(block):
                if data == DONE:
                    ended = True
                    break
                chunk = json.loads(data)
                if not joining.started:
                    _check_first(host, request, chunk, data, answer.headers)
                piece = joining.add(chunk)
                if piece is not None:
                    yield piece
            if ended:
                await _drain(blocks)
                break
    except (TransportError, ValueError, RecursionError) as error:
        broken = error
    except EngineError as error:
        raise _named(host, error) from None
    finally:
        await blocks.aclose()
    yield _joined(host, joining, broken)


def _joined(host: Host, joining: Assembler, broken: Exception | None) -> Completion:
    if isinstance(broken, TransportError) and not joining.started:
        failure = unreachable(host, broken)
        raise failure.error if isinstance(failure, PassingFailure) else failure
    try:
        return joining.finish(broken)
    except EngineError as error:
        raise _named(host, error) from broken


def _check_first(host: Host, request: Request, chunk: Any, data: bytes, headers: Mapping[str, str]) -> None:
    """Raise the server's error, if that is how its stream begins."""
    if isinstance(chunk, dict) and chunk.get("error"):
        failure = refused(host, request, 200, data, headers)
        raise failure.error if isinstance(failure, PassingFailure) else failure


async def _in_time(blocks: AsyncGenerator[bytes], until: float) -> AsyncGenerator[bytes]:
    """Pass blocks on until the whole call is overdue."""
    async with contextlib.aclosing(blocks):
        while True:
            try:
                async with asyncio.timeout_at(until):
                    block = await anext(blocks, b"")
            except TimeoutError:
                raise TransportError("overdue", "the call took too long") from None
            if not block:
                return
            yield block


async def _drain(blocks: AsyncGenerator[bytes]) -> None:
    """Read past the last event: a connection whose answer was read to its end can be used again."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in blocks:
                pass
    except (TimeoutError, TransportError) as error:
        log.debug("a stream did not end after its last event: %r", error)


def _named(host: Host, error: EngineError) -> EngineError:
    """Put the host on an error of the stream, and take keys off it."""
    if not error.message.startswith(host.name):
        error.message = f"{host.name}: {host.clean(error.message)}"
        error.args = (error.message,)
    return error


def _loads(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
