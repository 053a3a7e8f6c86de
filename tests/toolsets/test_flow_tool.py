"""A flow as a tool and as another flow's step: flows.md, "Running" 9, toolsets.md 1, 2 and 28."""

import asyncio
import json
from typing import Any

import pytest

from jarvis_nb import Flow, ToolExecutor, Toolset, action
from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.types import ToolCall
from jarvis_nb.tools.action import as_tool
from jarvis_nb.tools.base import BaseTool, ToolContext
from jarvis_nb.tools.executor import Outcome
from jarvis_nb.toolsets.flow import FlowError, FlowFailed


@action
def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up one order by ID."""
    if order_id == "X":
        raise ToolError("order 'X' does not exist", code="unknown_order")
    return {"order_id": order_id, "total_cents": 4200}


@action
def apply_discount(total_cents: int, percent: int) -> dict[str, int]:
    """Compute a discounted total."""
    return {"total_cents": total_cents * (100 - percent) // 100}


def discount_order() -> Flow:
    flow = Flow(
        "discount_order",
        "Look up an order and compute its 10 percent discount",
        inputs={"order_id": str},
    )
    order = flow.step("order", lookup_order, order_id=flow.input("order_id"))
    price = flow.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)
    flow.output(price)
    return flow


def outcome_of(tool: Any, arguments: dict[str, Any], **options: Any) -> Outcome:
    executor = ToolExecutor([tool], **options)
    return asyncio.run(executor.run(ToolCall("call_1", as_tool(tool).name, json.dumps(arguments))))


def test_01_a_flow_is_a_tool_of_its_own_kind():
    """toolsets.md 1 and 2: name, description and inputs become the tool's."""
    tool = as_tool(discount_order())
    assert isinstance(tool, BaseTool)
    assert tool.kind == "flow"
    assert tool.definition.name == "discount_order"
    assert tool.definition.description == "Look up an order and compute its 10 percent discount"
    assert tool.definition.parameters == {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
        "additionalProperties": False,
    }


def test_01_a_toolset_takes_a_flow_as_it_is():
    """toolsets.md 1: the tutorial's definitions."""
    definitions = Toolset([lookup_order, discount_order()]).definitions()
    assert [(d.name, d.description) for d in definitions] == [
        ("lookup_order", "Look up one order by ID."),
        ("discount_order", "Look up an order and compute its 10 percent discount"),
    ]


def test_04_the_same_flow_twice_is_the_same_object_twice():
    """toolsets.md 4."""
    flow = discount_order()
    assert flow.as_tool() is flow.as_tool()
    with pytest.raises(Exception, match="twice") as caught:
        Toolset([flow, flow])
    assert caught.value.code == "duplicate_tools"


def test_a_flow_that_is_not_valid_fails_where_the_toolset_is_built():
    """flows.md: errors where the flow is defined."""
    flow = discount_order()
    flow.output(flow.result("nope"))
    with pytest.raises(FlowError) as caught:
        Toolset([flow])
    assert caught.value.code == "unknown_step"


def test_05_a_renamed_copy_keeps_the_flow():
    """toolsets.md 5."""
    tool = discount_order().as_tool()
    renamed = tool.with_name("cheaper")
    assert (tool.name, renamed.name, renamed.definition.name) == ("discount_order", "cheaper", "cheaper")
    assert outcome_of(renamed, {"order_id": "A"}).output == {"total_cents": 3780}


def test_a_step_declared_again_counts_from_the_next_call_on():
    """toolsets.md 6: what was offered before stays the flow it was."""
    flow = discount_order()
    tool = flow.as_tool()
    flow.declaration.steps["discount"].params["percent"] = 50
    flow.declaration.changed()
    assert outcome_of(tool, {"order_id": "A"}).output == {"total_cents": 2100}


def test_09_a_flow_s_output_is_a_mapping_and_reaches_the_model_as_compact_json():
    """flows.md Running 9; toolsets.md 33."""
    outcome = outcome_of(discount_order(), {"order_id": "ORD-5"})
    assert outcome.status == "ok"
    assert outcome.output == {"total_cents": 3780}
    assert outcome.result.content == '{"total_cents":3780}'


def test_09_a_failed_step_is_one_short_error_with_the_step_s_name():
    """flows.md Running 9; toolsets.md 31: no traceback."""
    outcome = outcome_of(discount_order(), {"order_id": "X"})
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.code == "step_failed"
    assert outcome.error.message == "step 'order' failed: order 'X' does not exist"
    assert outcome.result.success is False
    assert "step 'order' failed: order 'X' does not exist" in outcome.result.content
    assert "Traceback" not in outcome.result.content
    assert len(outcome.result.content) < 300


def test_09_a_long_failure_is_short_for_the_model():
    """flows.md Running 9."""

    @action
    def shout() -> None:
        """Fail at length."""
        raise ToolError("no " * 10_000)

    flow = Flow("f", "A flow.")
    flow.output(flow.step("a", shout))
    outcome = outcome_of(flow, {})
    assert outcome.error is not None
    assert len(outcome.error.message) < 400


def test_28_the_outcome_of_a_flow_has_its_steps():
    """toolsets.md 28."""
    outcome = outcome_of(discount_order(), {"order_id": "ORD-5"})
    assert outcome.steps is not None
    assert [(s["name"], s["status"], s["tool"]) for s in outcome.steps] == [
        ("order", "ok", "lookup_order"),
        ("discount", "ok", "apply_discount"),
    ]
    assert json.loads(json.dumps(outcome.steps)) == outcome.steps


def test_28_a_failed_flow_s_outcome_has_its_steps_too():
    """toolsets.md 28; flows.md Running 10."""
    outcome = outcome_of(discount_order(), {"order_id": "X"})
    assert outcome.steps is not None
    assert [(s["name"], s["status"]) for s in outcome.steps] == [("order", "error"), ("discount", "skipped")]
    assert outcome.steps[0]["error"] == {"code": "unknown_order", "message": "order 'X' does not exist"}


def test_28_a_flow_that_overran_ends_by_itself_with_its_steps():
    """flows.md Running 5 and 10."""

    @action
    async def slow() -> int:
        """Take long."""
        await asyncio.sleep(5)
        return 1

    flow = Flow("f", "A flow.", timeout=0.1)
    flow.output(flow.step("a", slow))
    outcome = outcome_of(flow, {})
    assert outcome.error is not None
    assert outcome.error.code == "flow_timeout"
    assert outcome.steps is not None
    assert [(s["name"], s["status"]) for s in outcome.steps] == [("a", "error")]


def test_28_a_cancelled_flow_s_outcome_has_its_steps():
    """toolsets.md 28; flows.md Running 8 and 10."""

    @action
    async def slow() -> int:
        """Take long."""
        await asyncio.sleep(5)
        return 1

    flow = Flow("f", "A flow.")
    flow.output(flow.step("b", apply_discount, total_cents=flow.step("a", slow), percent=1))
    call = ToolCall("call_1", "f", "{}")
    outcome = Outcome(call)

    async def ask() -> None:
        task = asyncio.ensure_future(ToolExecutor([flow]).run(call, outcome=outcome))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert outcome.status == "cancelled"
    assert outcome.steps is not None
    assert [(s["name"], s["status"]) for s in outcome.steps] == [("a", "cancelled"), ("b", "cancelled")]


def test_arguments_a_flow_refuses_never_enter_it():
    """tools.md 4: the field is named."""
    flow = discount_order()
    outcome = outcome_of(flow, {"order": "ORD-5"})
    assert outcome.error is not None
    assert outcome.error.code == "invalid_arguments"
    assert outcome.ran is False
    assert flow.last is None


def test_the_host_s_context_reaches_a_flow():
    """design.md: tool_context is what flow.context("key") reads."""

    @action
    def greet(name: str, tenant: str) -> str:
        """Greet."""
        return f"{name} of {tenant}"

    flow = Flow("greet_flow", "Greet somebody.", inputs={"name": str})
    flow.output(flow.step("a", greet, name=flow.input("name"), tenant=flow.context("tenant")))
    outcome = outcome_of(flow, {"name": "Ada"}, context={"tenant": "acme"})
    assert outcome.output == {"result": "Ada of acme"}


def test_a_flow_needs_confirmation_when_a_step_s_tool_does():
    """tools.md 6: never let through, not inside a flow either."""

    @action(requires_confirmation=True)
    def delete(order_id: str) -> str:
        """Delete an order."""
        return order_id

    inner = Flow("inner", "Inner.", inputs={"order_id": str})
    inner.output(inner.step("a", delete, order_id=inner.input("order_id")))
    outer = Flow("outer", "Outer.", inputs={"order_id": str})
    outer.output(outer.step("inner", inner, order_id=outer.input("order_id")))
    for flow in (inner, outer):
        assert flow.as_tool().spec.requires_confirmation is True
        outcome = outcome_of(flow, {"order_id": "A"})
        assert outcome.status == "denied"
        assert outcome.ran is False
    assert discount_order().as_tool().spec.requires_confirmation is False
    assert outer.run(order_id="A") == {"result": "A"}


def test_a_flow_within_a_flow():
    flow = Flow("twice", "Discount two orders.", inputs={"a": str, "b": str})
    first = flow.step("first", discount_order(), order_id=flow.input("a"))
    second = flow.step("second", discount_order(), order_id=flow.input("b"))
    flow.output({"first": first["total_cents"], "second": second})
    assert flow.run(a="A", b="B") == {"first": 3780, "second": {"total_cents": 3780}}
    assert flow.last is not None
    inner = flow.last["first"].steps
    assert inner is not None
    assert [s["name"] for s in inner] == ["order", "discount"]
    with pytest.raises(FlowFailed) as caught:
        flow.run(a="A", b="X")
    assert caught.value.message == "step 'second' failed: step 'order' failed: order 'X' does not exist"
    assert [s["status"] for s in caught.value.steps[1]["steps"]] == ["error", "skipped"]


def test_what_is_known_of_a_flow_s_output_is_checked():
    """flows.md: unknown_output_field where the action declares its output; a flow's is known from its own."""
    inner = Flow("inner", "Inner.", inputs={"n": int})
    doubled = inner.step("a", apply_discount, total_cents=inner.input("n"), percent=0)
    inner.output({"price": doubled["total_cents"], "note": "fixed", "whole": doubled})
    assert inner.tool.output_schema["properties"]["price"] == {"type": "integer"}
    assert inner.tool.output_schema["properties"]["note"] == {"type": "string"}
    outer = Flow("outer", "Outer.")
    step = outer.step("inner", inner, n=1)
    outer.output([step["price"], step["prize"], step["note"]["x"]])
    with pytest.raises(FlowError) as caught:
        outer.validate()
    assert [(p.code, p.path) for p in caught.value.problems] == [
        ("unknown_output_field", "output[1]"),
        ("unknown_output_field", "output[2]"),
    ]


def test_an_output_that_is_no_mapping_is_known_under_result():
    inner = Flow("inner", "Inner.")
    inner.output(inner.step("a", apply_discount, total_cents=1, percent=0)["total_cents"])
    assert inner.tool.output_schema["properties"] == {"result": {"type": "integer"}}
    assert inner.run() == {"result": 1}


def test_by_hand_a_flow_tool_s_failures_are_results():
    """tools.md: execute gives a ToolResult."""
    tool = discount_order().as_tool()
    good = asyncio.run(tool.execute(order_id="A"))
    assert (good.success, good.content) == (True, '{"total_cents":3780}')
    bad = asyncio.run(tool.execute(order_id="X"))
    assert (bad.success, bad.content) == (False, "step 'order' failed: order 'X' does not exist")
    assert asyncio.run(tool.execute(order=1)).success is False


def test_one_definition_for_many_calls():
    tool = discount_order().as_tool()
    assert tool.definition is tool.definition
    assert asyncio.run(tool.invoke({"order_id": "A"}, ToolContext())).output == {"total_cents": 3780}
    assert tool.flow.last is not None
