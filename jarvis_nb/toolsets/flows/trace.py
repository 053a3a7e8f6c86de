"""The record of one run of a flow: what each step got, gave, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.toolsets.flows.problems import FlowFailed, Problem

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.explain import Explanation

StepStatus = Literal["ok", "error", "skipped", "cancelled", "abandoned"]
"""ok · error · skipped: a failure came before it could start · cancelled · abandoned: it overran and was
left behind, its late result ignored."""
FlowStatus = Literal["ok", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class FlowResult:
    """What a flow gives as a tool: its output, with the trace beside it for the record of the call."""

    output: dict[str, Any]
    steps: list[dict[str, Any]]
    """One JSON-ready dictionary a step."""


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One step of a run. Plain, bounded data, except that times are left out of comparisons."""

    name: str
    tool: str
    status: StepStatus
    depends_on: tuple[str, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the parameters came to; a context value stands as its reference, for it may be a secret."""
    output: Any = None
    error: ErrorInfo | None = None
    tries: int = 0
    """How often the tool was entered."""
    start: float | None = field(default=None, compare=False)
    """Seconds after the flow's start; None if the step never started."""
    duration: float | None = field(default=None, compare=False)
    """Seconds."""
    steps: list[dict[str, Any]] | None = None
    """The inner trace, where the step is a flow."""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON-ready data."""
        return {
            "name": self.name,
            "tool": self.tool,
            "status": self.status,
            "depends_on": list(self.depends_on),
            "start": self.start,
            "duration": self.duration,
            "inputs": self.inputs,
            "output": self.output,
            "error": None if self.error is None else self.error.to_dict(),
            "tries": self.tries,
            "steps": self.steps,
        }


@dataclass(frozen=True, slots=True)
class FlowTrace:
    """One run of a flow: a step each, in declaration order.

    Example:
        >>> from jarvis_nb import Flow, action
        >>> @action
        ... def double(n: int) -> dict:
        ...     "Double a number."
        ...     return {"n": 2 * n}
        >>> flow = Flow("twice", "Double a number.", inputs={"n": int})
        >>> flow.output(flow.step("double", double, n=flow.input("n")))
        >>> flow.run(n=21)
        {'n': 42}
        >>> flow.last
        FlowTrace('twice', 'ok': double ok)
        >>> flow.last["double"].inputs
        {'n': 21}
    """

    flow: str
    status: FlowStatus
    steps: tuple[StepTrace, ...]
    output: dict[str, Any] | None = None
    failures: tuple[Problem, ...] = ()
    """What failed, in declaration order."""
    code: str = "step_failed"
    """The code of the error that :meth:`result` raises."""
    duration: float = field(default=0.0, compare=False)
    """Seconds."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """The first failed step's own exception."""
    interrupt: BaseException | None = field(default=None, compare=False, repr=False)
    """A KeyboardInterrupt that a step raised: it passes through."""

    def __getitem__(self, name: str) -> StepTrace:
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def __iter__(self) -> Iterator[StepTrace]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def result(self) -> dict[str, Any]:
        """Return the output.

        Raises:
            FlowFailed: Steps failed; all of them are listed.
        """
        if self.interrupt is not None:
            raise self.interrupt
        if self.failures:
            raise FlowFailed(self.flow, self.failures, self.to_dicts(), code=self.code) from self.cause
        assert self.output is not None  # noqa: S101 - a run without failures has an output
        return self.output

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the steps as JSON-ready data."""
        return [step.to_dict() for step in self.steps]

    def view(self, *, times: bool = False) -> Explanation:
        """Return the run as data that prints as text and shows as a picture.

        Args:
            times: With starts and durations, which differ from run to run.
        """
        from jarvis_nb.toolsets.flows.explain import explain_trace

        return explain_trace(self, times=times)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        return self.view().bundle()

    def __repr__(self) -> str:
        steps = ", ".join(f"{step.name} {step.status}" for step in self.steps)
        return f"FlowTrace({self.flow!r}, {self.status!r}: {steps})"
