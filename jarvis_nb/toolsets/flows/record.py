"""From a run's state to its trace."""

from __future__ import annotations

from typing import Any, cast

from jarvis_nb.toolsets.flows.problems import Problem
from jarvis_nb.toolsets.flows.refs import ContextRef, MissingValue, Ref, fill
from jarvis_nb.toolsets.flows.run import FlowRun
from jarvis_nb.toolsets.flows.state import StepState
from jarvis_nb.toolsets.flows.trace import FlowStatus, FlowTrace, StepStatus, StepTrace
from jarvis_nb.toolsets.flows.values import as_mapping, shown


def trace_of(run: FlowRun) -> FlowTrace:
    """Return the trace of a run that is over, however it ended."""
    state = run.state
    failed = [s for s in state.steps if s.status in ("error", "abandoned") and s.error is not None]
    failures = [Problem(s.error.code, s.error.message, s.step.name) for s in failed if s.error is not None]
    output = None
    status: FlowStatus = "ok"
    if state.stop == "cancelled":
        status = "cancelled"
    elif not failures and run.interrupt is None:
        try:
            output = as_mapping(fill(run.plan.output, run.value_of))
        except MissingValue as error:
            failures.append(Problem(error.code, error.message, hint=error.hint or ""))
    if failures and status == "ok":
        status = "error"
    return FlowTrace(
        flow=run.plan.flow,
        status=status,
        steps=tuple(_step_trace(run, s) for s in state.steps),
        output=output,
        failures=tuple(failures),
        code="flow_timeout" if state.stop == "timeout" else "step_failed",
        duration=run.ended - run.began,
        cause=failed[0].exception if failed else None,
        interrupt=run.interrupt,
    )


def _step_trace(run: FlowRun, state: StepState) -> StepTrace:
    step = state.step
    started = state.started
    return StepTrace(
        name=step.name,
        tool=step.tool.name,
        status=cast("StepStatus", state.status),
        depends_on=step.depends_on,
        inputs={} if started is None else {name: _shown(run, value) for name, value in step.params.items()},
        output=shown(state.value),
        error=state.error,
        tries=state.tries,
        start=None if started is None else started - run.began,
        duration=None if started is None or state.ended is None else state.ended - started,
        steps=state.inner,
    )


def _shown(run: FlowRun, template: Any) -> Any:
    def value_of(ref: Ref) -> Any:
        if isinstance(ref, ContextRef):
            return repr(ref)
        try:
            return run.value_of(ref)
        except MissingValue:
            return f"<no {ref!r}>"

    return shown(fill(template, value_of))
