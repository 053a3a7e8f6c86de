"""An engine that answers by script: for tests, lessons and byte-stable notebooks."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import JSON, Message, ToolChoice, Usage, dumps
from jarvis_nb.engines.base import Completion, InferenceEngine, Piece, Request, Support


@dataclass(frozen=True, slots=True)
class ScriptedCall(Pictured):
    """One scripted tool call; made by :func:`call`."""

    name: str
    arguments: dict[str, Any]


def call(tool: str, /, **arguments: Any) -> ScriptedCall:
    """Return a step (or a part of one) in which the model calls a tool.

    Example:
        >>> call("lookup_order", order_id="ORD-5")
        ScriptedCall(name='lookup_order', arguments={'order_id': 'ORD-5'})
    """
    return ScriptedCall(tool, arguments)


@dataclass(slots=True)
class RecordedRequest(Pictured):
    """What the engine was asked, kept as it was at that moment."""

    model: str
    messages: list[Message]
    tools: list[JSON] | None
    """The OpenAI dicts that were sent, in the non-strict form, or None."""
    tool_choice: ToolChoice
    """None when neither key was sent."""
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def tool_names(self) -> list[str]:
        """The names of the offered tools, in order."""
        return [tool["function"]["name"] for tool in self.tools or ()]


Part = str | ScriptedCall
Step = Part | Sequence[Part] | JSON | BaseException | Callable[[RecordedRequest], Any]
"""Text, a call, a list of calls (and text), a raw assistant message, an exception to raise, or a function
of the request that gives one of these (it may be async)."""


@dataclass(repr=False)
class ScriptedEngine(InferenceEngine):
    """Plays its steps in order, records the requests, and says when it was asked for more or for less.

    Args:
        steps: One a model call; see :data:`Step`.
        usage: Prompt and completion tokens that each answer reports.
        delay: Seconds to wait before each answer, and between streamed words, for live views.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> engine = ScriptedEngine([call("calculator", expression="2+2"), "It is 4."])
        >>> Jarvis(engine=engine).ask("2+2?", tools=["calculator"])
        'It is 4.'
        >>> engine.requests[0].tool_names
        ['calculator']
        >>> engine.assert_complete()
    """

    steps: Iterable[Step]
    usage: tuple[int, int] = (0, 0)
    delay: float = 0.0
    requests: list[RecordedRequest] = field(default_factory=list[RecordedRequest], init=False)

    engine_id: ClassVar[str] = "scripted"
    supports = Support(strict=True, images=True)

    def __post_init__(self) -> None:
        if isinstance(self.steps, str | ScriptedCall | Mapping):
            raise EngineError(
                f"the steps are {self.steps!r:.100}",
                code="invalid_script",
                value=self.steps,
                hint="give a list of steps",
            )
        self.steps = list(self.steps)
        self._lock = threading.Lock()

    @property
    def default_model(self) -> str:
        """The name replies show."""
        return "scripted"

    @property
    def remaining(self) -> list[Step]:
        """The steps that were not played yet."""
        return list(self.steps)[len(self.requests) :]

    def assert_complete(self) -> None:
        """Check that every step was played.

        Raises:
            AssertionError: Lists the steps that are left.
        """
        left = self.remaining
        if left:
            raise AssertionError(f"{len(left)} scripted steps were not played, the next is {left[0]!r}")

    async def generate(self, request: Request) -> Completion:
        """Play the next step.

        Raises:
            EngineError: ``script_exhausted``: there is none. A scripted exception is raised as it is.
        """
        recorded = self._record(request)
        step = self._step(recorded)
        if self.delay:
            await asyncio.sleep(self.delay)
        if callable(step) and not isinstance(step, BaseException):
            step = step(recorded)
            if inspect.isawaitable(step):
                step = await step
        message = _message(step, request.messages)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        finish = message.pop("finish_reason", finish)
        return Completion(message, finish, Usage(*self.usage), request.model)

    async def stream(self, request: Request) -> AsyncIterator[Piece | Completion]:
        """Play the next step, its text word by word."""
        completion = await self.generate(request)
        content = completion.message.get("content")
        for word in re.findall(r"\s*\S+\s*", content) if isinstance(content, str) else ():
            yield Piece(word)
            await asyncio.sleep(self.delay)
        yield completion

    async def list_models(self) -> list[str]:
        """Return the one name there is."""
        return [self.default_model]

    def _record(self, request: Request) -> RecordedRequest:
        from jarvis_nb.core.schema import openai_tools

        tools = openai_tools(request.tools) if request.tools else None
        return RecordedRequest(
            request.model,
            list(request.messages),
            tools,
            request.tool_choice if tools else None,
            request.temperature,
            request.max_tokens,
        )

    def _step(self, recorded: RecordedRequest) -> Any:
        with self._lock:  # 64 threads may ask at once: each gets a step of its own
            position = len(self.requests)
            self.requests.append(recorded)
        steps = list(self.steps)
        if position >= len(steps):
            raise EngineError(
                f"the script was asked for step {position + 1} and ends with step {len(steps)}",
                code="script_exhausted",
                value=position + 1,
                hint="add a step, or check why the model was called again (engine.requests[-1])",
            )
        return steps[position]

    def __repr__(self) -> str:
        return f"ScriptedEngine({len(self.requests)} of {len(list(self.steps))} steps played)"


def _message(step: Any, history: Sequence[Message]) -> JSON:
    if isinstance(step, BaseException):
        raise step
    if isinstance(step, dict):
        return dict(step)  # a raw message, odd on purpose
    parts: list[Any] = list(step) if isinstance(step, list | tuple) else [step]
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [part for part in parts if isinstance(part, ScriptedCall)]
    if len(calls) + sum(isinstance(part, str) for part in parts) != len(parts):
        raise EngineError(
            f"a scripted step is {step!r:.200}",
            code="invalid_script",
            value=step,
            valid=["text", "call(…)", "a list of these", "a message dict", "an exception", "a function"],
        )
    if not calls:
        return {"role": "assistant", "content": text}
    taken = {c.id for message in history for c in message.tool_calls or ()}
    fresh = (f"call_{n}" for n in range(1, len(taken) + len(calls) + 1) if f"call_{n}" not in taken)
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": next(fresh),
                "type": "function",
                "function": {"name": c.name, "arguments": dumps(c.arguments)},
            }
            for c in calls
        ],
    }
