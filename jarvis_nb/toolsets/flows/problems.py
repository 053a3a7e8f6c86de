"""What is wrong with a flow, where it is defined and when it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.errors import ErrorInfo, JarvisError, ToolError, close_names

MOST_TEXT = 300
"""Characters of one step's failure in a flow's error: a model reads it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a flow's definition.

    Example:
        >>> print(Problem("unknown_step", "no step is called 'ordr'", step="discount", path="total_cents"))
        step 'discount', total_cents: no step is called 'ordr' [unknown_step]
    """

    code: str
    message: str
    step: str | None = None
    """The step that holds the mistake; None for the flow itself."""
    path: str = ""
    """Where in the step: a parameter, ``after``, the output's key."""
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON-ready data."""
        return {
            "code": self.code,
            "message": self.message,
            "step": self.step,
            "path": self.path,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        where = ", ".join(
            [*([f"step {self.step!r}"] if self.step is not None else []), *([self.path] if self.path else [])]
        )
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{': ' if where else ''}{self.message}{hint} [{self.code}]"


class FlowError(JarvisError, ValueError):
    """A flow that is not valid as it is defined. All mistakes are collected.

    ``code`` is the first problem's code, in declaration order.

    Args:
        flow: The flow's name.
        problems: What is wrong; at least one.
    """

    code = "invalid_flow"

    def __init__(self, flow: str, problems: Sequence[Problem]) -> None:
        self.flow = flow
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        count = "a problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(f"the flow {flow!r} has {count}:\n{lines}", code=self.problems[0].code, value=flow)

    def __str__(self) -> str:
        return self.message

    def info(self) -> ErrorInfo:
        """Return the error as data, the problems beside the message."""
        return ErrorInfo(
            self.code, self.message, {"problems": [problem.to_dict() for problem in self.problems]}
        )


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

    def info(self) -> ErrorInfo:
        """Return the error as data: each failed step with its own code beside the message."""
        failed = [{"step": problem.step, "code": problem.code} for problem in self.problems]
        return ErrorInfo(self.code, self.message, {"failed": failed})


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
