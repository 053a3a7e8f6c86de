"""What is wrong with a flow, where it is defined and when it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jarvis_nb.core.errors import ErrorInfo, FlowError, JarvisError, Problem, ToolError, close_names

__all__ = ["FlowError", "FlowFailed", "Problem", "did_you_mean"]

MOST_TEXT = 300
"""Characters of one step's failure in a flow's error: a model reads it."""


class FlowFailed(FlowError, ToolError):  # noqa: N818 - beside FlowError it says which of the two it is
    """A run of a flow in which steps failed.

    As a tool's failure it reaches the model as one short error with the names of the failed steps.

    Args:
        flow: The flow's name.
        failures: A problem for each failed step, in declaration order; at least one. Its ``step`` is None
            where the output itself could not be made.
        steps: The trace, one JSON-ready dictionary a step.
        code: ``step_failed``, or ``flow_timeout`` when the flow's own time was over.
    """

    code = "step_failed"

    def __init__(
        self,
        flow: str,
        failures: Sequence[Problem],
        steps: Sequence[dict[str, Any]],
        *,
        code: str = "step_failed",
    ) -> None:
        self.flow = flow
        self.problems = tuple(failures)
        self.steps = list(steps)
        JarvisError.__init__(self, "; ".join(map(_failed, self.problems)), code=code, value=flow)

    def __reduce__(self) -> tuple[Any, ...]:
        return _failed_again, (self.flow, self.problems, self.steps, self.code)

    def info(self) -> ErrorInfo:
        """Return the error as data: each failed step with its own code beside the message."""
        failed = [{"step": problem.step, "code": problem.code} for problem in self.problems]
        return ErrorInfo(self.code, self.message, {"failed": failed})


def _failed_again(
    flow: str, failures: Sequence[Problem], steps: Sequence[dict[str, Any]], code: str
) -> FlowFailed:
    return FlowFailed(flow, failures, steps, code=code)


def _failed(problem: Problem) -> str:
    where = "the output" if problem.step is None else f"step {problem.step!r}"
    text = problem.message
    return f"{where} failed: {text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + '…'}"


def did_you_mean(name: str, valid: Iterable[str], noun: str) -> str:
    """Return a hint that names the closest valid name, else the valid ones.

    Example:
        >>> did_you_mean("ordr", ["order", "discount"], "step")
        "did you mean 'order'?"
        >>> did_you_mean("x", ["order", "discount"], "step")
        "there are: 'order', 'discount'"
    """
    names = list(valid)
    close = close_names(name, names, most=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return f"there is no {noun}"
    return "there are: " + ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")  # noqa: PLR2004
