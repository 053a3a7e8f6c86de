"""The recorded turns under another policy, and two runs side by side."""

from __future__ import annotations

import pytest

from jarvis_nb import Deny, Jarvis, Reply, ToolSource, action
from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.run.diff import diff
from tests.run.shop import TOOLS, run

STEPS = [
    call("lookup_order", order_id="ORD-5"),
    [call("discount_order", order_id="ORD-5"), call("fail", reason="x")],
    "It costs $37.80.",
]


@pytest.fixture
def reply():
    return run(*STEPS)


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


RUNS = {
    "several rounds": lambda: run(*STEPS),
    "direct": lambda: run("Hi.", tools=()),
    "unknown and malformed calls": lambda: run([call("nope"), call("lookup_order"), call("calculator", expression="1/0")], "Sorry."),
    "denied": lambda: run(call("delete_order", order_id="1"), "ok"),
    "denied by a person": lambda: run(call("delete_order", order_id="1"), "ok", jarvis={"approve": lambda r: Deny("no")}),
    "a source": lambda: Jarvis(engine=ScriptedEngine([call("rate"), "ok"]), tool_sources=[(Rates, {})], config={}).ask_full("x"),
    "a limit": lambda: run(call("lookup_order", order_id="1"), call("lookup_order", order_id="2"), "ok", limits={"rounds": 2}),
    "the same call twice": lambda: run(call("lookup_order", order_id="1"), call("lookup_order", order_id="1"), "ok"),
    "a long result": lambda: run(call("long"), "ok", tools=[long]),
    "a system message and a history": lambda: run("ok", system="Be brief.", history=run(*STEPS).messages),
    "words beside a call": lambda: run(["Let me see.", call("lookup_order", order_id="1")], "ok"),
}  # fmt: skip


@action
def long() -> dict:
    """Return a long result."""
    return {"text": "x" * 40_000}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("loaded", [False, True], ids=["this process", "loaded"])
def test_without_a_policy_the_replay_is_the_run(name, loaded, tmp_path):
    """Every recorded turn stays valid, and nothing differs."""
    reply = RUNS[name]()
    recorded = Reply.load(reply.save(tmp_path / "turn.json")) if loaded else reply
    replayed = recorded.replay()
    assert (replayed.stopped, replayed.valid_rounds) == (None, reply.turns)
    assert diff(reply, replayed.reply) == ()
    assert replayed.reply.messages == reply.messages
    assert repr(replayed) == f"Replayed({reply.turns} of the recorded turns, all valid)"


def test_nothing_runs_in_a_replay():
    """Without the real tools the recorded results are given back."""
    ran = []

    @action
    def note(text: str) -> str:
        """Take a note."""
        ran.append(text)
        return f"noted {len(ran)}"

    reply = run(call("note", text="a"), call("note", text="a"), "ok", tools=[note])
    assert [a.output for a in reply.replay().reply.tool_attempts] == ["noted 1", "noted 2"]
    assert len(ran) == 2
    again = reply.replay(tools=[note])
    assert len(ran) == 3  # really run: another result, so the next recorded turn does not hold
    assert (again.valid_rounds, again.stopped) == (1, "round 2 saw another result of call_1")


@pytest.mark.parametrize(
    ("policy", "valid", "stopped"),
    [
        ({"hidden": ["calculator"]}, 3, None),
        ({"visible": ["lookup_order", "discount_order", "fail"]}, 3, None),
        ({"requirement": "required"}, 3, None),
        ({"requirement": {"tool": "lookup_order"}}, 3, None),
        ({"hidden": ["lookup_order"]}, 0, "round 1 calls 'lookup_order', which is not offered"),
        ({"hidden": ["fail"]}, 1, "round 2 calls 'fail', which is not offered"),
        ({"requirement": "disabled"}, 0, "round 1 calls 'lookup_order', which is not offered"),
        ({"requirement": {"tool": "fail"}}, 0, "round 1 does not call 'fail', which is required"),
    ],
)
def test_a_policy_is_tried(reply, policy, valid, stopped):
    """toolsets issue, item 8: as far as they stay valid, and where they stop being so."""
    replayed = reply.replay(tool_policy=policy)
    assert (replayed.valid_rounds, replayed.stopped) == (valid, stopped)
    if stopped:
        assert replayed.reply.status == "failed"
        assert replayed.reply.error.message == stopped
        assert len({a.round for a in replayed.reply.tool_attempts}) == valid
    else:
        assert replayed.reply.output == reply.output
        assert list(replayed.reply.offers[0].hidden) == [
            n for n in reply.offers[0].offered if n not in replayed.reply.offers[0].offered
        ]


def test_words_where_a_call_is_required():
    replayed = run("Hello.").replay(tool_policy={"requirement": "required"})
    assert (replayed.valid_rounds, replayed.stopped) == (
        0,
        "round 1 answers in words, but a tool call is required",
    )


def test_a_wrong_policy_raises(reply):
    with pytest.raises(InvalidRequest) as caught:
        reply.replay(tool_policy={"visible": ["nope"]})
    assert caught.value.code == "unknown_tools"


def test_the_record_is_not_changed(reply):
    before = reply.to_dict()
    reply.replay(tool_policy={"hidden": ["fail"]})
    assert reply.to_dict() == before


# diff.


def test_a_run_does_not_differ_from_itself(reply):
    assert diff(reply, reply) == ()
    assert repr(diff(reply, reply)) == "ReplyDiff(no difference)"
    assert diff(reply, run(*STEPS)) == ()


def test_differences_are_data_in_the_order_they_happened(reply):
    """toolsets issue, item 8: offered, called, returned, how it ended."""
    other = run(
        call("lookup_order", order_id="ORD-6"), [call("discount_order", order_id="ORD-5")], "Other.",
        question="Show it.", tool_policy={"hidden": ["calculator"], "requirement": "required"},
    )  # fmt: skip
    found = diff(reply, other)
    assert [(d.where, d.a, d.b) for d in found if "offered" not in d.where] == [
        ("question", "Show order ORD-5.", "Show it."),
        ("round 1 · choice", "auto", "required"),
        (
            "call 1 · arguments",
            {"order_id": "ORD-5"},
            {"order_id": "ORD-6"},
        ),
        (
            "call 1 · output",
            {"order_id": "ORD-5", "total_cents": 4200},
            {"order_id": "ORD-6", "total_cents": 4200},
        ),
        ("call 3", "fail", None),
        ("output", "It costs $37.80.", "Other."),
    ]
    assert [d.where for d in found if "offered" in d.where] == [f"round {n} · offered" for n in (1, 2, 3)]
    assert "It costs $37.80." in str(found[-1])
    assert diff(other, reply)[-1].a == "Other."
    assert "0x" not in repr(found)


def test_a_failure_is_a_difference(reply):
    replayed = reply.replay(tool_policy={"hidden": ["fail"]})
    wheres = {d.where: d.b for d in diff(reply, replayed.reply)}
    assert wheres["status"] == "failed"
    assert wheres["error"] == "replay_stopped"


def test_the_tools_of_the_shop_are_offered():
    """What the tests above lean on."""
    assert run("x").offers[0].offered == [t if isinstance(t, str) else t.name for t in TOOLS]
