"""Carrying on a run that paused for a decision, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jarvis_nb.agents.base import BaseAgent
from jarvis_nb.agents.run import Run, Turn
from jarvis_nb.core.approval import Approve, Decision, Deny
from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.types import Message, Role, ToolCall
from jarvis_nb.reply import Reply
from jarvis_nb.run.options import Ask
from jarvis_nb.run.prepare import prepare

if TYPE_CHECKING:
    from jarvis_nb.jarvis import Jarvis


async def prepare_resume(
    jarvis: Jarvis, reply: Reply, decisions: Mapping[str, Decision], options: Mapping[str, Any]
) -> tuple[BaseAgent, Run, Turn]:
    """Rebuild the run of a paused reply; the reply itself is not changed.

    Raises:
        InvalidRequest: ``not_paused``, ``unknown_call``, ``invalid_decision``, or ``unknown_tools``: a tool of a
            waiting call is not there.
    """
    _check(reply, decisions)
    copy = Reply.from_dict(reply.to_dict())
    ask = Ask.of(
        copy.question,
        {
            "agent": copy.agent,
            "tool_policy": copy.policy or None,
            "model": copy.model or None,
            "context": False,
            "limits": copy.limits,
            **copy.options,
            **options,
        },
    )
    agent, run = await prepare(jarvis, ask)
    waiting = {a.tool.name for a in copy.pending}
    missing = sorted(waiting - {t.name for t in run.offer.tools})
    if missing:
        raise InvalidRequest(
            f"the paused calls need {', '.join(map(repr, missing))}",
            code="unknown_tools",
            value=missing,
            valid=run.offer.names,
            hint="give the same tools as the first ask: j.resume(reply, decisions, tools=[…])",
        )
    copy.engine, copy.warnings = run.engine.name, [*copy.warnings, *run.reply.warnings]
    copy.status, copy.error = "completed", None
    run.reply, run.messages = copy, copy.messages
    run.ids = {call.id for message in run.messages for call in message.tool_calls or ()}
    run.ran = {a.tool.name for a in copy.tool_attempts if a.ran}
    run.calls_made = sum(a.ran or a.status == "pending" for a in copy.tool_attempts)
    run.rounds_with_calls = len({a.round for a in copy.tool_attempts})
    return agent, run, _turn(copy, run.messages)


def _check(reply: Reply, decisions: Mapping[str, Decision]) -> None:
    if reply.status != "paused":
        raise InvalidRequest(
            f"the reply is {reply.status}, not paused",
            code="not_paused",
            value=reply.status,
            hint="there is nothing to decide",
        )
    waiting = [a.call_id for a in reply.pending]
    for call_id, decision in decisions.items():
        if call_id not in waiting:
            raise InvalidRequest(
                f"no call {call_id!r} waits", code="unknown_call", value=call_id, valid=waiting
            )
        if not isinstance(decision, Approve | Deny):
            raise InvalidRequest(
                f"the decision for {call_id} is {decision!r}",
                code="invalid_decision",
                value=decision,
                valid=["Approve()", 'Deny("why")'],
            )


def _turn(reply: Reply, messages: list[Message]) -> Turn:
    """Return the paused turn. An approval binds to what the person saw: the arguments on the attempt."""
    round_ = reply.pending[0].round
    asked = next(m for m in reversed(messages) if m.role is Role.ASSISTANT and m.tool_calls)
    shown = {a.call_id: a.arguments for a in reply.pending}
    calls = [ToolCall(c.id, c.name, shown.get(c.id) or c.arguments) for c in asked.tool_calls or ()]
    by = next((a.by for a in reply.pending if a.by), {})
    return Turn(round_, True, reply.output, calls, {}, by)
