"""The records a reply is made of: attempts, offers and model calls, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import ToolChoice, Usage

AttemptStatus = Literal["ok", "failed", "denied", "cancelled", "abandoned", "pending"]


@dataclass(frozen=True, slots=True)
class ToolRef(Pictured):
    """Which tool an attempt called."""

    kind: str
    """``action``, ``flow``, ``source``, or ``tool`` for a plain :class:`BaseTool`."""
    name: str
    source: str | None = None
    """The source's string id, for a tool that a source brought."""


@dataclass(slots=True)
class Attempt(Pictured):
    """One tool call of a run: what the model asked for and what became of it, refused calls too."""

    tool: ToolRef
    call_id: str
    round: int
    """From 1: the model call that asked for it."""
    index: int
    """From 0: its place among the calls of the round."""
    arguments: dict[str, Any] | None
    """As validated; as parsed, where they were refused; None where they were no JSON object."""
    status: AttemptStatus
    ran: bool
    """Whether the tool was entered."""
    output: Any = None
    """The whole structured output, JSON-ready."""
    content: str = ""
    """What the model reads: text, capped."""
    error: ErrorInfo | None = None
    truncated: bool = False
    """Whether ``content`` holds less than ``output``."""
    steps: list[dict[str, Any]] | None = field(default=None, repr=False)
    """A flow's trace, with its times."""
    provider_id: str | None = None
    raw_name: str | None = None
    raw_arguments: str | None = None
    by: dict[str, str] = field(default_factory=dict)
    """Who chose the tool and the arguments, where the engine says: ``router``, ``model``, ``copy``."""
    usage: dict[str, Any] = field(default_factory=dict)
    cost_usd: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)
    value: Any = field(default=None, compare=False, repr=False)
    """The output as the tool returned it, in this process only: it is not saved."""
    started: float = field(default=0.0, compare=False, repr=False)
    """Seconds from the start of the run."""
    seconds: float = field(default=0.0, compare=False, repr=False)

    @property
    def success(self) -> bool:
        """Whether the tool ran and succeeded."""
        return self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return the attempt as JSON-ready data."""
        data = {name: getattr(self, name) for name in _ATTEMPT_FIELDS}
        data["tool"] = asdict(self.tool)
        data["error"] = self.error.to_dict() if self.error else None
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Attempt:
        """Read what :meth:`to_dict` made."""
        fields: dict[str, Any] = {name: data[name] for name in _ATTEMPT_FIELDS if name in data}
        fields |= {"tool": ToolRef(**data["tool"]), "error": error_from(data.get("error"))}
        return cls(**fields)


_ATTEMPT_FIELDS = [
    "tool", "call_id", "round", "index", "arguments", "status", "ran", "output", "content", "error", "truncated",
    "steps", "provider_id", "raw_name", "raw_arguments", "by", "usage", "cost_usd", "metadata", "started", "seconds",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerEntry(Pictured):
    """One tool in one request's offer: offered, or hidden and why."""

    name: str
    kind: str
    source: str | None
    offered: bool
    reason: str = ""
    """Why it is hidden, in words; empty for an offered tool."""


@dataclass(frozen=True, slots=True)
class RoundOffer(Pictured):
    """What one model call was offered, and with which tool choice."""

    round: int
    entries: tuple[LedgerEntry, ...]
    choice: ToolChoice
    reason: str
    """Why the choice is what it is, in words."""

    @property
    def offered(self) -> list[str]:
        """The names of the offered tools, in order."""
        return [e.name for e in self.entries if e.offered]

    @property
    def hidden(self) -> dict[str, str]:
        """The hidden tools, each with the reason."""
        return {e.name: e.reason for e in self.entries if not e.offered}

    def to_dict(self) -> dict[str, Any]:
        """Return the offer as JSON-ready data."""
        return {
            "round": self.round,
            "choice": self.choice,
            "reason": self.reason,
            "entries": [asdict(e) for e in self.entries],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RoundOffer:
        """Read what :meth:`to_dict` made."""
        entries = tuple(LedgerEntry(**e) for e in data["entries"])
        return cls(data["round"], entries, data["choice"], data["reason"])


@dataclass(slots=True)
class ModelCall(Pictured):
    """One call of the model: how much history it saw and what came back."""

    round: int
    messages: int
    """How many messages of the transcript were sent."""
    response: dict[str, Any]
    """The raw assistant message, before any repair."""
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str = ""
    started: float = field(default=0.0, compare=False, repr=False)
    """Seconds from the start of the run."""
    seconds: float = field(default=0.0, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the call as JSON-ready data."""
        return {
            "round": self.round,
            "messages": self.messages,
            "response": self.response,
            "finish_reason": self.finish_reason,
            "usage": self.usage.to_dict(),
            "model": self.model,
            "started": self.started,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ModelCall:
        """Read what :meth:`to_dict` made."""
        fields: dict[str, Any] = {**data, "usage": Usage.from_openai(data["usage"])}
        return cls(**fields)


def error_from(data: dict[str, Any] | None) -> ErrorInfo | None:
    """Read an error as :meth:`ErrorInfo.to_dict` made it."""
    if data is None:
        return None
    details = {k: v for k, v in data.items() if k not in {"code", "message"}}
    return ErrorInfo(data["code"], data["message"], details or None)
