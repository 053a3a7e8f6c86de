"""Asking before a call runs. Whatever goes wrong with the asking, the call does not run."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from jarvis_nb.core.approval import ApprovalRequest, Approve, Approver, Decision, Deny, Pause
from jarvis_nb.core.errors import ApprovalUnavailable, ErrorInfo
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.tools.content import clean_text, describe_error

log = logging.getLogger("jarvis_nb.tools")

MAX_REASON = 1000

NOBODY = ErrorInfo("approval_unavailable", "this call needs a person's approval, and nobody can be asked")
PENDING = ErrorInfo("approval_pending", "this call waits for a person's decision")


async def decide(
    approver: Approver | None, request: ApprovalRequest, bus: EventBus, given: Decision | None = None
) -> Approve | Pause | ErrorInfo:
    """Return the decision about a call, or why it is denied.

    Args:
        approver: Whom to ask; None denies.
        request: The exact call.
        bus: Told of the question and the answer.
        given: The decision, where it was taken before (a paused run that goes on): nobody is asked.
    """
    if given is None:
        bus.publish(
            EventType.APPROVAL_REQUEST,
            call_id=request.call_id,
            tool=request.name,
            arguments=request.arguments,
        )
    answer = await _ask(approver, request) if given is None else given
    verdict = _verdict(answer)
    denied = isinstance(verdict, ErrorInfo)
    bus.publish(
        EventType.APPROVAL_DECISION,
        call_id=request.call_id,
        tool=request.name,
        decision="deny" if denied else "pause" if isinstance(verdict, Pause) else "approve",
        reason=verdict.message if isinstance(verdict, ErrorInfo) else None,
        edited=isinstance(verdict, Approve) and verdict.arguments is not None,
    )
    return verdict


async def _ask(approver: Approver | None, request: ApprovalRequest) -> Any:
    if approver is None:
        return NOBODY
    try:
        answer: Any = approver(request)
        return await answer if inspect.isawaitable(answer) else answer
    except ApprovalUnavailable as error:
        return error.info()
    except (Exception, SystemExit) as error:
        log.warning("the approver of %s failed", request.name, exc_info=error)
        return ErrorInfo("denied", f"the approver failed: {describe_error(error)}")


def _verdict(answer: Any) -> Approve | Pause | ErrorInfo:
    if isinstance(answer, Approve | Pause | ErrorInfo):
        return answer
    if isinstance(answer, Deny):
        return ErrorInfo("denied", clean_text(str(answer.reason))[:MAX_REASON] or "denied")
    log.warning("the approver gave %s where a decision belongs", type(answer).__name__)
    return ErrorInfo("denied", f"the approver gave no decision but a value of type {type(answer).__name__}")
