"""The loop, with scripted engines."""

from __future__ import annotations

import asyncio
import time

import pytest

from jarvis_nb import EventBus, EventType, Jarvis, Reply, Role, action
from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.engines.base import Support

RAN: list[str] = []


@pytest.fixture(autouse=True)
def clean():
    RAN.clear()


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    RAN.append(order_id)
    return {"order_id": order_id, "total_cents": 4200}


@action
async def lookup_async(order_id: str) -> dict:
    """Look up one order by ID, without blocking."""
    await asyncio.sleep(0)
    RAN.append(order_id)
    return {"order_id": order_id}


@action
def broken(x: int) -> int:
    """Always fail."""
    raise KeyError("secret\npath")


def asked(*steps, **options) -> tuple[Reply, ScriptedEngine]:
    engine = ScriptedEngine(list(steps))
    options.setdefault("tools", [lookup_order, lookup_async, broken])
    with Jarvis(engine=engine, config={}) as j:
        reply = j.ask_full("Show order ORD-5.", **options)
    return reply, engine


def test_one_round():
    """toolsets.md 27: one round is two model calls."""
    reply, engine = asked(call("lookup_order", order_id="ORD-5"), "It is there.")
    assert (reply.status, reply.output, reply.turns, reply.tool_rounds) == ("completed", "It is there.", 2, 1)
    engine.assert_complete()
    second = engine.requests[1].messages
    assert [m.role for m in second] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert second[2].content == '{"order_id":"ORD-5","total_cents":4200}'
    assert engine.requests[0].tool_choice == "auto"


def test_reply_is_a_mapping():
    """tools.md 19: agent mode has tool_results and turns, direct mode has not."""
    reply, _ = asked(call("lookup_order", order_id="ORD-5"), "Done.")
    assert dict(reply) == {
        "content": "Done.",
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "model": "scripted",
        "engine": "scripted",
        "tool_results": reply.tool_results,
        "turns": 2,
    }
    first = reply["tool_results"][0]
    assert (first["tool_name"], first["success"]) == ("lookup_order", True)
    direct, engine = asked("Hello.", tools=None)
    assert set(direct) == {"content", "usage", "model", "engine"}
    assert engine.requests[0].tools is None
    assert engine.requests[0].tool_choice is None


def test_usage_is_summed():
    """tools.md 19: agent mode has real usage and cost."""
    engine = ScriptedEngine([call("lookup_order", order_id="1"), "Done."], usage=(4, 3))
    reply = Jarvis(engine=engine, config={}).ask_full("x", tools=[lookup_order])
    assert reply["usage"] == {"prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14}


def test_results_in_call_order_whatever_finishes_first():
    """toolsets.md 29: attempts and tool messages are in the model's call order."""

    @action
    async def wait(ms: int) -> int:
        """Wait."""
        await asyncio.sleep(ms / 1000)
        return ms

    begun = time.perf_counter()
    reply, engine = asked(
        [call("wait", ms=120), call("wait", ms=10), call("wait", ms=60)], "Done.", tools=[wait]
    )
    assert time.perf_counter() - begun < 0.185  # together, not one after the other
    assert [a.output for a in reply.tool_attempts] == [120, 10, 60]
    assert [m.content for m in engine.requests[1].messages[2:]] == ["120", "10", "60"]
    assert [(a.round, a.index) for a in reply.tool_attempts] == [(1, 0), (1, 1), (1, 2)]


def test_a_failing_tool_is_data():
    """wire.md, tool raises: a short typed reason to the model, no traceback."""
    reply, engine = asked(call("broken", x=1), "Sorry.")
    attempt = reply.tool_attempts[0]
    assert (attempt.status, attempt.ran, attempt.error.code) == ("failed", True, "tool_failed")
    seen = engine.requests[1].messages[-1].content
    assert "KeyError" in seen
    assert "Traceback" not in seen
    assert reply.status == "completed"


def test_unknown_and_bad_calls_are_attempts():
    """toolsets.md 28, 31: a refused call is an attempt with ran=False, and the model reads what is valid."""
    reply, engine = asked(
        [call("get_order", order_id="1"), call("lookup_order", id="1"), call("lookup_order", order_id="2")],
        "Done.",
    )
    assert [(a.ran, a.error.code if a.error else None) for a in reply.tool_attempts] == [
        (False, "unknown_tool"),
        (False, "invalid_arguments"),
        (True, None),
    ]
    contents = [m.content for m in engine.requests[1].messages if m.role is Role.TOOL]
    assert "lookup_order" in contents[0]
    assert "order_id" in contents[1]
    assert RAN == ["2"]


def test_round_limit_ends_in_words():
    """toolsets.md 30, design: max_rounds keeps the text of the last, tool-less call."""
    steps = [call("lookup_order", order_id=str(n)) for n in range(3)]
    reply, engine = asked(*steps, "I have seen enough.", limits={"rounds": 3})
    assert (reply.status, reply.output, reply.tool_rounds) == ("max_rounds", "I have seen enough.", 3)
    assert reply.error.code == "limit_rounds"
    assert engine.requests[-1].tools is None
    assert engine.requests[-1].tool_choice is None


def test_a_call_in_the_last_round_is_refused():
    """toolsets.md 30: reaching the limit never invents an answer, and the history is closed."""
    reply, _ = asked(
        call("lookup_order", order_id="1"), call("lookup_order", order_id="2"), limits={"rounds": 1}
    )
    assert (reply.status, reply.output) == ("max_rounds", "")
    assert RAN == ["1"]
    assert reply.tool_attempts[-1].ran is False
    assert reply.messages[-1].role is Role.TOOL


def test_call_limit():
    """limits: calls beyond the limit are refused, and the run ends in words."""
    many = [call("lookup_order", order_id=str(n)) for n in range(5)]
    reply, _ = asked(many, "Enough.", limits={"calls": 3})
    assert RAN == ["0", "1", "2"] or sorted(RAN) == ["0", "1", "2"]
    assert [a.ran for a in reply.tool_attempts] == [True, True, True, False, False]
    assert (reply.status, reply.error.code) == ("max_rounds", "limit_calls")


def test_token_limit():
    """limits: tokens end the run where it stands, its history closed."""
    engine = ScriptedEngine([call("lookup_order", order_id="1"), "never asked"], usage=(90, 20))
    reply = Jarvis(engine=engine, config={}).ask_full("x", tools=[lookup_order], limits={"tokens": 100})
    assert (reply.status, reply.error.code, len(engine.requests)) == ("failed", "limit_tokens", 1)
    assert reply.messages[-1].role is Role.TOOL


def test_seconds_limit():
    """limits: seconds stop a tool that runs too long."""

    @action
    async def hang() -> None:
        """Hang."""
        await asyncio.sleep(30)

    begun = time.perf_counter()
    reply, _ = asked(call("hang"), "never", tools=[hang], limits={"seconds": 0.2})
    assert time.perf_counter() - begun < 1
    assert (reply.status, reply.error.code) == ("failed", "limit_seconds")
    assert reply.tool_attempts[0].status == "cancelled"
    assert reply.messages[-1].tool_call_id == reply.tool_attempts[0].call_id


@pytest.mark.parametrize(
    "limits",
    [
        {"round": 1},
        {"rounds": -1},
        {"rounds": "3"},
        {"rounds": True},
        {"rounds": 2.5},
        {"calls": 1.0},
        {"seconds": float("nan")},
        {"usd": float("nan")},
    ],
)
def test_wrong_limits(limits):
    """tools.md 20: nothing asked for is dropped silently."""
    with pytest.raises(InvalidRequest) as caught:
        asked("x", limits=limits)
    assert caught.value.code == "invalid_limits"


def test_third_identical_call_is_told_and_fifth_is_stopped():
    """The third identical call in a row is told to the model, the fifth is not run."""
    same = call("lookup_order", order_id="7")
    reply, engine = asked(same, same, same, same, same, "I give up.")
    assert RAN == ["7"] * 4
    tool_texts = [m.content for m in engine.requests[-1].messages if m.role is Role.TOOL]
    assert ["in a row" in text for text in tool_texts] == [False, False, True, True, True]
    assert (reply.status, reply.error.code, reply.output) == ("max_rounds", "repeated_call", "I give up.")
    lenient, _ = asked(
        same, same, same, same, same, same, "Done.", limits={"repeats_told": None, "repeats_stopped": None}
    )
    assert lenient.status == "completed"


def test_engine_failure_before_the_first_answer_raises():
    """design: before the first model call answers, failures raise."""
    with pytest.raises(EngineError):
        asked(EngineError("down", code="connection"))


def test_engine_failure_afterwards_is_a_failed_reply():
    """design: afterwards the reply has status failed, error, and everything so far."""
    reply, _ = asked(call("lookup_order", order_id="1"), EngineError("down", code="connection"))
    assert (reply.status, reply.error.code, reply.tool_rounds) == ("failed", "connection", 1)
    assert [m.role for m in reply.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert len(reply.offers) == len(reply.model_calls) == 1


@pytest.mark.parametrize("error", [RuntimeError("no power"), OSError("no power"), ValueError("no power")])
def test_any_exception_of_an_engine_is_an_engine_failure(error):
    """design.md: before the first answer an EngineError, afterwards a failed reply with everything so far."""
    with pytest.raises(EngineError, match="no power") as caught:
        asked(error)
    assert (caught.value.code, caught.value.__cause__) == ("engine_failed", error)
    reply, _ = asked(call("lookup_order", order_id="ORD-5"), error)
    assert (reply.status, reply.error.code, RAN) == ("failed", "engine_failed", ["ORD-5"])
    assert "no power" in reply.error.message
    assert reply.tool_attempts[0].success


def test_a_check_in_a_scripted_step_reaches_the_test():
    def checked(request):
        assert request.tools is None, "tools were sent"
        return "Done."

    with pytest.raises(AssertionError, match="tools were sent"):
        asked(call("lookup_order", order_id="ORD-5"), checked)


def test_forced_choice_is_downgraded_with_a_warning():
    """toolsets.md 19: an engine that takes no forced choice gets auto; the outcome check stays."""

    class Weak(ScriptedEngine):
        supports = Support(forced_choice=False)

    j = Jarvis(engine=Weak(["No tool for me."]), config={})
    reply = j.ask_full("x", tools=[lookup_order], tool_policy={"requirement": "required"})
    assert j.engines._engine.requests[0].tool_choice == "auto"
    assert (reply.status, reply.error.code, reply.output) == (
        "failed",
        "required_tool_not_called",
        "No tool for me.",
    )
    assert "forced" in reply.warnings[0]


def test_forced_choice_refused_by_the_server():
    """toolsets.md 19: a refusal is downgraded too, and not asked for again."""
    refusal = EngineError("thinking mode takes no tool_choice", code="forced_choice_refused")
    reply, engine = asked(
        refusal, call("lookup_order", order_id="1"), "Done.", tool_policy={"requirement": "required"}
    )
    assert [r.tool_choice for r in engine.requests] == ["required", "auto", "auto"]
    assert reply.status == "completed"
    assert len(reply.warnings) == 1


def test_disabled_refuses_a_stray_call():
    """toolsets.md 17: disabled sends neither key, and a stray call is refused."""
    reply, engine = asked(
        call("lookup_order", order_id="1"), "No tool was needed.", tool_policy={"requirement": "disabled"}
    )
    assert engine.requests[0].tools is None
    assert engine.requests[0].tool_choice is None
    assert (RAN, reply.output) == ([], "No tool was needed.")
    assert reply.tool_attempts[0].error.code == "tool_not_offered"


def test_hidden_tool_never_runs():
    """toolsets.md 16: a call for a tool that was not offered never runs, even if the agent owns it."""
    reply, _ = asked(call("lookup_order", order_id="1"), "Hm.", tool_policy={"hidden": ["lookup_order"]})
    assert RAN == []
    assert reply.tool_attempts[0].error.code == "tool_not_offered"
    assert reply.offers[0].hidden["lookup_order"]


def test_refused_call_does_not_satisfy_a_requirement():
    """toolsets.md 18: the choice stays forced after a refused call."""
    reply, engine = asked(
        call("lookup_order", nope=1),
        call("lookup_order", order_id="1"),
        "Done.",
        tool_policy={"requirement": "required"},
    )
    assert [r.tool_choice for r in engine.requests] == ["required", "required", "auto"]
    assert reply.status == "completed"


def test_events_of_a_run():
    """tools.md 8: one bus sees engine, tool and run events, with strictly increasing seq."""
    engine = ScriptedEngine([call("lookup_order", order_id="1"), "Done."])
    j = Jarvis(engine=engine, config={})
    j.bus = EventBus(record_history=True)
    j.ask_full("x", tools=[lookup_order])
    kinds = [e.event_type for e in j.bus.history]
    assert kinds[0] is EventType.RUN_START
    assert kinds[-1] is EventType.RUN_END
    for kind in (
        EventType.INFERENCE_START,
        EventType.TOOL_CALL_START,
        EventType.TOOL_CALL_END,
        EventType.ROUND_END,
    ):
        assert kind in kinds
    numbers = [e.seq for e in j.bus.history]
    assert numbers == sorted(set(numbers))


def test_history_is_closed_and_not_changed():
    """wire.md: the history given to an ask is closed and stays the caller's."""
    first, _ = asked(call("lookup_order", order_id="1"), "Done.")
    before = [m.to_openai() for m in first.messages]
    again, engine = asked("And again.", history=first.messages, tools=None)
    assert [m.to_openai() for m in first.messages] == before
    assert [m.to_openai() for m in engine.requests[0].messages[:-1]] == before
    assert again.messages[-1].content == "And again."
    from_dicts, _ = asked("Third.", history=before, tools=None)
    assert len(from_dicts.messages) == len(before) + 2


def test_ids_stay_unique_across_turns():
    """wire.md: ids are unique in the transcript."""
    first, _ = asked(call("lookup_order", order_id="1"), "Done.")
    raw = {
        "tool_calls": [
            {"id": "call_1", "function": {"name": "lookup_order", "arguments": '{"order_id":"2"}'}}
        ]
    }
    again, _ = asked(raw, "Done.", history=first.messages)
    ids = [c.id for m in again.messages for c in m.tool_calls or ()]
    assert len(ids) == len(set(ids)) == 2
    assert again.tool_attempts[0].provider_id == "call_1"
    assert any(r.code == "duplicate_id" for r in again.repairs)
