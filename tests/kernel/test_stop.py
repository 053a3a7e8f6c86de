"""The stop button in a real kernel: tools.md 21, notebook.md 13."""

from __future__ import annotations

import ast
import json
import time

import pytest

from jarvis_nb.testing import HANG, StrictServer, chunks
from tests.kernel.kernels import Kernel

pytestmark = pytest.mark.slow

WITHIN = 0.5
"""Seconds from the interrupt to the kernel's idle."""

SETUP = '''
import asyncio, time, pathlib
from jarvis_nb import Flow, Jarvis, action
from jarvis_nb.engines import OpenAIEngine

def note(what):
    with open(NOTES, "a") as file:
        file.write(what + "\\n")

@action
def sync_tool(n: int) -> str:
    """Work on a thread."""
    note("sync_tool")
    time.sleep(3)
    return "late"

@action
async def async_tool(n: int) -> str:
    """Work on the loop."""
    note("async_tool")
    await asyncio.sleep(3)
    note("late effect")
    return "late"

@action
async def blocking_tool(n: int) -> str:
    """Hold the loop."""
    note("blocking_tool")
    time.sleep(3)
    return "late"

@action
def quick_tool(n: int) -> str:
    """Return at once."""
    return "quick"

@action
def counted_tool(n: int) -> str:
    """Leave a note."""
    note("counted_tool")
    return "counted"

@action
def interrupting_tool(n: int) -> str:
    """Raise what a stop button raises."""
    note("interrupting_tool")
    raise KeyboardInterrupt

@action
async def async_interrupting_tool(n: int) -> str:
    """Raise what a stop button raises, on the loop."""
    note("async_interrupting_tool")
    raise KeyboardInterrupt

flow_tool = Flow("flow_tool", "Two steps.", inputs={"n": int})
first = flow_tool.step("first", sync_tool, n=flow_tool.input("n"))
flow_tool.output(flow_tool.step("second", sync_tool, n=1).options(after=[first]))

tools = [sync_tool, async_tool, blocking_tool, quick_tool, counted_tool, interrupting_tool, async_interrupting_tool, flow_tool]
j = Jarvis(engine=OpenAIEngine(URL, api_key="k", retries=0), model="test-model", tools=tools, config={})

async def stream(question):
    async for event in j.astream(question):
        pass
    return event.reply
'''

ASKS = {
    "ask_full": "reply = j.ask_full({q!r})",
    "aask_full": "reply = await j.aask_full({q!r})",
    "astream": "reply = await stream({q!r})",
    "map": "reply = j.map([{q!r}, {q!r}])[0]",
}


def script(body):
    """Call the tools that the question names, round after round; "hang" hangs; "again" gets an answer."""
    question = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
    if question == "hang":
        return chunks(HANG)
    if question == "again":
        return "fine"
    rounds = sum(m["role"] == "assistant" for m in body["messages"])
    calls = [
        {
            "id": f"r{rounds}c{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"n": rounds})},
        }
        for n, name in enumerate(question.split())
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.fixture(scope="module")
def server():
    with StrictServer(script) as server:
        yield server


@pytest.fixture(scope="module")
def command():
    """How a kernel is started; None for this Python's."""
    return


@pytest.fixture(scope="module")
def kernels():
    """The running kernel; a dead one is replaced, so that one failure is one failure."""
    held: list[Kernel] = []
    yield held
    for kernel in held:
        kernel.close()


@pytest.fixture
def kernel(kernels, command, server, tmp_path):
    if kernels and not kernels[0].alive():
        kernels.pop().close()
    if not kernels:
        kernels.append(Kernel(command))
        kernels[0].run("1/0")  # the first traceback of a kernel imports what it is coloured with
        kernels[0].ok(f"URL = {server.url!r}\n{SETUP}")
    kernel = kernels[0]
    kernel.notes = tmp_path / "notes.txt"

    def fresh():
        kernel.notes.write_text("")
        kernel.seen = len(server.requests)
        kernel.ok(f"NOTES = {str(kernel.notes)!r}\nj.last = None")

    kernel.fresh = fresh
    fresh()
    return kernel


def noted(kernel, *names):
    """Whether these tools were entered."""
    return lambda: all(name in kernel.notes.read_text().splitlines() for name in names)


def stop(kernel, code, when, *, within=WITHIN):
    """Run and interrupt; on a machine that is busy with other things the better of two counts."""
    cell = kernel.run(code, interrupt_when=when)
    if within and cell.stopped_in >= within:
        time.sleep(3)  # what holds a thread or a loop has let go
        kernel.fresh()
        cell = kernel.run(code, interrupt_when=when)
    assert not within or cell.stopped_in < within
    return cell


def check_stopped(kernel, server, cell, *, entered=(), late=0.0):
    assert cell.status == "error"
    assert cell.error in {"KeyboardInterrupt", "CancelledError"}, cell.trace
    assert kernel.alive()
    state = kernel.ok(
        "(j.last.status, j.last.error.code, [(a.tool.name, a.status, a.ran) for a in j.last.tool_attempts])"
    )
    status, code, attempts = ast.literal_eval(state.value)
    assert (status, code) == ("cancelled", "interrupted")
    # The closed history is one that a strict server takes, and the conversation goes on.
    again = kernel.ok("j_last = j.last\nj.ask('again', history=j_last.messages)")
    assert again.value == "'fine'"
    assert [r.problems for r in server.requests[kernel.seen :] if r.problems] == []
    requests = len(server.requests)
    time.sleep(late)
    assert len(server.requests) == requests
    assert sorted(kernel.notes.read_text().split()) == sorted(entered)
    return attempts


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("tool", ["sync_tool", "async_tool"])
def test_21_a_tool_is_stopped(kernel, server, tool, ask):
    """tools.md 21: within 0.5 s, the history closed, nothing afterwards."""
    cell = stop(kernel, ASKS[ask].format(q=tool), noted(kernel, tool))
    entered = [tool, tool] if ask == "map" else [tool]
    ((name, status, ran),) = check_stopped(kernel, server, cell, entered=entered, late=1.0)
    assert (name, ran) == (tool, True)
    assert status in {"cancelled", "abandoned"}


@pytest.mark.parametrize("ask", ASKS)
def test_21_several_tools_are_stopped(kernel, server, ask):
    """tools.md 21: a round of calls, one of them done already."""
    question = "quick_tool sync_tool async_tool"
    cell = stop(kernel, ASKS[ask].format(q=question), noted(kernel, "sync_tool", "async_tool"))
    entered = ["sync_tool", "async_tool"] * (2 if ask == "map" else 1)
    attempts = check_stopped(kernel, server, cell, entered=entered)
    assert [name for name, _, _ in attempts] == ["quick_tool", "sync_tool", "async_tool"]
    assert attempts[0] == ("quick_tool", "ok", True)


@pytest.mark.parametrize("ask", ASKS)
def test_21_a_hanging_server_is_stopped(kernel, server, ask):
    """tools.md 21: the connection is closed, and the next ask gets its answer."""
    cell = stop(kernel, ASKS[ask].format(q="hang"), lambda: len(server.requests) > kernel.seen)
    assert check_stopped(kernel, server, cell) == []


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("question", ["blocking_tool", "blocking_tool counted_tool"])
def test_21_a_coroutine_that_holds_the_loop_is_stopped(kernel, server, ask, question):
    """tools.md 21: an async tool that blocks; no call starts, and no round, when it lets go.

    Under ``await`` it holds the kernel's own loop: the kernel stops the cell only when it lets go, and the
    other calls of its round, which begin with it, may have begun by then.
    """
    within = WITHIN if ask in {"ask_full", "map"} else None
    cell = stop(kernel, ASKS[ask].format(q=question), noted(kernel, "blocking_tool"), within=within)
    entered = ["blocking_tool"]
    if within is None and "counted_tool" in kernel.notes.read_text():
        entered += ["counted_tool"]
    # The other run of `map` may have been about to send its question when the loop was held.
    attempts = check_stopped(kernel, server, cell, entered=entered, late=0.0 if ask == "map" else 3.0)
    if ask != "map":  # there the last run may not have had its turn
        assert [name for name, _, _ in attempts] == question.split()


@pytest.mark.parametrize("ask", ASKS)
def test_21_a_flow_is_stopped(kernel, server, ask):
    """tools.md 21, flows.md Running 8: its second step never starts."""
    cell = stop(kernel, ASKS[ask].format(q="flow_tool"), noted(kernel, "sync_tool"))
    entered = ["sync_tool"] * (2 if ask == "map" else 1)
    ((name, _, ran),) = check_stopped(kernel, server, cell, entered=entered, late=3.2)
    assert (name, ran) == ("flow_tool", True)
    steps = kernel.ok("[(s['name'], s['status']) for s in j_last.tool_attempts[0].steps]")
    assert ast.literal_eval(steps.value) == [("first", "abandoned"), ("second", "cancelled")]


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(
    "question",
    [
        "interrupting_tool",
        "async_interrupting_tool",
        "quick_tool interrupting_tool",
        "async_interrupting_tool quick_tool",
    ],
)
def test_04_keyboard_interrupt_of_a_tool_passes_through(kernel, server, ask, question):
    """tools.md 4: with the history closed; the kernel lives."""
    cell = kernel.run(ASKS[ask].format(q=question))
    name = question.replace("quick_tool", "").strip()
    assert cell.error == "KeyboardInterrupt", cell.trace
    times = 2 if ask == "map" and kernel.notes.read_text().count(name) > 1 else 1  # the other of the two runs
    attempts = check_stopped(kernel, server, cell, entered=[name] * times)
    assert name in [tool for tool, _, _ in attempts] or ask == "map"


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("tool", ["interrupting_tool", "async_interrupting_tool"])
def test_04_keyboard_interrupt_of_a_flow_step_passes_through(kernel, server, ask, tool):
    """tools.md 4: steps side by side; the kernel lives."""
    kernel.ok(f"""
pair = Flow("pair", "Two steps side by side.", inputs={{"n": int}})
pair.step("quick", quick_tool, n=pair.input("n")).options(effect=True)
pair.output(pair.step("stop", {tool}, n=pair.input("n")))
j.tools = [*tools, pair]
""")
    cell = kernel.run(ASKS[ask].format(q="pair"))
    assert cell.error == "KeyboardInterrupt", cell.trace
    times = 2 if ask == "map" and kernel.notes.read_text().count(tool) > 1 else 1
    check_stopped(kernel, server, cell, entered=[tool] * times)


@pytest.mark.parametrize("ask", ["ask_full", "aask_full"])
def test_21_prints_of_sync_tools_land_in_their_cell(kernel, ask):
    """tools.md 21: what a tool prints on its thread is the running cell's output."""
    kernel.ok('''
@action
def printing(n: int) -> str:
    """Print."""
    print("from the tool", n)
    return "printed"
from jarvis_nb.engines import ScriptedEngine, call
p = Jarvis(engine=ScriptedEngine([call("printing", n=1), "ok", call("printing", n=2), "ok"]), tools=[printing], config={})
''')
    for n in (1, 2):
        call = "p.ask_full('x')" if ask == "ask_full" else "await p.aask_full('x')"
        cell = kernel.ok(f"_ = {call}")
        assert cell.printed == f"from the tool {n}\n"


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("kind", ["", "async "])
def test_21_a_source_that_hangs_while_it_lists_is_stopped(kernel, server, ask, kind):
    """tools.md 21: before any model call; there is no run yet to record."""
    kernel.ok(f"""
from jarvis_nb import ToolSource
class Hanging(ToolSource):
    {kind}def list_tools(self, config, context):
        note("listing")
        {"await asyncio" if kind else "time"}.sleep(5)
        return []
    def run_tool(self, name, arguments, config, context):
        return None
j.tool_sources = [(Hanging, {{}})]
""")
    try:
        cell = stop(kernel, ASKS[ask].format(q="quick_tool"), noted(kernel, "listing"))
        assert cell.error in {"KeyboardInterrupt", "CancelledError"}, cell.trace
        assert len(server.requests) == kernel.seen
    finally:
        kernel.ok("j.tool_sources = []")
    assert kernel.ok("j.ask('again')").value == "'fine'"


@pytest.mark.parametrize(
    "resume", ["j.resume(paused, {{'{id}': Approve()}})", "await j.aresume(paused, {{'{id}': Approve()}})"]
)
def test_21_a_resumed_run_is_stopped(kernel, server, resume):
    """tools.md 21, toolsets.md 34: the record of a resume that was stopped has a closed history too."""
    kernel.ok('''
from jarvis_nb import Approve
@action(requires_confirmation=True)
def careful_tool(n: int) -> str:
    """Work on a thread."""
    note("careful_tool")
    time.sleep(3)
    return "late"
j.tools = [*tools, careful_tool]
j.approve = "pause"
paused = j.ask_full("careful_tool quick_tool")
j.approve = None
''')
    call_id = ast.literal_eval(kernel.ok("paused.pending[0].call_id").value)
    cell = stop(kernel, resume.format(id=call_id), noted(kernel, "careful_tool"))
    attempts = check_stopped(kernel, server, cell, entered=["careful_tool"])
    assert attempts == [("careful_tool", "abandoned", True), ("quick_tool", "ok", True)]
    assert kernel.ok("paused.status").value == "'paused'"
