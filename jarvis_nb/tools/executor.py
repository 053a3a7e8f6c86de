"""The central dispatch of tool calls: find, check, ask for approval, run within a deadline, tell."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import traceback
from collections.abc import Container, Mapping, Sequence
from time import perf_counter
from typing import Any

from jarvis_nb.core.approval import ApprovalRequest, Approve, Approver, Decision, Deny, Pause
from jarvis_nb.core.bridge import HAS_THREADS, run_sync
from jarvis_nb.core.errors import (
    ApprovalUnavailable,
    ErrorInfo,
    InvalidArguments,
    JarvisError,
    ToolError,
    ToolsetError,
    close_names,
)
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.threads import Job, workers
from jarvis_nb.core.types import ToolCall, ToolResult, dumps
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec
from jarvis_nb.tools.content import MAX_TEXT, cap_text, convert, describe_error, plain_text
from jarvis_nb.tools.outcome import Outcome

__all__ = ["Outcome", "ToolExecutor"]

log = logging.getLogger("jarvis_nb.tools")


class ToolExecutor:
    """Runs tool calls. A failing call is a result with ``success=False``, never an exception.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> ToolExecutor([CalculatorTool()]).execute(ToolCall("call_1", "calculator", '{"expression": "2+2"}')).content
        '4'
    """

    def __init__(
        self,
        tools: Sequence[Any],
        bus: EventBus | None = None,
        *,
        approver: Approver | None = None,
        context: ToolContext | Mapping[str, Any] | None = None,
        max_text: int = MAX_TEXT,
    ) -> None:
        from jarvis_nb.tools.action import as_tool

        self._tools: dict[str, BaseTool] = {}
        for given in tools:
            tool = as_tool(given)
            if tool.name in self._tools:
                raise ToolsetError(f"two tools are called {tool.name!r}", code="duplicate_tools", value=tool.name)
            self._tools[tool.name] = tool
        self.bus = bus or EventBus()
        self._approver = approver
        self._context = context if isinstance(context, ToolContext) else ToolContext(context)
        self._max_text = max_text

    def available_tools(self) -> list[ToolSpec]:
        """Return the specs of all tools, in order."""
        return [tool.spec for tool in self._tools.values()]

    def get_openai_tools(self) -> list[dict[str, Any]]:
        """Return the tools in OpenAI function format, in order."""
        return [tool.to_openai_function() for tool in self._tools.values()]

    def execute(self, call: ToolCall) -> ToolResult:
        """Run one call; works under a running loop, and with async tools."""
        return run_sync(self.aexecute(call))

    async def aexecute(self, call: ToolCall) -> ToolResult:
        """Run one call, for ``await``."""
        return (await self.run(call)).result

    async def run(
        self,
        call: ToolCall,
        *,
        offered: Container[str] | None = None,
        decision: Decision | None = None,
        outcome: Outcome | None = None,
    ) -> Outcome:
        """Run one call and say all there is to say about it; ``outcome`` is filled in as it happens."""
        out = outcome or Outcome(call)
        out.started = perf_counter()
        bus = self.bus
        try:
            if bus.active:
                bus.publish(EventType.TOOL_CALL_START, call_id=call.id, tool=call.name, arguments=call.arguments)
            tool = self._find(out, offered)
            if tool is not None and self._read(tool, out) and await self._approved(tool, out, decision):
                await self._enter(tool, out)
        finally:
            out.ended = perf_counter()
            if bus.active:
                bus.publish(
                    EventType.TOOL_CALL_END,
                    call_id=call.id,
                    tool=call.name,
                    success=out.status == "ok",
                    status=out.status,
                    content=out.content,
                    latency=out.ended - out.started,
                )
        return out

    def _find(self, out: Outcome, offered: Container[str] | None) -> BaseTool | None:
        name = out.call.name
        tool = out.tool = self._tools.get(name)
        valid = [n for n in self._tools if offered is None or n in offered]
        if tool is None:
            close = close_names(name, valid)
            hint = f": did you mean {close[0]!r}?" if close else ""
            out.refuse(ErrorInfo("unknown_tool", f"no tool is called {name!r:.100}{hint}", {"valid": valid[:50]}))
            return None
        if offered is not None and name not in offered:
            out.refuse(ErrorInfo("tool_not_offered", f"{name!r} is not offered in this request", {"valid": valid[:50]}))
            return None
        return tool

    def _read(self, tool: BaseTool, out: Outcome) -> bool:
        raw = out.call.arguments
        if isinstance(raw, str):
            try:
                parsed = json.loads(raw) if raw.strip() else {}
            except ValueError as error:
                out.refuse(ErrorInfo("invalid_json", f"the arguments are not JSON: {error}"))
                return False
        else:
            parsed = raw
        if parsed is None:
            parsed = {}
        if not isinstance(parsed, dict):
            out.refuse(ErrorInfo("invalid_arguments", f"expected an object, got {type(parsed).__name__}"))
            return False
        out.arguments = parsed
        try:
            out.arguments = tool.check_arguments(parsed)
        except InvalidArguments as error:
            out.refuse(error.info())
            return False
        return True

    async def _approved(self, tool: BaseTool, out: Outcome, decision: Decision | None) -> bool:
        spec = tool.spec
        if not spec.requires_confirmation:
            return True
        arguments = out.arguments or {}
        if decision is None:
            if self._approver is None:
                message = "this tool needs a person's confirmation, and nobody can be asked"
                out.refuse(ErrorInfo("approval_unavailable", message), "denied")
                return False
            request = ApprovalRequest(out.call.id, tool.name, arguments, spec.description, tool.definition.parameters)
            try:
                decision = await self._approver(request)
            except ApprovalUnavailable as error:
                out.refuse(error.info(), "denied")
                return False
            except Exception as error:
                log.warning("the approver failed", exc_info=error)
                out.refuse(ErrorInfo("denied", f"the approver failed: {describe_error(error)}"), "denied")
                return False
        if isinstance(decision, Approve):
            if decision.arguments is None:
                return True
            try:
                out.arguments = tool.check_arguments(dict(decision.arguments))
            except InvalidArguments as error:
                out.refuse(error.info(), "denied")
                return False
            return True
        if isinstance(decision, Pause):
            out.refuse(ErrorInfo("approval_pending", "waiting for a decision"), "pending")
        elif isinstance(decision, Deny):
            out.refuse(ErrorInfo("denied", decision.reason), "denied")
        else:
            out.refuse(ErrorInfo("denied", f"the approver gave {type(decision).__name__}, no decision"), "denied")
        return False

    async def _enter(self, tool: BaseTool, out: Outcome) -> None:
        context = self._context.for_call(out.call.id, tool.name, self.bus)
        seconds = tool.spec.timeout_seconds or None
        job: list[Job] = []
        out.ran = True
        try:
            if tool.is_async or not HAS_THREADS:
                value = tool.invoke(out.arguments or {}, context)
            else:
                value = await workers().run(lambda: tool.invoke(out.arguments or {}, context), seconds=seconds, job_box=job)
            if inspect.isawaitable(value):
                value = await asyncio.wait_for(value, seconds)
        except TimeoutError:
            status = "abandoned" if job else "failed"
            out.refuse(ErrorInfo("tool_timeout", f"{tool.name} took longer than {seconds:g} seconds"), status)
        except asyncio.CancelledError:
            out.status = "abandoned" if job and job[0].started else "cancelled"
            out.ran = not job or job[0].started
            out.steps = context.steps
            out.give_up()
            raise
        except KeyboardInterrupt:
            out.give_up()
            raise
        except BaseException as error:
            self._failed(tool, out, error)
        else:
            self._take(tool, out, value)

    def _failed(self, tool: BaseTool, out: Outcome, error: BaseException) -> None:
        out.traceback = "".join(traceback.format_exception(error))
        log.debug("%s failed", tool.name, exc_info=error)
        out.steps = getattr(error, "steps", None)
        if isinstance(error, JarvisError):
            out.refuse(error.info())
        else:
            out.refuse(ErrorInfo("tool_failed", describe_error(error)))

    def _take(self, tool: BaseTool, out: Outcome, value: Any) -> None:
        out.done = True
        out.status = "ok"
        if hasattr(value, "steps") and hasattr(value, "output"):
            out.steps, value = value.steps, value.output
        if isinstance(value, ToolResult):
            out.given = value
            out.value = out.output = value.content
            if not value.success:
                out.status = "failed"
                out.error = ErrorInfo(value.metadata.get("code", "tool_failed"), value.content)
            text = plain_text(value.content)
        else:
            out.value = value
            out.output, out.images = convert(value)
            text = plain_text(out.output)
        if getattr(tool, "uncapped", False):
            out.content = text
        else:
            out.content, out.truncated = cap_text(text, self._max_text)


_ = (ToolError, dumps)
