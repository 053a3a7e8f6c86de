"""The tutorials in the browser, with no server behind them (issue 6, 6)."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jarvis_nb.testing import HANG, StrictServer, answer, chunks
from tests.lite.page import Lite, browser, served, text

pytest.importorskip("jupyterlite_core", reason="needs the extra: pip install -e '.[lite]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KEY = "key-of-this-test"
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "calculator", "arguments": '{"expression": "6*7"}'},
        }
    ],
}

CELLS = {
    "first": """
        import asyncio
        from jarvis_nb import EngineError, Flow, InvalidRequest, Jarvis, action
        from jarvis_nb.engines import OpenAIEngine, ReplayEngine, ScriptedEngine, call

        @action
        def add(a: int, b: int) -> int:
            \"\"\"Add two numbers.\"\"\"
            return a + b

        @action
        async def double(x: int) -> int:
            \"\"\"Double a number, after a while.\"\"\"
            await asyncio.sleep(0.05)
            return 2 * x

        def scripted(*steps, **options):
            return Jarvis(engine=ScriptedEngine([*steps, "Done."]), tools=[add, double], **options)

        reply = scripted([call("add", a=1, b=2), call("double", x=4)]).ask_full("Go.")
        print(reply.status, [attempt.output for attempt in reply.tool_attempts])
    """,
    "card": 'scripted([call("add", a=1, b=2), call("double", x=4)]).ask_full("Go.")',
    "await": """
        reply = await scripted([call("add", a=1, b=2), call("double", x=4)]).aask_full("Go.")
        print(reply.status, [attempt.output for attempt in reply.tool_attempts])
    """,
    "stream": """
        pieces = [event.text async for event in scripted(call("add", a=1, b=2)).astream("Go.") if event.text]
        print("".join(pieces))
    """,
    "inside": """
        @action
        def ask(x: int) -> str:
            \"\"\"Ask another model.\"\"\"
            return scripted(call("double", x=x)).ask("Go.")

        reply = Jarvis(engine=ScriptedEngine([call("ask", x=2), "Asked."]), tools=[ask]).ask_full("Go.")
        print(reply.tool_attempts[0].status, reply.tool_attempts[0].output)
    """,
    "map": 'print([r.output for r in Jarvis(engine=ScriptedEngine(["a", "b"])).map(["one", "two"])])',
    "flow": """
        flow = Flow("double_sum", "Add two numbers and double", inputs={"a": int, "b": int})
        total = flow.step("sum", add, a=flow.input("a"), b=flow.input("b"))
        flow.output({"value": flow.step("double", double, x=total)})
        reply = Jarvis(engine=ScriptedEngine([call("double_sum", a=3, b=4), "14"]), tools=[flow]).ask_full("Go.")
        print(flow.run(a=1, b=2), reply.tool_attempts[0].output, len(reply.tool_attempts[0].steps))
    """,
    "policy": 'scripted().ask_full("Go.", tool_policy={"visible": ["nope"]})',
    "caught": """
        try:
            Jarvis(engine=ScriptedEngine([EngineError("broken", code="x")])).ask("Go.")
        except EngineError as error:
            print("caught", error.code)
    """,
    "replay": """
        recorded = Jarvis(engine=ReplayEngine("recordings/01-embedded.json"))
        print(recorded.ask_full("What is 15% of 340?", tools=["calculator", "think"]).output)
    """,
    "approve": """
        @action(requires_confirmation=True)
        def refund(order_id: str) -> str:
            \"\"\"Refund an order.\"\"\"
            return "refunded " + order_id

        asking = Jarvis(engine=ScriptedEngine([call("refund", order_id="ORD-5"), "ok"] * 2), tools=[refund], approve="ask")
        print(asking.ask_full("Refund!").tool_attempts[0].status)
    """,
    "deny": 'print(asking.ask_full("Refund!").tool_attempts[0].status)',
    "time": """
        @action(timeout=0.2)
        async def never() -> str:
            \"\"\"Never end.\"\"\"
            await asyncio.sleep(30)

        reply = Jarvis(engine=ScriptedEngine([call("never"), "ok"]), tools=[never]).ask_full("Go.")
        print(reply.tool_attempts[0].error.code)
    """,
    "schema": """
        from jarvis_nb.tools.validate import InvalidArguments, validate_arguments
        either = {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/name"}}]}
        schema = {"type": "object", "properties": {"a": either}, "$defs": {"name": {"type": "string", "pattern": "^a"}}}
        print(validate_arguments(schema, {"a": ["ab"]}))
        try:
            validate_arguments(schema, {"a": ["bb"]})
        except InvalidArguments as error:
            print(error)
    """,
    "openai": """
        engine = OpenAIEngine(base_url="@URL@", api_key="@KEY@")
        j = Jarvis(engine=engine, model="test-model", tools=["calculator"])
        reply = j.ask_full("What is six times seven?")
        print(reply.status, reply.output, reply.tool_attempts[0].output, await engine.list_models())
    """,
    "pieces": 'print([event.text async for event in j.astream("Count.") if event.text])',
    "hang": """
        slow = Jarvis(engine=OpenAIEngine(base_url="@URL@", api_key="@KEY@", timeout=0.5), model="test-model")
        try:
            slow.ask("Hang.")
        except EngineError as error:
            print(error.code, "@KEY@" in str(error))
    """,
    "refused": """
        try:
            Jarvis(engine=OpenAIEngine(base_url="http://127.0.0.1:9/v1", api_key="k"), model="m").ask("Anyone?")
        except EngineError as error:
            print(error.code, error)
    """,
}
NAMES = list(CELLS)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("lite") / "site"
    command = [sys.executable, str(ROOT / "scripts" / "lite.py"), "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return output


@pytest.fixture(scope="module")
def lite(site: Path):
    with served(site) as address, browser(address) as page:
        yield page


@pytest.fixture(scope="module")
def server():
    replies = [answer(CALLS), answer("It is 42."), answer("one two three"), chunks("ok", HANG, finish=None)]
    with StrictServer(replies, api_key=KEY, allow_origin="*") as running:
        yield running


@pytest.fixture(scope="module")
def notebook(lite: Lite, server: StrictServer) -> Lite:
    import textwrap

    cells = [textwrap.dedent(cell).strip() for cell in CELLS.values()]
    lite.write("test.ipynb", *[cell.replace("@URL@", server.url).replace("@KEY@", KEY) for cell in cells])
    lite.open("test.ipynb")
    lite.run(NAMES.index("first"))
    return lite


def said(notebook: Lite, cell: str, reply: str | None = None) -> str:
    return text(notebook.run(NAMES.index(cell), reply)).strip()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("first", "completed [3, 8]"),
        ("await", "completed [3, 8]"),
        ("stream", "Done."),
        ("inside", "ok Done."),
        ("map", "['a', 'b']"),
        ("flow", "{'value': 6} {'value': 14} 2"),
        ("caught", "caught x"),
        ("replay", "15% of 340 is 51.0."),
        ("time", "tool_timeout"),
        ("schema", "{'a': ['ab']}\na[0]: 'bb' does not match '^a'"),
    ],
)
def test_it_works_as_in_any_notebook(notebook: Lite, cell: str, words: str):
    """Sync and async questions, streams, a tool that asks, flows, recordings, errors, deadlines, schemas."""
    assert said(notebook, cell).startswith(words)


def test_an_error_that_is_caught_is_all_there_is(notebook: Lite):
    """Pyodide shows what leaves a task, also where the caller catches it."""
    outputs = notebook.run(NAMES.index("caught"))
    assert [output["output_type"] for output in outputs] == ["stream"]


def test_the_run_card_is_shown(notebook: Lite):
    """Static HTML, rendered: what a reader sees of a run."""
    outputs = notebook.run(NAMES.index("card"))
    assert set(outputs[0]["data"]) == {"text/html", "text/plain"}
    card = notebook.page.locator(".jp-Cell.jp-mod-active .jp-RenderedHTMLCommon")
    card.wait_for()
    assert "✓ completed" in card.inner_text()
    assert "double" in card.inner_text()


def test_a_wrong_policy_raises(notebook: Lite):
    """With the valid names, before any model is asked."""
    error = notebook.run(NAMES.index("policy"))[-1]
    assert error["output_type"] == "error"
    assert "'nope'" in error["evalue"]
    assert "valid: add, double" in error["evalue"]


def test_a_person_approves_by_input(notebook: Lite):
    """There is no gate here, whose buttons would not be heard while a cell runs: the page's own prompt asks."""
    assert said(notebook, "approve", "y").endswith("ok")
    assert said(notebook, "deny", "no").endswith("denied")


def test_a_model_is_asked_through_the_browser(notebook: Lite, server: StrictServer):
    """OpenAIEngine through pyfetch, whole and streamed, against a strict server on loopback."""
    assert said(notebook, "openai") == "completed It is 42. 42 ['test-model']"
    assert said(notebook, "pieces") == "['one', ' two', ' three']"
    assert said(notebook, "hang") == "timeout False"
    assert "connection" in said(notebook, "refused")
    assert "CORS" in said(notebook, "refused")
    server.assert_complete()
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_tutorial_says_what_it_says_elsewhere(lite: Lite, site: Path, path: Path):
    """Every output in the browser has the text that is stored in the notebook."""
    stored = json.loads((site / "files" / path.name).read_text(encoding="utf-8"))["cells"]
    lite.open(path.name)
    try:
        for index, cell in enumerate(stored):
            if cell["cell_type"] == "code":
                source = "".join(cell["source"])
                # Stored is what a run without a person says: the page has one, who says no.
                asks = 'approve="ask"' in source
                outputs = lite.run(index, "no" if asks else None)
                shown = [output for output in outputs if not (asks and output["output_type"] == "stream")]
                assert readable(shown) == readable(cell["outputs"]), source
    finally:
        lite.close()


def test_nothing_comes_from_elsewhere(lite: Lite, notebook: Lite):
    """No CDN: in all of the above the page asked nobody but this machine."""
    assert lite.outside == []
    assert notebook is lite


def readable(outputs: list[dict[str, Any]]) -> list[Any]:
    """Return what outputs say: plain text, the words of HTML, errors without their traceback."""
    found: list[Any] = []
    for output in outputs:
        if output["output_type"] == "error":
            found.append((re.sub(r".*\.|\W+$", "", output["ename"]), output["evalue"]))
        elif output["output_type"] == "stream":
            found.append("".join(output["text"]))
        else:
            data = {kind: "".join(part) for kind, part in output["data"].items() if kind.startswith("text/")}
            page = re.sub(r"<[^>]*>", " ", data.pop("text/html", ""))
            found.append({**data, "html": html.unescape(page).split()})
    return found
