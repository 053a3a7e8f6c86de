"""Flows in a notebook: toolsets.md 6, nothing fails because a cell ran twice."""

import itertools
import os
import signal
import threading
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SETUP = '''
from jarvis_nb import Flow, action

@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}

@action
def apply_discount(total_cents: int, percent: int) -> dict:
    """Compute a discounted total."""
    return {"total_cents": total_cents * (100 - percent) // 100}
'''
FLOW = 'flow = Flow("discount_order", "Discount an order.", inputs={"order_id": str})'
ORDER = 'order = flow.step("order", lookup_order, order_id=flow.input("order_id"))'
PRICE = 'price = flow.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)'
OUTPUT = "flow.output(price)"
STEPS = [ORDER, PRICE, OUTPUT]


@pytest.fixture(params=[True, False], ids=["history", "silent history"])
def cell(request):
    """Run a cell in an IPython shell of its own."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(user_ns={}, config=config)

    def run(code: str) -> Any:
        result = shell.run_cell(code, store_history=request.param)
        result.raise_error()
        return shell.user_ns.get("flow")

    yield run
    InteractiveShell.clear_instance()


def test_06_every_declaring_cell_runs_twice_in_any_order(cell):
    """toolsets.md 6."""
    for code in (SETUP, FLOW, *STEPS):
        cell(code)
    assert cell("").run(order_id="ORD-5") == {"total_cents": 3780}
    for order in itertools.permutations([SETUP, *STEPS]):
        for code in order * 2:
            flow = cell(code)
        flow.validate()
        assert list(flow.declaration.steps) == ["order", "discount"]
        assert flow.run(order_id="ORD-5") == {"total_cents": 3780}
    for code in (FLOW, FLOW, *STEPS, *reversed(STEPS)):
        flow = cell(code)
    assert flow.run(order_id="ORD-5") == {"total_cents": 3780}


def test_06_an_edited_cell_replaces_what_it_declared(cell):
    """toolsets.md 6."""
    for code in (SETUP, FLOW, *STEPS, PRICE.replace("10", "50"), OUTPUT):
        flow = cell(code)
    assert flow.run(order_id="ORD-5") == {"total_cents": 2100}
    cell(SETUP.replace("4200", "8000"))
    cell(ORDER)
    assert flow.run(order_id="ORD-5") == {"total_cents": 4000}


def test_a_flow_and_its_steps_in_one_cell(cell):
    """toolsets.md 6."""
    for _ in range(3):
        cell(SETUP)
        flow = cell("\n".join([FLOW, *STEPS]))
        assert flow.run(order_id="ORD-5") == {"total_cents": 3780}


@pytest.mark.parametrize(
    "codes",
    [
        [ORDER + "\n" + ORDER],
        ["for _ in range(2):\n    " + ORDER],
        [ORDER, ORDER.replace("lookup_order", "CalculatorTool()").replace("order_id=", "expression=")],
        [ORDER + "\n" + ORDER, ORDER + "\n" + ORDER],
    ],
    ids=["one cell", "a loop", "another tool in another cell", "the faulty cell twice"],
)
def test_duplicate_step_is_still_found(cell, codes):
    """flows.md: duplicate_step."""
    for code in (SETUP + "from jarvis_nb.tools.calculator import CalculatorTool", FLOW, *STEPS, *codes):
        flow = cell(code)
    with pytest.raises(Exception, match="two steps are called 'order'") as caught:
        flow.validate()
    assert caught.value.code == "duplicate_step"


def test_a_corrected_cell_corrects_the_flow(cell):
    """toolsets.md 6: a mistake does not outlive its cell."""
    for code in (SETUP, FLOW, ORDER + "\n" + ORDER, PRICE, OUTPUT):
        flow = cell(code)
    assert "duplicate_step" in str(flow.explain())
    cell(ORDER)
    cell('7; bad = flow.step("bad", 7)')
    assert "not_a_tool" in str(flow.explain())
    cell('bad = flow.step("bad", lookup_order, order_id=order["order_id"]).options(effect=True)')
    flow.validate()
    assert flow.run(order_id="ORD-5") == {"total_cents": 3780}


def test_run_and_await_in_cells(cell):
    """flows.md Running 2."""
    for code in (SETUP, FLOW, *STEPS):
        cell(code)
    cell(
        "import asyncio\nasync def both():\n    return flow.run(order_id='A'), await flow.arun(order_id='B')"
    )
    cell("got = asyncio.run(both())")
    cell("assert got == ({'total_cents': 3780}, {'total_cents': 3780}), got")


def test_the_flow_shows_itself(cell):
    """notebook.md 1."""
    from IPython.core.interactiveshell import InteractiveShell

    for code in (SETUP, FLOW, *STEPS):
        cell(code)
    flow = cell("")
    data, _ = InteractiveShell.instance().display_formatter.format(flow)
    assert data["text/plain"] == str(flow.explain())
    assert data["text/html"] == flow.to_html()
    assert data["text/vnd.mermaid"].startswith("flowchart TD")
    data, _ = InteractiveShell.instance().display_formatter.format(flow.mermaid())
    assert set(data) == {"text/plain", "text/vnd.mermaid"}


@pytest.fixture(scope="module")
def kernel():
    """Run code in a real ipykernel; returns what it printed."""
    from jupyter_client.manager import KernelManager
    from jupyter_core.utils import ensure_event_loop

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code: str, *, interrupt_after: float | None = None) -> str:
        printed: list[str] = []

        def hook(message: Any) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
            elif message["msg_type"] == "error":
                printed.append(content["ename"])
            elif message["msg_type"] == "status" and interrupt_after and content["execution_state"] == "busy":
                threading.Timer(interrupt_after, os.kill, (manager.provisioner.pid, signal.SIGINT)).start()

        client.execute_interactive(code, timeout=60, output_hook=hook)
        return "".join(printed)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.context.destroy()
    ensure_event_loop().close()  # the client's own: nobody else closes it


def test_06_in_the_ipykernel_every_cell_twice_in_any_order(kernel):
    """toolsets.md 6; flows.md Running 2."""
    for code in (SETUP, FLOW, *STEPS):
        assert kernel(code) == ""
    for order in itertools.permutations(STEPS):
        for code in order * 2:
            assert kernel(code) == ""
        assert kernel("print(flow.run(order_id='A'), flow.warnings)") == "{'total_cents': 3780} ()\n"
    assert kernel("print(await flow.arun(order_id='A'))") == "{'total_cents': 3780}\n"


@pytest.mark.parametrize(
    ("call", "raised"), [("flow.run()", "KeyboardInterrupt"), ("await flow.arun()", "CancelledError")]
)
def test_08_the_stop_button_ends_a_flow(kernel, call, raised):
    """tools.md 21; flows.md Running 8."""
    kernel(SLOW)
    code = (
        f"started = time.perf_counter()\ntry:\n    {call}\nfinally:\n    took = time.perf_counter() - started"
    )
    assert kernel(code, interrupt_after=0.3) == raised
    assert kernel("print(took < 1, [s.status for s in flow.last])") == "True ['abandoned', 'cancelled']\n"


SLOW = '''
import time
from jarvis_nb import Flow, action

@action
def sleep(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds

flow = Flow("slow", "Sleep.")
flow.output(flow.step("b", sleep, seconds=flow.step("a", sleep, seconds=4)))
'''
