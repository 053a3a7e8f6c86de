"""The offer: what a policy left of a toolset for one request, and what the model has to do with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Definitions, ToolChoice
from jarvis_nb.record import LedgerEntry
from jarvis_nb.tools.base import BaseTool


@dataclass(frozen=True, repr=False)
class Offer(Pictured):
    """What the model is offered in one request, what is hidden and why, and what it has to do.

    Made by :func:`~jarvis_nb.toolsets.policy.resolve`, whose docstring is the table.
    """

    tools: tuple[BaseTool, ...]
    """The tools offered, in toolset order."""
    names: tuple[str, ...]
    definitions: Definitions
    entries: tuple[LedgerEntry, ...]
    """The ledger: one entry for every tool of the toolset, in its order."""
    requirement: str | dict[str, str]
    """``auto``, ``required``, ``disabled`` or ``{"tool": name}``."""
    forced: str | None = None
    """The tool that has to run, where the requirement names one."""

    @cached_property
    def openai_tools(self) -> list[dict[str, Any]]:
        """The definitions as OpenAI's ``tools``, in the default form. Made once: treat it as a value."""
        from jarvis_nb.core.schema import openai_tools

        return openai_tools(self.definitions)

    def choice(self, ran: bool) -> ToolChoice:
        """Return the tool choice of the next model call; None where neither key is sent.

        Args:
            ran: Whether a tool was entered already, whatever its result. A call refused before that (an
                unknown name, bad arguments, denied) does not count: the choice stays forced.
        """
        if not self.tools:
            return None
        if ran or self.requirement == "auto":
            return "auto"
        if self.forced is not None:
            return {"type": "function", "function": {"name": self.forced}}
        return "required"

    def reason_for_choice(self, ran: bool) -> str:
        """Say in a sentence why :meth:`choice` is what it is, for the ledger."""
        if self.requirement == "disabled":
            return "no tool is sent: the requirement is `disabled`"
        if not self.tools:
            return "no tool is sent: none is selected"
        if self.requirement == "auto":
            return "the model may call a tool or answer"
        if ran:
            return "the model may answer: a tool has run"
        if self.forced is not None:
            return f"the model has to call {self.forced!r}: the requirement names it"
        return "the model has to call a tool: the requirement is `required`"

    def unmet(self, ran: Collection[str]) -> ErrorInfo | None:
        """Return what is missing if the model answers now, or None.

        Args:
            ran: Names of the tools that were entered, whatever their result.

        Example:
            >>> Offer((), ("lookup",), Definitions(), (), {"tool": "lookup"}, "lookup").unmet(["think"]).code
            'required_tool_not_called'
        """
        if self.forced is not None:
            missing, message = self.forced not in ran, f"the tool {self.forced!r} had to run and did not"
        else:
            missing, message = self.requirement == "required" and not ran, "a tool had to run and none did"
        if not missing:
            return None
        wanted = list(self.names) if self.forced is None else [self.forced]
        return ErrorInfo("required_tool_not_called", message, {"valid": wanted})

    def __repr__(self) -> str:
        hidden = [entry.name for entry in self.entries if not entry.offered]
        return f"Offer(offered={list(self.names)}, hidden={hidden}, requirement={self.requirement!r})"
