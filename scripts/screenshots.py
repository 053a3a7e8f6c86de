"""Makes the pictures of the README and the docs: real cells in a real JupyterLab. Needs Chromium.

.venv/bin/python scripts/screenshots.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from lab import Lab, Page, chromium, notebook  # noqa: E402 - it stands beside the browser tests

OUT = ROOT / "docs" / "images"

SETUP = '''
import time
from jarvis_nb import Flow, Jarvis, ToolContext, action
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.widgets import PolicyPicker, ToolBench

@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}

@action
def apply_discount(total_cents: int, percent: int = 10) -> dict:
    """Take a percentage off a total."""
    return {"total_cents": total_cents * (100 - percent) // 100}

@action(requires_confirmation=True)
def refund(order_id: str, cents: int) -> str:
    """Pay money back to the customer of an order."""
    return f"refunded {cents} cents of {order_id}"

@action
def recount_stock(shelves: int, context: ToolContext) -> int:
    """Count the stock again, shelf by shelf."""
    for n in range(shelves):
        time.sleep(0.1)
        context.progress(n + 1, shelves, f"shelf {n + 1} of {shelves}")
    return 12 * shelves

discount_order = Flow("discount_order", "Look up an order and take 10 percent off.", inputs={"order_id": str})
order = discount_order.step("order", lookup_order, order_id=discount_order.input("order_id"))
discount_order.output(discount_order.step("discount", apply_discount, total_cents=order["total_cents"]))

tools = [discount_order, "calculator", lookup_order, refund]
def j(*script):
    return Jarvis(engine=ScriptedEngine(list(script), usage=(412, 96), delay=0.05), approve="ask")
'''
CARD = """j(
    [call("discount_order", order_id="ORD-5"), call("calculator", expression="pi * r**2")],
    call("calculator", expression="pi * 7**2"),
    "With 10 percent off, order ORD-5 comes to $37.80; the circle's area is about 153.94.",
).ask_full(
    "Discount order ORD-5, and tell me the area of a circle with radius 7.",
    tools=tools, tool_policy={"hidden": ["refund"], "requirement": "required"},
)"""
LIVE = """j([call("recount_stock", shelves=40), call("lookup_order", order_id="ORD-5")], "480 are left.").ask_full(
    "How many lamps are left?", tools=[recount_stock, lookup_order])"""
GATE = """j(call("refund", order_id="ORD-5", cents=420), "Refunded.").ask_full("Refund ORD-5.", tools=[refund])"""
PICKER = 'picker = PolicyPicker([lookup_order, refund, apply_discount], {"hidden": ["refund"]}); picker'


def shoot(page: Page, cell: int, name: str) -> None:
    """Keep a picture of one cell."""
    OUT.mkdir(parents=True, exist_ok=True)
    found = page.page.locator(".jp-NotebookPanel .jp-Notebook .jp-CodeCell").nth(cell)
    found.scroll_into_view_if_needed()
    found.screenshot(path=str(OUT / f"{name}.png"))


def main() -> None:
    """Run each cell and keep its picture."""
    root = Path(tempfile.mkdtemp())
    notebook(root / "pictures.ipynb", SETUP, CARD, LIVE, GATE, PICKER)
    lab = Lab(root)
    try:
        with chromium(1180, 1400) as context:
            page = Page(lab, context, "pictures.ipynb")
            page.command("application:toggle-left-area")
            page.run(0)
            page.run(1)
            page.page.wait_for_timeout(500)
            shoot(page, 1, "run-card")
            page.run(2, wait=False)
            page.page.wait_for_function("document.querySelector('.jnb progress')?.value > 0.4")
            shoot(page, 2, "live")
            page.idle(2)
            page.run(3, wait=False)
            page.page.wait_for_selector(".jnb-gate button")
            shoot(page, 3, "approval")
            page.page.click(".jnb-gate button:has-text('Approve')")
            page.idle(3)
            page.run(4)
            page.page.wait_for_selector(".jnb select")
            shoot(page, 4, "policy-picker")
    finally:
        lab.close()


if __name__ == "__main__":
    main()
