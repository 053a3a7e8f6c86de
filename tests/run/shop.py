"""A small shop: the tools and runs that the tests of this room share."""

from __future__ import annotations

from jarvis_nb import Flow, Jarvis, action
from jarvis_nb.engines import ScriptedEngine


@action
def lookup_order(order_id: str, detail: bool = False) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action
def apply_discount(total_cents: int, percent: int) -> dict:
    """Compute a discounted total."""
    return {"total_cents": total_cents * (100 - percent) // 100}


@action
def fail(reason: str) -> str:
    """Fail."""
    raise RuntimeError(reason)


@action(requires_confirmation=True)
def delete_order(order_id: str) -> str:
    """Delete one order."""
    return f"deleted {order_id}"


discount_order = Flow("discount_order", "Discount an order.", inputs={"order_id": str})
order = discount_order.step("order", lookup_order, order_id=discount_order.input("order_id"))
discount_order.output(
    discount_order.step("price", apply_discount, total_cents=order["total_cents"], percent=10)
)

TOOLS = [lookup_order, fail, delete_order, discount_order, "calculator"]


def run(*steps, question="Show order ORD-5.", tools=None, jarvis=None, **options):
    """Ask once, with a script."""
    j = Jarvis(engine=ScriptedEngine(list(steps)), config={}, **(jarvis or {}))
    return j.ask_full(question, tools=TOOLS if tools is None else tools, **options)
