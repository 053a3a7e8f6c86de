"""A flow as it was declared so far: what the checks read and the plan is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.toolsets.flows.problems import Problem
from jarvis_nb.toolsets.flows.refs import MISSING
from jarvis_nb.toolsets.flows.steps import Step


@dataclass(slots=True, eq=False)
class Declaration:
    """The state of one flow. It may be invalid at any time: whoever needs a valid one checks it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """Canonical JSON Schema of the inputs."""
    max_concurrency: int
    timeout: float
    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    """By name, in declaration order."""
    duplicates: list[Step] = field(default_factory=list[Step])
    """Steps declared under a name that was taken."""
    output: Any = MISSING
    output_problems: list[Problem] = field(default_factory=list[Problem])
    revision: int = 0
    """Goes up with every change."""

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs' schemas by name."""
        return self.parameters["properties"]

    def add(self, step: Step) -> None:
        """Declare a step.

        A cell that runs again declares its steps again: a later run of a cell replaces a step of the same
        name and tool, in its old place. Anything else under a name that is taken is a duplicate.
        """
        self.changed()
        held = self.steps.get(step.name)
        if held is not None and not _is_rerun(held, step):
            self.duplicates.append(step)
            return
        self.steps[step.name] = step
        self.duplicates = [d for d in self.duplicates if d.name != step.name or d.cell == step.cell]

    def changed(self) -> None:
        """Say that something was declared: what was derived before no longer holds."""
        self.revision += 1


def _is_rerun(held: Step, step: Step) -> bool:
    if step.cell == held.cell:
        return False
    if held.tool is None or step.tool is None:  # one of them was no tool at all: the cell was corrected
        return True
    return step.tool.name == held.tool.name
