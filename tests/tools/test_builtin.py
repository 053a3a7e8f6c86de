from __future__ import annotations

import inspect

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.tools.validate import validate_arguments

NAMES = ["calculator", "think", "retrieval", "llm", "file_read"]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.binary(max_size=5),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)  # fmt: skip
KEYS = [
    "expression",
    "thought",
    "query",
    "top_k",
    "prompt",
    "system",
    "path",
    "max_lines",
    "self",
    "params",
    "x",
]


@pytest.mark.parametrize("name", NAMES)
@given(params=st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_they_never_raise(name, params, tmp_path, monkeypatch):
    """tools.md, built-in tools: called directly with any values they give a result; a failed one has a code."""
    monkeypatch.chdir(tmp_path)
    result = ToolRegistry.create(name).execute(**params)
    assert isinstance(result, ToolResult)
    assert result.tool_name == name
    assert result.success or result.metadata["code"]


@pytest.mark.parametrize("name", NAMES)
def test_specs_are_good_for_models(name):
    """local.md 5: ten examples each that the tool's own schema accepts; schemas canonical, descriptions short."""
    tool = ToolRegistry.create(name)
    assert isinstance(tool, BaseTool)
    spec = tool.spec
    assert canonical_schema(spec.parameters)
    assert 20 < len(spec.description) < 250
    examples = spec.metadata["examples"]
    assert len(examples) == len({question for question, _ in examples}) == 10
    for question, arguments in examples:
        assert isinstance(question, str)
        assert validate_arguments(tool.definition.parameters, dict(arguments)) == arguments


@pytest.mark.parametrize("name", NAMES)
def test_renamed_tools_answer_by_their_new_name(name):
    """with_name: the result is of the tool that was called."""
    assert ToolRegistry.create(name).with_name("other").execute().tool_name == "other"


def test_an_unexpected_error_is_a_record_and_a_result(caplog, monkeypatch):
    """House rule: nothing is swallowed without a record."""
    tool = ToolRegistry.create("think")
    monkeypatch.setattr(tool, "run", lambda params: 1 / 0)
    result = tool.execute(thought="x")
    assert (result.success, result.metadata["code"]) == (False, "tool_failed")
    assert "ZeroDivisionError" in result.content
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(error, monkeypatch):
    """tools.md 4: KeyboardInterrupt passes through."""
    tool = ToolRegistry.create("think")

    def stop(params):
        raise error

    monkeypatch.setattr(tool, "run", stop)
    with pytest.raises(error):
        tool.execute(thought="x")


@pytest.mark.parametrize("name", NAMES)
def test_execute_is_synchronous(name):
    """Reference: `result = tool.execute(…)`, then `result.content`."""
    assert not inspect.iscoroutinefunction(type(ToolRegistry.create(name)).execute)
