"""The recorded model turns of a reply, run again under another policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.approval import ApprovalRequest, Approve, Decision, Deny, Pause
from jarvis_nb.core.errors import ApprovalUnavailable, EngineError, InvalidArguments
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Role, ToolDefinition, ToolResult
from jarvis_nb.engines.scripted import RecordedRequest, ScriptedEngine
from jarvis_nb.record import Attempt
from jarvis_nb.reply import Reply
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec

if TYPE_CHECKING:
    from jarvis_nb.toolsets.policy import ToolPolicy


@dataclass(frozen=True)
class Replayed(Pictured):
    """A recorded run under another policy."""

    reply: Reply
    valid_rounds: int
    """How many recorded model turns stayed valid."""
    stopped: str | None
    """Why the next one did not; None if all stayed valid."""

    def __repr__(self) -> str:
        end = f"stopped: {self.stopped}" if self.stopped else "all valid"
        return f"Replayed({self.valid_rounds} of the recorded turns, {end})"


def replay(
    reply: Reply, *, tools: Sequence[Any] = (), tool_policy: ToolPolicy | Mapping[str, Any] | None = None
) -> Replayed:
    """Run the recorded turns again as far as they stay valid.

    A recorded turn stays valid while every tool it calls is offered, the tool choice allows what it did, and
    every result before it is what the model saw then.

    Args:
        reply: The recorded run.
        tools: The real tools, to run them again; what needs confirmation is denied. Without them the recorded
            results are given back, under the recorded decisions.
        tool_policy: The policy to try; None for none, whatever the recorded run had.

    Raises:
        InvalidRequest: The policy is wrong for the recorded tools.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> from jarvis_nb.engines import ScriptedEngine, call
        >>> j = Jarvis(engine=ScriptedEngine([call("calculator", expression="2+2"), "It is 4."]))
        >>> r = j.ask_full("2+2?", tools=["calculator"])
        >>> r.replay(tool_policy={"hidden": ["calculator"]})
        Replayed(0 of the recorded turns, stopped: round 1 calls 'calculator', which is not offered)
    """
    from jarvis_nb.jarvis import Jarvis

    turns = _Turns(reply)
    engine = ScriptedEngine([turns.step] * len(reply.model_calls))
    history, question = _before(reply)
    approve = None if tools else _recorded_decisions(reply)
    with Jarvis(engine=engine, model=reply.model, approve=approve, config={}) as jarvis:
        try:
            again = jarvis.ask_full(
                question,
                agent=reply.agent,
                tools=list(tools) or recorded_tools(reply),
                tool_policy=tool_policy,
                limits=reply.limits,
                history=history,
            )
        except EngineError as error:
            if error.code != STOPPED:
                raise
            again = Reply(
                reply.question, status="failed", error=error.info(), model=reply.model, agent=reply.agent
            )
    return Replayed(again, turns.played, turns.stopped)


STOPPED = "replay_stopped"


class _Turns:
    """Plays the recorded responses and stops at the first that is not valid any more."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.played = 0
        self.stopped: str | None = None

    def step(self, request: RecordedRequest) -> Any:
        round_ = self.played + 1
        self.stopped = self._why_not(request, round_)
        if self.stopped:
            raise EngineError(self.stopped, code=STOPPED, value=round_)
        self.played += 1
        response = self.reply.model_calls[round_ - 1].response
        finish = self.reply.model_calls[round_ - 1].finish_reason
        return {**response, "finish_reason": finish}

    def _why_not(self, request: RecordedRequest, round_: int) -> str | None:
        called = [a.tool.name for a in self.reply.tool_attempts if a.round == round_]
        offered = set(request.tool_names)
        allowed_then = set(self.reply.offers[round_ - 1].offered)
        for name in called:
            if name in allowed_then and name not in offered:
                return f"round {round_} calls {name!r}, which is not offered"
        choice = request.tool_choice
        if choice == "required" and not called:
            return f"round {round_} answers in words, but a tool call is required"
        if isinstance(choice, dict) and choice["function"]["name"] not in called:
            return f"round {round_} does not call {choice['function']['name']!r}, which is required"
        then = {a.call_id: a.content for a in self.reply.tool_attempts if a.round < round_}
        for message in request.messages:
            wanted = then.get(message.tool_call_id or "")
            if message.role is Role.TOOL and wanted is not None and message.text != wanted:
                return f"round {round_} saw another result of {message.tool_call_id}"
        return None


def _before(reply: Reply) -> tuple[list[Any], str]:
    """Return what stood before the question, and the question."""
    sent = reply.model_calls[0].messages if reply.model_calls else len(reply.messages)
    return list(reply.messages[: max(sent - 1, 0)]), reply.question


def _recorded_decisions(reply: Reply) -> Callable[[ApprovalRequest], Decision]:
    attempts = {attempt.call_id: attempt for attempt in reply.tool_attempts}

    def decide(request: ApprovalRequest) -> Decision:
        attempt = attempts[request.call_id]
        if attempt.status == "pending":
            return Pause()
        if attempt.status != "denied":
            return Approve(attempt.arguments)
        message = attempt.error.message if attempt.error else ""
        if attempt.error is not None and attempt.error.code == "approval_unavailable":
            raise ApprovalUnavailable(message)
        return Deny(message)

    return decide


def recorded_tools(reply: Reply) -> list[BaseTool]:
    """Return stand-ins for the recorded tools, which give back the recorded results."""
    homes = {e.name: (e.kind, e.source) for e in reply.offers[0].entries} if reply.offers else {}
    return [
        RecordedTool(
            definition,
            {a.call_id: a for a in reply.tool_attempts if a.tool.name == definition.name},
            *homes.get(definition.name, ("tool", None)),
        )
        for definition in reply.definitions
    ]


class RecordedTool(BaseTool):
    """A tool that runs nothing: it gives back what the recorded run got for the same call."""

    def __init__(
        self, definition: ToolDefinition, attempts: Mapping[str, Attempt], kind: Any, source: str | None
    ) -> None:
        self.tool_id = definition.name
        self.kind = kind
        self.source = source
        decided = any(attempt.status in ("denied", "pending") for attempt in attempts.values())
        self._spec = ToolSpec(
            definition.name, definition.description, definition.parameters, requires_confirmation=decided
        )
        self._attempts = attempts

    @property
    def spec(self) -> ToolSpec:
        """The recorded definition."""
        return self._spec

    def check_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as they were recorded: some tools' records have defaults filled in, some not.

        Raises:
            InvalidArguments: They do not fit the recorded definition.
        """
        checked = super().check_arguments(arguments)
        for attempt in self._attempts.values():
            refused = attempt.error is not None and attempt.error.code == InvalidArguments.code
            if attempt.arguments is None or refused:
                continue
            if super().check_arguments(attempt.arguments) == checked:
                return dict(attempt.arguments)
        return checked

    def execute(self, /, **params: Any) -> ToolResult:
        """Return the recorded result of the first call with these arguments."""
        same = (a.call_id for a in self._attempts.values() if a.arguments == params)
        return self.invoke(params, ToolContext(call_id=next(same, "")))

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:  # noqa: ARG002 - nothing runs
        """Return the recorded result of this call."""
        attempt = self._attempts.get(context.call_id)
        if attempt is None:
            return ToolResult(self.name, "the recorded run has no such call", success=False)
        metadata = {**attempt.metadata, "output": attempt.output}
        if attempt.error is not None:
            metadata["code"] = attempt.error.code
        return ToolResult(
            self.name,
            attempt.content,
            attempt.success,
            dict(attempt.usage),
            attempt.cost_usd,
            metadata=metadata,
        )
