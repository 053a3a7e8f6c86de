"""The scheduler: runs a plan's steps as soon as they can, at most so many at once.

Async steps are tasks on the loop. A sync step runs on a worker thread, and the thread that ends one goes on
with the next that is ready, so that a chain of short steps costs one hand-over to a thread, not one a step.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from jarvis_nb.core.bridge import HAS_THREADS
from jarvis_nb.core.errors import ErrorInfo, InvalidArguments, JarvisError
from jarvis_nb.core.events import EventType
from jarvis_nb.core.threads import workers
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.toolsets.flows.plan import Plan
from jarvis_nb.toolsets.flows.refs import MISSING, InputRef, MissingValue, Ref, StepRef, fill, follow
from jarvis_nb.toolsets.flows.state import RunState, StepState
from jarvis_nb.toolsets.flows.values import copied, unwrapped

GRACE_SECONDS = 0.15
"""How long running steps may go on when the run is cancelled."""
REAP_SECONDS = 0.05
"""How long a cancelled task may take to end before it counts as abandoned."""
RETRY_SECONDS = 0.1
"""The wait before a second try; each further one waits twice as long."""


class FlowRun:
    """One run of a plan.

    Args:
        plan: What to run.
        inputs: The flow's inputs, checked.
        context: The host's run context.
        seconds: What the caller has left; the plan's own time may be less.
    """

    def __init__(
        self, plan: Plan, inputs: Mapping[str, Any], context: ToolContext, seconds: float | None = None
    ) -> None:
        self.plan = plan
        self.inputs = inputs
        self.context = context
        self.began = perf_counter()
        left = plan.timeout if seconds is None else min(seconds, plan.timeout)
        states = [StepState(s, len(s.depends_on), s.tool.is_async) for s in plan.steps]
        for state in states:
            state.margin = 0.0 if state.step.invoke_within is None else REAP_SECONDS
        self.state = RunState(plan, self.began + left, left == plan.timeout, states)
        self.by_name = {s.step.name: s for s in states}
        self.interrupt: BaseException | None = None
        self.ended = self.began
        self._variables = contextvars.copy_context()

    async def finish(self) -> None:
        """Run to the end, whatever it is: failures are in the state.

        Raises:
            asyncio.CancelledError: It was cancelled; the state is complete all the same.
        """
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._overdue: list[StepState] = []
        self._alarm = self._loop.call_later(self.state.deadline - perf_counter(), self._look_for_overdue)
        try:
            with self.state.lock:
                started = self.state.take()
            self._enter(*started)
            if not self._done.done():  # without threads, sync steps are through by now
                await asyncio.wait((self._done,))
            await self._reap(self._overdue)
        except asyncio.CancelledError:
            await self._wind_down()
            raise
        finally:
            self._alarm.cancel()
            self._close()

    # Starting steps.

    def _enter(
        self, started: list[StepState], sooner: float | None, *, keep: bool = False
    ) -> StepState | None:
        """Get steps going; with ``keep`` return one sync step for the calling worker thread itself."""
        kept = None
        if sooner is not None:
            self._on_loop(self._set_alarm)
        for state in started:
            self._publish(EventType.FLOW_STEP_START, state, depends_on=state.step.depends_on)
            if keep and kept is None and not state.on_loop:
                kept = state
            else:
                self._start(state)
        return kept

    def _start(self, state: StepState) -> None:
        if state.on_loop:
            self._on_loop(self._spawn, state)
        elif HAS_THREADS:
            workers().submit(partial(self._work, state))
        else:
            self._work(state)

    def _spawn(self, state: StepState, awaitable: Awaitable[Any] | None = None) -> None:
        if state.status == "running":  # else its time was over before it could start
            task = self._loop.create_task(self._await(state, awaitable), context=self._variables.copy())
            state.task = task
        elif inspect.iscoroutine(awaitable):
            awaitable.close()

    async def _await(self, state: StepState, awaitable: Awaitable[Any] | None) -> None:
        output, error = None, None
        try:
            output = self._invoke(state) if awaitable is None else await awaitable
            if inspect.isawaitable(output):
                output = await output
        except (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt) as raised:
            error = raised
        self._end(state, output, error)

    def _work(self, first: StepState) -> None:
        """Run a sync step on this thread, then whatever sync step can start, until none can."""
        state: StepState | None = first
        while state is not None and state.status == "running":  # a full pool may start it too late
            output, error = None, None
            try:
                output = self._variables.copy().run(self._invoke, state)
            except BaseException as raised:  # a tool may call sys.exit: it is the step's outcome
                error = raised
            if error is None and inspect.isawaitable(output):
                state.on_loop = True
                self._on_loop(self._spawn, state, output)
                return
            state = self._end(state, output, error, keep=True)

    def _invoke(self, state: StepState) -> Any:
        step = state.step
        arguments = step.tool.check_arguments(fill(step.params, self.value_of))
        state.tries += 1
        if step.invoke_within is not None:
            return step.invoke_within(arguments, self.context, state.deadline - perf_counter())
        return step.tool.invoke(arguments, self.context)

    def value_of(self, ref: Ref) -> Any:
        """Return a fresh copy of what a reference leads to.

        Raises:
            MissingValue: It leads to nothing.
        """
        if isinstance(ref, InputRef):
            return copied(follow(self.inputs[ref.name], ref))
        if isinstance(ref, StepRef):
            return copied(follow(self.by_name[ref.name].value, ref))
        if ref.name in self.context:
            return copied(follow(self.context[ref.name], ref))
        if ref.default is not MISSING:
            return copied(ref.default)
        keys = ", ".join(sorted(map(str, self.context))) or "nothing"
        raise MissingValue(
            f"there is no {ref.root}: the run's context has {keys}",
            code="missing_context",
            value=ref.name,
            hint="the host gives it by tool_context={…}, or flow.run({…}, …)",
        )

    # Ending steps.

    def _end(
        self, state: StepState, output: Any, error: BaseException | None, *, keep: bool = False
    ) -> StepState | None:
        """Record how a step ended and start what can start now; called on whatever thread it ran."""
        value, inner = None, None
        if error is None:
            try:
                value, inner = unwrapped(output)
            except Exception as raised:
                error = raised
        with self.state.lock:
            if state.status != "running":
                return None  # it overran: its late result is ignored
            state.exception = error
            again = self._may_try_again(state, error)
            state.between_tries = again
            if not again:
                self._settle(state, value, inner, error)
            started, sooner = self.state.take()
            over = not self.state.running
        if again:
            self._on_loop(
                self._loop.call_later, RETRY_SECONDS * 2 ** (state.tries - 1), self._try_again, state
            )
        else:
            self._publish_end(state)
        kept = self._enter(started, sooner, keep=keep)
        if over:
            self._on_loop(self._set_done)
        return kept

    def _settle(self, state: StepState, value: Any, inner: Any, error: BaseException | None) -> None:
        state.inner = getattr(error, "steps", inner)
        if error is None:
            self.state.settle(state, "ok", value=value)
        elif isinstance(error, asyncio.CancelledError) and self.state.stop == "cancelled":
            self.state.settle(state, "cancelled")
        else:
            if isinstance(error, KeyboardInterrupt):
                self.interrupt = error
            self.state.settle(state, "error", error=_error_info(error))

    def _may_try_again(self, state: StepState, error: BaseException | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, InvalidArguments | MissingValue):
            return False
        wait = RETRY_SECONDS * 2 ** (state.tries - 1)
        return (
            state.tries <= state.step.retries
            and self.state.stop is None
            and perf_counter() + wait < state.deadline
        )

    def _try_again(self, state: StepState) -> None:
        with self.state.lock:
            if state.status != "running":
                return
            state.between_tries = False
            stopped = self.state.stop is not None
        if stopped:
            self._end(state, None, state.exception)
        else:
            self._start(state)

    # On the loop.

    def _on_loop(self, call: Callable[..., Any], *args: Any) -> None:
        if threading.get_ident() == self._thread:
            call(*args)
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            self._loop.call_soon_threadsafe(call, *args)

    def _set_done(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _set_alarm(self) -> None:
        self._alarm.cancel()
        self._alarm = self._loop.call_later(self.state.alarm - perf_counter(), self._look_for_overdue)

    def _look_for_overdue(self) -> None:
        late, again = self.state.overdue()
        for state in late:
            self._publish_end(state)
            if state.task is not None:
                state.task.cancel()
                self._overdue.append(state)
        if again is None:
            self._set_done()
        else:
            self._set_alarm()

    async def _reap(self, states: list[StepState]) -> None:
        """Let cancelled tasks end; one that will not was left behind."""
        tasks = [s.task for s in states if s.task is not None and not s.task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=REAP_SECONDS)
        for state in states:
            if state.task is not None and not state.task.done() and state.status != "running":
                state.status = "abandoned"

    async def _wind_down(self) -> None:
        """The run is cancelled: let running steps end within a short grace, then leave them behind."""
        with self.state.lock:
            self.state.stop = "cancelled"
            running = self.state.in_progress()
        for state in running:
            if state.task is not None and state.step.invoke_within is not None:
                state.task.cancel()  # a flow within has a grace of its own
        if running:
            await asyncio.wait((self._done,), timeout=GRACE_SECONDS)
        with self.state.lock:
            left = [s for s in self.state.in_progress() if s.task is not None]
        for state in left:
            if state.task is not None and state.step.invoke_within is None:
                state.task.cancel()
        await self._reap(left)

    def _close(self) -> None:
        """Give every step its final status."""
        with self.state.lock:
            for state in self.state.in_progress():
                self.state.settle(state, "cancelled" if state.between_tries else "abandoned")
            for state in self.state.steps:
                if state.status == "pending":
                    state.status = "cancelled" if self.state.stop == "cancelled" else "skipped"
        self.ended = perf_counter()

    # Events.

    def _publish_end(self, state: StepState) -> None:
        error = None if state.error is None else state.error.to_dict()
        self._publish(EventType.FLOW_STEP_END, state, status=state.status, error=error)

    def _publish(self, event_type: EventType, state: StepState, **data: Any) -> None:
        self.context.publish(event_type, flow=self.plan.flow, step=state.step.name, **data)


def _error_info(error: BaseException) -> ErrorInfo:
    if isinstance(error, JarvisError):
        return error.info()
    from jarvis_nb.tools.content import describe_error

    return ErrorInfo("tool_failed", describe_error(error))
