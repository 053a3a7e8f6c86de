"""Who decides about a call that needs confirmation: the meanings of ``approve=``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from jarvis_nb.core.approval import ApprovalRequest, Approve, Approver, Decision, Deny, Pause
from jarvis_nb.core.bridge import in_caller
from jarvis_nb.core.errors import ApprovalUnavailable, InvalidRequest
from jarvis_nb.core.types import dumps
from jarvis_nb.run.frontend import can_input, live_kernel

ApproveSetting = str | Callable[[ApprovalRequest], Any] | None
"""None denies; ``"ask"`` asks a person; ``"pause"`` ends the run as paused; a function decides."""


def make_approver(setting: ApproveSetting, always: set[str]) -> Approver | None:
    """Return the approver for a setting, or None where nobody can approve.

    Args:
        setting: What the caller gave as ``approve=``.
        always: Tool names approved for the session; ``Approve(always=True)`` adds to it.

    Raises:
        InvalidRequest: ``invalid_approve``: the setting is something else.
    """
    if setting is None:
        return None
    if setting == "pause":
        decide: Callable[[ApprovalRequest], Any] = _pause
    elif setting == "ask":
        decide = partial(ask_person, always=always)
    elif callable(setting):
        decide = setting
    else:
        raise InvalidRequest(
            f"approve is {setting!r}",
            code="invalid_approve",
            value=setting,
            valid=["None", "'ask'", "'pause'", "a function of the request"],
        )

    async def approver(request: ApprovalRequest) -> Decision:
        if request.name in always:
            return Approve()
        decision = decide(request)
        if inspect.isawaitable(decision):
            decision = await decision
        if isinstance(decision, Approve) and decision.always:
            always.add(request.name)
        return decision

    return approver


async def _pause(_: ApprovalRequest) -> Decision:
    return Pause()


async def ask_person(request: ApprovalRequest, always: set[str] | None = None) -> Decision:
    """Ask the person at the notebook, by a gate in the running cell, or at the terminal.

    Args:
        request: The call.
        always: Tool names approved for the session.

    Raises:
        ApprovalUnavailable: There is no front end and no terminal: nobody can be asked.
    """
    if live_kernel() is not None:
        from jarvis_nb.widgets.asking import ask_in_cell

        return await ask_in_cell(request, set() if always is None else always, _ask_by_input)
    return await in_caller(lambda: _ask_by_input(request))


def _ask_by_input(request: ApprovalRequest) -> Decision:
    if not can_input():
        raise ApprovalUnavailable(
            f"nobody can be asked about {request.name}",
            value=request.name,
            hint="run it in a notebook or a terminal, or give approve= a function",
        )
    answer = input(f"Run {request.name}({dumps(request.arguments)})? [y/N/always] ").strip()
    if answer.casefold() in {"y", "yes"}:
        return Approve()
    if answer.casefold() == "always":
        return Approve(always=True)
    return Deny(
        "denied by the user" if answer.casefold() in {"", "n", "no"} else f"denied by the user: {answer}"
    )
