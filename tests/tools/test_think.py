from __future__ import annotations

import pytest

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.tools.think import ThinkTool


@pytest.mark.parametrize(
    "thought", ["Let me break this problem into steps...", "", "a\0b", "日本語 😀", "x" * 100_000]
)
def test_10_echoes_the_thought(thought):
    """tools.md 10."""
    result = ThinkTool().execute(thought=thought)
    assert (result.tool_name, result.content, result.success) == ("think", thought, True)
    assert (result.cost_usd, result.usage) == (0.0, {})


@pytest.mark.parametrize("params", [{}, {"thought": None}, {"thought": ["a"]}, {"thought": -1}])
def test_10_odd_values_are_failed_results(params):
    """tools.md, built-in tools: they never raise."""
    result = ThinkTool().execute(**params)
    assert (result.success, result.metadata["code"]) == (False, "invalid_arguments")
    assert "thought" in result.content


def test_spec_is_the_references():
    """Reference, Think; local.md 5."""
    tool = ToolRegistry.create("think")
    assert (tool.tool_id, tool.spec.category, tool.spec.parameters["required"]) == (
        "think",
        "reasoning",
        ["thought"],
    )
    assert len(tool.spec.metadata["examples"]) == 10
    assert all(tool.execute(**arguments).success for _, arguments in tool.spec.metadata["examples"])
