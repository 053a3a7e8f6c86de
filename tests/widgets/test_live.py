"""A run in its cell, by a bare client on the newest and the oldest ipykernel: notebook.md 2, 3, 7 and 13."""

import signal

import pytest
from driver import kernel

pytestmark = pytest.mark.slow

SETUP = """
import time
from jarvis_nb import Approve, Jarvis, ToolContext, action
from jarvis_nb.engines import ScriptedEngine, call
@action
def slow(n: int, context: ToolContext) -> int:
    "Take a while."
    for i in range(n):
        time.sleep(.05); context.progress(i + 1, n)
    return n
@action
def asks() -> str:
    "Ask within an ask."
    return make(4).ask("Inner?")
def make(n=8, tool="slow"):
    arguments = {"n": n} if tool == "slow" else {}
    return Jarvis(engine=ScriptedEngine([call(tool, **arguments), "It took a while now."], delay=.03), tools=[slow, asks])
"""
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module", params=["newest", "oldest"])
def front(request):
    env = request.getfixturevalue("oldest") if request.param == "oldest" else None
    with kernel(env) as one:
        assert one.run(SETUP).error == ""
        yield one


def kinds(said):
    return [(o["kind"], sorted(o["data"])) for o in said.outputs() if o["data"]]


def deltas(said):
    contents = [c["data"].get("content", {}) for c in said.of("comm_msg")]
    return [c for c in contents if c.get("op") == "delta"]


CARD = ["text/html", "text/plain"]


@pytest.mark.parametrize("ask", ["make().ask_full('Go')", "await make().aask_full('Go')"])
def test_03_one_card(front, ask):
    """notebook.md 2 and 3: live, then one card: the cell's value."""
    said = front.run(ask)
    assert said.error == ""
    assert any(WIDGET in c["data"] for c in said.of("display_data"))
    assert kinds(said) == [("execute_result", CARD)]
    sent = deltas(said)
    assert [d["seq"] for d in sent] == list(range(1, len(sent) + 1))
    changes = [change for d in sent for change in d["changes"]]
    assert any(change.get("progress") for change in changes)
    streamed = "".join(c["text"] for c in changes if c["is"] == "text")
    assert streamed.startswith("It ")
    assert "It took a while now.".startswith(streamed)


def test_02_static_where_the_reply_is_not_shown(front):
    """notebook.md 2: the display is updated with a bundle without a widget."""
    said = front.run("r = make().ask_full('Go'); print('text')")
    assert kinds(said) == [("display_data", CARD)]
    assert "✓ completed" in said.outputs()[0]["data"]["text/plain"]
    later = front.run("r")
    assert kinds(later) == [("execute_result", CARD)]
    assert later.of("update_display_data") == []


def test_03_two_runs_in_a_cell(front):
    """notebook.md 3: only the one that is shown gives way."""
    said = front.run("one = make().ask_full('One'); make().ask_full('Two')")
    texts = [o["data"]["text/plain"].splitlines()[0] for o in said.outputs() if o["data"]]
    assert texts == ["One", "Two"]


def test_02_nothing_live_for_many_at_once_for_a_stream_and_for_an_ask_within(front):
    """notebook.md 2."""
    assert (
        kinds(
            front.run(
                "_ = make().map(['a', 'b']) if False else Jarvis(engine=ScriptedEngine(['x', 'y'], delay=.3)).map(['a', 'b'])"
            )
        )
        == []
    )
    assert kinds(front.run("async for event in make().astream('Go'): pass")) == []
    said = front.run("r = make(tool='asks').ask_full('Outer?')")
    assert len(kinds(said)) == 1
    assert "Outer?" in said.outputs()[0]["data"]["text/plain"]


def test_02_a_run_of_a_moment_shows_nothing_live(front):
    """A run shorter than the patience leaves only its reply."""
    said = front.run("Jarvis(engine=ScriptedEngine(['Hi.'])).ask_full('Hello')")
    assert said.of("display_data", "update_display_data") == []
    assert kinds(said) == [("execute_result", CARD)]


def test_07_a_loop_does_not_fill_the_page(front):
    """A cell shows a bounded number of live cards."""
    said = front.run(
        "for _ in range(24): Jarvis(engine=ScriptedEngine(['x'], delay=.17)).ask('Hi')", timeout=60
    )
    assert said.status == "done"
    assert len(said.of("display_data")) == 20
    assert all(WIDGET not in o["data"] for o in said.outputs())


def test_07_messages_stay_few(front):
    """notebook.md 7: at most 20 a second, however much happens."""
    code = (
        "@action\nasync def busy(context: ToolContext) -> int:\n    'Busy.'\n    import asyncio\n"
        "    for i in range(2000):\n        context.progress(i, 2000)\n"
        "        if i % 20 == 0: await asyncio.sleep(.01)\n    return 1\n"
        "t = time.time(); r = Jarvis(engine=ScriptedEngine([call('busy'), 'x']), tools=[busy]).ask_full('Go'); print(time.time() - t)"
    )
    said = front.run(code)
    assert said.error == ""
    assert 3 <= len(deltas(said)) <= 22 * float(said.text) + 3


@pytest.mark.parametrize("ask", ["j.ask_full('Go')", "await j.aask_full('Go')"])
def test_13_an_interrupt_leaves_a_readable_card(front, ask):
    """notebook.md 13."""
    sent = []

    def react(one, message):
        if message["msg_type"] == "display_data" and not sent:
            sent.append(1)
            one.manager.signal_kernel(signal.SIGINT)

    said = front.run(f"j = make(60)\n{ask}", react=react)
    assert said.status == "done"
    assert said.error
    assert "■ interrupted" in said.outputs()[0]["data"]["text/plain"]
    assert WIDGET not in said.outputs()[0]["data"]
    assert front.run("print(j.last.status)").text == "cancelled\n"


def test_resumed_runs_are_live_too(front):
    """notebook.md 2."""
    front.run(
        "@action(requires_confirmation=True)\ndef pay(n: int) -> int:\n    'Pay.'\n    time.sleep(.4); return n"
    )
    code = (
        "j = Jarvis(engine=ScriptedEngine([call('pay', n=1), 'Paid.']), tools=[pay], approve='pause'); p = j.ask_full('Pay?')\n"
        "r = j.resume(p, {a.call_id: Approve() for a in p.pending}); print(r.status)"
    )
    said = front.run(code)
    assert said.text == "completed\n"
    assert "Paid." in said.outputs()[-1]["data"]["text/plain"]


def test_02_no_front_end(front):
    """notebook.md 2: headless, nothing is shown live."""
    said = front.run("make().ask_full('Go')", allow_stdin=False)
    assert [
        m["msg_type"] for m in said.messages if m["msg_type"].startswith(("comm", "display", "update"))
    ] == []
    assert kinds(said) == [("execute_result", CARD)]
