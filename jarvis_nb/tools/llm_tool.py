"""The llm tool: a question to a model, asked from within a run."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import Message, Role, ToolResult
from jarvis_nb.tools.base import ToolContext, ToolSpec
from jarvis_nb.tools.builtin import BuiltinTool, Examples, text_param

if TYPE_CHECKING:
    from jarvis_nb.engines.base import InferenceEngine

TIMEOUT_SECONDS = 120.0
"""A model takes its time."""

EXAMPLES: Examples = [
    ("Ask the model to summarize: AI changes industries.", {"prompt": "Summarize: AI changes industries."}),
    ("Have the model translate 'good morning' to French.", {"prompt": "Translate to French: good morning"}),
    ("Write a haiku about rain.", {"prompt": "Write a haiku about rain."}),
    ("Ask the LLM for three names for a cat.", {"prompt": "Suggest three names for a cat."}),
    ("Rewrite this politely: send it now.", {"prompt": "Rewrite politely: send it now"}),
    (
        "As a concise summarizer, summarize the plot of Hamlet.",
        {"prompt": "Summarize the plot of Hamlet.", "system": "You are a concise summarizer."},
    ),
    ("Let the model explain photosynthesis to a child.", {"prompt": "Explain photosynthesis to a child."}),
    ("Ask the model whether 'I love it' is positive.", {"prompt": "Is this positive or negative: I love it"}),
    (
        "As a strict editor, correct: he go home.",
        {"prompt": "Correct: he go home", "system": "You are a strict editor."},
    ),
    (
        "Draft a short email that declines the offer.",
        {"prompt": "Draft a short email that declines the offer."},
    ),
]


@ToolRegistry.register("llm")
class LLMTool(BuiltinTool):
    """Delegates a sub-question to an inference engine.

    Tokens and cost stand on the result (0.0 where the price of the model is not known).

    Args:
        engine: The engine to ask; without one every call is a failed result that says so.
        model: The model; empty for the engine's default.

    Example:
        >>> from jarvis_nb.engines import ScriptedEngine
        >>> LLMTool(engine=ScriptedEngine(["Short."]), model="m").execute(prompt="Summarize: …").content
        'Short.'
    """

    tool_id = "llm"

    def __init__(self, engine: InferenceEngine | None = None, model: str = "") -> None:
        self.engine = engine
        self.model = model
        super().__init__()

    def make_spec(self) -> ToolSpec:
        """Return the tool specification."""
        return ToolSpec(
            name="llm",
            description="Ask a language model to write, summarize, translate or explain a text.",
            parameters={
                "type": "object",
                "properties": {
                    "prompt": {"type": "string", "description": "The prompt to send to the model"},
                    "system": {"type": "string", "description": "Optional system message for context"},
                },
                "required": ["prompt"],
            },
            category="inference",
            metadata={"examples": list(EXAMPLES)},
            timeout_seconds=TIMEOUT_SECONDS,
        )

    @property
    def is_async(self) -> bool:
        """The executor awaits the engine on its loop; only a direct ``execute`` waits in a thread."""
        return True

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Coroutine[Any, Any, ToolResult]:  # noqa: ARG002 - the seam's signature
        """Return the coroutine that asks the engine."""
        return self._answer(arguments)

    def run(self, params: dict[str, Any]) -> ToolResult:
        """Ask the engine and wait for its answer."""
        from jarvis_nb.core.bridge import run_sync

        return run_sync(self._answer(params))

    async def _answer(self, params: dict[str, Any]) -> ToolResult:
        try:
            return await self._ask(text_param(params, "prompt"), text_param(params, "system", required=False))
        except Exception as error:
            return self.failed(error)

    async def _ask(self, prompt: str, system: str) -> ToolResult:
        from jarvis_nb.engines.base import Request

        if self.engine is None:
            raise ToolError("there is no engine to ask", code="no_engine")
        if not prompt.strip():
            raise ToolError("the prompt is empty", code="empty_prompt")
        engine, model = self.engine, self.model
        resolve = getattr(engine, "resolve", None)
        if resolve is not None:  # a stand-in for an engine that is found on first use
            engine, found = await resolve()
            model = model or found
        model = model or engine.default_model
        if not model:
            raise ToolError("no model is named to ask", code="no_model")
        messages = [Message(Role.SYSTEM, system)] if system.strip() else []
        completion = await engine.generate(Request(model, [*messages, Message(Role.USER, prompt)]))
        text = _text(completion.message.get("content"))
        if not text.strip():
            raise ToolError("the model answered nothing", code="empty_answer")
        from jarvis_nb.engines.prices import cost_usd

        usage = completion.usage
        return ToolResult(
            self.name,
            text,
            usage=usage.to_dict(),
            cost_usd=cost_usd(model, engine.name, usage) or 0.0,
            metadata={"model": completion.model or model, "engine": engine.name},
        )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else Message(Role.ASSISTANT, content).text
