"""Entering a tool: on the loop or on a worker thread, within its deadline, and out again whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import perf_counter
from types import CoroutineType
from typing import Any

from jarvis_nb.core.bridge import run_sync
from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.threads import DeadlinePassed, Job, workers
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import BaseTool, ToolContext
from jarvis_nb.tools.content import MAX_ITEMS
from jarvis_nb.tools.deadline import Rest, within
from jarvis_nb.tools.outcome import Outcome, Product, produce

MAX_SECONDS = 1e9
"""A longer time-out is none: the system's clocks refuse it."""


class Plan:
    """What a call of one tool needs, looked up once."""

    __slots__ = (
        "check",
        "confirm",
        "invoke",
        "is_async",
        "is_flow",
        "limit",
        "name",
        "seconds",
        "spec",
        "tool",
        "wants_context",
    )

    def __init__(self, tool: BaseTool, max_text: int) -> None:
        spec = tool.spec
        self.tool = tool
        self.name = tool.name
        self.spec = spec
        self.seconds = _seconds(spec.timeout_seconds)
        self.confirm = bool(spec.requires_confirmation)
        self.is_async = tool.is_async
        self.is_flow = tool.kind == "flow"
        self.check = tool.check_arguments
        self.invoke: Callable[[dict[str, Any], ToolContext], Any] = tool.invoke
        self.limit = None if getattr(tool, "uncapped", False) else max_text
        plain = type(tool).invoke is BaseTool.invoke
        self.wants_context: bool = not plain and getattr(tool, "wants_context", True)


def _seconds(given: Any) -> float | None:
    """Return a deadline; None, 0 and what is no number of seconds mean that there is none."""
    return given if isinstance(given, int | float) and 0 < given < MAX_SECONDS else None


async def enter(
    plan: Plan, outcome: Outcome, checked: dict[str, Any], context: ToolContext, *, blocking: bool, beat: bool
) -> None:
    """Run a tool and settle its call.

    Args:
        plan: The tool.
        outcome: The call.
        checked: The arguments, as the tool takes them.
        context: The host's.
        blocking: Wait on this thread instead of awaiting: nobody carries the coroutine on.
        beat: Keep the loop awake while an async tool waits.

    Raises:
        asyncio.CancelledError: The caller was cancelled.
        KeyboardInterrupt: The tool raised it, or the waiting was interrupted.
    """
    outcome.ran = True
    outcome.started = perf_counter()
    try:
        if plan.is_async:
            coroutine = plan.invoke(checked, context)
            if type(coroutine) is not CoroutineType:
                coroutine = _awaiting(coroutine)
            # What `within` does, spelled out: most calls end here, without a timer and a further frame.
            try:
                pending = coroutine.send(None)
            except StopIteration as stop:
                value = stop.value
            else:
                value = await Rest(coroutine, pending, plan.seconds, beat=beat)
            product = produce(value, plan)
        elif blocking:
            product = _on_thread(plan, outcome, checked, context)
        else:
            product = await _beside(plan, outcome, checked, context)
    except BaseException as error:
        outcome.steps = context.steps
        if not _settle(plan, outcome, error):
            raise
    else:
        outcome.take(product)


def _settle(plan: Plan, outcome: Outcome, error: BaseException) -> bool:
    """Settle a call that did not come to its end; return False for what has to go on up."""
    if isinstance(error, DeadlinePassed):
        _time_out(plan, outcome)
    elif isinstance(error, asyncio.CancelledError) and _is_cancelled():
        _settle_cancelled(plan, outcome)
        return False
    elif isinstance(error, KeyboardInterrupt | GeneratorExit):
        if outcome.ran and not outcome.ended:
            outcome.refuse(ErrorInfo("cancelled", "the tool was interrupted"), "cancelled")
        return False
    else:  # also sys.exit, and the cancelling of something the tool waited for
        outcome.fail(error)
    return True


class _Later:
    """An awaitable that came out of a synchronous tool: it belongs on the loop."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


_PLAIN = frozenset({str, int, float, bool, dict, list, type(None), ToolResult})


def _work(plan: Plan, checked: dict[str, Any], context: ToolContext) -> Callable[[], Product | _Later]:
    def work() -> Product | _Later:
        value = plan.invoke(checked, context)
        kind = type(value)
        if kind not in _PLAIN and (hasattr(kind, "__await__") or hasattr(kind, "__anext__")):
            return _Later(value)
        # What the author's objects do when they are written down belongs into the tool's time and thread.
        return produce(value, plan)

    return work


def _on_thread(plan: Plan, outcome: Outcome, checked: dict[str, Any], context: ToolContext) -> Product:
    """Run a synchronous tool on a worker thread and wait for it, interruptibly."""
    outcome.ran = False
    job = workers().submit(_work(plan, checked, context))
    try:
        in_time = job.wait(plan.seconds)
    except KeyboardInterrupt:
        outcome.ran = job.started
        _settle_cancelled(plan, outcome)
        raise
    outcome.ran = job.started
    if not in_time:
        raise DeadlinePassed
    found = job.value()
    if isinstance(found, _Later):
        return produce(run_sync(within(_awaiting(found.value), _left(plan, outcome))), plan)
    return found


async def _beside(plan: Plan, outcome: Outcome, checked: dict[str, Any], context: ToolContext) -> Product:
    """Run a synchronous tool on a worker thread beside the loop."""
    outcome.ran = False
    box: list[Job] = []
    try:
        found = await workers().run(_work(plan, checked, context), seconds=plan.seconds, job_box=box)
    finally:
        outcome.ran = bool(box) and box[0].started
    if isinstance(found, _Later):
        return produce(await within(_awaiting(found.value), _left(plan, outcome)), plan)
    return found


def _left(plan: Plan, outcome: Outcome) -> float | None:
    return None if plan.seconds is None else plan.seconds - (perf_counter() - outcome.started)


async def _awaiting(value: Any) -> Any:
    """Await whatever can be awaited; an async generator item by item."""
    if hasattr(type(value), "__await__"):
        return await value
    return await _items(value) if hasattr(type(value), "__anext__") else value


async def _items(values: AsyncIterator[Any]) -> list[Any]:
    items: list[Any] = []
    async for item in values:
        if len(items) >= MAX_ITEMS:
            items.append("… more was left out")
            break
        items.append(item)
    return items


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop: nobody can have cancelled
        return False
    return task is not None and task.cancelling() > 0


def _time_out(plan: Plan, outcome: Outcome) -> None:
    seconds = f"{plan.seconds:g} s"
    if plan.is_async:
        outcome.refuse(ErrorInfo("tool_timeout", f"{plan.name} took longer than {seconds} and was cancelled"))
    elif outcome.ran:
        message = f"{plan.name} took longer than {seconds}; its thread runs on, its result is ignored"
        outcome.abandon(message, "tool_timeout")
    else:
        message = f"{plan.name} did not start within {seconds}: all {workers().most} worker threads are busy"
        outcome.refuse(ErrorInfo("tool_timeout", message))


def _settle_cancelled(plan: Plan, outcome: Outcome) -> None:
    if outcome.ran and not plan.is_async:
        outcome.abandon("the run was stopped; the tool's thread runs on, its result is ignored")
    elif outcome.ran:
        outcome.refuse(ErrorInfo("cancelled", "the run was stopped while the tool ran"), "cancelled")
    else:
        outcome.refuse(ErrorInfo("cancelled", "the run was stopped before the tool started"), "cancelled")
