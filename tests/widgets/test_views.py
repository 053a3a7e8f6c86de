"""The live views without a browser: notebook.md 7 to 12 and 14."""

import json
import subprocess
import sys

import pytest

from jarvis_nb import Jarvis, ToolContext, Toolset, action
from jarvis_nb.core.approval import ApprovalRequest, Approve, Deny
from jarvis_nb.core.errors import JarvisError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.widgets import ApprovalGate, Playground, PolicyPicker, RunView, ToolBench
from jarvis_nb.widgets.live import EVERY_SECONDS
from jarvis_nb.widgets.view import HERE, View


@action
def lookup_order(order_id: str, detailed: bool = False, tags: list[str] | None = None) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "detailed": detailed, "tags": tags}


@action(requires_confirmation=True)
def refund(cents: int) -> str:
    """Pay money back."""
    return f"refunded {cents}"


TOOLS = Toolset([lookup_order, refund])


class Model:
    """A fake widget model: what would go to the page is kept."""

    def __init__(self, view):
        self.sent = []
        self.snapshot = None
        view._model = self

    def send(self, message):
        self.sent.append(message)

    def close(self):
        self.sent.append("closed")


def test_14_widgets_are_imported_when_one_is_shown():
    """notebook.md 14; design: ``from jarvis_nb import Jarvis`` pulls in none."""
    code = (
        "import sys; import jarvis_nb; from jarvis_nb import Jarvis, Toolset, Reply\n"
        "from jarvis_nb.engines import ScriptedEngine\n"
        "r = Jarvis(engine=ScriptedEngine(['Hi.'])).ask_full('Hello'); r._repr_mimebundle_()\n"
        "print([m for m in ('ipywidgets', 'anywidget', 'IPython', 'jarvis_nb.widgets') if m in sys.modules])\n"
        "from jarvis_nb.widgets import RunView, PolicyPicker; PolicyPicker([])._repr_mimebundle_()\n"
        "print([m for m in ('ipywidgets', 'anywidget', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_08_scripts_and_styles_are_small_and_local():
    """Issue 5: under 60 kB together; notebook.md 8: no CDN."""
    files = [*HERE.glob("*.js"), *HERE.glob("*.css")]
    assert len(files) >= 8
    assert sum(f.stat().st_size for f in files) < 60_000
    for file in files:
        assert "http" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "view",
    [RunView(), PolicyPicker(TOOLS), ToolBench(refund), ApprovalGate(ApprovalRequest("c", "refund", {})), Playground(Jarvis(engine=ScriptedEngine([])))],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_01_a_line_a_text_and_a_picture_without_a_front_end(view):
    """notebook.md 1 and 2: headless, a view is its static form and opens no widget."""
    assert set(view._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert view._model is None
    assert "\n" not in repr(view)
    assert "0x" not in repr(view)
    json.dumps(view.state())


def ask(*steps, **options):
    j = Jarvis(engine=ScriptedEngine(list(steps), usage=(7, 3)), tools=[lookup_order, refund])
    view = RunView(j.bus)
    model = Model(view)
    return view, model, j.ask_full("What of ORD-5?", **options)


def test_07_a_run_as_numbered_deltas():
    """notebook.md 7."""
    view, model, reply = ask([call("lookup_order", order_id="ORD-5"), call("refund", cents=1)], "Done.")
    deltas = [m for m in model.sent if m["op"] == "delta"]
    assert [m["seq"] for m in deltas] == list(range(1, len(deltas) + 1))
    state = view.state()
    assert [(c["name"], c["mark"], c["round"]) for c in state["calls"]] == [
        ("lookup_order", "✓", 1),
        ("refund", "⊘", 1),
    ]
    assert state["run"]["question"] == "What of ORD-5?"
    assert model.snapshot["state"] == state
    view.finish(reply)
    assert view.static() == reply._repr_mimebundle_()
    assert view.state()["run"]["answer"] == "Done."


@pytest.mark.parametrize("number", [10, 10_000])
def test_07_bytes_per_update_are_constant(number):
    """Issue 5: from 10 to 10,000 calls."""
    view = RunView()
    for n in range(number):
        view.change(
            [
                {
                    "is": "call",
                    "id": f"c{n}",
                    "round": 1,
                    "name": "x",
                    "arguments": "",
                    "mark": "▶",
                    "word": "running",
                }
            ]
        )
    model = Model(view)
    view.heard = True
    view.send(view.change([{"is": "call", "id": "c9", "mark": "✓", "result": "r" * 100}]))
    assert len(json.dumps(model.sent[-1])) < 250


def test_07_a_front_end_that_is_not_heard_gets_snapshots_ever_more_rarely(monkeypatch):
    """notebook.md 7: in a blocking cell the hello cannot be heard."""
    now = [0.0]
    monkeypatch.setattr("jarvis_nb.widgets.view.time.monotonic", lambda: now[0])
    view = RunView()
    model = Model(view)
    written = 0
    for _ in range(200):
        now[0] += 0.05
        model.snapshot = None
        view.send([])
        written += model.snapshot is not None
    assert 2 <= written <= 6


def test_07_hello_and_resync_are_answered_with_the_whole():
    """notebook.md 7 and 8."""
    view, model, _ = ask("Hi.")
    view._on_message(None, {"op": "hello", "have": -1}, None)
    assert model.sent[-1]["op"] == "all"
    assert model.sent[-1]["snapshot"] == {"seq": view._seq, "state": view.state()}
    model.sent.clear()
    view._on_message(None, {"op": "resync", "have": view._seq}, None)
    assert model.sent == []


@pytest.mark.parametrize("message", [None, 7, {}, {"op": 3}, {"op": "answer"}, {"op": "answer", "decision": {}}, {"op": "choose"}, {"op": "run", "fields": 3}, {"op": "run", "json": "["}, {"op": "ask"}, {"op": "choose", "hidden": [3]}])  # fmt: skip
def test_05_odd_messages_of_a_front_end_do_nothing(message, caplog):
    """notebook.md 5: what a page sends is untrusted."""
    for view in (
        RunView(),
        PolicyPicker(TOOLS),
        ToolBench(refund),
        ApprovalGate(ApprovalRequest("c", "x", {})),
    ):
        Model(view)
        before = view.state() if not isinstance(view, ToolBench | PolicyPicker) else None
        view._on_message(None, message, None)
        if before is not None:
            assert view.state() == before
    assert PolicyPicker(TOOLS).policy.to_dict()["visible"] is None


def test_05_streamed_text_and_progress():
    """Issue 5: progress of tools that report it, streaming of the answer."""
    bus = EventBus()
    view = RunView(bus)
    bus.publish(EventType.RUN_START, question="Q", model="m", engine="m", agent="a", tools=[])
    bus.publish(EventType.ROUND_START, round=1, offered=["slow"], choice="auto")
    bus.publish(EventType.TOOL_CALL_START, call_id="a", tool="slow", arguments={"n": 2})
    ToolContext({}, call_id="a", tool_name="slow", bus=bus).progress(1, 2, "half")
    assert view.state()["calls"][0]["progress"] == {"share": 0.5, "text": "half"}
    ToolContext({}, call_id="a", tool_name="slow", bus=bus).progress(3)
    assert view.state()["calls"][0]["progress"] == {"share": None, "text": "3"}
    for piece in ("It ", "is."):
        bus.publish(EventType.TEXT, text=piece)
    assert view.state()["run"]["answer"] == "It is."
    assert "▶ slow(n=2)" in view.static()["text/plain"]


def test_07_at_most_twenty_updates_a_second():
    """notebook.md 7."""
    assert 1 / EVERY_SECONDS <= 20


def test_09_the_picker():
    """notebook.md 9: the policy, its offer and tokens at once, the code that does the same."""
    picker = PolicyPicker(TOOLS)
    assert picker.code == "tool_policy=ToolPolicy()"
    picker.receive({"op": "choose", "visible": ["refund"], "hidden": [], "requirement": {"tool": "refund"}})
    state = picker.state()
    assert [t["offered"] for t in state["tools"]] == [False, True]
    assert state["tokens"] > 10
    assert state["first"].startswith("must call refund")
    namespace = {}
    exec(f"from jarvis_nb import ToolPolicy\ngiven = dict({picker.code})", namespace)
    assert namespace["given"]["tool_policy"] == picker.policy
    picker.receive({"op": "choose", "visible": [], "hidden": [], "requirement": "required"})
    assert "a tool has to run and none is selected" in picker.problem
    assert picker.policy.forced == "refund"


def test_10_the_bench_reads_its_form():
    """notebook.md 10."""
    bench = ToolBench(lookup_order)
    fields = {f["name"]: f["as"] for f in bench.state()["fields"]}
    assert fields == {"order_id": "text", "detailed": "choice", "tags": "json"}
    bench.receive({"op": "run", "fields": {"order_id": "ORD-5", "detailed": "true", "tags": '["a"]'}})
    assert json.loads(bench.state()["content"]) == {"order_id": "ORD-5", "detailed": True, "tags": ["a"]}
    bench.receive({"op": "run", "json": '{"order_id": 5}'})
    assert bench.state()["status"] == "failed"
    assert "order_id" in bench.state()["problem"]
    bench.receive({"op": "run", "fields": {"tags": "["}})
    assert "tags is not JSON" in bench.state()["problem"]


def test_10_as_a_test_gives_a_test_that_passes():
    """notebook.md 10."""
    bench = ToolBench(refund)
    with pytest.raises(JarvisError, match="nothing was run yet"):
        bench.as_test()
    bench.run({"cents": 5})
    for arguments in ({"cents": 5}, {"cents": "no"}):
        bench.run(arguments)
        source = f"{bench.as_test()}\ntest_refund()"
        exec(source, {"refund": refund})
        with pytest.raises(AssertionError):
            exec(source, {"refund": _other})
    bench = ToolBench(lookup_order)
    bench.run({"order_id": "A"})
    exec(f"{bench.as_test()}\ntest_lookup_order()", {"lookup_order": lookup_order})


@action(name="refund")
def _other(cents: str) -> str:
    """Another tool of the same name."""
    return "other"


def test_11_the_playground():
    """notebook.md 11: question, tools, policy, engine; run; the card."""
    second = ScriptedEngine(["From the second."])
    j = Jarvis(engine=ScriptedEngine([call("lookup_order", order_id="A"), "Found."]), tools=[lookup_order])
    play = Playground(j, engines={"second": second})
    play.receive({"op": "choose", "visible": None, "hidden": [], "requirement": "required"})
    play.receive({"op": "ask", "question": "Where is A?", "engine": "", "agent": ""})
    assert play.reply is not None
    assert play.reply.policy["requirement"] == "required"
    assert "Found." in play.static()["text/html"]
    play.choose({})
    play.receive({"op": "ask", "question": "And now?", "engine": "second", "agent": "simple"})
    assert play.reply.output == "From the second."
    play.receive({"op": "ask", "question": "More?", "engine": "second", "agent": ""})
    assert "script" in play.state()["failure"]


def test_12_the_gate_binds_to_the_call_it_showed():
    """notebook.md 12."""
    request = ApprovalRequest("c", "refund", {"cents": 5}, "Pay.", refund.definition.parameters)
    gate = ApprovalGate(request)
    gate.answer({"decision": "approve", "arguments": '{"cents": 5}'})
    assert gate.decision == Approve()
    gate.receive({"op": "answer", "decision": "deny"})
    assert gate.decision == Approve()
    gate = ApprovalGate(request)
    gate.answer({"decision": "perhaps"})
    gate.answer({"decision": "approve", "arguments": '{"euros": 5}'})
    assert gate.decision is None
    assert gate.state()["problem"]
    gate.answer({"decision": "always", "arguments": '{"cents": "6"}'})
    assert gate.decision == Approve({"cents": 6}, always=True)
    gate = ApprovalGate(request)
    gate.answer({"decision": "deny", "reason": "  "})
    assert gate.decision == Deny("denied by the user")
    assert gate.static()["text/plain"] == "⊘ denied: denied by the user · refund(cents=5)"


def test_a_view_needs_its_parts():
    """The base says what a view has to give."""
    with pytest.raises(TypeError, match="state"):
        View()
