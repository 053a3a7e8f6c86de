"""What one generation of the embedded model is asked for, what it gives, and the ear in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Usage

OnText = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Order:
    """One generation: what the model reads and how its answer is bound."""

    messages: Sequence[dict[str, str]]
    grammar: str | None = None
    """Lark, as llguidance reads it; None for free text."""
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    no_loops: bool = False
    """Penalise long verbatim repetitions, which a small model falls into."""
    must_start: str = ""
    """The answer is given up at once if it starts otherwise: the grammar was not taken."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What the model wrote."""

    text: str
    finish_reason: str
    usage: Usage
    constrained: bool = True
    """False if the grammar was not taken."""


class ContextOverflow(EngineError):  # noqa: N818 - the code's own words
    """The prompt is longer than the model's context."""

    code = "context_overflow"

    def __init__(self, tokens: int, context: int) -> None:
        self.tokens = tokens
        self.context = context
        super().__init__(
            f"the conversation has {tokens:,} tokens, the embedded model reads {context:,}",
            value=tokens,
            hint="ask with a shorter history, or give LocalEngine a larger context=",
        )


class Listener:
    """Collects the chunks of one generation and says when to stop."""

    def __init__(self, must_start: str, on_text: OnText | None, stopped: Callable[[], bool]) -> None:
        self._must_start = must_start
        self._on_text = on_text
        self._stopped = stopped
        self._pieces: list[str] = []
        self._finish = ""
        self._usage = Usage()
        self._error: dict[str, Any] | None = None
        self._constrained = True

    def __call__(self, chunk: dict[str, Any]) -> bool:
        """Take one chunk; True stops the generation."""
        if "error" in chunk:
            self._error = chunk["error"]
            return True
        for choice in chunk.get("choices") or ():
            self._finish = choice.get("finish_reason") or self._finish
            self._take((choice.get("delta") or {}).get("content") or "")
        if "usage" in chunk:
            self._usage = Usage.from_openai(chunk["usage"])
        return self._stopped() or not self._constrained

    def _take(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        if self._must_start:
            start = "".join(self._pieces[:4])[: len(self._must_start)]
            self._constrained = self._must_start.startswith(start)
        if self._on_text is not None and self._constrained:
            self._on_text(text)

    def result(self, context: int) -> Generated:
        """Return what was written, or raise what went wrong."""
        if self._error is not None:
            if self._error.get("type") == "exceed_context_size_error":
                raise ContextOverflow(int(self._error.get("n_prompt_tokens", 0)), context)
            raise EngineError(f"the embedded model failed: {self._error.get('message')}", code="bad_response")
        return Generated("".join(self._pieces), self._finish or "stop", self._usage, self._constrained)
