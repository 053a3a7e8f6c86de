"""Classroom checks: a readable failure, and a run that becomes a test."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jarvis_nb import Jarvis
from jarvis_nb.engines import ScriptedEngine, call
from tests.run.shop import TOOLS, lookup_order, run


@pytest.fixture
def reply():
    return run(
        call("lookup_order", order_id="ORD-5"),
        [call("fail", reason="out of order"), call("nope")],
        "It costs $42.",
    )


def test_what_is_as_expected_returns_the_reply(reply):
    assert reply.expect() is reply
    assert (
        reply.expect(
            calls=["lookup_order", "fail", "nope"],
            args={"lookup_order": {"order_id": "ORD-5"}, "fail": {"reason": "out of order"}},
            max_rounds=2,
            output="$42",
            status="completed",
        )
        is reply
    )
    assert run("Hi.", tools=()).expect(calls=[], no_errors=True, max_rounds=0)


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"calls": ["lookup_order"]}, "- calls: expected ['lookup_order'], got ['lookup_order', 'fail', 'nope']"),
        ({"calls": []}, "- calls: expected [], got ['lookup_order', 'fail', 'nope']"),
        ({"args": {"lookup_order": {"order_id": "X"}}}, "- args: expected lookup_order with {'order_id': 'X'}, got {'order_id': 'ORD-5'}"),
        ({"args": {"lookup_order": {"missing": None}}}, "- args: expected lookup_order with {'missing': None}, got"),
        ({"args": {"calculator": {}}}, "- args: calculator was not called"),
        ({"no_errors": True}, "- error: fail: RuntimeError: out of order"),
        ({"no_errors": True}, "- error: nope: no tool is called 'nope'"),
        ({"max_rounds": 1}, "- max_rounds: expected at most 1 tool rounds, got 2"),
        ({"output": "$50"}, "- output: expected '$50' in 'It costs $42.'"),
        ({"status": "failed"}, "- status: expected failed, got completed"),
    ],
)  # fmt: skip
def test_a_failure_reads_well(reply, expected, line):
    with pytest.raises(AssertionError) as caught:
        reply.expect(**expected)
    text = str(caught.value)
    assert line in text
    # What happened stands below what is wrong, so that a pupil sees why.
    assert text.index("what happened:") > text.index(line)
    assert "question: Show order ORD-5." in text
    assert "round 1: lookup_order(order_id='ORD-5') -> ok:" in text
    assert "answer (completed): It costs $42." in text


def test_every_difference_is_listed(reply):
    with pytest.raises(AssertionError) as caught:
        reply.expect(calls=[], max_rounds=0, output="x", status="failed", no_errors=True)
    assert sum(line.startswith("- ") for line in str(caught.value).splitlines()) == 6


def test_a_failed_run_is_an_error():
    failed = run("No.", tool_policy={"requirement": "required"})
    with pytest.raises(AssertionError, match="required_tool_not_called"):
        failed.expect(no_errors=True)


def namespace():
    return {tool.name: tool for tool in TOOLS if not isinstance(tool, str)}


RUNS = {
    "direct": lambda: run("Hi.", tools=()),
    "builtin": lambda: run([call("calculator", expression="2+2"), call("calculator", expression="3*3")], "4 and 9."),
    "own tools": lambda: run(call("lookup_order", order_id="ORD-5"), "Done."),
    "a flow": lambda: run(call("discount_order", order_id="ORD-5"), "Done."),
    "text beside calls": lambda: run(["Let me look.", call("lookup_order", order_id="ORD-5")], "Done."),
    "failures": lambda: run([call("fail", reason='quote " and \' and \n'), call("nope", x=1)], "Sorry."),
    "a policy": lambda: run(call("lookup_order", order_id="1"), "ok", tool_policy={"visible": ["lookup_order"], "requirement": {"tool": "lookup_order"}}),
    "requirement not met": lambda: run("No.", tool_policy={"requirement": "required"}),
    "a limit": lambda: run(call("lookup_order", order_id="1"), "So far.", limits={"rounds": 1}),
    "denied": lambda: run(call("delete_order", order_id="1"), "ok"),
    "broken arguments": lambda: run({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "lookup_order", "arguments": "{bad"}}]}, "Sorry."),
    "odd names of arguments": lambda: run(call("nope", **{"class": 1, "a b": 2, "self": 3}), "ok"),
    "cut off": lambda: run({"role": "assistant", "content": "It co", "finish_reason": "length"}, tools=()),
    "no text": lambda: run({"role": "assistant", "content": None}, tools=()),
    "simple": lambda: run("Hi.", tools=(), agent="simple"),
    "orchestrator without tools": lambda: run("Hi.", tools=(), agent="orchestrator"),
    "a system message": lambda: run("Hi.", tools=(), system="Be brief.", temperature=0.0),
    "odd text": lambda: run("ä ' \" \\ \n \u2028 {x} %s", tools=(), question="q ' \" \\ \n ?"),
    "paused": lambda: run(call("delete_order", order_id="1"), jarvis={"approve": "pause"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_to_test_repeats_the_run(name):
    """The source runs as it stands, and passes."""
    source = RUNS[name]().to_test()
    names = namespace()
    exec(compile(source, "test_reply.py", "exec"), names)
    names["test_reply"]()


def test_to_test_fails_where_the_tools_behave_otherwise():
    """The test it writes can fail."""
    source = run(call("lookup_order", order_id="ORD-5"), "Done.").to_test("test_order")
    names = namespace()
    exec(compile(source.replace("'ORD-5'", "'ORD-6'", 1), "t", "exec"), names)
    with pytest.raises(AssertionError, match="ORD-6"):
        names["test_order"]()


@pytest.mark.slow
def test_to_test_runs_under_pytest(tmp_path):
    """With the tools imported where the comment says so."""
    (tmp_path / "shop.py").write_text(
        "from jarvis_nb import action\n\n@action\ndef lookup_order(order_id: str, detail: bool = False) -> dict:\n"
        '    """Look up one order by ID."""\n    return {"order_id": order_id, "total_cents": 4200}\n'
    )
    reply = Jarvis(
        engine=ScriptedEngine([call("lookup_order", order_id="ORD-5"), "Done."]), config={}
    ).ask_full("x", tools=[lookup_order])
    source = reply.to_test()
    assert "# from your_module import lookup_order" in source
    (tmp_path / "test_shop.py").write_text(source.replace("# from your_module", "from shop"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
