"""Which tool a question is for: the one whose examples, or else whose description, are nearest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.types import ToolDefinition

Example = tuple[str, dict[str, Any]]

WORD = re.compile(r"[a-z]+|\d|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a question goes."""

    tool: ToolDefinition | None
    """None: to an answer in words."""
    score: float
    """Similarity of the best tool, from -1 to 1."""


def _likeness(a: str, b: str) -> float:
    one, two = set(WORD.findall(a.lower())), set(WORD.findall(b.lower()))
    return len(one & two) / max(len(one | two), 1)


def nearest(question: str, examples: Sequence[Example], most: int) -> list[Example]:
    """Return the examples nearest to the question, farthest first."""
    return sorted(examples, key=lambda example: _likeness(question, example[0]))[-most:]


def route(
    question: str,
    tools: Sequence[ToolDefinition],
    examples: Mapping[str, Sequence[Example]],
    *,
    may_answer: bool,
    threshold: float = 0.1,
) -> Route:
    """Pick the tool for a question, or an answer in words if nothing is near enough and that is allowed."""
    scored = [
        max(
            [_likeness(question, asked) for asked, _ in examples.get(tool.name, ())]
            or [_likeness(question, f"{tool.name.replace('_', ' ')} {tool.description}")]
        )
        for tool in tools
    ]
    best = max(range(len(tools)), key=scored.__getitem__)
    if may_answer and scored[best] < threshold:
        return Route(None, scored[best])
    return Route(tools[best], scored[best])
