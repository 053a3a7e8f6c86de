"""Mistakes found where a flow is defined: flows.md, "Errors where the flow is defined"."""

import asyncio
from typing import Any

import pytest
from typing_extensions import TypedDict

from jarvis_nb import BaseTool, Flow, JarvisError, ToolResult, ToolSpec, action
from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.toolsets.flow import FlowError


class Order(TypedDict):
    order_id: str
    total_cents: int
    lines: list[str]


@action
def lookup(order_id: str) -> Order:
    """Look up one order."""
    return {"order_id": order_id, "total_cents": 4200, "lines": []}


@action
def discount(total_cents: int, percent: int = 10) -> dict[str, int]:
    """Compute a discounted total."""
    return {"total_cents": total_cents * (100 - percent) // 100}


@action
def open_lookup(order_id: str) -> dict[str, Any]:
    """Look up one order; the output is not declared."""
    return {"order_id": order_id}


def make(**inputs: Any) -> Flow:
    return Flow("orders", "Look up orders.", inputs=inputs or {"order_id": str})


def problems(flow: Flow) -> list[tuple[str, str | None, str]]:
    with pytest.raises(FlowError) as caught:
        flow.validate()
    found = caught.value.problems
    assert caught.value.code == found[0].code
    assert all(problem.message for problem in found)
    return [(problem.code, problem.step, problem.path) for problem in found]


def told(flow: Flow) -> str:
    with pytest.raises(FlowError) as caught:
        flow.validate()
    return str(caught.value)


def hint(flow: Flow) -> str:
    with pytest.raises(FlowError) as caught:
        flow.validate()
    return caught.value.problems[0].hint


def good() -> Flow:
    flow = make()
    order = flow.step("order", lookup, order_id=flow.input("order_id"))
    price = flow.step("price", discount, total_cents=order["total_cents"])
    flow.output(price)
    return flow


def test_a_valid_flow_has_no_problems_and_no_warnings():
    flow = good()
    flow.validate()
    assert flow.warnings == ()


def test_empty_flow():
    assert problems(make()) == [("empty_flow", None, "")]


def test_missing_output():
    flow = make()
    flow.step("order", lookup, order_id=flow.input("order_id"))
    assert problems(flow) == [("missing_output", None, "")]


@pytest.mark.parametrize("name", ["", "Order", "1st", "a-b", "a b", "näh", "x" * 64, "a\n", 3, None])
def test_invalid_step_name(name):
    flow = make()
    flow.output(flow.step(name, lookup, order_id=flow.input("order_id")))
    assert [code for code, *_ in problems(flow)] == ["invalid_step_name"]


def test_duplicate_step_with_the_same_and_with_another_tool():
    flow = good()
    flow.step("order", lookup, order_id="B")
    flow.step("price", lookup, order_id="B")
    assert problems(flow) == [("duplicate_step", "order", ""), ("duplicate_step", "price", "")]


def test_unknown_step_suggests_the_closest_name():
    flow = good()
    flow.output(flow.result("prize", "total_cents"))
    assert problems(flow) == [("unknown_step", None, "output")]
    assert hint(flow) == "did you mean 'price'?"


def test_unknown_step_in_a_parameter_and_in_after():
    flow = make()
    flow.output(flow.step("order", lookup, order_id=flow.result("nobody")).options(after="nothing"))
    assert problems(flow) == [("unknown_step", "order", "order_id"), ("unknown_step", "order", "after")]


def test_self_reference_is_no_cycle():
    flow = make()
    flow.output(flow.step("order", lookup, order_id=flow.result("order", "order_id")).options(after="order"))
    assert problems(flow)[:2] == [
        ("self_reference", "order", "order_id"),
        ("self_reference", "order", "after"),
    ]
    assert "cycle" not in [code for code, *_ in problems(flow)]


def test_cycle_tells_one_concrete_path():
    flow = make()
    flow.step("a", open_lookup, order_id=flow.result("c", "x"))
    flow.step("b", open_lookup, order_id=flow.result("a", "x"))
    flow.step("c", open_lookup, order_id=flow.result("b", "x"))
    flow.step("d", open_lookup, order_id=flow.result("c", "x"))
    flow.output(flow.result("d"))
    with pytest.raises(FlowError) as caught:
        flow.validate()
    assert [p.code for p in caught.value.problems] == ["cycle"]
    assert "a → b → c → a" in str(caught.value)


def test_cycle_by_after():
    flow = make()
    a = flow.step("a", open_lookup, order_id="1").options(after="b")
    flow.output(flow.step("b", open_lookup, order_id="2").options(after=a))
    assert [code for code, *_ in problems(flow)] == ["cycle"]
    assert "a → b → a" in told(flow)


def test_a_long_chain_is_no_recursion():
    flow = make()
    ref: Any = flow.input("order_id")
    for index in range(3000):
        ref = flow.step(f"s{index}", open_lookup, order_id=ref)["order_id"]
    flow.output(ref)
    flow.validate()


def test_forward_references_are_valid():
    """An edge comes from a reference, never from source order."""
    flow = make()
    flow.step("price", discount, total_cents=flow.result("order", "total_cents"))
    flow.step("order", lookup, order_id=flow.input("order_id"))
    flow.output(flow.result("price"))
    flow.validate()
    assert flow.run(order_id="A") == {"total_cents": 3780}


def test_unknown_input_field():
    flow = make()
    flow.output(flow.step("order", lookup, order_id=flow.input("order")))
    assert problems(flow) == [("unknown_input_field", "order", "order_id")]
    assert hint(flow) == "did you mean 'order_id'?"


def test_unknown_input_field_inside_an_input():
    flow = make(order=Order)
    flow.output(flow.step("price", discount, total_cents=flow.input("order")["total"]))
    assert problems(flow) == [("unknown_input_field", "price", "total_cents")]


def test_unknown_param_and_missing_param():
    flow = make()
    flow.output(flow.step("order", lookup, oder_id=flow.input("order_id")))
    assert problems(flow) == [("unknown_param", "order", "oder_id"), ("missing_param", "order", "order_id")]
    assert hint(flow) == "did you mean 'order_id'?"


def test_a_parameter_with_a_default_is_not_missing():
    good().validate()


def test_unknown_output_field_where_the_output_is_declared():
    flow = make()
    order = flow.step("order", lookup, order_id=flow.input("order_id"))
    flow.output(flow.step("price", discount, total_cents=order["total"]))
    assert problems(flow) == [("unknown_output_field", "price", "total_cents")]
    assert "total_cents" in hint(flow)


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        (("order_id",), True),
        (("lines", 0), True),
        (("lines", "first"), False),
        (("order_id", "x"), False),
        ((0,), False),
        (("lines", 0, "sku"), False),
    ],
)
def test_unknown_output_field_paths(path, fine):
    flow = make()
    order = flow.step("order", lookup, order_id=flow.input("order_id"))
    flow.output({"it": order.get(*path)})
    if fine:
        flow.validate()
    else:
        assert problems(flow) == [("unknown_output_field", None, "output.it")]


def test_an_undeclared_output_may_hold_anything():
    flow = make()
    order = flow.step("order", open_lookup, order_id=flow.input("order_id"))
    flow.output(order["whatever"][3]["it"])
    flow.validate()


@pytest.mark.parametrize("value", ["ten", 1.5, None, True, [10], {"percent": 10}])
def test_type_mismatch_of_a_constant(value):
    flow = make()
    order = flow.step("order", lookup, order_id=flow.input("order_id"))
    flow.output(flow.step("price", discount, total_cents=order["total_cents"], percent=value))
    assert problems(flow) == [("type_mismatch", "price", "percent")]


def test_constants_are_checked_against_schemas_that_refer_to_themselves():
    tree = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
        "required": ["value"],
    }

    class Tree(BaseTool):
        tool_id = "tree"
        spec = ToolSpec("tree", "Take a tree.", tree)

        def execute(self, /, **params):
            return ToolResult("tree", "done")

    flow = make()
    flow.step("good", Tree(), value=1, next={"value": 2, "next": {"value": 3}})
    flow.output(flow.step("bad", Tree(), value=1, next={"value": 2, "next": {"value": "x"}}))
    assert problems(flow) == [("type_mismatch", "bad", "next")]
    assert "next.value: " in told(flow)


def test_type_mismatch_of_an_input():
    flow = make(total=str)
    flow.output(flow.step("price", discount, total_cents=flow.input("total")))
    assert problems(flow) == [("type_mismatch", "price", "total_cents")]


@pytest.mark.parametrize("annotation", [int, int | None, int | str, Any])
def test_an_input_whose_type_may_fit_is_fine(annotation):
    flow = make(total=annotation)
    flow.output(flow.step("price", discount, total_cents=flow.input("total")))
    flow.validate()


def test_type_mismatch_of_a_declared_result_only_where_nothing_could_convert_it():
    flow = make()
    order = flow.step("order", lookup, order_id=flow.input("order_id"))
    flow.step("whole", discount, total_cents=order)
    flow.step("text", discount, total_cents=order["order_id"])
    flow.output(order)
    assert problems(flow) == [("type_mismatch", "whole", "total_cents")]


def test_type_mismatch_of_a_container_with_references_in_it():
    flow = make()
    flow.output(flow.step("price", discount, total_cents=[flow.input("order_id")]))
    assert problems(flow) == [("type_mismatch", "price", "total_cents")]


async def _coroutine() -> None: ...


def test_invalid_ref():
    coroutine = _coroutine()
    live = {
        "an_object": object(),
        "a_lambda": lambda: 1,
        "a_coroutine": coroutine,
        "a_class": Order,
        "a_tool": lookup,
        "a_module": asyncio,
        "a_generator": (x for x in "ab"),
        "a_flow": good(),
    }
    for name, value in live.items():
        flow = make()
        flow.output(flow.step("order", open_lookup, order_id=value))
        assert problems(flow) == [("invalid_ref", "order", "order_id")], name
        flow = make()
        flow.output(flow.step("order", open_lookup, order_id={"deep": [value]}))
        assert problems(flow)[0] == ("invalid_ref", "order", "order_id.deep[0]"), name
    coroutine.close()


def test_invalid_ref_of_another_flow():
    other = Flow("other", "Another flow.", inputs={"order_id": str})
    flow = make()
    flow.output(flow.step("order", lookup, order_id=other.input("order_id")).options(after=other.result("x")))
    assert problems(flow) == [("invalid_ref", "order", "order_id"), ("invalid_ref", "order", "after")]


def test_invalid_ref_in_after():
    flow = make()
    flow.output(flow.step("order", lookup, order_id="A").options(after=[3]))
    assert problems(flow) == [("invalid_ref", "order", "after")]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "a"}, {"a"}, b"raw", 1j], ids=repr)
def test_not_portable(value):
    flow = make()
    flow.output(flow.step("order", open_lookup, order_id=value))
    assert problems(flow) == [("not_portable", "order", "order_id")]


def test_not_portable_output_default_and_depth():
    flow = make()
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    order = flow.step("order", open_lookup, order_id=flow.input("order_id"))
    flow.output({"a": order.get("x", default={1, 2}), "b": deep})
    assert [code for code, *_ in problems(flow)] == ["not_portable", "not_portable"]


def test_recursive_flow():
    flow = make()
    flow.output(flow.step("again", flow, order_id=flow.input("order_id")))
    assert problems(flow) == [("recursive_flow", "again", "")]
    assert "orders → orders" in told(flow)


def test_recursive_flow_through_another():
    inner = Flow("inner", "Inner.", inputs={"order_id": str})
    outer = make()
    outer.output(outer.step("inner", inner, order_id=outer.input("order_id")))
    inner.output(inner.step("outer", outer, order_id=inner.input("order_id")))
    assert "recursive_flow" in [code for code, *_ in problems(outer)]
    assert "recursive_flow" in [code for code, *_ in problems(inner)]
    assert "orders → inner → orders" in told(outer)
    with pytest.raises(FlowError):
        outer.run(order_id="A")
    with pytest.raises(FlowError):
        outer.as_tool()
    assert outer.tool.spec.requires_confirmation is False
    assert "recursive_flow" in str(outer.explain())


def test_a_mistake_in_a_flow_within_is_told():
    inner = Flow("inner", "Inner.", inputs={"order_id": str})
    inner.output(inner.step("order", lookup, oder=inner.input("order_id")))
    outer = make()
    outer.output(outer.step("inner", inner, order_id=outer.input("order_id")))
    assert problems(outer) == [
        ("unknown_param", "inner", "order, oder"),
        ("missing_param", "inner", "order, order_id"),
    ]


def test_what_is_no_tool_is_told_with_the_rest():
    flow = make()
    flow.step("order", 7)  # type: ignore[arg-type]
    flow.output(flow.step("price", discount, total_cents=flow.result("order"), percent="x"))
    assert problems(flow) == [("not_a_tool", "order", ""), ("type_mismatch", "price", "percent")]


@pytest.mark.parametrize(
    ("option", "value"), [("timeout", 0), ("timeout", "1"), ("retries", -1), ("retries", "x")]
)
def test_invalid_options(option, value):
    flow = make()
    flow.output(flow.step("order", lookup, order_id="A").options(**{option: value}))
    assert problems(flow) == [("invalid_option", "order", option)]


def test_all_mistakes_are_collected_in_declaration_order():
    flow = make()
    flow.step("A", lookup, order_id=flow.input("nope"))
    flow.step("price", discount, total_cents="x", prcent=1)
    flow.step("price", discount, total_cents=1)
    with pytest.raises(FlowError) as caught:
        flow.validate()
    error = caught.value
    assert [p.code for p in error.problems] == [
        "invalid_step_name",
        "unknown_input_field",
        "type_mismatch",
        "unknown_param",
        "duplicate_step",
        "missing_output",
    ]
    assert isinstance(error, JarvisError)
    assert error.code == "invalid_step_name"
    assert all(p.hint or p.code == "type_mismatch" for p in error.problems)
    text = str(error)
    assert "orders" in text
    assert "step 'price', prcent: 'discount' takes no 'prcent'" in text
    assert error.info().details is not None


def test_nothing_runs_while_a_mistake_is_there():
    flow = good()
    flow.output({"a": flow.result("nope")})
    with pytest.raises(FlowError):
        flow.run(order_id="A")
    with pytest.raises(FlowError):
        flow.as_tool()
    flow.output(flow.result("price"))
    assert flow.run(order_id="A") == {"total_cents": 3780}


def test_warning_for_a_step_the_output_does_not_need():
    flow = good()
    flow.step("audit", lookup, order_id="A")
    assert [(w.code, w.step) for w in flow.warnings] == [("unused_step", "audit")]
    flow.run(order_id="A")
    assert flow.last is not None
    assert flow.last["audit"].status == "ok"


def test_effect_silences_the_warning_for_it_and_for_what_it_needs():
    flow = good()
    first = flow.step("first", lookup, order_id="A")
    flow.step("audit", lookup, order_id=first["order_id"]).options(effect=True)
    assert flow.warnings == ()


def test_warning_for_an_input_never_read():
    flow = Flow("orders", "Look up orders.", inputs={"order_id": str, "unread": int})
    flow.output(flow.step("order", lookup, order_id=flow.input("order_id")))
    assert [(w.code, w.path) for w in flow.warnings] == [("unread_input", "input 'unread'")]


def test_warning_for_retries_of_what_is_not_idempotent():
    flow = make()
    flow.output(flow.step("order", lookup, order_id=flow.input("order_id")).options(retries=2))
    assert [(w.code, w.step) for w in flow.warnings] == [("retries_ignored", "order")]


def test_constants_are_taken_when_the_step_is_declared():
    flow = make()
    ids = ["A"]
    flow.output(flow.step("order", open_lookup, order_id=ids))
    ids.append("B")
    assert "B" not in str(flow.explain())


@pytest.mark.parametrize("name", ["Orders", "", "a-b", "x" * 64])
def test_the_flow_s_own_name(name):
    with pytest.raises(ToolsetError) as caught:
        Flow(name, "Look up orders.")
    assert caught.value.code == "invalid_name"


@pytest.mark.parametrize("description", ["", "  \n", None])
def test_a_blank_description_names_the_flow(description):
    """toolsets.md 2."""
    with pytest.raises(ToolsetError, match="orders") as caught:
        Flow("orders", description)
    assert caught.value.code == "blank_description"


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"not valid": str}, "invalid_input"),
        ({"when": object()}, "invalid_input"),
        ({"n": (int, "x")}, "type_mismatch"),
        ({"n": (float, float("nan"))}, "not_portable"),
    ],
)
def test_inputs_that_cannot_be(inputs, code):
    with pytest.raises(FlowError) as caught:
        Flow("orders", "Look up orders.", inputs=inputs)
    assert caught.value.code == code


@pytest.mark.parametrize("options", [{"max_concurrency": 0}, {"timeout": 0}, {"timeout": float("inf")}])
def test_limits_that_cannot_be(options):
    with pytest.raises(FlowError) as caught:
        Flow("orders", "Look up orders.", **options)
    assert caught.value.code == "invalid_option"


@pytest.mark.parametrize("inputs", [["order_id"], "order_id", str, 5])
def test_inputs_are_a_dict_of_names_and_types(inputs):
    """flows.md: a mistake of the author's is a FlowError in the cell that makes it."""
    with pytest.raises(FlowError, match='order_id": str') as caught:
        Flow("f", "A flow.", inputs=inputs)
    assert caught.value.code == "invalid_input"
