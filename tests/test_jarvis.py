"""The facade."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import traceback

import pytest

from jarvis_nb import (
    ApprovalRequest,
    Approve,
    BaseTool,
    Deny,
    Jarvis,
    Reply,
    ToolContext,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    action,
)
from jarvis_nb.core.errors import EngineError, InvalidRequest, JarvisError, ToolsetError
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.tools.calculator import CalculatorTool

DELETED: list[str] = []


@pytest.fixture(autouse=True)
def clean():
    DELETED.clear()


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action(requires_confirmation=True)
def delete_order(order_id: str) -> str:
    """Delete one order."""
    DELETED.append(order_id)
    return f"deleted {order_id}"


def jarvis(*steps, **options) -> Jarvis:
    return Jarvis(engine=ScriptedEngine(list(steps)), config={}, **options)


def test_ask_returns_text():
    """tools.md 19."""
    assert jarvis("Hi.").ask("Hello") == "Hi."


def test_with_statement_and_double_close():
    """tools.md 19."""
    with jarvis("Hi.") as j:
        assert j.ask("Hello") == "Hi."
    j.close()


def test_names_tools_functions_and_actions():
    """tools.md 19: tools takes names, tools, functions, actions."""

    class Echo(BaseTool):
        tool_id = "echo"

        @property
        def spec(self):
            return ToolSpec("echo", "Echo.", {"type": "object", "properties": {"t": {"type": "string"}}})

        def execute(self, **params):
            return ToolResult("echo", params.get("t", ""))

    def plain(n: int) -> int:
        """Double a number."""
        return 2 * n

    j = jarvis(
        [
            call("calculator", expression="2+2"),
            call("echo", t="x"),
            call("plain", n=4),
            call("lookup_order", order_id="1"),
        ],
        "ok",
    )
    reply = j.ask_full("go", tools=["calculator", Echo(), plain, lookup_order])
    assert [a.content for a in reply.tool_attempts] == ["4", "x", "8", '{"order_id":"1","total_cents":4200}']
    assert [a.tool.kind for a in reply.tool_attempts] == ["tool", "tool", "action", "action"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"tools": ["calculatr"]}, "unknown_tools"),
        ({"tools": "calculator"}, "invalid_request"),
        ({"agent": "orchestrater"}, "unknown_agent"),
        ({"agent": "simple", "tools": ["calculator"]}, "tools_not_taken"),
        ({"tools": ["calculator", "calculator"]}, "duplicate_tools"),
        ({"tools": [lookup_order], "tool_policy": {"visible": ["delete_order"]}}, "unknown_tools"),
        ({"tools": [lookup_order], "tool_policy": {"visable": []}}, "invalid_policy"),
        (
            {"tools": [lookup_order], "tool_policy": {"visible": [], "requirement": "required"}},
            "required_without_tools",
        ),
        (
            {
                "tools": [lookup_order],
                "tool_policy": {"visible": [], "requirement": {"tool": "lookup_order"}},
            },
            "required_tool_not_selected",
        ),
        ({"history": "hello"}, "invalid_request"),
        ({"history": [{"content": "x"}]}, "invalid_request"),
        ({"temperature": 3}, "invalid_request"),
        ({"max_tokens": 0}, "invalid_request"),
        ({"max_tokens": 1.5}, "invalid_request"),
        ({"max_tokens": "5"}, "invalid_request"),
        ({"tempreature": 1}, "invalid_request"),
        ({"approve": "ask"}, "invalid_request"),
        ({"context": True}, "no_memory"),
    ],
)
def test_callers_mistakes_raise_before_any_model_call(options, code):
    """tools.md 20: an error that lists what exists; nothing is dropped silently."""
    engine = ScriptedEngine(["never"])
    with pytest.raises(JarvisError) as caught:
        Jarvis(engine=engine, config={}).ask_full("x", **options)
    assert caught.value.code == code
    assert engine.requests == []


def test_a_setting_in_an_ask_is_told_where_it_goes():
    with pytest.raises(InvalidRequest, match=r"give it once, to Jarvis\(approve=…\)"):
        jarvis("x").ask("x", approve="ask")


@pytest.mark.parametrize("options", [{"tools": ["calculatr"]}, {"agent": "orchestrater"}, {"temperature": 3}])
def test_a_notebook_shows_the_line_and_the_place_not_the_layers_between(options):
    """IPython and pytest leave out frames that hold `__tracebackhide__`, but the last."""
    with pytest.raises(InvalidRequest) as caught:
        jarvis("x").ask("x", **options)
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb)]
    assert len(frames) > 3
    shown = [f for f in frames[:-1] if "__tracebackhide__" not in f.f_locals]
    assert len(shown) <= 3
    assert shown[0].f_code.co_filename == __file__


@pytest.mark.parametrize("query", ["", "  ", None, 5])
def test_blank_question(query):
    """Bad input gets a clear error."""
    with pytest.raises(InvalidRequest):
        jarvis("x").ask(query)


def test_own_tools_run_the_orchestrator():
    """tools.md 20: with the Jarvis's own tools and no agent named, the orchestrator runs."""
    reply = jarvis(call("lookup_order", order_id="1"), "ok", tools=[lookup_order]).ask_full("x")
    assert (reply.agent, reply.tool_rounds) == ("orchestrator", 1)
    plain = jarvis("ok").ask_full("x")
    assert plain.agent is None
    simple = jarvis("ok").ask_full("x", agent="simple")
    assert (simple.agent, simple["turns"]) == ("simple", 1)


def test_wrong_tools_fail_where_the_jarvis_is_made():
    """toolsets.md 4: it fails in that cell."""
    with pytest.raises(InvalidRequest):
        jarvis("x", tools=["nope"])
    with pytest.raises(InvalidRequest) as caught:
        jarvis("x", approve="yes")
    assert caught.value.code == "invalid_approve"


async def _running_loop_case():
    j = jarvis(call("lookup_order", order_id="1"), "sync", call("lookup_order", order_id="2"), "async")
    sync = j.ask("x", tools=[lookup_order])
    awaited = await j.aask_full("x", tools=[lookup_order])
    return sync, awaited.output


def test_works_under_a_running_loop():
    """tools.md 21."""
    assert asyncio.run(_running_loop_case()) == ("sync", "async")


def test_a_tool_may_ask_synchronously():
    """A sync ask inside an async tool, which runs on the bridge's own loop, does not wait for itself."""
    inner = jarvis("inner answer")

    @action
    async def ask_inner(q: str) -> str:
        """Ask another model."""
        return inner.ask(q)

    assert (
        jarvis(call("ask_inner", q="x"), "done").ask_full("x", tools=[ask_inner]).tool_attempts[0].output
        == "inner answer"
    )


async def _stream(j: Jarvis, **options):
    return [event async for event in j.astream("x", **options)]


def test_stream():
    """tools.md 21: tools stream too; event.text is a piece, the last event has the reply."""
    j = jarvis(call("lookup_order", order_id="1"), "one two three")
    events = asyncio.run(_stream(j, tools=[lookup_order]))
    assert [e.text for e in events if e.text] == ["one ", "two ", "three"]
    assert events[-1].reply.output == "one two three"
    assert all(e.reply is None for e in events[:-1])
    assert "tool_call_start" in [e.event_type for e in events]


def test_leaving_a_stream_cancels_the_run():
    """design: an interrupted run is on j.last with a closed history."""

    async def leave(j):
        stream = j.astream("x", tools=[lookup_order])
        async for event in stream:
            if event.event_type == "tool_call_end":
                break
        await stream.aclose()

    j = Jarvis(engine=ScriptedEngine([call("lookup_order", order_id="1"), "never"], delay=0.05), config={})
    asyncio.run(leave(j))
    assert j.last.status == "cancelled"
    assert j.last.messages[-1].tool_call_id == "call_1"


def test_engine_error_comes_out_of_a_stream():
    """design: before the first answer it raises."""
    with pytest.raises(EngineError):
        asyncio.run(_stream(jarvis(EngineError("down", code="connection"))))


def test_preview_makes_no_model_call():
    """toolsets.md 20: the offer, the choice, the exact payload and its tokens."""
    engine = ScriptedEngine([])
    j = Jarvis(engine=engine, config={})
    p = j.preview(
        "x",
        tools=[lookup_order, delete_order],
        tool_policy={"hidden": ["delete_order"], "requirement": "required"},
    )
    assert (p.offered, list(p.hidden), p.choice) == (["lookup_order"], ["delete_order"], "required")
    assert [t["function"]["name"] for t in p.payload["tools"]] == ["lookup_order"]
    assert p.tokens > 10
    assert engine.requests == []


def test_map_keeps_order():
    j = Jarvis(engine=ScriptedEngine([lambda r: r.messages[-1].text.upper()] * 5), config={})
    assert [r.output for r in j.map(["a", "b", "c", "d", "e"], at_once=2)] == ["A", "B", "C", "D", "E"]


@pytest.mark.parametrize(
    ("queries", "options"), [("abc", {}), (["a"], {"at_once": 0}), ([""], {}), ([None], {})]
)
def test_wrong_map_raises(queries, options):
    """tools.md 20: a text is not a list of letters to ask about, and nobody waits for no worker."""
    engine = ScriptedEngine(["x"] * 3)
    with pytest.raises(InvalidRequest):
        Jarvis(engine=engine, config={}).map(queries, **options)
    assert engine.requests == []


@pytest.mark.parametrize("make", [tuple, iter, lambda items: dict.fromkeys(items).keys()])
def test_tools_may_be_any_iterable(make):
    """tools.md 19, 20: an iterator is read once, and no ask of a map goes without its tools."""
    engine = ScriptedEngine(["x"] * 3)
    j = Jarvis(engine=engine, config={})
    j.ask("q", tools=make(["calculator", "think"]))
    j.map(["a", "b"], tools=make(["calculator", "think"]))
    assert [r.tool_names for r in engine.requests] == [["calculator", "think"]] * 3


@pytest.mark.parametrize("wrong", ["calculator", 5, {"calculator": 1}, CalculatorTool()])
def test_tools_that_are_no_list_are_told_what_exists(wrong):
    """tools.md 20: an error that lists what exists."""
    with pytest.raises(InvalidRequest, match="retrieval"):
        jarvis("x").ask("q", tools=wrong)
    with pytest.raises(InvalidRequest, match="retrieval"):
        Jarvis(engine=ScriptedEngine([]), tools=wrong, config={})


def test_64_asks_at_once_on_one_jarvis():
    """The first ask ever may be one of the 64."""
    j = Jarvis(engine=ScriptedEngine([lambda r: r.messages[-1].text] * 64), config={})
    out: dict[int, str] = {}
    threads = [threading.Thread(target=lambda n=n: out.update({n: j.ask(f"q{n}")})) for n in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert out == {n: f"q{n}" for n in range(64)}


def test_tool_context_reaches_an_action():
    """design: actions get the host's context through a parameter annotated ToolContext."""

    @action
    def whoami(context: ToolContext) -> str:
        """Say who asks."""
        return context["user"]

    j = jarvis(call("whoami"), "ok", tool_context={"user": "ada"})
    assert j.ask_full("x", tools=[whoami]).tool_attempts[0].output == "ada"


def test_two_jarvis_share_nothing():
    """tools.md 23."""
    a, b = jarvis("x", tools=[lookup_order]), jarvis("y")
    a.tools.append("z")
    a.always.add("t")
    assert b.tools == []
    assert b.always == set()
    assert a.bus is not b.bus


def test_confirmation_without_an_approver_is_denied():
    """tools.md 6."""
    reply = jarvis(call("delete_order", order_id="1"), "ok").ask_full("x", tools=[delete_order])
    attempt = reply.tool_attempts[0]
    assert (attempt.status, attempt.ran, DELETED) == ("denied", False, [])


@pytest.mark.parametrize("is_async", [False, True])
def test_approve_function(is_async):
    """design: a function, async too; it gets the exact name and arguments."""
    seen: list[ApprovalRequest] = []

    def decide(request):
        seen.append(request)
        return Approve(always=True)

    async def decide_async(request):
        return decide(request)

    j = jarvis(
        call("delete_order", order_id="1"),
        call("delete_order", order_id="2"),
        "ok",
        approve=decide_async if is_async else decide,
    )
    j.ask_full("x", tools=[delete_order])
    assert [(r.name, r.arguments) for r in seen] == [
        ("delete_order", {"order_id": "1"})
    ]  # always: asked once
    assert DELETED == ["1", "2"]


def test_approve_with_edited_arguments_and_deny_reason():
    """toolsets.md 34, tools.md 6."""
    j = jarvis(call("delete_order", order_id="1"), "ok", approve=lambda r: Approve({"order_id": "9"}))
    assert j.ask_full("x", tools=[delete_order]).tool_attempts[0].arguments == {"order_id": "9"}
    assert DELETED == ["9"]
    engine = ScriptedEngine([call("delete_order", order_id="1"), "ok"])
    j = Jarvis(engine=engine, config={}, approve=lambda r: Deny("not on a Friday"))
    j.ask_full("x", tools=[delete_order])
    assert "not on a Friday" in engine.requests[1].messages[-1].content
    assert DELETED == ["9"]


def test_pause_save_load_resume(tmp_path):
    """toolsets.md 34: deny one of two, approve one of two; finished calls are not run again."""
    ran = []

    @action
    def note(text: str) -> str:
        """Take a note."""
        ran.append(text)
        return "noted"

    tools = [note, delete_order]
    first = jarvis(
        [call("note", text="a"), call("delete_order", order_id="1"), call("delete_order", order_id="2")],
        approve="pause",
    )
    paused = first.ask_full("tidy up", tools=tools)
    assert paused.status == "paused"
    assert [a.status for a in paused.tool_attempts] == ["ok", "pending", "pending"]
    path = paused.save(tmp_path / "turn.json")
    loaded = Reply.load(path)
    assert loaded == paused
    engine = ScriptedEngine(["All done."])
    second = Jarvis(engine=engine, config={})
    decisions = {paused.pending[0].call_id: Approve(), paused.pending[1].call_id: Deny("keep it")}
    done = second.resume(loaded, decisions, tools=tools)
    assert (done.status, done.output, ran, DELETED) == ("completed", "All done.", ["a"], ["1"])
    assert [a.status for a in done.tool_attempts] == ["ok", "ok", "denied"]
    sent = engine.requests[0].messages
    assert [m.tool_call_id for m in sent if m.tool_call_id] == ["call_1", "call_2", "call_3"]
    assert "keep it" in sent[-1].content
    assert loaded.status == "paused"  # the record itself is not changed


def test_resume_asks_again_about_calls_without_a_decision():
    """toolsets.md 34."""
    paused = jarvis(
        [call("delete_order", order_id="1"), call("delete_order", order_id="2")], approve="pause"
    ).ask_full("x", tools=[delete_order])
    again = jarvis("ok", approve="pause").resume(paused, {"call_1": Approve()}, tools=[delete_order])
    assert again.status == "paused"
    assert [a.status for a in again.tool_attempts] == ["ok", "pending"]
    done = jarvis("ok").resume(again, {"call_2": Approve()}, tools=[delete_order])
    assert (done.status, DELETED) == ("completed", ["1", "2"])


def test_resume_errors():
    """toolsets.md 34: bad input gets a clear error and loses nothing."""
    paused = jarvis([call("delete_order", order_id="1")], approve="pause").ask_full("x", tools=[delete_order])
    done = jarvis("ok").ask_full("x")
    for reply, decisions, tools, code in [
        (done, {}, [], "not_paused"),
        (paused, {"call_9": Approve()}, [delete_order], "unknown_call"),
        (paused, {"call_1": True}, [delete_order], "invalid_decision"),
        (paused, {"call_1": Approve()}, [lookup_order], "unknown_tools"),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            jarvis("ok").resume(reply, decisions, tools=tools)
        assert caught.value.code == code
    assert DELETED == []


def test_saved_turn_is_equal_and_damaged_ones_are_named(tmp_path):
    """toolsets.md 34."""
    reply = jarvis([call("lookup_order", order_id="1"), call("nope")], "ok").ask_full(
        "x", tools=[lookup_order]
    )
    assert Reply.load(reply.save(tmp_path / "a.json")) == reply
    (tmp_path / "b.json").write_text("[1]")
    (tmp_path / "c.json").write_text("{")
    (tmp_path / "d.json").write_text('{"jarvis_nb": 1}')
    for name in "bcd":
        with pytest.raises(InvalidRequest) as caught:
            Reply.load(tmp_path / f"{name}.json")
        assert caught.value.code == "invalid_turn"


def test_registered_tool_by_name():
    """tools.md 2: looked up by name at run time; its cell run again replaces it."""
    for answer in ("one", "two"):

        @ToolRegistry.register("answer_tool")
        class AnswerTool(BaseTool):
            tool_id = "answer_tool"
            answer_text = answer

            @property
            def spec(self):
                return ToolSpec("answer_tool", "Answer.")

            def execute(self, **params):
                return ToolResult("answer_tool", self.answer_text)

        j = jarvis(call("answer_tool"), "ok")
        assert j.ask_full("x", tools=["answer_tool"]).tool_results[0]["content"] == answer


@pytest.fixture
def registry(monkeypatch):
    """What a test registers goes with it."""
    monkeypatch.setattr(ToolRegistry, "_entries", dict(ToolRegistry._entries))


@pytest.mark.usefixtures("registry")
def test_registered_functions_actions_and_instances_by_name():
    """tools.md 2, 19: whatever is registered is found by name, not only a class."""

    def registered_function(n: int) -> int:
        """Double."""
        return 2 * n

    made = {"registered_function": registered_function}
    made |= {"registered_action": action(registered_function, name="registered_action")}
    made |= {"registered_instance": CalculatorTool().with_name("registered_instance")}
    for name, entry in made.items():
        assert ToolRegistry.register(name)(entry) is entry
    steps = [
        call("registered_function", n=1),
        call("registered_action", n=2),
        call("registered_instance", expression="6"),
    ]
    reply = jarvis(steps, "ok").ask_full("x", tools=list(made))
    assert [a.content for a in reply.tool_attempts] == ["2", "4", "6"]


@pytest.mark.usefixtures("registry")
def test_a_registered_class_that_needs_arguments_says_so():
    """tools.md 20: a clear error, before any model call."""

    @ToolRegistry.register("needs_a_key")
    class NeedsKey(CalculatorTool):
        def __init__(self, key):
            super().__init__()

    with pytest.raises(InvalidRequest, match=r"NeedsKey\(…\)") as caught:
        jarvis("x").ask("x", tools=["needs_a_key"])
    assert caught.value.code == "tool_not_made"
    j = jarvis("x")
    tools, problems = j.toolsets.registered()
    assert "calculator" in tools
    assert "needs_a_key" not in tools
    assert [problem.code for problem in problems] == ["tool_not_made"]


def test_duplicate_tools_name_both():
    """tools.md 7."""
    with pytest.raises(ToolsetError) as caught:
        jarvis("x").ask("x", tools=[lookup_order, lookup_order])
    assert caught.value.code == "duplicate_tools"


def test_model_is_settable():
    """design: j.model is settable."""
    engine = ScriptedEngine(["a", "b"])
    j = Jarvis(engine=engine, model="m1", config={})
    j.ask("x")
    j.model = "m2"
    j.ask("x")
    assert [r.model for r in engine.requests] == ["m1", "m2"]


def test_reprs_are_deterministic():
    """design rule 4."""
    j = jarvis("Hi.", tools=[lookup_order])
    reply = j.ask_full("x")
    for thing in (j, reply, j.preview("x"), j.bus, j.memory):
        assert "0x" not in repr(thing)
        assert "\n" not in repr(thing)


IMPORT_CHECK = """
import sys, threading
from jarvis_nb import Jarvis
heavy = [m for m in ("pydantic", "griffe", "jsonschema", "httpx", "aiohttp", "numpy", "IPython", "ipywidgets",
                     "anywidget", "rich", "typer", "jarvis_nb.widgets", "jarvis_nb.engines.openai", "sqlite3",
                     "yaml", "mcp") if m in sys.modules]
assert not heavy, heavy
assert threading.active_count() == 1
"""


def test_import_is_light():
    """design rule 7."""
    subprocess.run([sys.executable, "-c", IMPORT_CHECK], check=True)
