"""The think tool: a scratchpad that gives back what was written on it."""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import ToolSpec
from jarvis_nb.tools.builtin import BuiltinTool, Examples, text_param

EXAMPLES: Examples = [
    ("Think about which city is larger before you answer.", {"thought": "which city is larger"}),
    ("Think step by step about how to plan the trip.", {"thought": "how to plan the trip, step by step"}),
    ("Let me reason: is 91 a prime number?", {"thought": "is 91 a prime number"}),
    ("Write down your reasoning about the refund first.", {"thought": "reasoning about the refund"}),
    ("Consider the pros and cons of working from home.", {"thought": "pros and cons of working from home"}),
    ("Make a plan for cleaning the data set.", {"thought": "a plan for cleaning the data set"}),
    (
        "Break the problem of the late orders into steps.",
        {"thought": "the problem of the late orders, in steps"},
    ),
    ("Reflect on whether the last answer was right.", {"thought": "whether the last answer was right"}),
    ("Note to yourself: the customer wants blue.", {"thought": "the customer wants blue"}),
    ("Think it through: which test should run first?", {"thought": "which test should run first"}),
]


@ToolRegistry.register("think")
class ThinkTool(BuiltinTool):
    """A zero-cost reasoning scratchpad: the thought comes back as the result.

    Example:
        >>> ThinkTool().execute(thought="Let me break this problem into steps...").content
        'Let me break this problem into steps...'
    """

    tool_id = "think"

    def make_spec(self) -> ToolSpec:
        """Return the tool specification."""
        return ToolSpec(
            name="think",
            description="Write down a thought: reason, plan or reflect before the next step. Changes nothing.",
            parameters={
                "type": "object",
                "properties": {
                    "thought": {"type": "string", "description": "The reasoning or thought process"},
                },
                "required": ["thought"],
            },
            category="reasoning",
            metadata={"examples": list(EXAMPLES)},
        )

    def run(self, params: dict[str, Any]) -> ToolResult:
        """Echo the thought."""
        return ToolResult(self.name, text_param(params, "thought"))
