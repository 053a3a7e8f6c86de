"""The base class: what every tool is, in the reference's terms."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect

import pytest

from jarvis_nb.core.errors import InvalidArguments, NotPortable, ToolsetError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolCall, ToolDefinition, ToolResult
from jarvis_nb.tools import BaseTool, ToolExecutor, ToolSpec
from jarvis_nb.tools.base import ToolContext, check_name

PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Echo(BaseTool):
    tool_id = "echo"

    @property
    def spec(self):
        return ToolSpec("echo", "Return the text.", PARAMETERS)

    def execute(self, **params):
        return ToolResult("echo", params["text"])


def test_the_registration_example_of_the_reference(monkeypatch):
    """tools.md 2: the document's own tool, found by name at run time."""
    monkeypatch.setattr(ToolRegistry, "_entries", dict(ToolRegistry._entries))

    @ToolRegistry.register("my_tool")
    class MyTool(BaseTool):
        tool_id = "my_tool"

        @property
        def spec(self) -> ToolSpec:
            return ToolSpec(
                name="my_tool",
                description="A custom tool that does something useful.",
                parameters={
                    "type": "object",
                    "properties": {"input": {"type": "string", "description": "The input to process."}},
                    "required": ["input"],
                },
                category="custom",
            )

        def execute(self, **params) -> ToolResult:
            value = params.get("input", "")
            return ToolResult(tool_name="my_tool", content=f"Processed: {value}", success=True)

    tool = ToolRegistry.create("my_tool")
    assert isinstance(tool, MyTool)
    executor = ToolExecutor(tools=[tool], bus=EventBus())
    result = executor.execute(ToolCall(id="call_1", name="my_tool", arguments='{"input": "a"}'))
    assert (result.content, result.success) == ("Processed: a", True)
    assert executor.available_tools()[0].category == "custom"


def test_tool_spec_has_the_fields_and_defaults_of_the_table():
    """tools.md 1: ToolSpec, and timeout_seconds (30)."""
    spec = ToolSpec("echo", "Return the text.")
    assert dataclasses.asdict(spec) == {
        "name": "echo",
        "description": "Return the text.",
        "parameters": {},
        "category": "",
        "cost_estimate": 0.0,
        "latency_estimate": 0.0,
        "requires_confirmation": False,
        "metadata": {},
        "timeout_seconds": 30.0,
    }
    assert ToolSpec("a", "A.").metadata is not ToolSpec("b", "B.").metadata
    with pytest.raises(TypeError):
        ToolSpec("a")  # type: ignore[call-arg]


def test_a_tool_needs_a_spec_and_an_execute():
    """tools.md 1: BaseTool is abstract in both."""
    assert BaseTool.__abstractmethods__ == {"spec", "execute"}
    with pytest.raises(TypeError):
        BaseTool()  # type: ignore[abstract]


def test_the_openai_form_is_the_documents():
    """tools.md 1: to_openai_function()."""
    assert Echo().to_openai_function() == {
        "type": "function",
        "function": {"name": "echo", "description": "Return the text.", "parameters": PARAMETERS},
    }


def test_a_tool_without_parameters_has_an_empty_object():
    """toolsets.md 11."""

    class Ping(Echo):
        @property
        def spec(self):
            return ToolSpec("ping", "Ping.")

    assert Ping().to_openai_function()["function"]["parameters"] == {"type": "object", "properties": {}}
    assert Ping().definition.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_the_definition_is_canonical_made_once_and_plain():
    """toolsets.md 8, 9."""
    tool = Echo()
    assert tool.definition == ToolDefinition(
        "echo", "Return the text.", {**PARAMETERS, "additionalProperties": False}
    )
    assert tool.definition is tool.definition
    assert (tool.kind, tool.source, tool.tool_id) == ("tool", None, "echo")


def test_a_definition_that_is_no_data_fails():
    """toolsets.md 8: a definition holds no callable."""

    class Odd(Echo):
        @property
        def spec(self):
            return ToolSpec("odd", "Odd.", {"type": "object", "properties": {"a": {"default": print}}})

    with pytest.raises(NotPortable):
        _ = Odd().definition


def test_with_name_gives_a_copy_with_a_definition_of_its_own():
    """toolsets.md 5."""
    tool = Echo()
    _ = tool.definition
    renamed = tool.with_name("say")
    assert (renamed.name, renamed.definition.name, tool.name, tool.definition.name) == (
        "say",
        "say",
        "echo",
        "echo",
    )
    assert type(renamed) is Echo
    assert renamed.with_name("tell").name == "tell"


@pytest.mark.parametrize("name", ["a", "get_weather", "a1_b2", "x" * 63])
def test_names_that_are_taken(name):
    """toolsets.md 5: [a-z][a-z0-9_]{0,62}."""
    check_name(name)


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("Get Weather", "get_weather"),
        ("get-weather", "get_weather"),
        ("getWeather", "get_weather"),
        ("1st", "tool_1st"),
        ("_x", "x"),
        ("", "tool"),
        ("日本", "tool"),
        ("x" * 64, "x" * 63),
        ("a\n", "a"),
        (7, None),
        (None, None),
    ],
)
def test_names_that_are_not_are_answered_with_one_that_is(name, legal):
    """toolsets.md 5: reject, and suggest a legal one."""
    with pytest.raises(ToolsetError) as info:
        check_name(name)
    assert info.value.code == "invalid_name"
    assert info.value.value == name
    if legal is not None:
        check_name(legal)
        assert f"try '{legal}'" in str(info.value)


def test_arguments_are_checked_against_the_definition():
    """tools.md 4: arguments the schema refuses."""
    assert Echo().check_arguments({"text": "x"}) == {"text": "x"}
    with pytest.raises(InvalidArguments):
        Echo().check_arguments({"text": "x", "other": 1})


def test_invoke_runs_execute():
    assert Echo().invoke({"text": "x"}, ToolContext()) == ToolResult("echo", "x")
    assert not Echo().is_async

    class Slow(Echo):
        async def execute(self, **params):
            return ToolResult("echo", params["text"])

    assert Slow().is_async
    assert inspect.iscoroutine(pending := Slow().invoke({"text": "x"}, ToolContext()))
    assert asyncio.run(pending) == ToolResult("echo", "x")


def test_reprs_are_deterministic():
    """design.md rule 4."""
    assert repr(Echo()) == "Echo('echo')"
    assert repr(ToolContext({"b": 1, "a": "s3cr3t"}, secrets={"K": "v"})) == "ToolContext(a, b)"


def test_the_context_is_a_mapping_that_reports_progress():
    """design.md: ToolContext."""
    bus = EventBus(record_history=True)
    context = ToolContext({"tenant": "acme"}, secrets={"K": "v"}).for_call("call_1", "echo", bus)
    assert (dict(context), len(context), context["tenant"]) == ({"tenant": "acme"}, 1, "acme")
    assert (context.call_id, context.tool_name, context.secrets) == ("call_1", "echo", {"K": "v"})
    context.progress(1, 4, "reading")
    context.progress(2)
    assert [e.event_type for e in bus.history] == [EventType.TOOL_PROGRESS] * 2
    assert bus.history[0].data == {
        "call_id": "call_1",
        "tool": "echo",
        "done": 1,
        "total": 4,
        "text": "reading",
    }
    ToolContext().progress(1)  # nobody listens: no error
    with pytest.raises(KeyError):
        ToolContext()["tenant"]
