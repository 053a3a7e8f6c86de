"""In real JupyterLab: live, approval, stop, reload, reopened, untrusted: notebook.md 2, 3, 7 to 13 and 15."""

import json

import nbformat
import pytest
from lab import Lab, Page, axe, notebook
from test_approval import SETUP as APPROVAL
from test_static import CONTRAST

SETUP = (
    APPROVAL
    + """
import jarvis_nb.widgets.asking as asking
from jarvis_nb import ToolContext
from jarvis_nb.widgets import *
@action
def slow(n: int, context: ToolContext) -> int:
    "Take a while."
    for i in range(n):
        time.sleep(.1); context.progress(i + 1, n)
    return n
def long(n=15):
    return Jarvis(engine=ScriptedEngine([[call("slow", n=n), call("slow", n=3)], "It took a while, \\\\(x\\\\) and $y$."], delay=.05), tools=[slow])
"""
)
WIDGET = "application/vnd.jupyter.widget-view+json"


def kinds(notebook):
    return [sorted(o.get("data", {"stream": 0})) for cell in notebook.cells for o in cell.get("outputs", ())]


def test_02_live_while_it_runs_static_when_it_is_done(opened):
    """notebook.md 2 and 3: progress, the streamed answer, one card at the end; no widget in the saved file."""
    nb = opened(
        "live.ipynb", SETUP, "long().ask_full('How long?')", "r = await long(4).aask_full('And now?')"
    )
    nb.run(0)
    nb.run(1, wait=False)
    live = nb.output(1).locator(".jnb")
    live.wait_for()
    nb.page.wait_for_function("document.querySelector('.jnb progress')?.value > 0.2")
    assert axe(nb.page, ".jnb")["bad"] == []
    nb.shot("lab-live")
    nb.idle(1)
    nb.page.wait_for_selector(".jnb", state="detached")
    assert nb.output(1).inner_text().count("How long?") == 1
    nb.run(2)
    nb.page.wait_for_selector(".jnb", state="detached")
    assert "✓ completed" in nb.output(2).inner_text()
    assert nb.page.locator(".jp-OutputArea mjx-container").count() == 0
    saved = nb.saved()
    assert kinds(saved) == [[], ["text/html", "text/plain"], ["text/html", "text/plain"]]
    assert "widgets" not in saved.metadata
    assert "$y$" in nb.output(1).inner_text()
    assert nb.problems == []
    nb.shot("lab-done")


def test_12_approval_in_the_cell_sync_and_awaited(opened):
    """notebook.md 12: approve, edit, deny with a reason, always; with cells queued behind."""
    ask = "r = make().ask_full('Refund it'); tell(r)"
    wait = "r = await make().aask_full('Refund it'); tell(r)"
    twice = "j = make(call('refund', order_id='A', cents=1), call('refund', order_id='B', cents=2)); r = j.ask_full('Two'); tell(r)"
    nb = opened("approval.ipynb", SETUP, ask, wait, ask, twice, "print('behind', len(ran))")
    nb.run(0)

    def gate(cell):
        nb.run(cell, wait=False)
        found = nb.output(cell).get_by_role("group", name="Approval of refund")
        found.get_by_role("button", name="Approve").wait_for()
        return found

    first = gate(1)
    assert axe(nb.page, ".jnb-gate")["bad"] == []
    nb.shot("lab-gate")
    first.get_by_role("button", name="Approve").click()
    nb.idle(1)
    assert "('ok', {'order_id': 'ORD-5', 'cents': 420}, None)" in nb.output(1).inner_text()
    second = gate(2)
    second.get_by_label("Arguments, as JSON").fill('{"order_id": "ORD-5", "cents": "lots"}')
    second.get_by_role("button", name="Approve").click()
    second.get_by_text("✗ cents").wait_for()
    second.get_by_label("Arguments, as JSON").fill('{"order_id": "ORD-5", "cents": 7}')
    second.get_by_role("button", name="Approve").click()
    nb.idle(2)
    assert "approved with other arguments" in nb.output(2).inner_text()
    assert "('ok', {'order_id': 'ORD-5', 'cents': 7}, None)" in nb.output(2).inner_text()
    third = gate(3)
    third.get_by_label("Reason").fill("not today")
    third.get_by_role("button", name="Deny").click()
    nb.idle(3)
    assert "'not today'" in nb.output(3).inner_text()
    fourth = gate(4)
    nb.run(5, wait=False)
    fourth.get_by_role("button", name="Always").click()
    nb.idle(4)
    nb.idle(5)
    assert "[('ORD-5', 420), ('ORD-5', 7), ('A', 1), ('B', 2)]" in nb.output(4).inner_text()
    nb.page.wait_for_function("document.querySelectorAll('.jnb').length === 0")
    assert "behind 4" in nb.output(5).inner_text()
    assert not any(WIDGET in kind for kind in kinds(nb.saved()))


@pytest.mark.parametrize("way", ["sync", "awaited"])
def test_12_a_reload_while_the_gate_waits(opened, way):
    """notebook.md 8 and 12: the buttons come back and work."""
    ask = "r = make().ask_full('Refund it')" if way == "sync" else "r = await make().aask_full('Refund it')"
    nb = opened(f"reload-{way}.ipynb", SETUP, ask, "tell(r)")
    nb.run(0)
    nb.run(1, wait=False)
    nb.page.wait_for_selector(".jnb-gate button")
    nb.saved()
    nb.open()
    button = nb.page.locator(".jnb-gate button:has-text('Approve')")
    button.wait_for()
    button.click()
    nb.page.get_by_text("✓ approved").first.wait_for()
    nb.run(2)
    nb.page.get_by_text("('ok', {'order_id': 'ORD-5', 'cents': 420}, None)").wait_for()


def test_12_the_page_runs_no_script_of_ours(browser, opened):
    """notebook.md 12: no hello in time: input()."""
    browser.route("**/anywidget/**", lambda route: route.abort())
    try:
        nb = opened(
            "blocked.ipynb", SETUP + "asking.HELLO_SECONDS = 1.5", "r = make().ask_full('Refund it'); tell(r)"
        )
        nb.run(0)
        nb.run(1, wait=False)
        box = nb.output(1).locator("input.jp-Stdin-input")
        box.wait_for()
        box.fill("y")
        box.press("Enter")
        nb.idle(1)
        assert "('ok'," in nb.output(1).inner_text()
    finally:
        browser.unroute("**/anywidget/**")


@pytest.mark.parametrize("way", ["sync", "awaited"])
def test_13_the_stop_button(opened, way):
    """notebook.md 13: a readable card, a closed history, nothing started afterwards, and the kernel goes on."""
    ask = "j.ask_full('How long?')" if way == "sync" else "await j.aask_full('How long?')"
    nb = opened(
        f"stop-{way}.ipynb",
        SETUP,
        f"j = long(100)\n{ask}",
        "print(j.last.status, j.last.messages[-1].role, 'alive')",
    )
    nb.run(0)
    nb.run(1, wait=False)
    nb.page.wait_for_function("document.querySelector('.jnb progress')?.value > 0.02")
    nb.command("notebook:interrupt-kernel")
    nb.output(1).get_by_text("■ interrupted").wait_for(timeout=5000)
    nb.idle(1)
    assert "left behind" in nb.output(1).inner_text()
    nb.run(2)
    nb.page.get_by_text("cancelled tool alive").wait_for()
    nb.shot(f"lab-stop-{way}")


def test_09_to_11_each_widget_once(opened):
    """notebook.md 7 and 9 to 11, through a real kernel."""
    nb = opened(
        "widgets.ipynb",
        SETUP,
        "p = PolicyPicker([slow, refund]); p",
        "print(p.policy)",
        "b = ToolBench(slow); b",
        "w = Playground(make(call('slow', n=12)), tools=[slow], question='Why?'); w",
        "v = RunView.of(w.reply); v",
        "Playground(make(), tools=[refund], question='Refund it')",
    )
    nb.run(0)
    nb.run(1)
    picker = nb.output(1)
    picker.get_by_label("refund: hidden").check()
    picker.get_by_text("○ hidden by you").wait_for()
    picker.get_by_label("requirement").select_option("=slow")
    picker.get_by_text("requirement={'tool': 'slow'}").wait_for()
    nb.run(2)
    nb.output(2).get_by_text("ToolPolicy(hidden=('refund',), requirement={'tool': 'slow'})").first.wait_for()
    nb.run(3)
    bench = nb.output(3)
    bench.get_by_label("n", exact=True).fill("many")
    bench.get_by_role("button", name="Run").click()
    bench.get_by_text("invalid_arguments").first.wait_for()
    bench.get_by_label("n", exact=True).fill("1")
    bench.get_by_role("button", name="Run").click()
    bench.get_by_text("✓ ok: the model would read").wait_for()
    bench.get_by_role("button", name="As a test").click()
    bench.get_by_text("def test_slow():").wait_for()
    nb.run(4)
    play = nb.output(4)
    play.get_by_label("requirement").select_option("required")
    play.get_by_text("requirement='required'").wait_for()
    play.get_by_role("button", name="Run").click()
    play.locator(".jnb-call progress").wait_for()
    play.get_by_text("✓ completed").wait_for()
    assert "Round 1 · choice required" in play.inner_text()
    nb.run(5)
    nb.output(5).get_by_text("✓ completed").wait_for()
    nb.run(6)
    asking = nb.output(6)
    asking.get_by_role("button", name="Run").click()
    asking.get_by_label("Arguments, as JSON").fill('{"order_id": "ORD-5", "cents": 3}')
    asking.get_by_role("button", name="Approve").click()
    asking.get_by_text("✓ completed").wait_for()
    assert "refunded 3" in asking.inner_text()
    assert "the model asked for" in asking.inner_html()
    for cell in (1, 3, 4, 5, 6):
        nb.output(cell).scroll_into_view_if_needed()
        nb.shot(f"lab-widget-{cell}")
    assert axe(nb.page, ".jnb")["bad"] == []
    assert nb.problems == []


def test_08_a_page_that_reloads_shows_the_full_state(opened):
    """notebook.md 8: a second view and a reload."""
    nb = opened("second.ipynb", SETUP, "p = PolicyPicker([slow, refund]); p", "p")
    nb.run(0)
    nb.run(1)
    nb.run(2)
    nb.output(1).get_by_label("refund: hidden").check()
    nb.output(2).get_by_text("○ hidden by you").wait_for()
    nb.saved()
    nb.open()
    nb.output(1).get_by_text("○ hidden by you").wait_for()
    nb.output(2).get_by_label("slow: hidden").check()
    nb.output(1).get_by_text("hidden=['slow', 'refund']").wait_for()


def test_15_reopened_and_reopened_untrusted(lab, browser, opened):
    """notebook.md 2, 4 and 15: the same card next month, without a kernel, and not trusted."""
    nb = opened(
        "month.ipynb",
        SETUP,
        "long(3).ask_full('How long, $a$ <b>?')",
        "p = PolicyPicker([slow, refund]); p",
        "slow",
    )
    for cell in range(4):
        nb.run(cell)
    nb.page.wait_for_timeout(300)
    shown = nb.output(1).inner_text()
    saved = nb.saved()
    nb.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
    nb.close()

    reopened = Page(lab, browser, "month.ipynb")
    assert reopened.output(1).inner_text().replace("[2]:", "") == shown.replace("[2]:", "")
    reopened.close()

    saved.cells[0].source += "\n# changed by somebody else"
    saved.cells[1].outputs[-1]["data"]["text/html"] += (
        "<img src=x onerror='document.title=1'><script>document.title=1</script>"
    )
    nbformat.write(saved, lab.root / "untrusted.ipynb")
    untrusted = Page(lab, browser, "untrusted.ipynb")
    area = untrusted.output(1)
    assert area.locator(".jp-mod-trusted").count() == 0
    text = area.inner_text()
    for said in ("How long, $a$ <b>?", "✓ completed", "● offered", "Exactly what was sent and received"):
        assert said in text
    card = area.locator("div[style*='border-radius']").first
    assert "opacity" in card.inner_html()
    assert "border-left" in card.inner_html()
    assert untrusted.page.title() != "1"
    assert untrusted.page.locator("mjx-container").count() == 0
    assert "2 of 2 tools offered" in untrusted.output(2).inner_text()
    untrusted.shot("lab-untrusted")
    untrusted.close()


def test_07_a_burst_does_not_flood_the_server(lab, opened):
    """notebook.md 7: thousands of events a second reach the page as tens of messages; the end is right."""
    nb = opened(
        "burst.ipynb",
        SETUP,
        """
@action
async def quick(n: int) -> int:
    "Quick."
    return n
steps = [[call("quick", n=100 * r + i) for i in range(100)] for r in range(100)]
j = Jarvis(engine=ScriptedEngine([*steps, "All done."]), tools=[quick])
r = j.ask_full("Go", limits={"rounds": 200, "calls": None}); len(r.tool_attempts)
""",
    )
    nb.run(0)
    nb.run(1)
    nb.page.wait_for_selector(".jnb", state="detached")
    assert "10000" in nb.output(1).inner_text()
    assert "100 tool rounds · 10,000 calls" in nb.output(1).inner_text()
    assert "rate exceeded" not in lab.log.read_text()
    assert json.dumps(kinds(nb.saved())).count(WIDGET) == 0


def test_08_dark_theme_in_the_real_thing(tmp_path, browser):
    """notebook.md 8: JupyterLab's dark theme: axe finds nothing, contrast of at least 4.5, live and static."""
    notebook(
        tmp_path / "dark.ipynb",
        SETUP,
        "long(6).ask_full('How long?').show(times=True)",
        "PolicyPicker([slow, refund], {'hidden': ['slow']})",
        "r = make().ask_full('Refund it')",
    )
    dark = Lab(tmp_path, "JupyterLab Dark")
    try:
        nb = Page(dark, browser, "dark.ipynb")
        for cell in (0, 1, 2):
            nb.run(cell)
        nb.run(3, wait=False)
        nb.page.wait_for_selector(".jnb-gate button")
        assert axe(nb.page, ".jnb")["bad"] == []
        for place in (
            ".jp-RenderedHTML",
            *(f".jnb >> nth={n}" for n in range(nb.page.locator(".jnb").count())),
        ):
            measure = CONTRAST.replace("() => {", "root => {", 1).replace("document.body", "root")
            for ratio, text in nb.page.locator(place).first.evaluate(measure):
                assert ratio >= 4.5, (place, text)
        nb.shot("lab-dark")
        nb.page.click(".jnb-gate button")
        nb.idle(3)
        nb.page.evaluate("void window.jupyterapp.serviceManager.sessions.shutdownAll()")
        nb.close()
    finally:
        dark.close()
