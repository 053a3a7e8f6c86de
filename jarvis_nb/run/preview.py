"""What an ask would send, without sending it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.types import JSON, ToolChoice, dumps
from jarvis_nb.engines.base import Request
from jarvis_nb.record import LedgerEntry

if TYPE_CHECKING:
    from jarvis_nb.agents.run import Run

CHARACTERS_A_TOKEN = 4
"""A rule of thumb, used where the engine cannot count."""


@dataclass(frozen=True)
class Preview:
    """The offer, the exact payload and its size; no model was called.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> from jarvis_nb.engines import ScriptedEngine
        >>> p = Jarvis(engine=ScriptedEngine([])).preview("2+2?", tools=["calculator"])
        >>> p.offered, p.choice
        (['calculator'], 'auto')
    """

    question: str
    engine: str
    model: str
    agent: str | None
    entries: tuple[LedgerEntry, ...]
    choice: ToolChoice
    reason: str
    """Why the tool choice is what it is."""
    payload: JSON
    """The body of the first request."""
    tokens: int
    """Tokens of the payload's messages and tools."""
    exact: bool
    """Whether the engine counted them; else they are estimated at four characters a token."""
    injected: list[JSON]

    @property
    def offered(self) -> list[str]:
        """The names of the offered tools, in order."""
        return [e.name for e in self.entries if e.offered]

    @property
    def hidden(self) -> dict[str, str]:
        """The hidden tools, each with the reason."""
        return {e.name: e.reason for e in self.entries if not e.offered}

    def __repr__(self) -> str:
        tokens = f"{self.tokens}" if self.exact else f"about {self.tokens}"
        return f"Preview(offered={self.offered}, choice={self.choice!r}, {tokens} tokens)"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from jarvis_nb.display import bundle

        return bundle(self)


def make_preview(run: Run) -> Preview:
    """Return what the first model call of a run would send."""
    tools = run.offer.definitions or None
    choice = run.offer.choice(False) if tools else None
    request = Request(run.model, run.messages, tools, choice, run.temperature, run.max_tokens, run.examples)
    payload = run.engine.payload(request)
    counted = run.engine.count_tokens(request)
    sent = dumps([payload.get("messages"), payload.get("tools") or []])
    return Preview(
        run.reply.question,
        run.engine.name,
        run.model,
        run.reply.agent,
        run.offer.entries,
        choice,
        run.offer.reason_for_choice(False) if tools else "no tool is offered",
        payload,
        counted if counted is not None else max(1, len(sent) // CHARACTERS_A_TOKEN),
        counted is not None,
        run.reply.injected,
    )
