"""What every engine is: a request in, one raw assistant message out, whole or in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jarvis_nb.core.events import EventBus
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Definitions, Message, Repair, ToolChoice, Usage


@dataclass(frozen=True, slots=True)
class Support:
    """What an engine can do; what it cannot is downgraded with a warning, never silently."""

    tools: bool = True
    forced_choice: bool = True
    """Takes ``required`` and a named tool as tool choice."""
    strict: bool = False
    """Enforces strict schemas when asked to."""
    images: bool = False
    stream: bool = True


@dataclass(slots=True)
class Request(Pictured):
    """One model call, before it is put into any provider's form."""

    model: str
    messages: Sequence[Message]
    """A closed history; the caller does not change it while the call runs."""
    tools: Definitions | None = None
    """None or empty: neither ``tools`` nor ``tool_choice`` is sent."""
    tool_choice: ToolChoice = None
    """None, ``"auto"``, ``"required"`` or the OpenAI dict that names one tool."""
    temperature: float | None = None
    max_tokens: int | None = None
    examples: Mapping[str, Sequence[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """Tool name to ``(question, arguments)`` examples, for engines that learn from them."""
    bus: EventBus | None = field(default=None, repr=False, compare=False)
    """Told of retries, and of a model that is loaded, while the call runs."""


@dataclass(slots=True)
class Completion(Pictured):
    """One answer of a model, as it came: the wire normaliser has not seen it yet."""

    message: dict[str, Any]
    """The raw assistant message, in OpenAI's shape (a stream's pieces joined)."""
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str = ""
    """The model as the server named it, if it did."""
    repairs: list[Repair] = field(default_factory=list)
    """What joining a stream had to mend."""
    provenance: dict[str, str] = field(default_factory=dict)
    """Who did a step, for engines made of parts: ``{"tool": "router", "arguments": "model"}``."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a streamed answer, for people to watch; the completion at the end is what counts."""

    text: str = ""
    reasoning: str = ""


class InferenceEngine(Pictured, ABC):
    """The base of every engine.

    Implement :meth:`generate`; :meth:`stream` has a default that gives the whole answer as one piece.
    """

    engine_id: ClassVar[str] = ""
    """The registry key, such as ``openai``."""
    supports: Support = Support()
    wants_examples: bool = False
    """Whether requests carry the tools' examples."""

    @abstractmethod
    async def generate(self, request: Request) -> Completion:
        """Make one model call.

        Raises:
            EngineError: With a code; the message names the host and the next step.
        """

    async def stream(self, request: Request) -> AsyncIterator[Piece | Completion]:
        """Make one model call, yielding pieces as they come and the completion last."""
        completion = await self.generate(request)
        content = completion.message.get("content")
        if isinstance(content, str) and content:
            yield Piece(text=content)
        yield completion

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body that would be sent, as plain data, for previews."""
        from jarvis_nb.core.schema import openai_tools

        body: dict[str, Any] = {"model": request.model, "messages": [m.to_openai() for m in request.messages]}
        if request.tools:
            body["tools"] = openai_tools(request.tools)
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        return body

    def count_tokens(self, request: Request) -> int | None:  # noqa: ARG002 - for engines that can
        """Return the tokens of a request, or None where the engine cannot count them."""
        return None

    async def list_models(self) -> list[str]:
        """Return the models the engine can serve, sorted."""
        return []

    async def health(self) -> bool:
        """Whether the engine answers now."""
        return True

    async def close(self) -> None:
        """Free what the engine holds. Safe to call twice, and from another loop."""

    @property
    def name(self) -> str:
        """How replies and errors call the engine."""
        return self.engine_id or type(self).__name__

    @property
    def default_model(self) -> str:
        """The model used when nobody names one; empty if the engine needs a name."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
