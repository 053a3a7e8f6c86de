"""Every public object shows itself: notebook.md 1."""

import copy
import json
import pickle
import re
import subprocess
import sys

import pytest
import samples
from sanitizers import strict

import jarvis_nb
from jarvis_nb import (
    ApprovalRequest,
    Approve,
    Deny,
    Event,
    EventBus,
    EventType,
    Jarvis,
    JarvisError,
    Message,
    Role,
    Secret,
    Skills,
    ToolCall,
    ToolContext,
    ToolError,
    ToolExecutor,
    ToolPolicy,
    ToolResult,
    ToolSource,
    action,
    engines,
)
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Usage
from jarvis_nb.engines import (
    Completion,
    LocalEngine,
    OpenAIEngine,
    ReplayEngine,
    Request,
    ScriptedEngine,
    call,
)
from jarvis_nb.memory.base import MemoryHit
from jarvis_nb.memory.ingest import IndexReport
from jarvis_nb.memory.sqlite import SQLiteMemory
from jarvis_nb.toolsets.skills import SkillSource
from jarvis_nb.widgets import ApprovalGate, Playground, PolicyPicker, RunView, ToolBench

KEY = "sk-hidden-0123456789"


class RatesSource(ToolSource):
    """A source as a user writes one."""

    def list_tools(self, config, context):
        return []

    def run_tool(self, name, arguments, config, context):
        return {}


def scripted():
    return ScriptedEngine([call("lookup_order", order_id="ORD-5"), "Done."])


def bus():
    made = EventBus(record_history=True)
    made.publish(EventType.WARNING, text="low on tokens")
    return made


def played():
    engine = scripted()
    Jarvis(engine=engine).ask("What of ORD-5?", tools=[samples.lookup_order])
    return engine


def flow_error():
    flow = samples.discount_flow()
    flow.step("lost", samples.lookup_order)
    with pytest.raises(jarvis_nb.FlowError) as caught:
        flow.validate()
    return caught.value


def replay_engine(tmp_path):
    return ReplayEngine(tmp_path / "lesson.json", scripted(), "record")


MADE = {
    "ApprovalRequest": lambda: ApprovalRequest("call_1", "refund", {"cents": 5}, "Pay."),
    "Approve": lambda: Approve({"cents": 4}, always=True),
    "Attempt": lambda: samples.reply().tool_attempts[0],
    "BaseTool": lambda: samples.toolset()["calculator"],
    "Deny": lambda: Deny("too much"),
    "EngineError": lambda: jarvis_nb.EngineError("no answer", code="timeout", hint="ask again"),
    "Event": lambda: bus().history[0],
    "EventBus": bus,
    "EventType": lambda: EventType.TEXT,
    "Flow": samples.discount_flow,
    "FlowError": flow_error,
    "InvalidRequest": lambda: jarvis_nb.InvalidRequest("no", valid=["a", "b"]),
    "Jarvis": lambda: Jarvis(engine=scripted()),
    "JarvisError": lambda: JarvisError("no", value=KEY),
    "Message": lambda: Message(Role.ASSISTANT, None, [ToolCall("call_1", "add", {"a": 1})]),
    "Reply": samples.reply,
    "Role": lambda: Role.USER,
    "Secret": lambda: Secret("RATES_TOKEN"),
    "Skills": samples.skills,
    "ToolCall": lambda: ToolCall("call_1", "lookup_order", '{"order_id": "ORD-5"}'),
    "ToolContext": lambda: ToolContext({"tenant": KEY}, secrets={"token": KEY}),
    "ToolError": lambda: ToolError("order 'X' does not exist", code="unknown_order"),
    "ToolExecutor": lambda: ToolExecutor([samples.lookup_order]),
    "ToolPolicy": lambda: ToolPolicy(hidden=["refund"]),
    "ToolResult": lambda: ToolExecutor([samples.lookup_order]).execute(MADE["ToolCall"]()),
    "ToolSource": RatesSource,
    "ToolSpec": lambda: samples.lookup_order.spec,
    "Toolset": samples.toolset,
    "action": lambda: action(lambda: 1, name="one", description="One."),
    "Completion": lambda: Completion({"role": "assistant", "content": "Hi."}, "stop", Usage(1, 2)),
    "InferenceEngine": scripted,
    "LocalEngine": LocalEngine,
    "OpenAIEngine": lambda: OpenAIEngine("http://127.0.0.1:8000/v1", KEY, model="m", headers={"X-Key": KEY}),
    "ReplayEngine": replay_engine,
    "Request": lambda: Request("m", [Message(Role.USER, "Hi")]),
    "ScriptedEngine": played,
    "call": lambda: call("lookup_order", order_id="ORD-5"),
    "PolicyPicker": lambda: PolicyPicker(samples.toolset()),
    "ToolBench": lambda: ToolBench(samples.lookup_order),
    "Playground": lambda: Playground(Jarvis(engine=scripted())),
    "RunView": RunView,
    "ApprovalGate": lambda: ApprovalGate(ApprovalRequest("c", "refund", {})),
    "SQLiteMemory": SQLiteMemory,
    # What public objects hand out.
    "request": lambda: played().requests[1],
    "preview": lambda: Jarvis(engine=scripted()).preview("Hi", tools=[samples.lookup_order]),
    "memory": lambda: Jarvis(engine=scripted()).memory,
    "hit": lambda: MemoryHit("a", "Ships in two days.", 1.5, "shipping.md"),
    "index report": lambda: IndexReport(added=["a.md"], chunks=2),
    "replayed": lambda: samples.reply().replay(tool_policy={"hidden": ["refund"]}),
    "skill": lambda: samples.skills()[0],
    "skill problem": lambda: samples.skills().problems[0],
    "skill source": SkillSource,
    "error": lambda: samples.reply().tool_attempts[1].error,
    "offer": lambda: samples.reply().offers[0],
    "model call": lambda: samples.reply().model_calls[0],
    "repair": lambda: samples.odd_reply("x").repairs[0],
    "usage": lambda: Usage(10, 5),
    "definition": lambda: samples.lookup_order.definition,
    "flow input": lambda: samples.discount_flow().input("order_id"),
    "flow step": lambda: samples.discount_flow().step("again", samples.lookup_order, order_id="A")["items"],
}
NAMES = pytest.mark.parametrize("name", MADE)
CLASSES_ALONE = {"ToolRegistry"}
"""Used as classes, never made: a notebook shows a class by its name."""


@pytest.fixture
def make(tmp_path):
    def made(name):
        return MADE[name](tmp_path) if MADE[name] is replay_engine else MADE[name]()

    return made


def test_01_all_public_names_are_here():
    """notebook.md 1: nothing public is left out below."""
    public = {*jarvis_nb.__all__, *engines.__all__, *jarvis_nb.widgets.__all__} - {"__version__"}
    assert public - set(MADE) == CLASSES_ALONE


@NAMES
def test_01_a_line_a_text_and_a_picture(name, make):
    """notebook.md 1: and no address, clock or latency in any of them, nor a secret."""
    thing = make(name)
    shown = thing._repr_mimebundle_()
    assert {"text/plain", "text/html"} <= set(shown)
    assert "\n" not in repr(thing)
    for text in (repr(thing), shown["text/plain"], strict(shown["text/html"]).text):
        assert len(text) > 5
        assert not re.search(r"0x[0-9a-f]{5,}|latency_seconds|timestamp|\d ms\b|\d\d:\d\d", text), text
        assert KEY not in text


@NAMES
def test_01_the_same_again(name, make):
    """notebook.md 1: what is made anew reads the same."""
    first, second = make(name), make(name)
    assert repr(first) == repr(second)
    assert first._repr_mimebundle_() == second._repr_mimebundle_()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ToolResult", ["lookup_order", '{"order_id":"ORD-5"', "success", "true"]),
        ("Attempt", ["discount_order", '["order ok","discount ok"]']),
        ("Message", ["assistant", '"arguments":{"a":1}']),
        ("EventBus", ["1 event", "warning"]),
        ("OpenAIEngine", ["http://127.0.0.1:8000/v1", "forced choice"]),
        ("ScriptedEngine", ["2 times"]),
        ("Secret", ["RATES_TOKEN"]),
        ("ToolSource", ["RatesSource", "30"]),
        ("ToolContext", ["tenant"]),
        ("ToolExecutor", ["lookup_order"]),
        ("InvalidRequest", ["invalid_request", '["a","b"]']),
        ("request", ["What of ORD-5?"]),
        ("replayed", ["stopped"]),
    ],
)
def test_01_a_picture_tells_what_matters(name, words, make):
    """notebook.md 1."""
    said = strict(make(name)._repr_mimebundle_()["text/html"]).text
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    "make_odd",
    [
        lambda text: ToolCall("c", text, {text: text}),
        lambda text: ToolResult(text, text, metadata={text: object()}),
        lambda text: Message(Role.TOOL, text, [ToolCall(text, text)]),
        lambda text: Event(EventType.TEXT, {"text": text}, 1, 0.0),
        lambda text: ApprovalRequest(text, text, {text: text}, text),
        Deny,
        Secret,
        lambda text: ToolError(text, hint=text, valid=[text]),
        lambda text: ToolContext({text: 1}, tool_name=text),
        lambda text: MemoryHit(text, text, 1.0, text, {text: text}),
    ],
)
def test_05_hostile_text_stays_text(make_odd):
    """notebook.md 5: in records too; an object in them is named, not asked for its repr."""
    shown = make_odd(samples.NASTY)._repr_mimebundle_()
    parsed = strict(shown["text/html"])
    assert "<img src=x onerror=alert(1)>" in parsed.text
    assert "$" not in parsed.math
    assert "object at 0x" not in parsed.text
    for text in shown.values():
        assert not set("\x1b\u202e\u202c\u200b\U000e0041") & set(text)


def test_05_a_record_within_itself_is_shown():
    """notebook.md 5: what has no end is cut."""
    arguments = {"a": []}
    arguments["a"].append(arguments["a"])
    assert "ToolCall" in ToolCall("c", "x", arguments)._repr_mimebundle_()["text/html"]


def test_01_the_picture_of_skills_for_a_request():
    """notebook.md 1: what Skills.source() returns is still the pair that tool_sources takes."""
    root = samples.skills()[0].path.rsplit("/", 2)[0]
    spec = Skills.source([root])
    kind, config = spec
    assert (kind, config["allow_symlinks"]) == (SkillSource, False)
    assert "\n" not in repr(spec)
    said = strict(spec._repr_mimebundle_()["text/html"]).text
    assert "load_skill" in said
    assert root in said


@pytest.mark.parametrize("name", ["ToolCall", "ToolResult", "Message", "Event", "Secret", "Approve", "Deny", "usage", "call"])  # fmt: skip
def test_pictured_values_stay_values(name):
    """Slots, equality and pickling are what they were without a picture."""
    one = MADE[name]()
    assert not hasattr(one, "__dict__")
    assert pickle.loads(pickle.dumps(one)) == one == copy.copy(one)
    assert isinstance(one, Pictured)


def test_pictured_enums_stay_text():
    """A role or an event's type is its text, also in JSON."""
    assert json.dumps([Role.USER, EventType.TEXT]) == '["user", "text"]'
    assert [repr(Role("user")), f"{EventType.TEXT}"] == ["<Role.USER: 'user'>", "text"]


def test_14_pictures_are_imported_when_one_looks():
    """Design 7: the public names pull in no picture."""
    code = (
        "import sys, jarvis_nb\n"
        "for name in jarvis_nb.__all__: getattr(jarvis_nb, name)\n"
        "print([m for m in sys.modules if m.startswith(('jarvis_nb.display', 'jarvis_nb.widgets', 'IPython'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
