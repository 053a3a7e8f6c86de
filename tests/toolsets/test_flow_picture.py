"""The plan as text and the pictures: flows.md, "Running" 10; notebook.md 1, 4 and 5."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb import Flow, action
from jarvis_nb.toolsets.flow import FlowFailed
from jarvis_nb.toolsets.flows.mermaid import Mermaid, escape

ALLOWED = {
    "b",
    "code",
    "details",
    "div",
    "i",
    "li",
    "p",
    "pre",
    "span",
    "summary",
    "table",
    "td",
    "th",
    "tr",
    "ul",
}
NASTY = "<img src=x onerror=alert(1)>\"'&`$x$\\(y\\)%%{init}%%|];\n--> #quot; </td>"


@action
def step_tool(value: Any = None, more: Any = None) -> Any:
    """Give back what came."""
    return value


class Sanitizer(HTMLParser):
    """Fails on whatever a notebook's sanitizer would drop, and on what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.plain = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        for name, value in attrs:
            assert name in ("style", "scope", "open")
            assert not re.search(r"url|var\(|#|expression|position", value or "")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "code" not in self.open and "pre" not in self.open and "span" not in self.open:
            self.plain += data


def checked(html: str) -> Sanitizer:
    parser = Sanitizer()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def sample() -> Flow:
    flow = Flow("orders", "Look up orders.", inputs={"order_id": str, "n": (int, 3)})
    a = flow.step("a", step_tool, value=flow.input("order_id"), more=flow.context("tenant")["id"])
    b = flow.step("b", step_tool, value=flow.input("n"))
    c = flow.step("c", step_tool, value={"x": a["id"], "y": [b, 1]}, more="text").options(timeout=2)
    flow.step("audit", step_tool, value=c.get("z", default=None)).options(effect=True, after=b)
    flow.output({"it": c["x"]})
    return flow


def test_10_explain_tells_the_plan():
    """flows.md Running 10."""
    assert str(sample().explain()) == (
        "orders: Look up orders.\n"
        "inputs: order_id (string), n (integer = 3)\n"
        '1  a = step_tool(value=input("order_id"), more=context("tenant").id)\n'
        '   b = step_tool(value=input("n"))\n'
        '2  c = step_tool(value={"x": result("a").id, "y": [result("b"), 1]}, more="text")  [timeout 2 s]\n'
        '3  audit = step_tool(value=result("c").z or null)  [after b, effect]\n'
        'output: {"it": result("c").x}'
    )


def test_10_explain_is_data_too():
    """flows.md: a flow is run by hand, drawn and stored."""
    data = sample().explain().to_dict()
    assert json.loads(json.dumps(data))["flow"] == "orders"
    assert [(n["name"], n["wave"], list(n["depends_on"])) for n in data["nodes"]] == [
        ("a", 1, []),
        ("b", 1, []),
        ("c", 2, ["a", "b"]),
        ("audit", 3, ["b", "c"]),
    ]


def test_10_explain_tells_problems_and_warnings_of_a_flow_that_is_not_valid():
    """flows.md Running 10: a picture never raises."""
    flow = sample()
    flow.step("unused", step_tool)
    flow.step("x", 7, value=lambda: 1)  # type: ignore[arg-type]
    flow.step("y", step_tool, value=flow.result("z")).options(
        after=flow.step("z", step_tool).options(after="y")
    )
    flow.output(flow.result("nope"))
    text = str(flow.explain())
    for word in ("unused_step", "not_a_tool", "invalid_ref", "cycle", "unknown_step", "warning:", "problem:"):
        assert word in text
    checked(flow.to_html())
    assert flow.mermaid()
    assert str(Flow("empty", "Nothing yet.").explain()) == (
        "empty: Nothing yet.\nproblem: it has no steps (add one with flow.step(…)) [empty_flow]"
    )
    checked(Flow("empty", "Nothing yet.").to_html())


def test_10_mermaid():
    """flows.md Running 10."""
    diagram = sample().mermaid()
    assert isinstance(diagram, str)
    assert diagram.splitlines() == [
        "flowchart TD",
        '    i0(["order_id"])',
        '    i1(["n"])',
        '    c0{{"context tenant"}}',
        '    s0["a<br/>step_tool"]',
        '    s1["b<br/>step_tool"]',
        '    s2["c<br/>step_tool"]',
        '    s3["audit<br/>step_tool"]',
        '    i0 -->|"value"| s0',
        '    c0 -->|"id as more"| s0',
        '    i1 -->|"value"| s1',
        '    s0 -->|"id as value"| s2',
        '    s1 -->|"value"| s2',
        '    s2 -->|"z as value"| s3',
        "    s1 -.-> s3",
        '    out(["output"])',
        '    s2 -->|"x as it"| out',
    ]


def test_10_a_flow_within_has_a_shape_of_its_own():
    """flows.md Running 10."""
    outer = Flow("outer", "Outer.")
    outer.output(outer.step("inner", sample(), order_id="A"))
    assert '[["inner<br/>orders"]]' in outer.mermaid()
    assert "orders" in checked(outer.to_html()).text


def test_10_mermaid_is_drawn_where_the_front_end_can():
    """flows.md Running 10: JupyterLab prefers HTML, so the diagram's own bundle has none."""
    bundle = sample().mermaid()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/vnd.mermaid"}
    assert bundle["text/vnd.mermaid"] == bundle["text/plain"] == str(sample().mermaid())


@given(st.text())
def test_mermaid_escapes_everything(text):
    """notebook.md 5."""
    shown = escape(text)
    assert not re.search(r"[\"'`<>&%${}|\\\[\]()\n\r]", shown)
    assert re.sub(r"#(\d+);", lambda m: chr(int(m[1])), shown) == re.sub(
        "[\x00-\x1f\x7f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]", " ", text
    )


def nasty_flow() -> Flow:
    flow = Flow("nasty", NASTY, inputs={"x": (str, NASTY)})
    odd = flow.step("a", step_tool, value={NASTY: flow.input("x")}, more=flow.context(NASTY)[NASTY])
    flow.output({NASTY: odd[NASTY]})
    return flow


def test_05_everything_is_escaped():
    """notebook.md 5: names, values, paths, descriptions and errors are text."""
    flow = nasty_flow()
    html = checked(flow.to_html())
    assert "<img src=x onerror=alert(1)>" in html.text
    assert "$x" not in html.plain
    for line in flow.mermaid().splitlines():
        assert "%%" not in line
        assert "<img" not in line
        assert line.count('"') % 2 == 0
    flow.run({NASTY: {NASTY: NASTY}})
    assert flow.last is not None
    view = flow.last.view()
    assert "<img src=x onerror=alert(1)>" in checked(view.to_html()).text
    assert "\x1b" not in str(view)
    assert "<img" not in view.mermaid()


def test_control_characters_are_shown_not_obeyed():
    """notebook.md 5."""
    flow = Flow("f", "Red \x1b[31m and \u202e reversed.")
    assert "\\x1b[31m" in str(flow.explain())
    assert "\x1b" not in str(flow.explain()) + flow.to_html()
    assert "\u202e" not in str(flow.explain()) + flow.to_html()


def test_01_reprs_are_one_line_and_the_same_every_time():
    """notebook.md 1."""
    flow = sample()
    assert repr(flow) == repr(sample()) == "Flow('orders': a, b, c, audit)"
    assert repr(Flow("empty", "Nothing yet.")) == "Flow('empty': no steps)"
    assert repr(flow.explain()) == "Explanation('orders', steps=4, waves=3)"
    assert repr(flow.as_tool()) == "FlowTool('orders')"
    assert "\n" not in repr(flow.mermaid())


def test_01_the_bundle_of_a_flow():
    """notebook.md 1: text alone is useful; flows.md Running 10: HTML and Mermaid beside it."""
    bundle = sample()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "text/vnd.mermaid"}
    assert bundle == sample()._repr_mimebundle_()
    assert bundle["text/plain"] == str(sample().explain())
    assert bundle["text/html"] == sample().to_html()
    assert isinstance(sample().mermaid(), Mermaid)


def traced() -> Flow:
    @action
    def fail() -> None:
        """Fail."""
        raise ValueError("it broke")

    flow = Flow("orders", "Look up orders.", inputs={"text": str}, max_concurrency=1)
    flow.step("a", step_tool, value=flow.input("text"))
    flow.step("b", fail)
    flow.output(flow.step("c", step_tool, value=flow.result("b")))
    with pytest.raises(FlowFailed):
        flow.run(text="x" * 500)
    return flow


def test_10_a_run_s_picture_has_each_step_s_status_by_word_and_sign():
    """notebook.md 4 and 6."""
    trace = traced().last
    assert trace is not None
    view = trace.view()
    long = "x" * 119 + "… 382 more characters"
    assert str(view) == (
        "orders: ✗ error\n"
        f"1  a = step_tool(value=\"{long} (flow.last['a'].inputs))  ✓ ok → \"{long} (flow.last['a'].output)\n"
        "   b = fail()  ✗ error → ValueError: it broke [tool_failed]\n"
        "2  c = step_tool()  ○ skipped"
    )
    text = checked(view.to_html()).text
    for word in ("✓ ok", "✗ error", "○ skipped", "it broke", "382 more characters"):
        assert word in text
    assert 's1["b<br/>fail<br/>✗ error"]' in view.mermaid()
    assert trace._repr_mimebundle_() == view.bundle()


def test_01_times_are_shown_only_when_asked_for():
    """notebook.md 1 and 6."""
    first, second = traced().last, traced().last
    assert first is not None
    assert second is not None
    assert first == second
    assert first._repr_mimebundle_() == second._repr_mimebundle_()
    assert " ms" not in str(first.view()) + first.view().to_html()
    assert re.search(r"\[0\.\d ms \+ \d+\.\d ms\]", str(first.view(times=True)))


def test_a_large_flow_is_folded():
    """notebook.md 4."""
    flow = Flow("large", "Many steps.")
    flow.output([flow.step(f"s{n}", step_tool, value=n) for n in range(100)])
    html = flow.to_html()
    checked(html)
    assert "<details" in html
    assert "… 40 more steps" in html
