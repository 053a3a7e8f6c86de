"""What became of one tool call, filled in as it happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.types import ToolCall, ToolResult, dumps
from jarvis_nb.tools.base import BaseTool

OutcomeStatus = Literal["ok", "failed", "denied", "cancelled", "abandoned", "pending"]


@dataclass(slots=True)
class Outcome:
    """One call and what became of it. Whatever ends the run, it holds the truth up to there."""

    call: ToolCall
    tool: BaseTool | None = None
    arguments: dict[str, Any] | None = None
    """As validated; as parsed, where they were refused."""
    status: OutcomeStatus = "cancelled"
    ran: bool = False
    """Whether the tool was entered."""
    done: bool = False
    """Whether the status is final."""
    content: str = ""
    """What the model reads."""
    output: Any = None
    """The whole output, JSON-ready."""
    value: Any = None
    """The output as the tool returned it."""
    error: ErrorInfo | None = None
    truncated: bool = False
    steps: list[dict[str, Any]] | None = None
    images: list[Any] = field(default_factory=list[Any])
    given: ToolResult | None = None
    """The tool's own result object, if it made one."""
    traceback: str | None = field(default=None, repr=False)
    """For the local record only."""
    started: float = 0.0
    """Seconds of the performance counter."""
    ended: float = 0.0

    @property
    def result(self) -> ToolResult:
        """The outcome in the tools' own terms."""
        given = self.given
        return ToolResult(
            self.tool.name if self.tool else self.call.name,
            self.content,
            self.status == "ok",
            given.usage if given else {},
            given.cost_usd if given else 0.0,
            self.ended - self.started,
            given.metadata if given else {},
        )

    def refuse(self, error: ErrorInfo, status: OutcomeStatus = "failed") -> None:
        """Settle the call without running it; the model reads why."""
        self.status, self.error, self.done = status, error, True
        self.content = dumps({"error": error.to_dict()})

    def give_up(self) -> None:
        """Settle a call that an interrupt caught, if it is not settled."""
        if self.done:
            return
        status = self.status if self.status == "abandoned" else "cancelled"
        self.refuse(ErrorInfo("cancelled", "the run was interrupted before this call was done"), status)
