"""The table of toolsets.md 17, row by row, in whole asks."""

from __future__ import annotations

import pytest

from jarvis_nb import JarvisError, action
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.jarvis import Jarvis

FORCED = {"type": "function", "function": {"name": "lookup_order"}}
ORDER = call("lookup_order", order_id="ORD-5")
OTHER = call("count_orders")


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action
def count_orders() -> int:
    """Count the orders."""
    return 3


def asked(policy, *steps):
    engine = ScriptedEngine(steps)
    reply = Jarvis(engine=engine, config={}).ask_full(
        "q", tools=[lookup_order, count_orders], tool_policy=policy
    )
    engine.assert_complete()
    return reply, engine.requests


@pytest.mark.parametrize(
    ("policy", "steps", "choices", "status"),
    [
        ({}, [ORDER, "Done."], ["auto", "auto"], "completed"),
        ({}, ["Done."], ["auto"], "completed"),
        ({"visible": []}, ["Done."], [None], "completed"),
        ({"requirement": "required"}, [ORDER, "Done."], ["required", "auto"], "completed"),
        ({"requirement": "required"}, ["Done."], ["required"], "failed"),
        ({"requirement": "disabled"}, ["Done."], [None], "completed"),
        ({"requirement": "disabled", "visible": []}, ["Done."], [None], "completed"),
        ({"requirement": {"tool": "lookup_order"}}, [ORDER, "Done."], [FORCED, "auto"], "completed"),
        ({"requirement": {"tool": "lookup_order"}}, ["Done."], [FORCED], "failed"),
        ({"requirement": {"tool": "lookup_order"}}, [OTHER, "Done."], [FORCED, "auto"], "failed"),
    ],
)
def test_17_choices_sent_and_the_outcome(policy, steps, choices, status):
    """toolsets.md 17: the choice of each call, no key where nothing is offered, and the check of the outcome."""
    reply, requests = asked(policy, *steps)
    assert [request.tool_choice for request in requests] == choices
    assert [request.tools is None for request in requests] == [choice is None for choice in choices]
    assert (reply.status, reply.output) == (status, "Done.")
    assert (reply.error.code if reply.error else None) == (
        "required_tool_not_called" if status == "failed" else None
    )


def test_17_a_stray_call_of_a_disabled_request_is_refused():
    """toolsets.md 17, 16."""
    reply, requests = asked({"requirement": "disabled"}, ORDER, "Done.")
    assert (reply.status, reply.output, reply.tool_rounds) == ("completed", "Done.", 0)
    assert (reply.tool_attempts[0].ran, reply.tool_attempts[0].error.code) == (False, "tool_not_offered")
    assert [request.tool_choice for request in requests] == [None, None]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"visible": [], "requirement": "required"}, "required_without_tools"),
        ({"hidden": ["lookup_order", "count_orders"], "requirement": "required"}, "required_without_tools"),
        ({"hidden": ["lookup_order"], "requirement": {"tool": "lookup_order"}}, "required_tool_not_selected"),
        (
            {"visible": ["count_orders"], "requirement": {"tool": "lookup_order"}},
            "required_tool_not_selected",
        ),
        ({"requirement": {"tool": "lookup_ordr"}}, "unknown_tools"),
        ({"visible": ["lookup_ordr"], "requirement": "disabled"}, "unknown_tools"),
        ({"hidden": ["lookup_ordr"]}, "unknown_tools"),
    ],
)
def test_17_errors_before_any_model_call(policy, code):
    """toolsets.md 17, 15."""
    engine = ScriptedEngine(["never"])
    with pytest.raises(JarvisError) as caught:
        Jarvis(engine=engine, config={}).ask("q", tools=[lookup_order, count_orders], tool_policy=policy)
    assert (caught.value.code, engine.requests) == (code, [])
