"""Deadlines and cancelling: flows.md, "Running" 5 and 8."""

import asyncio
import signal
import threading
import time
from typing import Any

import pytest

from jarvis_nb import Flow, action
from jarvis_nb.core.threads import WorkerPool
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.toolsets.flow import FlowFailed


@action
def sleep(seconds: float) -> dict[str, float]:
    """Sleep in a thread."""
    time.sleep(seconds)
    return {"slept": seconds}


@action
async def asleep(seconds: float) -> dict[str, float]:
    """Sleep on the loop."""
    await asyncio.sleep(seconds)
    return {"slept": seconds}


TOOLS = {"sync": sleep, "async": asleep}
both = pytest.mark.parametrize("kind", ["sync", "async"])


def timed(flow: Flow, **inputs: Any) -> tuple[FlowFailed, float]:
    before = time.perf_counter()
    with pytest.raises(FlowFailed) as caught:
        flow.run(**inputs)
    return caught.value, time.perf_counter() - before


def statuses(flow: Flow) -> dict[str, str]:
    assert flow.last is not None
    return {step.name: step.status for step in flow.last}


@both
def test_05_the_flow_s_deadline(kind):
    """flows.md Running 5: it holds to the moment, and what has not started is skipped."""
    flow = Flow("f", "A flow.", timeout=0.1)
    flow.step("quick", TOOLS[kind], seconds=0.0)
    flow.output(flow.step("never", TOOLS[kind], seconds=flow.step("slow", TOOLS[kind], seconds=0.6)["slept"]))
    error, seconds = timed(flow)
    assert 0.1 <= seconds < 0.2
    assert error.code == "flow_timeout"
    assert error.message == "step 'slow' failed: the flow's 0.1 s were over"
    assert statuses(flow) == {
        "quick": "ok",
        "never": "skipped",
        "slow": "abandoned" if kind == "sync" else "error",
    }


@both
def test_05_a_step_s_own_deadline(kind):
    """flows.md Running 5: the smaller remainder holds."""
    flow = Flow("f", "A flow.", timeout=5)
    flow.output(flow.step("slow", TOOLS[kind], seconds=0.6).options(timeout=0.1))
    error, seconds = timed(flow)
    assert 0.1 <= seconds < 0.2
    assert error.code == "step_failed"
    assert error.problems[0].code == "step_timeout"
    assert error.message == "step 'slow' failed: it took longer than 0.1 s"


@both
def test_05_the_flow_s_remainder_holds_where_it_is_smaller(kind):
    """flows.md Running 5."""
    flow = Flow("f", "A flow.", timeout=0.1)
    flow.output(flow.step("slow", TOOLS[kind], seconds=0.6).options(timeout=3))
    error, seconds = timed(flow)
    assert seconds < 0.2
    assert error.problems[0].code == "flow_timeout"


def test_05_an_action_s_own_timeout_holds_where_the_step_says_nothing():
    """flows.md Running 5; ToolSpec.timeout_seconds."""

    @action(timeout=0.1)
    def slow() -> int:
        """Take long."""
        time.sleep(0.6)
        return 1

    flow = Flow("f", "A flow.")
    flow.output(flow.step("a", slow))
    error, seconds = timed(flow)
    assert seconds < 0.2
    assert error.problems[0].code == "step_timeout"


def test_05_other_steps_may_finish_when_one_is_out_of_time():
    """flows.md Running 5 and 6."""
    flow = Flow("f", "A flow.")
    flow.output(
        [
            flow.step("a", sleep, seconds=0.5).options(timeout=0.05),
            flow.step("b", sleep, seconds=0.15),
            flow.step("c", asleep, seconds=0.15),
        ]
    )
    _, seconds = timed(flow)
    assert 0.15 <= seconds < 0.3
    assert statuses(flow) == {"a": "abandoned", "b": "ok", "c": "ok"}


def test_05_an_abandoned_thread_s_late_result_is_ignored():
    """flows.md Running 5."""
    go_on, late = threading.Event(), threading.Event()

    @action
    def stuck() -> int:
        """Return too late."""
        go_on.wait(5)
        late.set()
        return 1

    @action
    def after(n: int) -> int:
        """Never run."""
        raise AssertionError

    flow = Flow("f", "A flow.", timeout=0.05)
    flow.output(flow.step("b", after, n=flow.step("a", stuck)))
    timed(flow)
    before = flow.last
    go_on.set()
    assert late.wait(5)
    time.sleep(0.02)
    assert flow.last is before
    assert statuses(flow) == {"a": "abandoned", "b": "skipped"}
    assert before is not None
    assert before["a"].output is None


def test_05_a_step_that_finds_no_thread_in_time_never_runs(monkeypatch):
    """flows.md Running 5: the pool of threads is bounded."""
    pool = WorkerPool(most=1)
    monkeypatch.setattr("jarvis_nb.toolsets.flows.run.workers", lambda: pool)
    go_on = threading.Event()
    pool.submit(lambda: go_on.wait(5))
    ran: list[int] = []

    @action
    def note() -> int:
        """Note that it ran."""
        ran.append(1)
        return 1

    flow = Flow("f", "A flow.", timeout=0.05)
    flow.output(flow.step("a", note))
    error, seconds = timed(flow)
    assert seconds < 0.15
    assert error.code == "flow_timeout"
    go_on.set()
    assert pool.submit(lambda: None).wait(5)
    assert ran == []


def test_05_an_async_step_that_ignores_its_end_is_abandoned():
    """flows.md Running 5."""
    ended = asyncio.Event()

    @action
    async def stubborn() -> int:
        """Ignore being cancelled."""
        for _ in range(3):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        ended.set()
        return 1

    flow = Flow("f", "A flow.", timeout=0.05)
    flow.output(flow.step("a", stubborn))

    async def cell() -> None:
        with pytest.raises(FlowFailed):
            await flow.arun()
        assert statuses(flow) == {"a": "abandoned"}
        await asyncio.wait_for(ended.wait(), 2)

    asyncio.run(cell())


def test_05_a_flow_within_ends_in_time_and_tells_which_step_took_it():
    """flows.md Running 5: one deadline for the whole, flows within included."""
    inner = Flow("inner", "Inner.", timeout=20)
    inner.output(inner.step("slow", asleep, seconds=3))
    outer = Flow("outer", "Outer.", timeout=0.1)
    outer.output(outer.step("inner", inner))
    error, seconds = timed(outer)
    assert seconds < 0.25
    assert error.message == "step 'inner' failed: step 'slow' failed: the time left to the flow was over"
    assert error.code == "flow_timeout"
    assert error.steps[0]["steps"][0]["name"] == "slow"


def test_05_a_flow_within_keeps_its_own_shorter_time():
    """flows.md Running 5."""
    inner = Flow("inner", "Inner.", timeout=0.1)
    inner.output(inner.step("slow", sleep, seconds=0.5))
    outer = Flow("outer", "Outer.", timeout=5)
    outer.output(outer.step("inner", inner))
    error, seconds = timed(outer)
    assert seconds < 0.25
    assert error.message == "step 'inner' failed: step 'slow' failed: the flow's 0.1 s were over"
    assert error.code == "step_failed"


def cancelled_after(flow: Flow, seconds: float) -> float:
    async def cell() -> float:
        task = asyncio.ensure_future(flow.arun())
        await asyncio.sleep(seconds)
        before = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.perf_counter() - before

    return asyncio.run(cell())


def test_08_pending_steps_are_cancelled_and_running_ones_awaited_for_a_short_grace():
    """flows.md Running 8."""
    flow = Flow("f", "A flow.")
    flow.output(
        [
            flow.step("short", asleep, seconds=0.1),
            flow.step("short_sync", sleep, seconds=0.1),
            flow.step("pending", sleep, seconds=flow.result("short", "slept")),
        ]
    )
    assert cancelled_after(flow, 0.05) < 0.2
    assert statuses(flow) == {"short": "ok", "short_sync": "ok", "pending": "cancelled"}
    assert flow.last is not None
    assert flow.last.status == "cancelled"


def test_08_what_does_not_end_within_the_grace_is_cancelled_or_abandoned():
    """flows.md Running 8."""
    flow = Flow("f", "A flow.")
    flow.output([flow.step("a", asleep, seconds=9), flow.step("b", sleep, seconds=0.8)])
    assert cancelled_after(flow, 0.05) < 0.3
    assert statuses(flow) == {"a": "cancelled", "b": "abandoned"}


def test_08_a_flow_within_is_cancelled_with_its_own_trace():
    """flows.md Running 8."""
    inner = Flow("inner", "Inner.")
    inner.output(
        [inner.step("a", asleep, seconds=9), inner.step("b", asleep, seconds=inner.result("a", "slept"))]
    )
    outer = Flow("outer", "Outer.")
    outer.output(outer.step("inner", inner))
    assert cancelled_after(outer, 0.05) < 0.3
    assert statuses(outer) == {"inner": "cancelled"}
    assert statuses(inner) == {"a": "cancelled", "b": "cancelled"}


def test_08_a_step_that_waits_for_its_next_try_is_cancelled():
    """flows.md Running 7 and 8."""

    @action(idempotent=True)
    def fail() -> None:
        """Fail."""
        raise ConnectionError("no")

    flow = Flow("f", "A flow.")
    flow.output(flow.step("a", fail).options(retries=8))
    assert cancelled_after(flow, 0.2) < 0.3
    assert statuses(flow) in ({"a": "cancelled"}, {"a": "error"})


def test_08_an_interrupt_of_a_sync_run_stops_it_soon():
    """tools.md 21: within 0.5 s."""
    flow = Flow("f", "A flow.")
    flow.output(flow.step("b", sleep, seconds=flow.step("a", sleep, seconds=1)["slept"]))

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            flow.run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - started < 0.5
    assert statuses(flow) == {"a": "abandoned", "b": "cancelled"}


def test_08_the_record_of_a_cancelled_call_has_the_trace():
    """flows.md Running 8 and 10: it is left with the call's context, since there is no result to carry it."""
    flow = Flow("f", "A flow.")
    flow.output(flow.step("a", asleep, seconds=9))
    context = ToolContext()

    async def cell() -> None:
        task = asyncio.ensure_future(flow.as_tool().invoke({}, context))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cell())
    assert context.steps is not None
    assert [(s["name"], s["status"]) for s in context.steps] == [("a", "cancelled")]
