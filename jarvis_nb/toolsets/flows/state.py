"""The state of one run, step by step: who may start, who has ended, who was left behind.

Every change happens under one lock, since steps end on worker threads as well as on the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.toolsets.flows.plan import Plan, PlannedStep
from jarvis_nb.toolsets.flows.trace import StepStatus

Stop = Literal["failed", "timeout", "cancelled"]


@dataclass(slots=True, eq=False)
class StepState:
    """One step of one run."""

    step: PlannedStep
    waiting: int
    """Steps it still waits for."""
    on_loop: bool
    status: StepStatus | Literal["pending", "running"] = "pending"
    value: Any = None
    error: ErrorInfo | None = None
    exception: BaseException | None = None
    tries: int = 0
    between_tries: bool = False
    started: float | None = None
    ended: float | None = None
    deadline: float = 0.0
    margin: float = 0.0
    """Seconds beyond the deadline before it is cut off: a flow within ends by itself, with its trace."""
    task: asyncio.Task[None] | None = None
    inner: list[dict[str, Any]] | None = None


@dataclass(eq=False)
class RunState:
    """All steps of one run."""

    plan: Plan
    deadline: float
    """Of the whole flow, in ``perf_counter`` seconds, as all times here."""
    own_time: bool
    """Whether the deadline is the flow's own, not what a caller had left."""
    steps: list[StepState]
    stop: Stop | None = None
    """Why nothing new starts."""
    running: int = 0
    alarm: float = 0.0
    """When the loop looks for overdue steps next."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    ready: list[int] = field(default_factory=list[int])
    """A heap of indexes: of the steps that can start, the first declared starts first."""

    def __post_init__(self) -> None:
        self.alarm = self.deadline
        self.ready = [s.step.index for s in self.steps if not s.waiting]

    def take(self) -> tuple[list[StepState], float | None]:
        """Start what can start now; call it with the lock held.

        Returns:
            The steps to enter, in declaration order, and an earlier time to look for overdue steps, if any.
        """
        started: list[StepState] = []
        sooner = None
        while self.ready and self.stop is None and self.running < self.plan.max_concurrency:
            state = self.steps[heapq.heappop(self.ready)]
            state.status = "running"
            state.started = perf_counter()
            state.deadline = min(self.deadline, state.started + state.step.timeout)
            self.running += 1
            if state.deadline + state.margin < self.alarm:
                self.alarm = sooner = state.deadline + state.margin
            started.append(state)
        return started, sooner

    def settle(
        self, state: StepState, status: StepStatus, *, value: Any = None, error: ErrorInfo | None = None
    ) -> None:
        """End a running step; call it with the lock held."""
        state.status = status
        state.value = value
        state.error = error
        state.ended = perf_counter()
        self.running -= 1
        if status == "ok":
            for index in state.step.dependents:
                dependent = self.steps[index]
                dependent.waiting -= 1
                if not dependent.waiting:
                    heapq.heappush(self.ready, index)
        elif self.stop is None:
            self.stop = "failed"

    def in_progress(self) -> list[StepState]:
        """Return the running steps, in declaration order; call it with the lock held."""
        return [s for s in self.steps if s.status == "running"]

    def overdue(self) -> tuple[list[StepState], float | None]:
        """End the steps whose time is over.

        Returns:
            Those steps, and when to look again; None if nothing runs any more.
        """
        with self.lock:
            now = perf_counter()
            # The loop's clock may be coarser than ours: a millisecond early is in time.
            late = [s for s in self.in_progress() if s.deadline + s.margin <= now + 0.001]
            for state in late:
                left_behind = not state.on_loop and not state.between_tries
                self.settle(state, "abandoned" if left_behind else "error", error=self._overran(state))
            if self.deadline <= now + 0.001 and self.stop != "cancelled":
                self.stop = "timeout"
            self.alarm = min((s.deadline + s.margin for s in self.in_progress()), default=self.deadline)
            return late, self.alarm if self.running else None

    def _overran(self, state: StepState) -> ErrorInfo:
        if state.deadline < self.deadline:
            return ErrorInfo("step_timeout", f"it took longer than {state.step.timeout:g} s")
        time = (
            f"the flow's {self.plan.timeout:g} s were" if self.own_time else "the time left to the flow was"
        )
        return ErrorInfo("flow_timeout", f"{time} over")
