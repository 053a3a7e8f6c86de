"""The reply: toolsets.md 27 to 34, tools.md 19, issue items on saved turns."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis_nb import BaseTool, Deny, Flow, Jarvis, Reply, ToolResult, ToolSource, ToolSpec, action
from jarvis_nb.core.errors import ErrorInfo, InvalidRequest
from jarvis_nb.core.types import Definitions, Message, Repair, Role, ToolCall, ToolDefinition, Usage
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.record import Attempt, LedgerEntry, ModelCall, RoundOffer, ToolRef


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action
def fail(reason: str) -> str:
    """Fail."""
    raise RuntimeError(reason)


@action(requires_confirmation=True)
def delete_order(order_id: str) -> str:
    """Delete one order."""
    return "deleted"


class Rates(ToolSource):
    def list_tools(self, config, context):
        return [
            {
                "name": "rate",
                "description": "A rate.",
                "parameter_schema": {"type": "object", "properties": {}},
            }
        ]

    def run_tool(self, name, arguments, config, context):
        return {"rate": 0.92}


flow = Flow("double_order", "Look an order up.", inputs={"order_id": str})
flow.output(flow.step("order", lookup_order, order_id=flow.input("order_id")))

TOOLS = [lookup_order, fail, delete_order, flow, "calculator"]


def jarvis(*steps, **options) -> Jarvis:
    options.setdefault("tools", TOOLS)
    return Jarvis(engine=ScriptedEngine(list(steps), usage=(10, 5)), config={}, **options)


# The mapping.


def test_19_agent_mode_is_a_mapping():
    """tools.md 19: agent mode adds tool_results and turns, with real usage."""
    reply = jarvis(call("calculator", expression="2+2"), "Four.").ask_full("x")
    assert list(reply) == ["content", "usage", "model", "engine", "tool_results", "turns"]
    assert len(reply) == 6
    assert reply["content"] == reply.output == "Four."
    assert reply["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert (reply["model"], reply["engine"], reply["turns"]) == ("scripted", "scripted", 2)
    (result,) = reply["tool_results"]
    assert (result["tool_name"], result["content"], result["success"]) == ("calculator", "4", True)
    assert dict(reply) == {key: reply[key] for key in reply}
    with pytest.raises(KeyError):
        reply["output"]


def test_19_direct_mode_is_a_mapping():
    """tools.md 19: direct mode gives content, usage, model, engine."""
    reply = jarvis("Hi.", tools=()).ask_full("x")
    assert list(reply) == ["content", "usage", "model", "engine"]
    assert reply.agent is None
    with pytest.raises(KeyError):
        reply["tool_results"]


def test_27_rounds_and_turns():
    """toolsets.md 27: rounds that ran tools; one round means two model calls."""
    one = jarvis(call("calculator", expression="1"), "ok").ask_full("x")
    assert (one.tool_rounds, one.turns) == (1, 2)
    refused = jarvis(call("nope"), call("calculator", expression="1"), "ok").ask_full("x")
    assert (refused.tool_rounds, refused.turns, len(refused.tool_attempts)) == (1, 3, 2)
    assert jarvis("ok").ask_full("x").tool_rounds == 0


def test_28_attempts():
    """toolsets.md 28: kind, name, source, structured output, and all the rest; refused calls too."""
    j = jarvis(
        [
            call("calculator", expression="2+2"),
            call("lookup_order", order_id="A"),
            call("double_order", order_id="B"),
            call("rate"),
            call("lookup_order"),
            call("nope", x=1),
            call("fail", reason="out of order"),
        ],
        "ok",
        tool_sources=[(Rates, {})],
    )
    reply = j.ask_full("x")
    attempts = reply.tool_attempts
    assert [(a.tool.kind, a.tool.name, a.tool.source) for a in attempts] == [
        ("tool", "calculator", None),
        ("action", "lookup_order", None),
        ("flow", "double_order", None),
        ("source", "rate", f"{__name__}.Rates"),
        ("action", "lookup_order", None),
        ("tool", "nope", None),
        ("action", "fail", None),
    ]
    assert [a.status for a in attempts] == ["ok"] * 4 + ["failed"] * 3
    assert [a.ran for a in attempts] == [True] * 4 + [False, False, True]
    assert [a.round for a in attempts] == [1] * 7
    assert [a.index for a in attempts] == list(range(7))
    assert len({a.call_id for a in attempts}) == 7
    assert [a.output for a in attempts[1:4]] == [
        {"order_id": "A", "total_cents": 4200},
        {"order_id": "B", "total_cents": 4200},
        {"rate": 0.92},
    ]
    assert [a.error.code for a in attempts[4:]] == ["invalid_arguments", "unknown_tool", "tool_failed"]
    assert [step["name"] for step in attempts[2].steps] == ["order"]
    assert attempts[5].arguments == {"x": 1}
    # toolsets.md 29: every call id gets exactly one tool message, in call order
    assert [m.tool_call_id for m in reply.messages if m.role is Role.TOOL] == [a.call_id for a in attempts]
    # toolsets.md 31: short data for the model, no traceback
    for attempt in attempts[4:]:
        assert json.loads(attempt.content)["error"]["code"] == attempt.error.code
        assert "Traceback" not in attempt.content
    assert "order_id" in attempts[4].content
    assert "lookup_order" in attempts[5].content


@pytest.mark.parametrize(
    ("steps", "options", "status", "code", "output"),
    [
        (["Done."], {}, "completed", None, "Done."),
        (
            ["No."],
            {"tool_policy": {"requirement": "required"}},
            "failed",
            "required_tool_not_called",
            "No.",
        ),
        (
            [call("calculator", expression="1"), "So far."],
            {"limits": {"rounds": 1}},
            "max_rounds",
            "limit_rounds",
            "So far.",
        ),
        (
            [call("calculator", expression="1"), ""],
            {"limits": {"rounds": 1}},
            "max_rounds",
            "limit_rounds",
            "",
        ),
        ([call("delete_order", order_id="1")], {}, "paused", "approval_pending", ""),
    ],
)
def test_30_status(steps, options, status, code, output):
    """toolsets.md 30: reaching the limit never invents an answer."""
    reply = jarvis(*steps, approve="pause").ask_full("x", **options)
    assert (reply.status, reply.error and reply.error.code, reply.output) == (status, code, output)


class Long(BaseTool):
    tool_id = "long"

    @property
    def spec(self):
        return ToolSpec("long", "Long.")

    def execute(self, **params):
        return ToolResult("long", "ä" * 40_000)


def test_32_long_results_are_capped_for_the_model_alone():
    """toolsets.md 32: the whole value stays on the attempt."""
    engine = ScriptedEngine([call("long"), "ok"])
    reply = Jarvis(engine=engine, config={}).ask_full("x", tools=[Long()])
    attempt = reply.tool_attempts[0]
    assert attempt.truncated
    assert len(attempt.content) <= 16_384
    assert attempt.output == "ä" * 40_000
    assert engine.requests[1].messages[-1].text == attempt.content
    assert "more characters" in attempt.content or "characters" in attempt.content


def test_33_structured_results_are_compact_json():
    """toolsets.md 33: non-ASCII kept."""

    @action
    def names() -> dict:
        """Names."""
        return {"größe": "日本語", "n": [1, 2.5, None]}

    reply = jarvis(call("names"), "ok", tools=[names]).ask_full("x")
    assert reply.tool_attempts[0].content == '{"größe":"日本語","n":[1,2.5,null]}'


def test_request_is_rebuilt_from_the_record():
    """What a round was sent: the same as the engine saw."""
    engine = ScriptedEngine([call("calculator", expression="2+2"), "Four."])
    reply = Jarvis(engine=engine, config={}, tools=TOOLS).ask_full("x", tool_policy={"hidden": ["fail"]})
    for number, sent in enumerate(engine.requests, 1):
        body = reply.request(number)
        assert body["messages"] == [m.to_openai() for m in sent.messages]
        assert [t["function"]["name"] for t in body["tools"]] == sent.tool_names
        assert body["tools"] == sent.tools
        assert body["tool_choice"] == sent.tool_choice
    for number in (0, 3, -1):
        with pytest.raises(InvalidRequest) as caught:
            reply.request(number)
        assert caught.value.code == "unknown_round"


# Saving.


def replies():
    """Return replies of every kind of run."""
    yield jarvis("Hi.", tools=()).ask_full("x")
    yield jarvis(call("calculator", expression="2+2"), "Four.").ask_full("x")
    yield jarvis([call("nope"), call("double_order", order_id="A"), call("fail", reason="y")], "ok").ask_full(
        "x", tool_policy={"hidden": ["calculator"], "requirement": "required"}
    )
    yield jarvis(call("delete_order", order_id="A"), approve="pause").ask_full("x")
    yield jarvis(call("delete_order", order_id="A"), "ok", approve=lambda r: Deny("no")).ask_full("x")
    yield jarvis(call("calculator", expression="1"), "so", limits={"rounds": 1}).ask_full(
        "x", temperature=0.5, max_tokens=9
    )
    yield jarvis({"role": "assistant", "content": None, "tool_calls": [{"id": "", "type": "function", "function": {"name": "calculator", "arguments": "{bad"}}]}, "ok").ask_full("ä\ud800\u2028x")  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_34_every_kind_of_run_is_saved_and_loaded(number, tmp_path):
    """toolsets.md 34: a saved turn loads to an equal one, and says the same in every view."""
    reply = list(replies())[number]
    path = reply.save(tmp_path / "turn.json")
    loaded = Reply.load(str(path))
    assert loaded == reply
    assert loaded.to_dict() == reply.to_dict()
    assert repr(loaded) == repr(reply)
    assert loaded.to_html() == reply.to_html()
    assert loaded.messages == reply.messages
    assert loaded.save(tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.json", "turn.json"]


texts = st.text(max_size=8)
json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, json_data, max_size=3)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
details = st.none() | st.dictionaries(
    names.filter(lambda n: n not in {"code", "message"}), json_data, min_size=1, max_size=2
)
errors = st.none() | st.builds(ErrorInfo, names, texts, details)
usages = st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6))
seconds = st.floats(0, 1e6)
choices = (
    st.none()
    | st.sampled_from(["auto", "required"])
    | st.builds(lambda n: {"type": "function", "function": {"name": n}}, names)
)
attempts = st.builds(
    Attempt,
    st.builds(ToolRef, st.sampled_from(["action", "flow", "source", "tool"]), names, st.none() | texts),
    texts,
    st.integers(1, 9),
    st.integers(0, 9),
    st.none() | objects,
    st.sampled_from(["ok", "failed", "denied", "cancelled", "abandoned", "pending"]),
    st.booleans(),
    json_data,
    texts,
    errors,
    st.booleans(),
    st.none() | st.lists(objects, max_size=2),
    st.none() | texts,
    st.none() | texts,
    st.none() | texts,
    st.dictionaries(names, texts, max_size=2),
    objects,
    st.floats(0, 10),
    objects,
    st.none(),
    seconds,
    seconds,
)
calls = st.builds(ToolCall, texts, names, texts.filter(bool))
messages = st.one_of(
    st.builds(Message, st.sampled_from([Role.SYSTEM, Role.USER]), texts),
    st.builds(Message, st.just(Role.ASSISTANT), st.none() | texts, st.lists(calls, min_size=1, max_size=3)),
    st.builds(Message, st.just(Role.TOOL), texts, st.none(), texts),
    st.builds(Message, st.just(Role.USER), st.lists(st.builds(lambda t: {"type": "text", "text": t}, texts), min_size=1, max_size=2)),
)  # fmt: skip
offers = st.builds(
    RoundOffer,
    st.integers(1, 9),
    st.lists(
        st.builds(LedgerEntry, names, st.just("tool"), st.none() | texts, st.booleans(), texts), max_size=3
    ).map(tuple),
    choices,
    texts,
)
model_calls = st.builds(
    ModelCall,
    st.integers(1, 9),
    st.integers(0, 9),
    objects,
    st.none() | texts,
    usages,
    texts,
    seconds,
    seconds,
)
definitions = st.lists(st.builds(ToolDefinition, names, texts, objects), max_size=2).map(Definitions)
any_reply = st.builds(
    Reply,
    texts,
    texts,
    st.sampled_from(["completed", "failed", "max_rounds", "cancelled", "paused"]),
    errors,
    st.lists(attempts, max_size=2),
    st.lists(offers, max_size=2),
    st.lists(model_calls, max_size=2),
    st.lists(messages, max_size=3),
    st.lists(st.builds(Repair, names, texts, st.integers(0, 9)), max_size=2),
    st.lists(texts, max_size=2),
    texts,
    texts,
    st.none() | names,
    texts,
    usages,
    definitions,
    objects,
    st.lists(objects, max_size=2),
    objects,
    objects,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(any_reply)
def test_34_a_saved_turn_loads_to_an_equal_one(tmp_path, reply):
    """toolsets.md 34, for any reply whatever."""
    loaded = Reply.load(reply.save(tmp_path / "turn.json"))
    assert loaded == reply
    assert loaded.to_dict() == reply.to_dict()
    assert loaded.cost_usd == reply.cost_usd


def test_the_saved_form_has_every_field():
    """A field that is not saved would be lost."""
    data = jarvis(call("calculator", expression="2"), "ok").ask_full("x").to_dict()
    assert {f.name for f in fields(Reply)} <= set(data)
    assert {f.name for f in fields(Attempt) if f.name != "value"} <= set(data["tool_attempts"][0])
    assert {f.name for f in fields(ModelCall)} <= set(data["model_calls"][0])
    assert {f.name for f in fields(RoundOffer)} <= set(data["offers"][0])
    assert json.loads(json.dumps(data, allow_nan=False)) == data


DAMAGES = [
    lambda d: d.pop("messages"),
    lambda d: d.update(jarvis_nb=99),
    lambda d: d.update(tool_attempts=5),
    lambda d: d.update(tool_attempts=[{}]),
    lambda d: d.update(tool_attempts=["x"]),
    lambda d: d.update(offers=[{"round": 1}]),
    lambda d: d.update(model_calls=[{"nope": 1}]),
    lambda d: d.update(definitions=["x"]),
    lambda d: d.update(definitions=[{"name": "a"}]),
    lambda d: d.update(error={"message": "x"}),
    lambda d: d.update(error="x"),
    lambda d: d.update(messages=[{"role": "nobody"}]),
    lambda d: d.update(messages=["x"]),
    lambda d: d.update(repairs=[1]),
    lambda d: d.update(status="lost"),
    lambda d: d.update(output=5),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_34_a_damaged_turn_is_refused(damage):
    """toolsets.md 34: a turn may come from elsewhere; it is checked where it is read."""
    data = jarvis(call("calculator", expression="2"), "ok").ask_full("x").to_dict()
    damage(data)
    with pytest.raises(InvalidRequest) as caught:
        Reply.from_dict(data)
    assert caught.value.code in {"invalid_turn", "invalid_request"}


@pytest.mark.parametrize("data", [None, 5, [], "x", {}])
def test_34_what_is_no_turn_is_refused(data):
    with pytest.raises(InvalidRequest):
        Reply.from_dict(data)


def test_34_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    """All or nothing."""
    reply = jarvis("ok").ask_full("x")
    path = reply.save(tmp_path / "turn.json")
    before = path.read_bytes()
    reply.options["odd"] = object()
    with pytest.raises(TypeError):
        reply.save(path)
    assert path.read_bytes() == before
