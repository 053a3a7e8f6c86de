"""Approval while a cell runs, sync and awaited, on the oldest and the newest ipykernel: notebook.md 12 and 13."""

import signal

import pytest
from driver import OLDEST, Kernel, kernel

pytestmark = pytest.mark.slow

SETUP = """
import ipykernel, time
from jarvis_nb import Jarvis, action
from jarvis_nb.engines import ScriptedEngine, call
ran = []
@action(requires_confirmation=True)
def refund(order_id: str, cents: int) -> str:
    "Pay money back."
    ran.append((order_id, cents))
    return f"refunded {cents}"
def make(*steps):
    return Jarvis(engine=ScriptedEngine([*(steps or [call("refund", order_id="ORD-5", cents=420)]), "Done."]), approve="ask", tools=[refund])
def tell(r):
    print([(a.status, a.arguments, a.error and a.error.message) for a in r.tool_attempts], ran)
"""
ASKS = {"sync": "r = make().ask_full('Go'); tell(r)", "awaited": "r = await make().aask_full('Go'); tell(r)"}


@pytest.fixture(scope="module", params=["newest", "newest, subshell", "oldest"])
def front(request):
    """A kernel with a front end; JupyterLab sends comm messages over a subshell."""
    env = request.getfixturevalue("oldest") if request.param == "oldest" else None
    with kernel(env, subshell="subshell" in request.param) as one:
        said = one.run(SETUP + "print(ipykernel.__version__)")
        assert said.error == ""
        assert said.text.startswith(OLDEST) == (request.param == "oldest")
        yield one


def clicker(*answers, hello=True):
    """Play a person at the gate: say hello when a gate opens, and give the answers in turn."""
    left = list(answers)
    seen = []

    def react(front: Kernel, message) -> None:
        content = message["content"]
        if message["msg_type"] == "comm_open":
            gate = content["data"].get("state", {}).get("snapshot", {}).get("state", {})
            if gate.get("status") != "waiting":
                return
            seen.append(gate)
            if hello:
                front.send(content["comm_id"], {"op": "hello", "have": 0})
            if left:
                front.send(content["comm_id"], {"op": "answer", **left.pop(0)})
        elif message["msg_type"] == "comm_msg" and left:
            for change in content["data"].get("content", {}).get("changes", ()):
                if change.get("is") == "gate" and change.get("problem"):
                    seen.append(change)
                    front.send(content["comm_id"], {"op": "answer", **left.pop(0)})

    return react, seen


WAYS = pytest.mark.parametrize("way", ASKS)


@WAYS
def test_12_approve(front, way):
    react, seen = clicker({"decision": "approve", "arguments": None})
    said = front.run("ran.clear()\n" + ASKS[way], react=react)
    assert (said.status, said.error) == ("done", "")
    assert "('ok', {'order_id': 'ORD-5', 'cents': 420}, None)] [('ORD-5', 420)]" in said.text
    assert seen[0]["name"] == "refund"
    assert seen[0]["arguments"] == '{\n  "order_id": "ORD-5",\n  "cents": 420\n}'
    for output in said.outputs():
        assert "application/vnd.jupyter.widget-view+json" not in output["data"]
    assert any("✓ approved" in o["data"].get("text/plain", "") for o in said.outputs())


@WAYS
def test_12_deny_with_a_reason_that_reaches_the_model(front, way):
    react, _ = clicker({"decision": "deny", "reason": "too much money"})
    said = front.run("ran.clear()\n" + ASKS[way] + "\nprint(r.messages[-2].content)", react=react)
    assert said.status == "done"
    assert "'denied'" in said.text
    assert '"message":"too much money"' in said.text
    assert said.text.rstrip().splitlines()[0].endswith("[]")


@WAYS
def test_12_edit_validated(front, way):
    """A wrong edit is refused in the gate, which stays open."""
    react, seen = clicker(
        {"decision": "approve", "arguments": '{"order_id": "ORD-5", "cents": "many"}'},
        {"decision": "approve", "arguments": "{"},
        {"decision": "approve", "arguments": '{"order_id": "ORD-6", "cents": 1}'},
    )
    said = front.run("ran.clear()\n" + ASKS[way], react=react)
    assert said.status == "done"
    assert "[('ORD-6', 1)]" in said.text
    assert ["cents" in one["problem"] or "JSON" in one["problem"] for one in seen[1:]] == [True, True]


@WAYS
def test_12_always(front, way):
    """The second call of the round, and the next ask of this Jarvis, are not asked about."""
    react, seen = clicker({"decision": "always", "arguments": None})
    two = "[call('refund', order_id='A', cents=1), call('refund', order_id='B', cents=2)], 'Done.', call('refund', order_id='C', cents=3)"
    ask = "j.ask_full('Go')" if way == "sync" else "await j.aask_full('Go')"
    code = f"ran.clear(); j = make({two})\n_ = {ask}\n_ = {ask}\nprint(sorted(ran))"
    said = front.run(code, react=react)
    assert (said.status, said.error) == ("done", "")
    assert "[('A', 1), ('B', 2), ('C', 3)]" in said.text
    assert len(seen) == 1


@WAYS
def test_12_one_card_where_the_cell_ends_in_the_reply(front, way):
    """notebook.md 3: the answered gate goes with the live area."""
    react, _ = clicker({"decision": "approve", "arguments": None})
    ask = "make().ask_full('Go')" if way == "sync" else "await make().aask_full('Go')"
    said = front.run(ask, react=react)
    assert [o["kind"] for o in said.outputs() if o["data"]] == ["execute_result"]


@WAYS
def test_12_no_script_of_ours_on_the_page(front, way):
    """No hello: the question goes to input()."""
    react, seen = clicker(hello=False)
    code = f"import jarvis_nb.widgets.asking as A; A.HELLO_SECONDS = 0.5; ran.clear()\n{ASKS[way]}\nA.HELLO_SECONDS = 10"
    said = front.run(code, react=react, answer="y")
    assert said.status == "done"
    assert "Run refund(" in said.of("input_request")[0]["prompt"]
    assert "[('ORD-5', 420)]" in said.text
    assert len(seen) == 1


def test_12_no_pump(front):
    """A kernel whose private parts are not as known: input() at once."""
    react, _ = clicker()
    code = (
        "import jarvis_nb.widgets.asking as A\nclass No:\n    def __init__(self, k): raise A.NoPump\n"
        f"kept, A.Pump = A.Pump, No; ran.clear()\n{ASKS['sync']}\nA.Pump = kept"
    )
    said = front.run(code, react=react, answer="always")
    assert said.status == "done"
    assert "[('ORD-5', 420)]" in said.text


@WAYS
def test_12_no_front_end(front, way):
    """Denied at once, with a clear record, and nothing is shown."""
    said = front.run(
        "ran.clear(); t = time.time()\n" + ASKS[way] + "\nprint(time.time() - t < 2)", allow_stdin=False
    )
    assert said.status == "done"
    assert "nobody can be asked about refund" in said.text
    assert "True" in said.text
    assert said.outputs() == []


@WAYS
def test_13_an_interrupt_at_the_gate(front, way):
    """notebook.md 13: a readable card, nothing started afterwards, and the kernel goes on."""

    def react(one: Kernel, message) -> None:
        state = (
            message["content"].get("data", {}).get("state", {}) if message["msg_type"] == "comm_open" else {}
        )
        if state.get("snapshot", {}).get("state", {}).get("status") == "waiting":
            one.send(message["content"]["comm_id"], {"op": "hello", "have": 0})
            one.manager.signal_kernel(signal.SIGINT)

    said = front.run("ran.clear(); j = make()\n" + ASKS[way].replace("make()", "j"), react=react)
    assert said.status == "done"
    assert said.error
    shown = [o["data"].get("text/plain", "") for o in said.outputs()]
    assert any("■ interrupted: it does not run · refund(" in text for text in shown)
    after = front.run("print(ran, j.last.status, j.last.messages[-1].role)")
    assert after.text.strip() == "[] cancelled tool"
    assert front.run("print('alive')").text.strip() == "alive"


def test_12_messages_queued_behind_keep_their_order(front):
    """The pump keeps what is not its own and gives it back in order."""
    react, _ = clicker({"decision": "approve", "arguments": None})
    front.client.execute("order = []")

    def late(one, message):
        before = message["msg_type"] == "comm_open"
        react(one, message)
        if before and not late.done and "waiting" in str(message["content"]["data"]):
            late.done = True
            for n in range(3):
                one.client.execute(f"order.append({n})")

    late.done = False
    said = front.run("ran.clear()\n" + ASKS["sync"] + "\norder.append('cell')", react=late)
    assert said.status == "done"
    assert front.run("print(order)").text.strip() == "['cell', 0, 1, 2]"
