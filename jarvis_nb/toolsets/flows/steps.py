"""A step as it was declared: its tool, its parameters as data, its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from jarvis_nb.core.errors import NotPortable
from jarvis_nb.core.portable import MAX_DEPTH, portable
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.toolsets.flows.problems import Problem
from jarvis_nb.toolsets.flows.refs import MISSING, Ref, StepRef, path_text


@dataclass(slots=True)
class Step:
    """One declared step. Nothing in it was judged yet, except that its parameters are data."""

    name: str
    tool: BaseTool | None
    """None where what was given is no tool: a problem says so."""
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    """Plain data in which references may stand."""
    after: list[Any] = field(default_factory=list[Any])
    """Names of steps, or references to them, that must be done before."""
    timeout: Any = None
    """Seconds; None: the tool's own."""
    effect: bool = False
    """Run for its effect: nothing needs its result."""
    retries: Any = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    cell: int = 0
    """Which run of a notebook cell declared it."""


@dataclass(frozen=True, slots=True, repr=False)
class StepHandle(StepRef):
    """What ``flow.step(…)`` returns: a reference to the result, and the place for the step's options."""

    step: Step = field(kw_only=True, compare=False)
    changed: Callable[[], None] = field(kw_only=True, compare=False)

    def options(
        self,
        *,
        after: str | StepRef | Sequence[str | StepRef] = MISSING,
        timeout: float | None = MISSING,
        effect: bool = MISSING,
        retries: int = MISSING,
    ) -> Self:
        """Set options of the step and return the reference. What is not given stays as it is.

        Args:
            after: Steps (names or references) that must be done before, beside those it reads from.
            timeout: Seconds the step may take, all tries together; the flow's remaining time may be less.
            effect: The step is run for its effect, so nobody has to need its result.
            retries: How often a failed step is tried again; only for actions that say ``idempotent=True``.

        Example:
            >>> from jarvis_nb import Flow, action
            >>> @action
            ... def audit(who: str) -> dict:
            ...     "Write who asked into the audit log."
            ...     return {"who": who}
            >>> flow = Flow("audit_flow", "Audit.", inputs={"who": str})
            >>> flow.step("audit", audit, who=flow.input("who")).options(effect=True, timeout=2)
            result("audit")
        """
        step = self.step
        if after is not MISSING:
            step.after = list(after) if isinstance(after, list | tuple) else [after]
        if timeout is not MISSING:
            step.timeout = timeout
        if effect is not MISSING:
            step.effect = effect
        if retries is not MISSING:
            step.retries = retries
        self.changed()
        return self


@dataclass(slots=True)
class DataReader:
    """Reads what a user gave into data in which references may stand; what cannot be is a problem.

    The result shares nothing mutable with what was given: changing a list after the step was declared does
    not change the step.
    """

    flow: str
    step: str | None
    """None for the flow's output."""
    problems: list[Problem]

    def read(self, value: Any, path: str, depth: int = 0) -> Any:
        """Return the data; ``path`` says where it stands."""
        if isinstance(value, Ref):
            self._check_ref(value, path)
            return value
        if depth < MAX_DEPTH:
            if type(value) is dict and all(type(key) is str for key in value):
                return {k: self.read(v, path + path_text((k,)), depth + 1) for k, v in value.items()}
            if type(value) is list or type(value) is tuple:
                return [self.read(v, path + path_text((i,)), depth + 1) for i, v in enumerate(value)]
        elif isinstance(value, dict | list | tuple):
            self._add_not_data(value, f"it is nested more than {MAX_DEPTH} deep", path)
            return None
        try:
            return portable(value, path)
        except NotPortable as error:
            self._add_not_data(value, error.message, path)
            return None

    def _check_ref(self, ref: Ref, path: str) -> None:
        if ref.flow != self.flow:
            hint = f"use a reference of {self.flow!r}; a whole flow can be a step of another"
            text = f"{ref!r} belongs to the flow {ref.flow!r}"
            self.problems.append(Problem("invalid_ref", text, self.step, path, hint))
        if ref.default is not MISSING:
            try:
                portable(ref.default, f"the default of {ref!r}")
            except NotPortable as error:
                self._add_not_data(ref.default, error.message, path)

    def _add_not_data(self, value: Any, message: str, path: str) -> None:
        if _is_data_like(value):
            hint = "use None, bool, int, finite float, str, list or dict"
            self.problems.append(Problem("not_portable", message, self.step, path, hint))
            return
        what = "a function" if callable(value) else f"a live {type(value).__name__}"
        hint = "parameters are data: an input, a result, a context value or a constant"
        more = "make a function a step of its own" if callable(value) else "pass it by tool_context"
        self.problems.append(
            Problem("invalid_ref", f"{what} is no parameter", self.step, path, f"{hint}; {more}")
        )


def _is_data_like(value: Any) -> bool:
    """Whether a value holds data in a form that JSON lacks, as opposed to something live."""
    import datetime as dt
    import decimal
    import enum
    import fractions
    import pathlib
    import uuid

    kinds = (
        *(int, float, complex, str, bytes, bytearray, range, set, frozenset, dict, list, tuple),
        *(dt.date, dt.time, dt.timedelta, decimal.Decimal, fractions.Fraction),
        *(uuid.UUID, pathlib.PurePath, enum.Enum),
    )
    return isinstance(value, kinds)
