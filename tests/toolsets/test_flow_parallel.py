"""Serial and parallel runs agree: flows.md, "Running" 1, as a property of random graphs."""

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb import Flow, action
from jarvis_nb.toolsets.flow import FlowFailed


@action
def mix(parts: list[int], salt: int, wait: int) -> dict[str, Any]:
    """Mix numbers, in a thread."""
    time.sleep(wait / 20_000)
    total = salt
    for part in parts:
        total = (total * 31 + part) % 1_000_003
    return {"total": total, "parts": parts}


@action
async def amix(parts: list[int], salt: int, wait: int) -> dict[str, Any]:
    """Mix numbers, on the loop."""
    await asyncio.sleep(wait / 20_000)
    return mix(parts=parts, salt=salt, wait=0)


@action
def fail_if(parts: list[int], salt: int, wait: int) -> dict[str, Any]:
    """Fail for some numbers."""
    if salt % 2:
        raise ValueError(f"{salt} is odd")
    return mix(parts=parts, salt=salt, wait=wait)


STEP = st.tuples(
    st.sampled_from([mix, amix]),
    st.sets(st.integers(0, 11), max_size=4),
    st.integers(0, 99),
    st.integers(0, 9),
)
GRAPH = st.lists(STEP, min_size=1, max_size=12)


def build(graph: list[Any], order: list[int], **options: Any) -> Flow:
    """Make the flow of a graph: step n reads the steps of lower number it names; declared in any order."""
    flow = Flow("f", "A flow.", inputs={"n": int}, **options)
    for index in order:
        tool, reads, salt, wait = graph[index]
        parts = [flow.result(f"s{r}", "total") for r in sorted(reads) if r < index] or [flow.input("n")]
        flow.step(f"s{index}", tool, parts=parts, salt=salt, wait=wait)
    flow.output({f"s{index}": flow.result(f"s{index}") for index in range(len(graph))})
    return flow


@settings(max_examples=30, deadline=None)
@given(GRAPH, st.data())
def test_01_serial_and_parallel_runs_give_the_same(graph, data):
    """flows.md Running 1: whatever the concurrency and the order of declaration."""
    forward = list(range(len(graph)))
    shuffled = data.draw(st.permutations(forward))
    serial = build(graph, forward, max_concurrency=1).run(n=7)
    assert build(graph, forward, max_concurrency=5).run(n=7) == serial
    assert build(graph, shuffled, max_concurrency=3).run(n=7) == serial
    assert asyncio.run(build(graph, shuffled).arun(n=7)) == serial


@settings(max_examples=25, deadline=None)
@given(GRAPH, st.integers(1, 5))
def test_01_every_step_starts_after_what_it_waits_for(graph, most):
    """flows.md Running 1."""
    flow = build(graph, list(range(len(graph))), max_concurrency=most)
    flow.run(n=1)
    trace = flow.last
    assert trace is not None
    for step in trace:
        for name in step.depends_on:
            before = trace[name]
            assert before.start is not None
            assert before.duration is not None
            assert step.start is not None
            assert before.start + before.duration <= step.start
    events = sorted([(s.start, 1) for s in trace] + [(s.start + s.duration, -1) for s in trace])
    inside = most_inside = 0
    for _, change in events:
        inside += change
        most_inside = max(most_inside, inside)
    assert most_inside <= most


@settings(max_examples=25, deadline=None)
@given(GRAPH)
def test_06_the_first_failure_of_a_serial_run_is_the_same_every_time(graph):
    """flows.md Running 1 and 6: start order is deterministic, so a serial run's trace is."""
    graph = [(fail_if if tool is mix else tool, reads, salt, 0) for tool, reads, salt, _ in graph]
    order = list(range(len(graph)))

    def once() -> Any:
        flow = build(graph, order, max_concurrency=1)
        with suppress(FlowFailed):
            flow.run(n=7)
        return flow.last

    trace = once()
    assert trace == once()
    assert len(trace.failures) == any(salt % 2 for tool, _, salt, _ in graph if tool is fail_if)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(GRAPH, st.integers(1, 6))
def test_01_many_more_graphs(graph, most):
    """flows.md Running 1."""
    order = list(range(len(graph)))
    assert build(graph, order, max_concurrency=most).run(n=7) == build(graph, order, max_concurrency=1).run(
        n=7
    )
