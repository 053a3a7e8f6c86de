"""The executor: every call gets an answer, a deadline holds, and nothing runs that may not."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Annotated

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.approval import Approve, Deny, Pause
from jarvis_nb.core.errors import ApprovalUnavailable, InvalidArguments, ToolError, ToolsetError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.threads import WorkerPool, _Process, workers
from jarvis_nb.core.types import ToolCall, ToolResult
from jarvis_nb.tools.action import action
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec
from jarvis_nb.tools.executor import Outcome, ToolExecutor
from jarvis_nb.tools.images import ImageContent

# Tools to call.

RAN: list = []


@pytest.fixture(autouse=True)
def _forget():
    RAN.clear()


@action
def add(a: int, b: int = 1) -> int:
    """Add."""
    RAN.append("add")
    return a + b


@action
async def add_async(a: int, b: int = 1) -> int:
    """Add, without blocking."""
    RAN.append("add_async")
    await asyncio.sleep(0)
    return a + b


@action(requires_confirmation=True)
def delete(path: str, force: bool = False) -> str:
    """Delete a file."""
    RAN.append(("delete", path, force))
    return f"{path} is gone"


class Echo(BaseTool):
    """A plain tool with a JSON Schema of its own."""

    tool_id = "echo"
    gives = None

    @property
    def spec(self):
        parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return ToolSpec("echo", "Return the text.", parameters)

    def execute(self, **params):
        RAN.append("echo")
        return ToolResult("echo", params["text"]) if self.gives is None else self.gives(params)


def giving(value):
    """Return a tool that returns `value` (or calls it, where it is a function)."""

    @action
    def give():
        """Give."""
        return value() if callable(value) else value

    return give


def raising(error):
    @action
    def fail():
        """Fail."""
        raise error

    return fail


def call(name="add", arguments="{}", call_id="call_1"):
    return ToolCall(call_id, name, arguments)


def run(tool, arguments="{}", **options):
    """Run one call of one tool, awaited."""
    about = {k: options.pop(k) for k in ("offered", "decision") if k in options}
    executor = ToolExecutor([tool], **options)
    return asyncio.run(executor.run(call(tool.name, arguments), **about))


def told(result):
    """What the model reads of a failure."""
    assert result.success is False
    data = json.loads(result.content)
    assert list(data) == ["error"]
    return data["error"]


BOTH = pytest.mark.parametrize("how", ["execute", "aexecute", "run"])


def by(how, executor, one):
    if how == "execute":
        return executor.execute(one)
    if how == "aexecute":
        return asyncio.run(executor.aexecute(one))
    return asyncio.run(executor.run(one)).result


# A call that is right.


@BOTH
@pytest.mark.parametrize("name", ["add", "add_async"])
def test_a_call_runs_and_its_latency_is_measured(how, name):
    """tools.md 3: parses, runs, measures latency, returns the result; `aexecute` is the same."""
    result = by(how, ToolExecutor([add, add_async]), call(name, '{"a": 2, "b": 40}'))
    assert (result.tool_name, result.content, result.success) == (name, "42", True)
    assert 0 < result.latency_seconds < 5
    assert [name] == RAN


def test_the_executor_of_the_reference():
    """tools.md 3 and the document's own example."""
    from jarvis_nb.tools.calculator import CalculatorTool
    from jarvis_nb.tools.think import ThinkTool

    executor = ToolExecutor(tools=[CalculatorTool(), ThinkTool()], bus=EventBus())
    one = ToolCall(id="call_1", name="calculator", arguments='{"expression": "2+2"}')
    assert executor.execute(one).content == "4"
    assert [spec.name for spec in executor.available_tools()] == ["calculator", "think"]
    assert [tool["function"]["name"] for tool in executor.get_openai_tools()] == ["calculator", "think"]
    assert all(tool["type"] == "function" for tool in executor.get_openai_tools())


def test_renamed_tools_are_told_under_their_new_name():
    """toolsets.md 5."""
    executor = ToolExecutor([Echo().with_name("say"), add.with_name("plus")])
    assert [spec.name for spec in executor.available_tools()] == ["say", "plus"]
    assert [tool["function"]["name"] for tool in executor.get_openai_tools()] == ["say", "plus"]
    result = executor.execute(call("say", '{"text": "hi"}'))
    assert (result.tool_name, result.content) == ("say", "hi")


def test_events_tell_start_and_end():
    """tools.md 3: TOOL_CALL_START with name and arguments, TOOL_CALL_END with success and latency."""
    bus = EventBus(record_history=True)
    result = ToolExecutor([add], bus).execute(call("add", '{"a": "2"}', "call_7"))
    start, end = bus.history
    assert start.event_type is EventType.TOOL_CALL_START
    assert start.data == {
        "call_id": "call_7",
        "tool": "add",
        "kind": "action",
        "source": None,
        "arguments": {"a": "2"},
    }
    assert end.event_type is EventType.TOOL_CALL_END
    assert end.data == {
        "call_id": "call_7",
        "tool": "add",
        "success": True,
        "status": "ok",
        "code": None,
        "content": "3",
        "latency_seconds": result.latency_seconds,
    }


@BOTH
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("add", "{"), ("nothing", "{}"), ("add", '{"a": "x"}'), ("delete", '{"path": "a"}'), ("fail", "{}")],
)
def test_every_call_has_one_start_and_one_end(how, name, arguments):
    """tools.md 3: also a call that is refused; whoever pairs them is never left waiting."""
    bus = EventBus(record_history=True)
    by(how, ToolExecutor([add, delete, raising(ValueError("no"))], bus), call(name, arguments))
    kinds = [e.event_type for e in bus.history if not e.event_type.value.startswith("approval")]
    assert kinds == [EventType.TOOL_CALL_START, EventType.TOOL_CALL_END]
    assert bus.history[-1].data["success"] is False
    assert bus.history[-1].data["code"]


def test_events_are_bounded_plain_data():
    """tools.md 8."""
    bus = EventBus(record_history=True)
    ToolExecutor([Echo()], bus).execute(call("echo", json.dumps({"text": "x" * 100_000})))
    assert all(len(json.dumps(e.data)) < 10_000 for e in bus.history)


def test_a_bus_that_nobody_watches_is_not_told(monkeypatch):
    bus = EventBus()
    monkeypatch.setattr(bus, "publish", lambda *a, **k: pytest.fail("a payload was built for nobody"))
    assert ToolExecutor([add], bus).execute(call("add", '{"a": 1}')).content == "2"


# Names.


@BOTH
@pytest.mark.parametrize(
    "name", ["ad", "", "ADD", "functions.sub", "x" * 10_000, "add\x00", "日本", None, 7, ["add"]]
)
def test_an_unknown_name_is_answered_with_the_valid_ones(how, name):
    """tools.md 4, wire.md name: valid names and the closest to the model."""
    error = told(by(how, ToolExecutor([add, add_async]), call(name)))
    assert error["code"] == "unknown_tool"
    assert error["valid"] == ["add", "add_async"]
    assert len(error["message"]) < 200
    if name == "ad":
        assert "did you mean 'add'?" in error["message"]
    assert RAN == []


def test_many_valid_names_are_not_all_told():
    executor = ToolExecutor([add.with_name(f"add_{i}") for i in range(500)])
    error = told(executor.execute(call("nothing")))
    assert len(error["valid"]) == 50
    assert error["more"] == 450


@BOTH
@pytest.mark.parametrize("name", ["functions.add", "default_api:add", "tools/add", "a.b.add"])
def test_an_unambiguous_last_segment_is_accepted(how, name):
    """wire.md name: `functions.get_weather`."""
    result = by(how, ToolExecutor([add, add_async]), call(name, '{"a": 1}'))
    assert (result.tool_name, result.content) == ("add", "2")


def test_a_tool_that_was_not_offered_never_runs():
    """toolsets.md 16: narrowing is enforced when a call runs."""
    executor = ToolExecutor([add, add_async, delete])
    outcome = asyncio.run(executor.run(call("add", '{"a": 1}'), offered=["add_async", "delete"]))
    assert (outcome.status, outcome.ran, outcome.tool) == ("failed", False, add)
    error = told(outcome.result)
    assert error["code"] == "tool_not_offered"
    assert error["valid"] == ["add_async", "delete"]
    outcome = asyncio.run(executor.run(call("functions.add", '{"a": 1}'), offered=()))
    assert told(outcome.result) == {
        "code": "tool_not_offered",
        "message": "'add' is not offered in this request",
        "valid": [],
    }
    outcome = asyncio.run(executor.run(call("ad"), offered={"delete"}))
    assert told(outcome.result)["valid"] == ["delete"]
    assert RAN == []
    assert asyncio.run(executor.run(call("add", '{"a": 1}'), offered={"add"})).status == "ok"


@pytest.mark.parametrize("tools", [[add, add], [add, add.with_name("ADD".lower())]])
def test_duplicate_names_are_an_error(tools):
    """tools.md 7."""
    with pytest.raises(ToolsetError, match="'add'") as info:
        ToolExecutor(tools)
    assert info.value.code == "duplicate_tools"


def test_names_that_differ_in_case_only_are_duplicates():
    """toolsets.md 4."""

    class Loud(Echo):
        @property
        def name(self):
            return "ECHO"

    with pytest.raises(ToolsetError, match="'ECHO'") as info:
        ToolExecutor([Echo(), Loud()])
    assert info.value.code == "duplicate_tools"


def test_functions_are_tools_too():
    def ping(host: str) -> str:
        """Ping a host."""
        return f"{host} is up"

    assert ToolExecutor([ping]).execute(call("ping", '{"host": "a"}')).content == "a is up"


# Arguments.


@BOTH
@pytest.mark.parametrize("arguments", ["", "  \n", "null", " null ", None, "{}", {}])
def test_nothing_is_no_arguments(how, arguments):
    """wire.md empty, null: {}."""
    assert by(how, ToolExecutor([giving(7)]), call("give", arguments)).content == "7"


@BOTH
@pytest.mark.parametrize("arguments", [{"a": 1, "b": 2}, ' {"a": 1,\n "b": 2} ', '{"a":5,"a":1,"b":2}'])
def test_objects_are_accepted_as_they_come(how, arguments):
    """wire.md object; tools.md 4: object-shaped arguments are accepted."""
    assert by(how, ToolExecutor([add]), call("add", arguments)).content == "3"


@BOTH
@pytest.mark.parametrize("arguments", ['["Paris"]', "7", '"text"', "true", "2.5", ["Paris"], 7])
def test_arguments_that_are_no_object_are_not_run(how, arguments):
    """wire.md list, number, text: not run; "expected an object" to the model."""
    error = told(by(how, ToolExecutor([giving(7)]), call("give", arguments)))
    assert error["code"] == "invalid_arguments"
    assert "expected an object" in error["message"]


@BOTH
@pytest.mark.parametrize(
    ("arguments", "position"),
    [
        ('{"city": "Paris"', 16),
        ("{}{}", 2),
        ("{'a': 1}", 1),
        ('{"a": 1,}', None),
        ("nonsense", 0),
        ('{"a": "x\ny"}', 8),
    ],
)
def test_bad_json_is_not_run_and_the_position_is_told(how, arguments, position):
    """tools.md 4, wire.md malformed, doubled: not run; the parse position to the model."""
    error = told(by(how, ToolExecutor([giving(7)]), call("give", arguments)))
    assert error["code"] == "invalid_json"
    assert position is None or error["position"] == position
    assert str(error["position"]) in error["message"]


@BOTH
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 5000,
    ],
)
def test_what_json_cannot_say_is_not_run(how, arguments):
    """tools.md 4: bad JSON."""
    error = told(by(how, ToolExecutor([add]), call("add", arguments)))
    assert error["code"] == "invalid_json"
    assert len(error["message"]) < 300
    assert RAN == []


@BOTH
@pytest.mark.parametrize(
    ("tool", "arguments", "fields"),
    [
        (add, '{"a": "x"}', {"a"}),
        (add, "{}", {"a"}),
        (add, '{"a": 1, "units": "C"}', {"units"}),
        (add_async, '{"a": "x", "z": 1}', {"a", "z"}),
        (Echo(), '{"text": 7}', {"text"}),
        (Echo(), "{}", {"text"}),
        (Echo(), '{"text": "a", "x": 1}', {"x"}),
    ],
)
def test_refused_arguments_are_named_and_not_run(how, tool, arguments, fields):
    """wire.md extra / missing / wrong field: the field named to the model, not run."""
    error = told(by(how, ToolExecutor([tool]), call(tool.name, arguments)))
    assert error["code"] == "invalid_arguments"
    assert {p["field"] for p in error["fields"]} == fields
    assert all(field in error["message"] for field in fields)
    assert RAN == []


def test_lossless_arguments_are_accepted_and_recorded_as_they_were_used():
    """wire.md wrong field: "2" -> 2."""
    outcome = run(add, '{"a": "2", "b": 3.0}')
    assert (outcome.status, outcome.output, outcome.arguments) == ("ok", 5, {"a": 2, "b": 3})
    outcome = run(add, '{"a": "x"}')
    assert outcome.arguments == {"a": "x"}
    assert run(add, "[1]").arguments is None


class Order(pydantic.BaseModel):
    ids: list[int]


def test_recorded_arguments_are_json_and_not_what_the_tool_works_on():
    @action
    def take(order: Order, tags: list[str], n: int | None = None) -> str:
        """Take an order."""
        tags.append("changed")
        order.ids.clear()
        return "ok"

    sent = {"order": {"ids": ["1", 2]}, "tags": ["a"], "n": "3"}
    outcome = run(take, sent)
    assert outcome.arguments == {"order": {"ids": ["1", 2]}, "tags": ["a"], "n": 3}
    assert sent == {"order": {"ids": ["1", 2]}, "tags": ["a"], "n": "3"}
    json.dumps(outcome.arguments)


def test_a_validator_that_fails_in_its_own_way_is_data():
    def broken(value):
        raise KeyError("x")

    @action
    def take(v: Annotated[int, pydantic.AfterValidator(broken)]) -> int:
        """Take it."""
        return v

    outcome = run(take, '{"v": 1}')
    assert (outcome.status, outcome.ran) == ("failed", False)
    assert told(outcome.result)["code"] == "tool_failed"


@BOTH
@pytest.mark.parametrize("name", ["self", "function", "params", "name", "tool", "call", "context"])
def test_any_parameter_name_works_or_fails_as_data(how, name):
    """tools.md 4: a parameter called self, function or params."""
    space: dict = {}
    exec(f"def f({name}: int):\n    'Do it.'\n    return {name}", space)
    assert by(how, ToolExecutor([space["f"]]), call("f", json.dumps({name: 4}))).content == "4"

    class Odd(Echo):
        @property
        def spec(self):
            return ToolSpec("odd", "Odd.", {"type": "object", "properties": {name: {"type": "integer"}}})

        def execute(self, **params):
            return str(params[name])

    result = by(how, ToolExecutor([Odd()]), call("odd", json.dumps({name: 4})))
    assert (result.content == "4") if name != "self" else (told(result)["code"] == "tool_failed")


# Failures.


@BOTH
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("secret\npath"), "KeyError: 'secret\\npath'"),
        (ValueError("no such city\nTraceback: x"), "ValueError: no such city Traceback: x"),
        (SystemExit(3), "SystemExit: 3"),
        (TimeoutError("slow server"), "TimeoutError: slow server"),
        (asyncio.CancelledError(), "CancelledError"),
        (StopIteration(1), None),
        (RecursionError("deep"), "RecursionError: deep"),
        (ExceptionGroup("two", [ValueError("a")]), "ExceptionGroup: two (1 sub-exception)"),
        (BaseException("odd"), "BaseException: odd"),
        (ValueError("x" * 10_000), None),
    ],
)
def test_a_raising_tool_is_a_short_typed_reason(how, error, message):
    """tools.md 4, wire.md tool raises: short typed reason to the model, no traceback."""
    got = told(by(how, ToolExecutor([raising(error)]), call("fail")))
    assert got["code"] == "tool_failed"
    assert message is None or got["message"] == message
    assert len(got["message"]) < 400
    assert "Traceback (most" not in got["message"]
    assert __file__ not in got["message"]


def test_the_traceback_stays_in_the_local_record(caplog):
    """toolsets.md 31, wire.md tool raises."""
    with caplog.at_level(logging.DEBUG, "jarvis_nb.tools"):
        outcome = run(raising(ValueError("no")))
    assert outcome.traceback is not None
    assert outcome.traceback.startswith("Traceback")
    assert "raise error" in outcome.traceback
    assert "running.py" not in outcome.traceback
    assert "Traceback" not in repr(outcome)
    assert "Traceback" not in outcome.result.content
    assert any(r.name == "jarvis_nb.tools" and r.exc_info for r in caplog.records)
    assert run(add, '{"a": 1}').traceback is None


@BOTH
def test_async_tools_fail_in_the_same_way(how):
    @action
    async def fail():
        """Fail."""
        await asyncio.sleep(0)
        raise ValueError("no")

    assert told(by(how, ToolExecutor([fail]), call("fail"))) == {
        "code": "tool_failed",
        "message": "ValueError: no",
    }


def test_a_tool_error_keeps_its_code_hint_and_valid_values():
    """toolsets.md 31: code and message."""
    error = ToolError(
        "order 'X' does not exist", code="unknown_order", valid=["ORD-5"], hint="list the orders first"
    )
    outcome = run(raising(error))
    assert outcome.error is not None
    assert (outcome.status, outcome.ran, outcome.error.code) == ("failed", True, "unknown_order")
    assert told(outcome.result) == {
        "code": "unknown_order",
        "message": "order 'X' does not exist",
        "valid": ["ORD-5"],
        "hint": "list the orders first",
    }


def test_a_failed_result_is_a_failure_with_its_own_text():
    outcome = run(giving(ToolResult("give", "division by zero", success=False, metadata={"code": "zero"})))
    assert outcome.error is not None
    assert (outcome.status, outcome.error.code, outcome.error.message) == (
        "failed",
        "zero",
        "division by zero",
    )
    assert (outcome.result.content, outcome.result.success) == ("division by zero", False)
    outcome = run(giving(ToolResult("give", "no", success=False)))
    assert outcome.error is not None
    assert outcome.error.code == "tool_error"


@pytest.mark.parametrize("how", ["execute", "aexecute", "run"])
@pytest.mark.parametrize("is_async", [False, True])
def test_keyboard_interrupt_passes_through_and_the_record_is_closed(how, is_async):
    """tools.md 4: KeyboardInterrupt passes through, with the history closed."""

    def sync_stop():
        """Stop."""
        raise KeyboardInterrupt

    async def async_stop():
        """Stop."""
        raise KeyboardInterrupt

    bus = EventBus(record_history=True)
    executor = ToolExecutor([action(name="stop")(async_stop if is_async else sync_stop), add], bus)
    outcome = Outcome(call("stop"))
    if how != "run":
        with pytest.raises(KeyboardInterrupt):
            by(how, executor, outcome.call)
    else:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(executor.run(outcome.call, outcome=outcome))
        assert (outcome.status, outcome.ran) == ("cancelled", True)
        assert told(outcome.result)["code"] == "cancelled"
    assert [e.event_type for e in bus.history] == [EventType.TOOL_CALL_START, EventType.TOOL_CALL_END]
    assert executor.execute(call("add", '{"a": 1}')).content == "2"


# What comes back.


@dataclasses.dataclass
class Price:
    cents: int


@BOTH
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("日本語 🎉 \ud800", "日本語 🎉 \ufffd"),
        ({"order_id": "ORD-5", "total_cents": 4200}, '{"order_id":"ORD-5","total_cents":4200}'),
        ([1, None], "[1,null]"),
        (None, "null"),
        (True, "true"),
        (4.5, "4.5"),
        (float("nan"), "null"),
        (Price(3), '{"cents":3}'),
        (object(), "<object>"),
        (lambda: (n for n in range(3)), "[0,1,2]"),
        (ToolResult("another", "mine"), "mine"),
    ],
)
def test_whatever_a_tool_returns_is_wrapped(how, value, content):
    """tools.md 4: a str or a mapping (wrapped) or something else; toolsets.md 33."""
    result = by(how, ToolExecutor([giving(value)]), call("give"))
    assert (result.content, result.success, result.tool_name) == (content, True, "give")


class Wild:
    def __getattribute__(self, name):
        raise RuntimeError("no")


@BOTH
def test_a_hostile_object_is_named(how):
    """wire.md odd results: never a crash."""
    assert by(how, ToolExecutor([giving(Wild)]), call("give")).content == "<Wild>"


def test_a_tools_own_result_is_kept_and_named_right():
    given = ToolResult(
        "wrong", "mine", True, {"total_tokens": 3}, 0.5, 99.0, {"path": pathlib.PurePosixPath("/a")}
    )
    outcome = run(giving(given))
    result = outcome.result
    assert (result.tool_name, result.content, result.usage, result.cost_usd) == (
        "give",
        "mine",
        {"total_tokens": 3},
        0.5,
    )
    assert result.metadata == {"path": "/a"}
    assert result.latency_seconds < 5
    assert given == ToolResult(
        "wrong", "mine", True, {"total_tokens": 3}, 0.5, 99.0, {"path": pathlib.PurePosixPath("/a")}
    )
    assert outcome.value is given
    assert outcome.output == "mine"


@pytest.mark.parametrize(
    "given",
    [
        ToolResult("give", {"a": 1}),  # type: ignore[arg-type]
        ToolResult("give", None),  # type: ignore[arg-type]
        ToolResult("give", "x", "yes", None, None, "1", None),  # type: ignore[arg-type]
        ToolResult("give", "x", cost_usd=float("nan")),
        ToolResult("give", "x", metadata={"when": object(), 1: {2}}),  # type: ignore[dict-item]
        ToolResult("give", "x", metadata=[1]),  # type: ignore[arg-type]
    ],
)
def test_a_result_with_odd_fields_is_made_plain(given):
    """tools.md 4, wire.md odd results."""
    result = run(giving(given)).result
    assert type(result.content) is str
    assert type(result.success) is bool
    json.dumps([result.usage, result.cost_usd, result.metadata], allow_nan=False)


def test_an_output_beside_the_text_is_the_structured_output():
    outcome = run(giving(ToolResult("give", "3 rows", metadata={"output": [{"n": 1}], "source": "db"})))
    assert (outcome.output, outcome.result.content) == ([{"n": 1}], "3 rows")
    assert outcome.result.metadata == {"source": "db"}


def test_the_whole_value_stays_on_the_record_and_the_model_reads_a_part():
    """toolsets.md 32: capped centrally; the whole value stays on the attempt."""
    rows = [{"n": i} for i in range(5000)]
    outcome = run(giving(rows))
    assert outcome.output == rows
    assert outcome.value is rows
    assert outcome.truncated
    assert len(outcome.result.content) <= 16_384
    assert "characters were cut" in outcome.result.content
    assert not run(giving("x" * 16_384)).truncated
    outcome = run(giving(ToolResult("give", "x" * 100)), max_text=60)
    assert len(outcome.result.content) <= 60
    assert (outcome.output, outcome.truncated) == ("x" * 100, True)


def test_a_tool_may_be_uncapped():
    class Book(Echo):
        uncapped = True

    outcome = run(Book(), json.dumps({"text": "x" * 50_000}))
    assert (len(outcome.result.content), outcome.truncated) == (50_000, False)


def test_images_are_text_for_the_model_and_parts_for_an_engine():
    """wire.md odd results: an image as a text stub and a following user part."""
    image = ImageContent(b"\x89PNG\r\n\x1a\n", "image/png")
    outcome = run(giving({"plot": image}))
    assert outcome.output == {"plot": "[image: png, 8 bytes]"}
    assert list(outcome.images) == [image.to_openai()]
    assert "base64" not in outcome.result.content
    assert list(run(add, '{"a": 1}').images) == []


@BOTH
def test_a_plain_function_may_give_a_coroutine(how):
    """tools.md 1: execute may be async."""

    @action
    def later(n: int):
        """Later."""

        async def work():
            await asyncio.sleep(0)
            return n

        return work()

    class Later(Echo):
        def execute(self, **params):
            return asyncio.sleep(0, ToolResult("echo", params["text"]))

    assert by(how, ToolExecutor([later]), call("later", '{"n": 4}')).content == "4"
    assert by(how, ToolExecutor([Later()]), call("echo", '{"text": "hi"}')).content == "hi"


@BOTH
def test_an_async_generator_gives_a_list(how):
    @action
    async def count(n: int):
        """Count."""
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    assert by(how, ToolExecutor([count]), call("count", '{"n": 3}')).content == "[0,1,2]"


def test_an_async_base_tool():
    """tools.md 1: execute may be async."""

    class Slow(Echo):
        async def execute(self, **params):
            await asyncio.sleep(0)
            return ToolResult("echo", params["text"].upper())

    for how in ("execute", "aexecute", "run"):
        assert by(how, ToolExecutor([Slow()]), call("echo", '{"text": "hi"}')).content == "HI"


def test_the_sync_call_works_under_a_running_loop():
    """tools.md 21."""

    async def cell():
        executor = ToolExecutor([add, add_async])
        return [executor.execute(call(name, '{"a": 1}')).content for name in ("add", "add_async")]

    assert asyncio.run(cell()) == ["2", "2"]


# Deadlines.


@pytest.fixture
def gate():
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def passed():
    """Where the stuck tool came by; its thread may still write there when the test is over."""
    return []


@pytest.fixture
def stuck(gate, passed):
    @action(timeout=0.2)
    def wait() -> str:
        """Wait."""
        passed.append("in")
        gate.wait(20)
        passed.append("out")
        return "late"

    return wait


@BOTH
def test_a_sync_tool_is_left_behind_at_its_deadline(how, stuck, gate):
    """tools.md 5: a timeout returns at the deadline and says so."""
    executor = ToolExecutor([stuck, add])
    before = time.perf_counter()
    result = by(how, executor, call("wait"))
    assert 0.2 <= time.perf_counter() - before < 0.7
    error = told(result)
    assert error["code"] == "tool_timeout"
    assert "0.2 s" in error["message"]
    assert 0.19 < result.latency_seconds < 0.7
    gate.set()
    assert executor.execute(call("add", '{"a": 1}')).content == "2"


def test_the_record_says_that_the_thread_runs_on(stuck, gate, passed):
    """tools.md 5: the thread is marked abandoned; flows.md 5: its late result ignored."""
    outcome = run(stuck)
    assert (outcome.status, outcome.ran) == ("abandoned", True)
    content = outcome.result.content
    gate.set()
    end = time.monotonic() + 5
    while passed != ["in", "out"]:
        assert time.monotonic() < end
        time.sleep(0.005)
    time.sleep(0.01)
    assert (outcome.status, outcome.result.content, outcome.output) == ("abandoned", content, None)


@BOTH
@pytest.mark.parametrize("stubborn", [False, True])
def test_an_async_tool_is_cancelled_at_its_deadline(how, stubborn):
    """tools.md 5: also one that swallows its cancelling; nobody waits for it."""
    ended = []

    @action(timeout=0.1)
    async def wait() -> str:
        """Wait."""
        for _ in range(3):
            try:
                await asyncio.sleep(8)
            except asyncio.CancelledError:
                ended.append("cancelled")
                if not stubborn:
                    raise
        return "late"

    before = time.perf_counter()
    result = by(how, ToolExecutor([wait]), call("wait"))
    assert 0.1 <= time.perf_counter() - before < 0.4
    assert told(result)["code"] == "tool_timeout"
    assert ended[0] == "cancelled"


def test_an_async_tool_that_overran_is_failed_not_abandoned():
    @action(timeout=0.02)
    async def wait():
        """Wait."""
        await asyncio.sleep(8)

    outcome = run(wait)
    assert (outcome.status, outcome.ran) == ("failed", True)


def test_a_tool_that_answers_its_cancelling_is_too_late():
    @action(timeout=0.02)
    async def wait():
        """Wait."""
        try:
            await asyncio.sleep(8)
        except asyncio.CancelledError:
            return "partial"

    outcome = run(wait)
    assert (outcome.status, outcome.output) == ("failed", None)


def test_what_was_left_behind_may_clean_up():
    """A connection is closed although nobody waits for it."""
    steps = []

    @action(timeout=0.02)
    async def wait():
        """Wait."""
        try:
            await asyncio.sleep(8)
        finally:
            await asyncio.sleep(0.01)
            steps.append("closed")

    async def main():
        outcome = await ToolExecutor([wait]).run(call("wait"))
        assert (outcome.status, steps) == ("failed", [])
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert steps == ["closed"]


def test_a_loop_can_close_while_a_stubborn_tool_is_left_behind():
    """tools.md 5: stuck tools cannot keep the process from exiting."""

    @action(timeout=0.02)
    async def wait():
        """Wait."""
        while True:
            try:
                await asyncio.sleep(8)
            except asyncio.CancelledError:
                continue

    before = time.perf_counter()
    assert run(wait).status == "failed"
    assert time.perf_counter() - before < 1


def test_time_outs_and_task_groups_inside_a_tool_work():
    """The coroutine stays in the task it began in."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    @action
    async def work() -> list:
        """Work."""
        token = variable.set(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(8)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(0, n)) for n in range(3)]
        variable.reset(token)
        return [task.result() for task in tasks]

    async def main():
        outcome = await ToolExecutor([work]).run(call("work"))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return outcome

    assert asyncio.run(main()).output == [0, 1, 2]


@pytest.mark.parametrize("outside", [False, True])
def test_a_cancel_from_inside_is_told_from_one_outside(outside):
    """A scope of the tool's own that times out is over when it has ended; the deadline still holds."""

    @action(timeout=0.15)
    async def work():
        """Work."""
        for _ in range(3):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(8)
        await asyncio.sleep(0 if outside else 8)
        await asyncio.sleep(8)

    before = time.perf_counter()
    if outside:
        outcome, took = cancelled_after(0.06, ToolExecutor([work]), call("work"))
        assert (outcome.status, took < 0.1) == ("cancelled", True)
    else:
        assert told(run(work).result)["code"] == "tool_timeout"
        assert 0.15 <= time.perf_counter() - before < 0.4


def test_an_anyio_scope_inside_a_tool_works():
    anyio = pytest.importorskip("anyio")

    @action
    async def work():
        """Work."""
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(8)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 8)
            await anyio.sleep(0)
            group.cancel_scope.cancel()
        await anyio.sleep(0.01)
        return scope.cancelled_caught

    assert run(work).output is True


def test_a_time_out_of_the_tools_own_is_not_the_deadline():
    @action
    def fetch():
        """Fetch."""
        raise TimeoutError("the server")

    assert told(run(fetch).result) == {"code": "tool_failed", "message": "TimeoutError: the server"}


@pytest.mark.parametrize("seconds", [None, 0, -1, float("inf"), float("nan"), 1e300, "30"])
def test_an_odd_time_out_is_none(seconds):
    class Odd(Echo):
        @property
        def spec(self):
            spec = super().spec
            spec.timeout_seconds = seconds
            return spec

    for how in ("execute", "aexecute"):
        assert by(how, ToolExecutor([Odd()]), call("echo", '{"text": "hi"}')).content == "hi"


def test_time_spent_in_the_awaitable_of_a_plain_function_counts():
    @action(timeout=0.1)
    def later():
        """Later."""
        time.sleep(0.05)
        return asyncio.sleep(8)

    before = time.perf_counter()
    assert told(run(later).result)["code"] == "tool_timeout"
    assert time.perf_counter() - before < 0.4


def test_writing_a_result_down_belongs_to_the_tools_time():
    class Slow:
        def __repr__(self):
            time.sleep(1)
            return "slow"

    @action(timeout=0.05)
    def give() -> Slow:
        """Give."""
        return Slow()

    before = time.perf_counter()
    assert told(run(give).result)["code"] == "tool_timeout"
    assert time.perf_counter() - before < 0.5


def test_a_call_that_found_no_thread_never_starts(monkeypatch, gate):
    """tools.md 5: stuck tools cannot grow threads without bound."""
    pool = WorkerPool(most=1)
    monkeypatch.setattr(_Process, "pool", pool)
    pool.submit(gate.wait)
    outcome = run(add_with_time_out := action(name="add", timeout=0.05)(add.fn), '{"a": 1}')
    assert (outcome.status, outcome.ran) == ("failed", False)
    assert "did not start" in told(outcome.result)["message"]
    gate.set()
    assert run(add_with_time_out, '{"a": 1}').status == "ok"
    assert RAN == ["add"]


@pytest.mark.slow
def test_a_stuck_tool_does_not_keep_the_process():
    """tools.md 5: 1 s means 1 s, with an 8 s tool."""
    code = """
import asyncio, time
from jarvis_nb import action, ToolExecutor, ToolCall
@action(timeout=1)
def wait() -> str:
    "Wait."
    time.sleep(8)
@action(timeout=1)
async def await_it() -> str:
    "Wait."
    while True:
        try:
            await asyncio.sleep(8)
        except asyncio.CancelledError:
            pass
executor = ToolExecutor([wait, await_it])
for name in ("wait", "await_it"):
    before = time.monotonic()
    executor.execute(ToolCall("1", name, "{}"))
    print(round(time.monotonic() - before, 1))
"""
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "1.0\n1.0\n"
    assert done.stderr == ""
    assert time.monotonic() - before < 6


# Together.


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_of_one_round_run_together_and_answer_in_call_order(is_async):
    """tools.md 7, toolsets.md 29: results in call order, whatever finished first."""

    def sync_wait(n: int) -> int:
        """Wait."""
        time.sleep(0.1 - n / 400)
        return n

    async def async_wait(n: int) -> int:
        """Wait."""
        await asyncio.sleep(0.1 - n / 400)
        return n

    executor = ToolExecutor([action(name="wait")(async_wait if is_async else sync_wait)])

    async def round_of_32():
        calls = [call("wait", {"n": n}, f"call_{n}") for n in range(32)]
        return await asyncio.gather(*map(executor.run, calls))

    before = time.perf_counter()
    outcomes = asyncio.run(round_of_32())
    assert time.perf_counter() - before < 1.0
    assert [o.output for o in outcomes] == list(range(32))


def test_what_a_tool_prints_belongs_to_the_cell_that_called_it():
    """The notebook: sync tools run in threads with the caller's context."""
    cell: contextvars.ContextVar[str] = contextvars.ContextVar("cell")

    @action
    def sync_where() -> str:
        """Where."""
        return cell.get()

    @action
    async def async_where() -> str:
        """Where."""
        return cell.get()

    executor = ToolExecutor([sync_where, async_where])
    for name in ("a", "b"):
        cell.set(name)
        for tool in ("sync_where", "async_where"):
            for how in ("execute", "aexecute"):
                assert by(how, executor, call(tool)).content == name


# Cancelling.


def cancelled_after(seconds, executor, one):
    outcome = Outcome(one)

    async def main():
        task = asyncio.ensure_future(executor.run(one, outcome=outcome))
        await asyncio.sleep(seconds)
        task.cancel()
        before = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.perf_counter() - before

    return outcome, asyncio.run(main())


def test_cancelling_a_sync_tool_marks_it_abandoned(stuck, gate):
    """tools.md 21, wire.md: every call id has its message (ran, failed, denied, cancelled, abandoned)."""
    outcome, took = cancelled_after(0.03, ToolExecutor([stuck]), call("wait"))
    assert took < 0.1
    assert (outcome.status, outcome.ran) == ("abandoned", True)
    assert told(outcome.result)["code"] == "cancelled"


def test_cancelling_before_a_thread_was_found_is_cancelled(monkeypatch, gate):
    pool = WorkerPool(most=1)
    monkeypatch.setattr(_Process, "pool", pool)
    pool.submit(gate.wait)
    outcome, _ = cancelled_after(0.02, ToolExecutor([add]), call("add", '{"a": 1}'))
    assert (outcome.status, outcome.ran) == ("cancelled", False)
    gate.set()
    workers().submit(lambda: None).wait(5)
    assert RAN == []


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancelling_an_async_tool(stubborn):
    """tools.md 21: stop within 0.5 s."""

    @action
    async def wait():
        """Wait."""
        while True:
            try:
                await asyncio.sleep(8)
            except asyncio.CancelledError:
                if not stubborn:
                    raise

    outcome, took = cancelled_after(0.02, ToolExecutor([wait]), call("wait"))
    assert took < 0.4
    assert (outcome.status, outcome.ran) == ("cancelled", True)
    assert told(outcome.result)["code"] == "cancelled"


def test_cancelling_waits_a_moment_for_a_tool_that_tidies_up():
    """flows.md 8: running ones awaited for a short grace."""
    tidied = []

    @action
    async def wait():
        """Wait."""
        try:
            await asyncio.sleep(8)
        finally:
            await asyncio.sleep(0.02)
            tidied.append(1)

    cancelled_after(0.02, ToolExecutor([wait]), call("wait"))
    assert tidied == [1]


def test_a_cancelled_tool_that_raises_something_else_is_cancelled_all_the_same():
    @action
    async def wait():
        """Wait."""
        try:
            await asyncio.sleep(8)
        except asyncio.CancelledError:
            raise ValueError("no") from None

    outcome, _ = cancelled_after(0.02, ToolExecutor([wait]), call("wait"))
    assert outcome.status == "cancelled"


def test_a_call_that_was_never_reached_says_so():
    """wire.md: history always closes."""
    outcome = Outcome(call("add"))
    assert (outcome.status, outcome.ran, outcome.tool) == ("cancelled", False, None)
    assert told(outcome.result)["code"] == "cancelled"
    assert outcome.result.tool_name == "add"
    outcome.give_up()
    assert outcome.ended == outcome.started > 0
    finished = run(add, '{"a": 1}')
    finished.give_up()
    assert (finished.status, finished.result.content) == ("ok", "2")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to one thread here")
@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupt_ends_the_sync_call_at_once(is_async, gate):
    """tools.md 21: stop within 0.5 s of an interrupt."""

    def sync_wait() -> None:
        """Wait."""
        gate.wait(20)

    async def async_wait() -> None:
        """Wait."""
        await asyncio.sleep(20)

    bus = EventBus(record_history=True)
    executor = ToolExecutor([action(name="wait")(async_wait if is_async else sync_wait)], bus)
    main = threading.main_thread().ident
    threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        executor.execute(call("wait"))
    assert time.monotonic() - before < 0.5
    assert bus.history[-1].data["status"] == ("cancelled" if is_async else "abandoned")


@pytest.mark.skipif(sys.platform == "win32", reason="the loop there has no selector to watch")
@pytest.mark.parametrize("is_async", [False, True])
def test_awaiting_a_call_keeps_the_loop_awake(is_async):
    """design.md rule 1: await paths wake every 100 ms."""

    def sync_wait() -> None:
        """Wait."""
        time.sleep(0.25)

    async def async_wait() -> None:
        """Wait."""
        await asyncio.sleep(0.25)

    executor = ToolExecutor([action(name="wait")(async_wait if is_async else sync_wait)])
    waits = []

    async def main():
        select = loop._selector.select
        loop._selector.select = lambda timeout=None: (waits.append(timeout), select(timeout))[1]
        await executor.aexecute(call("wait"))
        del loop._selector.select

    loop = asyncio.SelectorEventLoop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    slept = [t for t in waits if t is None or t > 0]
    assert len(slept) >= 2
    assert all(t is not None and t <= 0.11 for t in slept)


# Approval.


def approver(answer, asked=None):
    async def ask(request):
        if asked is not None:
            asked.append(request)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return ask


@BOTH
def test_without_an_approver_it_is_denied(how):
    """tools.md 6: denied, never let through."""
    error = told(by(how, ToolExecutor([delete]), call("delete", '{"path": "a"}')))
    assert error["code"] == "approval_unavailable"
    assert RAN == []
    assert run(delete, '{"path": "a"}').status == "denied"


@BOTH
def test_with_one_the_exact_call_is_shown(how):
    """tools.md 6: the exact name and arguments are shown."""
    asked: list = []
    executor = ToolExecutor([delete], approver=approver(Approve(), asked))
    result = by(how, executor, call("delete", '{"path": "a", "force": "true"}', "call_9"))
    assert result.content == "a is gone"
    assert RAN == [("delete", "a", True)]
    (request,) = asked
    assert (request.call_id, request.name, request.arguments) == (
        "call_9",
        "delete",
        {"path": "a", "force": True},
    )
    assert request.description == "Delete a file."
    assert request.parameters == delete.definition.parameters


def test_the_approver_cannot_change_the_call_behind_the_backs():
    """toolsets.md 34: an approval is bound to the exact name and arguments."""

    async def ask(request):
        request.arguments["path"] = "/"
        return Approve()

    outcome = run(delete, '{"path": "a"}', approver=ask)
    assert RAN == [("delete", "a", False)]
    assert outcome.arguments == {"path": "a"}


def test_the_approver_is_asked_each_time():
    asked: list = []
    executor = ToolExecutor([delete, add], approver=approver(Approve(always=True), asked))
    for _ in range(2):
        executor.execute(call("delete", '{"path": "a"}'))
    executor.execute(call("add", '{"a": 1}'))
    assert [request.name for request in asked] == ["delete", "delete"]


def test_refused_arguments_are_not_asked_about():
    asked: list = []
    outcome = run(delete, '{"path": 7}', approver=approver(Approve(), asked))
    assert (outcome.status, asked) == ("failed", [])


@BOTH
def test_edited_arguments_are_validated_like_the_models_own(how):
    """design.md: Approve(arguments=…)."""
    executor = ToolExecutor([delete], approver=approver(Approve({"path": "b", "force": "true"})))
    assert by(how, executor, call("delete", '{"path": "a"}')).content == "b is gone"
    assert RAN == [("delete", "b", True)]
    for edited in ({"path": 7}, {}, {"path": "b", "x": 1}, ["b"]):
        executor = ToolExecutor([delete], approver=approver(Approve(edited)))
        assert told(by(how, executor, call("delete", '{"path": "a"}')))["code"] == "invalid_arguments"
    assert len(RAN) == 1
    outcome = run(delete, '{"path": "a"}', approver=approver(Approve({"path": "b"})))
    assert outcome.arguments == {"path": "b"}


def test_a_denial_reaches_the_model_with_its_reason():
    """design.md: Deny(reason)."""
    outcome = run(delete, '{"path": "a"}', approver=approver(Deny("not that file")))
    assert (outcome.status, outcome.ran) == ("denied", False)
    assert told(outcome.result) == {"code": "denied", "message": "not that file"}
    assert told(run(delete, '{"path": "a"}', approver=approver(Deny(""))).result)["message"] == "denied"


def test_a_pause_leaves_the_call_pending():
    """toolsets.md 34: a paused turn."""
    outcome = run(delete, '{"path": "a"}', approver=approver(Pause()))
    assert (outcome.status, outcome.ran, outcome.arguments) == ("pending", False, {"path": "a"})
    assert told(outcome.result)["code"] == "approval_pending"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ValueError("no"), "denied"),
        (SystemExit(), "denied"),
        (ApprovalUnavailable("nobody is there"), "approval_unavailable"),
        (True, "denied"),
        (None, "denied"),
        ("yes", "denied"),
        (Approve, "denied"),
        ({"approve": True}, "denied"),
    ],
)
def test_an_approver_that_fails_or_gives_junk_denies(answer, code, caplog):
    """tools.md 6: fail closed."""
    outcome = run(delete, '{"path": "a"}', approver=approver(answer))
    assert (outcome.status, outcome.ran) == ("denied", False)
    assert told(outcome.result)["code"] == code
    assert RAN == []


def test_an_approver_may_be_plain():
    assert run(delete, '{"path": "a"}', approver=lambda request: Approve()).status == "ok"


def test_a_decision_taken_before_is_used_and_nobody_is_asked():
    """toolsets.md 34: a paused turn can be resumed."""
    asked: list = []
    ask = approver(Deny("no"), asked)
    assert run(delete, '{"path": "a"}', approver=ask, decision=Approve()).status == "ok"
    assert run(delete, '{"path": "a"}', approver=ask, decision=Deny("later")).status == "denied"
    assert run(delete, '{"path": "a"}', decision=Approve({"path": "c"})).output == "c is gone"
    assert run(delete, '{"path": "a"}', decision="junk").status == "denied"
    assert run(add, '{"a": 1}', decision=Deny("no")).status == "denied"
    assert asked == []
    assert RAN == [("delete", "a", False), ("delete", "c", False)]


def test_a_cancelled_question_leaves_the_call_cancelled():
    async def ask(request):
        await asyncio.sleep(8)

    outcome, _ = cancelled_after(0.02, ToolExecutor([delete], approver=ask), call("delete", '{"path": "a"}'))
    assert (outcome.status, outcome.ran) == ("cancelled", False)
    assert RAN == []


@pytest.mark.parametrize(
    ("answer", "decision", "edited"),
    [
        (Approve(), "approve", False),
        (Approve({"path": "b"}), "approve", True),
        (Deny("no"), "deny", False),
        (Pause(), "pause", False),
    ],
)
def test_questions_and_answers_are_events(answer, decision, edited):
    """tools.md 8: everything that happens is an event."""
    bus = EventBus(record_history=True)
    run(delete, '{"path": "a"}', bus=bus, approver=approver(answer))
    events = [e for e in bus.history if e.event_type.value.startswith("approval")]
    assert [e.event_type for e in events] == [EventType.APPROVAL_REQUEST, EventType.APPROVAL_DECISION]
    assert events[0].data == {"call_id": "call_1", "tool": "delete", "arguments": {"path": "a"}}
    assert (events[1].data["decision"], events[1].data["edited"]) == (decision, edited)


def test_waiting_for_a_person_is_not_the_tools_time():
    async def ask(request):
        await asyncio.sleep(0.15)
        return Approve()

    tool = action(name="delete", requires_confirmation=True, timeout=0.1)(delete.fn)
    outcome = run(tool, '{"path": "a"}', approver=ask)
    assert outcome.status == "ok"
    assert outcome.result.latency_seconds < 0.1


# The host's context.


def test_the_hosts_context_reaches_the_tool_with_the_call():
    """design.md: tool_context; ToolContext also has .progress."""

    @action
    def whoami(ctx: ToolContext) -> str:
        """Say who asks."""
        ctx.progress(1, 2, "half")
        return f"{ctx['tenant']} {ctx.call_id} {ctx.tool_name} {ctx.secrets['K']}"

    bus = EventBus(record_history=True)
    context = ToolContext({"tenant": "acme"}, secrets={"K": "v"})
    outcome = run(whoami, bus=bus, context=context)
    assert outcome.output == "acme call_1 whoami v"
    progress = [e.data for e in bus.history if e.event_type is EventType.TOOL_PROGRESS]
    assert progress == [{"call_id": "call_1", "tool": "whoami", "done": 1, "total": 2, "text": "half"}]
    assert context.call_id == ""

    @action
    def tenant(ctx: ToolContext) -> str:
        """Say who asks."""
        return ctx["tenant"]

    assert run(tenant, context={"tenant": "acme"}).output == "acme"


# Flows' traces.


def test_a_trace_beside_the_output_is_kept():
    """toolsets.md 28: for a flow its steps."""
    steps = [{"name": "order", "status": "ok"}]

    class Traced:
        def __init__(self):
            self.output, self.steps = {"n": 1}, steps

    class FlowLike(Echo):
        kind = "flow"

        async def execute(self, **params):
            return Traced()

    outcome = run(FlowLike(), '{"text": "x"}')
    assert (outcome.output, outcome.steps, outcome.result.content) == ({"n": 1}, steps, '{"n":1}')

    error = ToolError("step 'order' failed", code="step_failed")
    error.steps = steps  # type: ignore[attr-defined]
    outcome = run(raising(error))
    assert outcome.steps == steps


# Whatever comes.

names = st.sampled_from(["add", "add_async", "echo", "give", "nothing", "functions.add"]) | st.text(
    max_size=20
)
texts = st.sampled_from(['{"a": 1}', '{"text": "x"}', "{}", "", "null", "[1]", '{"a": "x"}', "{"]) | st.text(
    max_size=30
)


@given(
    names,
    texts | st.none() | st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
)
def test_every_call_has_an_answer(name, arguments):
    """tools.md 4: a ToolResult, never an exception."""
    executor = ToolExecutor([add, add_async, Echo(), giving({"x": object()})])
    result = executor.execute(call(name, arguments))
    assert isinstance(result.content, str)
    assert result.content.encode()
    assert result.success or json.loads(result.content)["error"]["code"]
    assert asyncio.run(executor.aexecute(call(name, arguments))).content == result.content


def test_reprs_are_deterministic():
    """design.md rule 4."""
    outcome = Outcome(call("add"))
    assert not re.search(r"0x[0-9a-f]+", repr(outcome))


@pytest.mark.slow
def test_importing_and_making_an_executor_is_light():
    """design.md rule 7."""
    code = (
        "import sys, threading\n"
        "from jarvis_nb import ToolExecutor, ToolCall\n"
        "from jarvis_nb.tools.think import ThinkTool\n"
        "executor = ToolExecutor([ThinkTool()])\n"
        "assert threading.active_count() == 1\n"
        "assert executor.execute(ToolCall('1', 'think', '{\"thought\": \"x\"}')).content == 'x'\n"
        "heavy = {'pydantic', 'griffe', 'jsonschema', 'numpy', 'httpx', 'aiohttp', 'IPython', 'rich', 'typer'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_a_partial_keeps_its_secret_from_the_record():
    def fetch(url: str, key: str) -> str:
        """Fetch."""
        return url

    outcome = run(action(functools.partial(fetch, key="s3cr3t")), '{"url": "u"}')
    assert outcome.arguments == {"url": "u"}
    assert "s3cr3t" not in repr(outcome)


def test_invalid_arguments_raised_by_a_tool_are_the_tools_failure():
    outcome = run(raising(InvalidArguments([{"field": "a", "message": "odd"}])))
    assert (outcome.status, outcome.ran) == ("failed", True)
    assert told(outcome.result)["code"] == "invalid_arguments"
