"""The widgets' scripts in a page with a fake model: the wire, speed, accessibility: notebook.md 7, 8, 9, 10, 12 and 15."""

import pytest
import samples
from lab import SHOTS, axe
from test_static import CONTRAST

from jarvis_nb import Jarvis
from jarvis_nb.core.approval import ApprovalRequest
from jarvis_nb.engines import ScriptedEngine
from jarvis_nb.widgets import ApprovalGate, Playground, PolicyPicker, RunView, ToolBench
from jarvis_nb.widgets.view import script, style

# What anywidget gives a script: a model with get, on and send. What the script sends is kept in `sent`.
FAKE = """
window.model = (snapshot) => {
  const handlers = {};
  window.sent = [];
  return {
    state: {snapshot},
    get(key) { return this.state[key]; },
    set(key, value) { this.state[key] = value; (handlers['change:' + key] || []).forEach(f => f()); },
    on(event, f) { (handlers[event] = handlers[event] || []).push(f); },
    send(message) { window.sent.push(message); },
    hear(message) { (handlers['msg:custom'] || []).forEach(f => f(message)); },
  };
};
"""

DARK = {
    "--jp-layout-color1": "#111111",
    "--jp-layout-color2": "#303030",
    "--jp-ui-font-color1": "rgba(255,255,255,0.87)",
    "--jp-border-color0": "#616161",
    "--jp-border-color1": "#424242",
}


def show(page, view, *, dark=False):
    """Put a view's script and style into a page, with a snapshot of the view's state."""
    names = ";".join(f"{k}:{v}" for k, v in DARK.items()) if dark else ""
    body = "background:#111;color:#eee" if dark else "background:white;color:#222"
    page.set_content(
        f"<!doctype html><html lang='en'><title>x</title><style>:root{{{names}}} body{{{body}}} {style(type(view))}</style>"
        f"<main><div id='root'></div></main><script>{FAKE}</script>"
    )
    page.evaluate(
        """async ([source, snapshot]) => {
          const url = URL.createObjectURL(new Blob([source], {type: 'text/javascript'}));
          window.widget = (await import(url)).default();
          window.m = window.model(snapshot);
          window.widget.initialize({model: window.m});
          window.widget.render({model: window.m, el: document.getElementById('root')});
        }""",
        [script(type(view)), {"seq": 0, "state": view.state()}],
    )


def views():
    return {
        "run": RunView.of(samples.reply()),
        "run, running": running(),
        "picker": PolicyPicker(samples.toolset(), {"visible": ["calculator"], "requirement": "required"}),
        "bench": ToolBench(samples.refund),
        "gate": ApprovalGate(
            ApprovalRequest("c", "refund", {"cents": 1}, "Pay back.", samples.refund.definition.parameters)
        ),
        "playground": Playground(samples.jarvis(), tools=samples.toolset().tools, question="Why?"),
    }


def running():
    view = RunView()
    call = {
        "is": "call",
        "id": "a",
        "round": 1,
        "name": "slow",
        "arguments": "n=2",
        "mark": "▶",
        "word": "running",
        "status": "running",
    }
    view.change(
        [{"is": "run", "question": "How long?"}, {"is": "round", "number": 1, "choice": "auto"}, call]
    )
    view.change(
        [
            {"is": "call", "id": "a", "progress": {"share": 0.5, "text": "1 of 2"}},
            {"is": "text", "text": "It"},
        ]
    )
    return view


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", list(views()))
def test_08_axe_and_contrast(page, name, dark):
    """notebook.md 8."""
    show(page, views()[name], dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = axe(page, "#root")
    assert found["bad"] == []
    assert found["passed"] > 3
    for ratio, text in page.evaluate(CONTRAST):
        assert ratio >= 4.5, text
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / f"widget-{name}-{'dark' if dark else 'light'}.png"))


def hostile():
    text = samples.NASTY
    picker = PolicyPicker(samples.unchecked(text))
    picker.problem = text
    bench = ToolBench(samples.OddTool(text))
    bench._outcome = {"status": "failed", "content": text, "problem": text, "test": text}
    play = Playground(Jarvis(engine=ScriptedEngine([text])), tools=[samples.lookup_order])
    play.run("What?")
    return [
        RunView.of(samples.odd_reply(text)),
        picker,
        bench,
        ApprovalGate(ApprovalRequest(text, text, {text: text}, text)),
        play,
    ]


def test_05_hostile_text_in_every_widget(page):
    """notebook.md 5: text stays text."""
    alarms = []
    page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    for view in hostile():
        show(page, view)
        assert page.locator("#root img, #root script, #root a").count() == 0
        shown = page.evaluate(
            "document.getElementById('root').innerText + [...document.querySelectorAll('textarea')].map(e => e.value).join()"
        )
        assert "<img src=x onerror=alert(1)>" in shown, type(view)
        assert not set("\x1b\u202e\u200b") & set(shown), type(view)
    assert alarms == []


def calls(number):
    view = RunView()
    view.change([{"is": "run", "question": "Many"}])
    for n in range(number):
        round_ = 1 + n // 100
        view.change([{"is": "round", "number": round_, "choice": "auto"}])
        view.change([{"is": "call", "id": f"c{n}", "round": round_, "name": "search", "arguments": f"q={n}", "mark": "▶", "word": "running", "status": "running"}])  # fmt: skip
    return view


@pytest.mark.parametrize(("number", "seconds"), [(10, 1.0), (10_000, 3.0)])
def test_07_a_thousand_updates(page, number, seconds):
    """Issue 5: 1,000 updates reach the DOM in under 1 s (10 calls) and 3 s (10,000)."""
    show(page, calls(number))
    page.wait_for_function(f"document.querySelectorAll('.jnb-call').length === {number}")
    times = []
    for attempt in range(3):  # the machine may be busy with something else
        took = page.evaluate(
            """async ([number, attempt]) => { const begin = performance.now(); const end = 'LAST' + attempt;
              const target = document.querySelectorAll('.jnb-call')[999 % number];
              for (let n = 0; n < 1000; n++) {
                window.m.hear({op: 'delta', seq: attempt * 1000 + n + 1, changes: [{is: 'call', id: 'c' + (n % number), result: n === 999 ? end : 'r' + n, mark: '✓', status: 'ok', word: ''}]});
                if (n % 20 === 19) await new Promise(requestAnimationFrame);
              }
              while (!target.textContent.includes(end)) await new Promise(requestAnimationFrame);
              return (performance.now() - begin) / 1000; }""",
            [number, attempt],
        )
        times.append(took)
        if took < seconds:
            break
    assert min(times) < seconds, times


def test_07_ten_thousand_calls_scroll(page):
    """notebook.md 7."""
    show(page, calls(10_000))
    page.wait_for_function("document.querySelectorAll('.jnb-call').length === 10000")
    took = page.evaluate(
        """async () => { const list = document.querySelector('.jnb-list'); const begin = performance.now();
          for (const share of [0.2, 0.9, 0.5, 1]) { list.scrollTop = list.scrollHeight * share; await new Promise(requestAnimationFrame); }
          return (performance.now() - begin) / 1000; }"""
    )
    assert took < 2
    assert page.evaluate("document.querySelector('.jnb-list').clientHeight") < 700


def test_07_a_gap_is_seen_and_mended(page):
    """notebook.md 7: numbered messages; a dropped one leads to a resync."""
    view = calls(2)
    show(page, view)
    assert page.evaluate("sent") == [{"op": "hello", "have": 0}]
    page.evaluate("m.hear({op: 'delta', seq: 1, changes: [{is: 'text', text: 'a'}]})")
    page.evaluate("m.hear({op: 'delta', seq: 3, changes: [{is: 'text', text: 'c'}]})")
    assert page.evaluate("sent[1]") == {"op": "resync", "have": 1}
    page.evaluate("m.hear({op: 'delta', seq: 2, changes: [{is: 'text', text: 'late'}]})")
    view.change([{"is": "run", "answer": "abc"}])
    page.evaluate("s => m.hear({op: 'all', snapshot: s})", {"seq": 3, "state": view.state()})
    page.wait_for_function("document.querySelector('.jnb-answer').textContent === 'abc'")


def test_08_a_second_view_and_a_snapshot_show_the_whole(page):
    """notebook.md 8."""
    show(page, running())
    page.evaluate("m.hear({op: 'delta', seq: 1, changes: [{is: 'text', text: ' is done.'}]})")
    page.evaluate(
        "() => { const two = document.createElement('div'); two.id = 'two'; document.body.append(two); widget.render({model: m, el: two}); }"
    )
    page.wait_for_function(
        "[...document.querySelectorAll('.jnb-answer')].every(e => e.textContent === 'It is done.')"
    )
    assert page.locator("#two .jnb-call").count() == 1
    assert page.locator("progress").first.get_attribute("aria-label") == "Progress of slow"


def test_09_the_picker_by_keyboard(page):
    """notebook.md 9: tick, hide, require; what is sent is the whole choice."""
    view = PolicyPicker(samples.toolset())
    show(page, view)

    def sent():
        message = page.evaluate("sent.at(-1)")
        view.receive(message)
        page.evaluate("s => m.hear({op: 'all', snapshot: s})", {"seq": 10, "state": view.state()})
        return message

    page.get_by_label("only the ticked tools").focus()
    page.keyboard.press("Space")
    assert sent()["visible"] == list(view.toolset.names)
    page.get_by_label("calculator: visible").focus()
    page.keyboard.press("Space")
    assert "calculator" not in sent()["visible"]
    assert page.evaluate("document.activeElement.dataset.key") == "visible calculator"
    page.get_by_label("refund: hidden").check()
    assert sent()["hidden"] == ["refund"]
    page.get_by_label("requirement").select_option("=discount_order")
    assert sent()["requirement"] == {"tool": "discount_order"}
    assert view.policy.forced == "discount_order"
    assert "visible=['discount_order', 'lookup_order', 'refund'], hidden=['refund']" in page.inner_text("pre")
    page.get_by_label("requirement").select_option("=calculator")
    sent()
    assert "✗ not taken: the tool 'calculator' has to run and is not selected" in page.inner_text(
        "[role=alert]"
    )


def test_10_the_bench(page):
    """notebook.md 10: a form from the schema, what the model would read, a test."""
    view = ToolBench(samples.refund)
    show(page, view)
    assert page.get_by_label("order_id").count() == 1
    page.get_by_label("order_id").fill("ORD-5")
    page.get_by_label("cents").fill("420")
    page.get_by_role("button", name="Run").press("Enter")
    assert page.evaluate("sent.at(-1)") == {"op": "run", "fields": {"order_id": "ORD-5", "cents": "420"}}
    view.receive(page.evaluate("sent.at(-1)"))
    page.evaluate("s => m.hear({op: 'all', snapshot: s})", {"seq": 10, "state": view.state()})
    assert "refunded 420 cents of ORD-5" in page.inner_text("#root")
    page.get_by_role("button", name="As a test").click()
    assert page.evaluate("sent.at(-1)") == {"op": "test"}


def test_12_the_gate_by_keyboard(page):
    """notebook.md 12: edit, approve, deny with a reason."""
    show(page, views()["gate"])
    page.get_by_role("button", name="Approve").press("Enter")
    page.get_by_label("Arguments, as JSON").fill('{"cents": 2}')
    page.get_by_role("button", name="Always in this session").press("Space")
    page.get_by_label("Reason").fill("no")
    page.get_by_role("button", name="Deny").click()
    edited = '{"cents": 2}'
    assert page.evaluate("sent.slice(1)") == [
        {"op": "answer", "decision": "approve", "reason": "", "arguments": None},
        {"op": "answer", "decision": "always", "reason": "", "arguments": edited},
        {"op": "answer", "decision": "deny", "reason": "no", "arguments": edited},
    ]
    assert page.get_by_role("group", name="Approval of refund").count() == 1


def test_08_no_network(page):
    """notebook.md 8: no CDN."""
    for view in views().values():
        for text in (script(type(view)), style(type(view))):
            assert "http" not in text
            assert "@import" not in text
