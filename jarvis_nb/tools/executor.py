"""The central dispatch of tool calls: find, check, ask for approval, run within a deadline, tell."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from jarvis_nb.core.approval import ApprovalRequest, Approve, Approver, Decision, Pause
from jarvis_nb.core.bridge import heartbeat, run_sync
from jarvis_nb.core.errors import ErrorInfo, InvalidArguments, ToolsetError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import ToolCall, ToolResult
from jarvis_nb.tools.approving import PENDING, decide
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolLike, ToolSpec
from jarvis_nb.tools.calls import copied, find_tool, not_offered, read_arguments, unknown_tool
from jarvis_nb.tools.content import MAX_TEXT
from jarvis_nb.tools.outcome import Outcome
from jarvis_nb.tools.running import Plan, enter

__all__ = ["Outcome", "ToolExecutor"]


class ToolExecutor(Pictured):
    """Runs tool calls. A failing call is a result with ``success=False``, never an exception.

    Only ``KeyboardInterrupt`` and an outside cancelling pass through. Synchronous tools run on worker
    threads, in the caller's context; a tool that overruns its time-out is left behind.

    Args:
        tools: Tools and functions; names are unique, without case.
        bus: Told of every call's start and end.
        approver: Asked before a tool runs that requires confirmation; None denies.
        context: The host's run context, for tools that ask for it.
        max_text: Characters of a result that the model reads; the outcome keeps the whole.

    Raises:
        ToolsetError: ``duplicate_tools``.

    Example:
        >>> from jarvis_nb.tools.think import ThinkTool
        >>> ToolExecutor([ThinkTool()]).execute(ToolCall("call_1", "think", '{"thought": "why?"}')).content
        'why?'
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        bus: EventBus | None = None,
        *,
        approver: Approver | None = None,
        context: ToolContext | Mapping[str, Any] | None = None,
        max_text: int = MAX_TEXT,
    ) -> None:
        self._tools = _by_name(tools)
        self._plans: dict[str, Plan] = {}
        self.bus = EventBus() if bus is None else bus
        self._approver = approver
        self._context = context if isinstance(context, ToolContext) else ToolContext(context)
        self._max_text = max_text

    def __repr__(self) -> str:
        return f"ToolExecutor([{', '.join(tool.name for tool in self._tools.values())}])"

    def available_tools(self) -> list[ToolSpec]:
        """Return the specs of all tools, in order."""
        specs = ((tool.name, tool.spec) for tool in self._tools.values())
        return [spec if spec.name == name else replace(spec, name=name) for name, spec in specs]

    def get_openai_tools(self) -> list[dict[str, Any]]:
        """Return the tools in OpenAI function format, in order."""
        return [tool.to_openai_function() for tool in self._tools.values()]

    def execute(self, tool_call: ToolCall) -> ToolResult:
        """Run one call; works under a running loop, and with async tools.

        Raises:
            KeyboardInterrupt: Of the caller, or of the tool.
        """
        plan = self._plan(tool_call.name)
        if plan is not None and (plan.is_async or plan.confirm):
            return run_sync(self.run(tool_call)).result
        outcome = Outcome(tool_call)
        coroutine = self._run(outcome, plan, blocking=True)
        try:
            coroutine.send(None)  # nothing in it waits on a loop: this carries it through
        except StopIteration:
            return outcome.result
        coroutine.close()
        raise RuntimeError("a blocking call waited on a loop")

    async def aexecute(self, tool_call: ToolCall) -> ToolResult:
        """Run one call, for ``await``."""
        outcome = Outcome(tool_call)
        plan = self._plan(tool_call.name)
        if plan is not None and plan.is_async and not plan.confirm:
            await self._run(outcome, plan, beat=True)
        else:
            async with heartbeat():
                await self._run(outcome, plan)
        return outcome.result

    async def run(
        self,
        call: ToolCall,
        *,
        offered: Container[str] | None = None,
        decision: Decision | None = None,
        outcome: Outcome | None = None,
    ) -> Outcome:
        """Run one call and return all there is to say about it.

        Args:
            call: What the model asked for.
            offered: The names it was offered; None for all. A call for another tool never runs.
            decision: The approval, where it was given before.
            outcome: The record to fill in; it is complete also when this raises.

        Raises:
            asyncio.CancelledError: The caller was cancelled.
            KeyboardInterrupt: The tool, or somebody while it ran, raised it.
        """
        outcome = Outcome(call) if outcome is None else outcome
        if outcome.ended:  # an interrupt settled it before its turn came
            return outcome
        await self._run(outcome, self._plan(call.name), offered, decision)
        return outcome

    def _plan(self, name: str) -> Plan | None:
        plan = self._plans.get(name) if type(name) is str else None
        if plan is None:
            tool = find_tool(name, self._tools)
            if tool is None:
                return None
            plan = self._plans[tool.name] = Plan(tool, self._max_text)
        return plan

    async def _run(
        self,
        outcome: Outcome,
        plan: Plan | None,
        offered: Container[str] | None = None,
        decision: Decision | None = None,
        *,
        blocking: bool = False,
        beat: bool = False,
    ) -> None:
        watched = self.bus.active
        try:
            readable = self._read(outcome, plan, offered)
            if watched:
                self._tell_start(outcome)
            if plan is None or not readable:
                return
            checked = self._check(plan, outcome)
            if checked is None:
                return
            if plan.confirm or decision is not None:
                checked = await self._approved(plan, outcome, checked, decision)
                if checked is None:
                    return
            context = self._context
            if plan.wants_context:
                context = context.for_call(outcome.call.id, plan.name, self.bus)
            await enter(plan, outcome, checked, context, blocking=blocking, beat=beat)
        except (asyncio.CancelledError, KeyboardInterrupt):
            outcome.give_up()
            raise
        finally:
            if watched:
                self._tell_end(outcome)

    def _read(self, outcome: Outcome, plan: Plan | None, offered: Container[str] | None) -> bool:
        """Read the arguments; return False where the call is settled: no such tool, or no object."""
        call = outcome.call
        if plan is None:
            valid = self._tools if offered is None else [name for name in self._tools if name in offered]
            outcome.refuse(unknown_tool(call.name, valid))
            return False
        outcome.tool = plan.tool
        if offered is not None and plan.name not in offered:
            outcome.refuse(not_offered(plan.name, offered, self._tools))
            return False
        arguments = read_arguments(call.arguments)
        if isinstance(arguments, ErrorInfo):
            outcome.refuse(arguments)
            return False
        outcome.arguments = arguments
        return True

    def _check(self, plan: Plan, outcome: Outcome) -> dict[str, Any] | None:
        """Return the arguments ready for the tool, or settle the call."""
        arguments = outcome.arguments or {}
        try:
            checked = plan.check(arguments)
        except InvalidArguments as error:
            outcome.refuse(error.info())
            return None
        except Exception as error:  # a validator of the author's
            outcome.fail(error)
            return None
        outcome.arguments = _recorded(arguments, checked)
        return checked

    async def _approved(
        self, plan: Plan, outcome: Outcome, checked: dict[str, Any], decision: Decision | None
    ) -> dict[str, Any] | None:
        """Return the arguments to run with, or settle the call."""
        request = ApprovalRequest(
            outcome.call.id,
            plan.name,
            copied(outcome.arguments),
            plan.spec.description,
            plan.tool.definition.parameters,
        )
        verdict = await decide(self._approver, request, self.bus, decision)
        if isinstance(verdict, Approve):
            if verdict.arguments is None:
                return checked
            edited = read_arguments(verdict.arguments)
            if isinstance(edited, dict):
                outcome.arguments = copied(edited)
                return self._check(plan, outcome)
            verdict = edited
        if isinstance(verdict, Pause):
            outcome.refuse(PENDING, "pending")
        else:
            outcome.refuse(verdict, "denied")
        return None

    # Telling.

    def _tell_start(self, outcome: Outcome) -> None:
        tool = outcome.tool
        self.bus.publish(
            EventType.TOOL_CALL_START,
            call_id=outcome.call.id,
            tool=outcome.call.name if tool is None else tool.name,
            kind=None if tool is None else tool.kind,
            source=None if tool is None else tool.source,
            arguments=outcome.call.arguments if outcome.arguments is None else outcome.arguments,
        )

    def _tell_end(self, outcome: Outcome) -> None:
        result = outcome.result
        self.bus.publish(
            EventType.TOOL_CALL_END,
            call_id=outcome.call.id,
            tool=result.tool_name,
            success=result.success,
            status=outcome.status,
            code=None if outcome.error is None else outcome.error.code,
            content=result.content,
            latency_seconds=result.latency_seconds,
        )


def _by_name(tools: Iterable[ToolLike]) -> dict[str, BaseTool]:
    made: list[BaseTool] = []
    for given in tools:
        if isinstance(given, BaseTool):
            made.append(given)
        else:
            from jarvis_nb.tools.action import as_tool

            made.append(as_tool(given))
    by_name = {tool.name: tool for tool in made}
    if len({name.casefold() for name in by_name}) < len(made):
        seen: set[str] = set()
        for tool in made:
            if tool.name.casefold() in seen:
                raise ToolsetError(
                    f"two tools are called {tool.name!r}",
                    code="duplicate_tools",
                    value=tool.name,
                    hint="names are compared without case; tool.with_name('…') gives a renamed copy",
                )
            seen.add(tool.name.casefold())
    return by_name


def _recorded(arguments: dict[str, Any], checked: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as JSON has them: as they were checked where that is plain, else as they came."""
    for value in checked.values():
        if type(value) not in _PLAIN:
            break
    else:
        return checked.copy()
    plain = _PLAIN | {float}
    return {
        name: copied(value if type(value) in plain else arguments[name])
        for name, value in checked.items()
        if type(value) in plain or name in arguments
    }


_PLAIN = frozenset({str, int, bool, type(None)})
