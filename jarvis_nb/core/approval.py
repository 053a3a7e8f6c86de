"""What is asked before a tool that needs confirmation runs, and what can be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.pictured import Pictured


@dataclass(frozen=True, slots=True)
class ApprovalRequest(Pictured):
    """One call that waits for a decision. The decision binds to this exact name and these arguments."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    description: str = ""
    parameters: dict[str, Any] | None = None
    """The tool's JSON Schema: edited arguments are checked against it."""


@dataclass(frozen=True, slots=True)
class Approve(Pictured):
    """Let the call run.

    Args:
        arguments: Run it with these instead; they are validated like the model's own.
        always: Do not ask again for this tool in this session (this ``Jarvis``).
    """

    arguments: dict[str, Any] | None = None
    always: bool = False


@dataclass(frozen=True, slots=True)
class Deny(Pictured):
    """Refuse the call; the model reads the reason."""

    reason: str = "denied"


@dataclass(frozen=True, slots=True)
class Pause(Pictured):
    """Leave the call undecided: the run ends with status ``paused`` and can be resumed."""


Decision = Approve | Deny | Pause
Approver = Callable[[ApprovalRequest], Awaitable[Decision]]
