"""A valid flow, ready to run: an immutable snapshot of its steps and their edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jarvis_nb.tools.base import BaseTool, ToolContext
from jarvis_nb.toolsets.flows.refs import StepRef, refs_in
from jarvis_nb.toolsets.flows.steps import Step


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a plan."""

    index: int
    name: str
    tool: BaseTool
    params: dict[str, Any]
    depends_on: tuple[str, ...]
    """Names of the steps that must be done before, in declaration order."""
    dependents: tuple[int, ...]
    timeout: float
    """Seconds, all tries together."""
    retries: int
    invoke_within: Callable[[dict[str, Any], ToolContext, float], Awaitable[Any]] | None
    """How a flow is run within a time: it keeps it itself, and tells which inner step took it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run works from. A flow that changes later does not change a run under way."""

    flow: str
    steps: tuple[PlannedStep, ...]
    output: Any
    """Data in which references may stand."""
    max_concurrency: int
    timeout: float


def after_name(item: object) -> str | None:
    """Return the step's name in an entry of ``after=``, or None where it names none."""
    if isinstance(item, StepRef):
        return item.name
    return item if isinstance(item, str) else None


def dependencies(step: Step) -> list[str]:
    """Return the names of the steps a step waits for, as declared: unknown ones too, each once."""
    read = [ref.name for _, ref in refs_in(step.params) if isinstance(ref, StepRef)]
    waited = [name for name in map(after_name, step.after) if name is not None]
    return list(dict.fromkeys([*read, *waited]))


def edges(steps: Mapping[str, Step]) -> dict[str, tuple[str, ...]]:
    """Return for each step the existing steps it waits for, in declaration order, itself left out."""
    order = {name: index for index, name in enumerate(steps)}

    def of(name: str, step: Step) -> tuple[str, ...]:
        known = (d for d in dependencies(step) if d in order and d != name)
        return tuple(sorted(known, key=order.__getitem__))

    return {name: of(name, step) for name, step in steps.items()}


def needed(roots: Iterable[str], waits: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the roots and every step they wait for, directly or not."""
    found: set[str] = set()
    todo = [name for name in roots if name in waits]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(waits[name])
    return found


def waves(waits: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Return the steps in waves: each waits only for steps of earlier ones. A cycle's steps come last.

    Example:
        >>> waves({"a": (), "b": ("a",), "c": (), "d": ("b", "c")})
        [['a', 'c'], ['b'], ['d']]
    """
    left, done, out = dict(waits), set[str](), list[list[str]]()
    while left:
        wave = [name for name, needs in left.items() if done.issuperset(needs)]
        if not wave:
            return [*out, list(left)]
        out.append(wave)
        done.update(wave)
        for name in wave:
            del left[name]
    return out


def make_plan(
    flow: str, steps: Mapping[str, Step], output: Any, max_concurrency: int, timeout: float
) -> Plan:
    """Return the plan of a flow that was found valid."""
    waits = edges(steps)
    names = list(steps)
    dependents: dict[str, list[int]] = {name: [] for name in names}
    for index, name in enumerate(names):
        for needed_step in waits[name]:
            dependents[needed_step].append(index)
    planned: list[PlannedStep] = []
    for index, (name, step) in enumerate(steps.items()):
        assert step.tool is not None  # noqa: S101 - a valid flow's steps have tools
        planned.append(
            PlannedStep(
                index=index,
                name=name,
                tool=step.tool,
                params=dict(step.params),
                depends_on=waits[name],
                dependents=tuple(dependents[name]),
                timeout=step.tool.spec.timeout_seconds if step.timeout is None else step.timeout,
                retries=step.retries if is_idempotent(step.tool) else 0,
                invoke_within=getattr(step.tool, "invoke_within", None),
            )
        )
    return Plan(flow, tuple(planned), output, max_concurrency, timeout)


def is_idempotent(tool: BaseTool) -> bool:
    """Whether a tool says that running it twice is the same as running it once."""
    return getattr(tool, "idempotent", False) is True
