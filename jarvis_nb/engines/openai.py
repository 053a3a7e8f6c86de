"""The engine for every chat-completions server: hosted, local, or a gateway."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.events import EventType
from jarvis_nb.core.portable import Secret
from jarvis_nb.engines import failures
from jarvis_nb.engines.answers import read_body, read_completion, read_models, read_stream, read_whole
from jarvis_nb.engines.base import Completion, InferenceEngine, Piece, Request
from jarvis_nb.engines.connect import Address, Hidden, Link, choose_preset, make_link
from jarvis_nb.engines.encode import Dialect, encode_messages, to_bytes
from jarvis_nb.engines.presets import url_from
from jarvis_nb.engines.retry import PassingFailure, RetryPolicy, with_retries
from jarvis_nb.engines.transport import Answer, Timeouts, TransportError, check_client

log = logging.getLogger("jarvis_nb.engines")

LIST_SECONDS = 10.0
"""Seconds that a list of models may take."""

RESERVED = frozenset({"model", "messages", "tools", "tool_choice", "stream", "stream_options"})
_NOTHING = Request("", ())


class OpenAIEngine(InferenceEngine):
    """Asks a chat-completions server.

    Args:
        base_url: What comes before ``/chat/completions``, usually ending in ``/v1``. Without it the preset's.
        api_key: The key, or a :class:`~jarvis_nb.Secret`. Without it the preset's environment variable, which
            is read on the first request and only for the preset's own host.
        preset: The kind of server, such as ``ollama`` (see :data:`~jarvis_nb.engines.presets.PRESETS`).
            Without it the one whose host ``base_url`` names, else ``openai``.
        model: The model when an ask names none. A server with a single model needs none.
        http_client: An ``httpx.AsyncClient`` of your own; it keeps its settings, its time-outs too where none
            are given here, and you close it.
        timeout: Seconds without a byte before the server counts as hanging. Without it the preset's: 120, and
            600 for local servers, which load a model or read a prompt in silence.
        connect_timeout: Seconds that a connection may take: 5.
        total_timeout: Seconds that a call may take as a whole, its repetitions too; None for no such limit.
        retries: Further tries after 429, 502, 503, 529 and connections that the server broke.
        max_wait: Seconds to wait before one of them at most, whatever ``Retry-After`` says.
        strict: Send strict schemas: the provider then enforces them.
        images: Whether the model takes images; without it what the preset says.
        dialect: How messages are written, where the preset does not know.
        params: Sent with every request, such as ``{"seed": 7, "reasoning_effort": "low"}``.
        headers: Sent with every request.

    Raises:
        InvalidRequest: An address, header, key or option that cannot be used.

    Example:
        >>> OpenAIEngine(preset="ollama", model="qwen3:4b")
        OpenAIEngine('ollama', base_url='http://127.0.0.1:11434/v1', model='qwen3:4b')
    """

    engine_id: ClassVar[str] = "openai"

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        *,
        preset: str | None = None,
        model: str = "",
        http_client: Any = None,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        total_timeout: float | None = None,
        retries: int = 2,
        max_wait: float = 30.0,
        strict: bool = False,
        images: bool | None = None,
        dialect: Dialect | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._preset = choose_preset(preset, base_url)
        self.engine_id = self._preset.key  # pyright: ignore[reportAttributeAccessIssue] - one class, many keys
        self._address = Address.read(base_url or url_from(self._preset, os.environ))
        self.model = model
        self.dialect = dialect or self._preset.dialect
        known = self._preset.supports
        self.supports = replace(known, strict=strict, images=known.images if images is None else images)
        self._schemas = "strict" if strict else "default"
        self._key = Hidden(api_key)
        self._headers = Hidden(dict(headers or {}))
        if http_client is None:
            timeout = self._preset.timeout if timeout is None else timeout
            connect_timeout = 5.0 if connect_timeout is None else connect_timeout
        self._timeouts = Timeouts(connect_timeout, timeout, total_timeout)
        self._policy = RetryPolicy(retries, max_wait)
        self._params = {**self._preset.params, **(params or {})}
        if wrong := sorted(RESERVED & self._params.keys()):
            raise InvalidRequest(
                f"params holds {', '.join(wrong)}", value=wrong, hint="the engine sets these itself"
            )
        self._client = check_client(http_client)
        self._linked: Link | None = None
        self._lock = threading.Lock()
        self._served = ""

    @property
    def base_url(self) -> str:
        """What comes before ``/chat/completions``."""
        return self._address.base_url

    @property
    def secrets(self) -> tuple[str, ...]:
        """What recordings are scrubbed of, beside the environment's keys."""
        if self._linked is not None:
            return self._linked.host.secrets
        return (self._key.value,) if isinstance(self._key.value, str) and self._key.value else ()

    @property
    def default_model(self) -> str:
        """The model asked for when an ask names none; empty if the server has to be asked."""
        return self.model or self._preset.model or self._served

    def __repr__(self) -> str:
        model = f", model={self.model!r}" if self.model else ""
        return f"OpenAIEngine({self._preset.key!r}, base_url={self.base_url!r}{model})"

    # Asking.

    async def generate(self, request: Request) -> Completion:
        """Make one model call.

        Raises:
            EngineError: ``no_key``, ``no_model``, ``connection``, ``timeout``, ``http_error``,
                ``rate_limited``, ``context_overflow``, ``forced_choice_refused`` or ``bad_response``.
        """
        link = self._link()
        body = self._body(request, await self._model(request))

        async def attempt() -> Completion:
            answer = await self._open(link, request, "POST", link.chat_url, body)
            return read_completion(link.host, request, await read_body(link.host, answer), answer.headers)

        try:
            async with asyncio.timeout(self._timeouts.total):
                return await with_retries(attempt, self._policy, self._teller(link, request))
        except TimeoutError:
            failure = failures.overdue(link.host)
        except EngineError as error:
            failure = await self._with_models(error)
        raise failure

    async def stream(self, request: Request) -> AsyncIterator[Piece | Completion]:
        """Make one model call, yielding pieces as they come and the completion last.

        Raises:
            EngineError: As :meth:`generate`; ``stream_broken``
                (:class:`~jarvis_nb.engines.stream.StreamBroken`, which holds what came) if the stream breaks
                after its beginning.
        """
        link = self._link()
        body = self._body(request, await self._model(request), stream=True)
        total = self._timeouts.total
        until = None if total is None else asyncio.get_running_loop().time() + total

        async def attempt() -> Answer:
            return await self._open(link, request, "POST", link.chat_url, body)

        answer, failure = None, None
        try:
            async with asyncio.timeout_at(until):
                answer = await with_retries(attempt, self._policy, self._teller(link, request))
        except TimeoutError:
            failure = failures.overdue(link.host)
        except EngineError as error:
            failure = await self._with_models(error)
        if answer is None:
            assert failure is not None  # noqa: S101 - one of the two is set
            raise failure
        kind = answer.headers.get("content-type", "")
        whole = "json" in kind or "html" in kind  # a server that does not stream, or is none
        try:
            async for piece in (read_whole if whole else read_stream)(link.host, request, answer, until):
                yield piece
        finally:
            await answer.close()

    async def list_models(self) -> list[str]:
        """Return the models of the server, sorted.

        Raises:
            EngineError: The server does not answer, or not with a list of models.
        """
        link = self._link()
        try:
            async with asyncio.timeout(LIST_SECONDS):
                answer = await self._open(link, _NOTHING, "GET", link.models_url)
                return [model["id"] for model in read_models(link.host, await read_body(link.host, answer))]
        except TimeoutError:
            words = f"{link.host.name} sent no list of models within {LIST_SECONDS:g} s"
            failure = EngineError(words, code="timeout")
        except PassingFailure as passing:
            failure = passing.error
        raise failure

    async def health(self) -> bool:
        """Whether the server answers now, and takes the key."""
        try:
            await self.list_models()
        except EngineError as error:
            log.info("%s is not well: %s", self, error)
            return False
        return True

    async def close(self) -> None:
        """Close the connections, on whatever loops they are. The engine can be used again."""
        with self._lock:
            link, self._linked = self._linked, None
        if link is not None:
            await link.transport.close()

    # The request.

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body that would be sent, as plain data, for previews."""
        return json.loads(self._body(request, request.model or self.default_model))

    def _link(self) -> Link:
        if self._linked is not None:
            return self._linked
        with self._lock:
            if self._linked is None:
                self._linked = make_link(
                    self._preset,
                    self._address,
                    self._key.value,
                    self._headers.value,
                    timeouts=self._timeouts,
                    client=self._client,
                )
            return self._linked

    async def _model(self, request: Request) -> str:
        model = request.model or self.default_model
        if model:
            return model
        models = await self.list_models()
        if len(models) != 1:
            raise EngineError(
                f"no model was named, and {self._address.host} has {len(models) or 'none'}",
                code="no_model",
                valid=models[:20],
                hint="name one with model=",
            )
        self._served = models[0]
        return self._served

    def _body(self, request: Request, model: str, *, stream: bool = False) -> bytes:
        head: dict[str, Any] = {"model": model, **self._params}
        if request.temperature is not None:
            head["temperature"] = request.temperature
        if request.max_tokens is not None:
            head[self._preset.max_tokens_key] = request.max_tokens
        if stream:
            head["stream"] = True
            if self._preset.stream_usage:
                head["stream_options"] = {"include_usage": True}
        parts = [to_bytes(head)[:-1], b',"messages":', encode_messages(request.messages, self.dialect)]
        if request.tools:
            from jarvis_nb.core.schema import encode_tools

            parts += (b',"tools":', encode_tools(request.tools, self._schemas))
            if request.tool_choice is not None:
                parts += (b',"tool_choice":', to_bytes(request.tool_choice))
        parts.append(b"}")
        return b"".join(parts)

    def _teller(self, link: Link, request: Request) -> Any:
        def tell(error: EngineError, retry: int, seconds: float) -> None:
            text = f"{error.message}; retry {retry} of {self._policy.retries} in {seconds:.1f} s"
            log.info("%s", text)
            if request.bus is not None:
                request.bus.publish(
                    EventType.WARNING, text=text, host=link.host.name, retry=retry, seconds=seconds
                )

        return tell

    # The answer.

    async def _open(
        self, link: Link, request: Request, method: str, url: str, body: bytes | None = None
    ) -> Answer:
        """Return an answer whose status says that it holds what was asked for."""
        try:
            answer = await link.transport.send(method, url, body)
            if 200 <= answer.status < 300:  # noqa: PLR2004
                return answer
            refusal = await answer.read()
        except TransportError as error:
            failure = failures.unreachable(link.host, error)
        else:
            failure = failures.refused(link.host, request, answer.status, refusal, answer.headers)
        raise failure

    async def _with_models(self, error: EngineError) -> EngineError:
        """Put the server's models on the error that one was not found."""
        if error.code == "no_model" and error.valid is None:
            try:
                error.valid = tuple((await self.list_models())[:20]) or None
            except EngineError as second:
                log.info("the models of %s cannot be listed: %s", self, second)
        return error
