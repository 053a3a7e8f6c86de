"""The scripted engine: design.md, "Public names"."""

from __future__ import annotations

import asyncio

import pytest

from jarvis_nb import Jarvis, Message, Role
from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines import ScriptedEngine, call


def asked(*steps, **options):
    engine = ScriptedEngine(steps)
    return Jarvis(engine=engine, config={}).ask_full("q", tools=["calculator"], **options), engine


async def later(request):
    await asyncio.sleep(0)
    return f"{len(request.messages)} later"


@pytest.mark.parametrize(
    ("step", "output"),
    [
        ("text", "text"),
        ("", ""),
        (["two ", "parts"], "two parts"),
        ({"role": "assistant", "content": "raw"}, "raw"),
        (lambda request: request.messages[-1].content.upper(), "Q"),
        (lambda request: {"role": "assistant", "content": request.model}, "scripted"),
        (later, "1 later"),
    ],
)
def test_a_step_that_answers(step, output):
    """design.md: a step is text, a message, or a function of the request that gives one."""
    assert asked(step)[0].output == output


@pytest.mark.parametrize(
    "step",
    [
        call("calculator", expression="2"),
        [call("calculator", expression="2")],
        (call("calculator", expression="2"),),
        ["Let me see.", call("calculator", expression="2")],
        lambda request: call("calculator", expression="2"),
        lambda request: [call("calculator", expression="2")],
    ],
)
def test_a_step_that_calls(step):
    """design.md: or a call, or a list of calls."""
    reply, engine = asked(step, "Done.")
    assert [a.output for a in reply.tool_attempts] == ["2"]
    assert [r.tool_choice for r in engine.requests] == ["auto", "auto"]
    engine.assert_complete()


def test_what_was_asked_is_kept_as_it_was():
    """design.md: engine.requests[0].messages, .tools, .tool_choice; nothing is sent where nothing is offered."""
    reply, engine = asked(call("calculator", expression="2"), "Done.")
    first, second = engine.requests
    assert first.messages == [Message(Role.USER, "q")]
    assert [m.role for m in second.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert first.tools[0]["function"]["name"] == "calculator"
    assert "strict" not in first.tools[0]["function"]
    assert reply.status == "completed"
    _, bare = asked("x", tool_policy={"requirement": "disabled"})
    assert (bare.requests[0].tools, bare.requests[0].tool_choice) == (None, None)


def test_call_leaves_every_parameter_name_free():
    """design.md: `call(tool, /, **arguments)`: a parameter may be called `name`, `tool` or `after`."""
    assert call("t", name="a", tool="b", after=1).arguments == {"name": "a", "tool": "b", "after": 1}


@pytest.mark.parametrize("step", [None, 5, [5], [None], {1, 2}, object()])
def test_a_step_that_is_none_says_what_one_is(step):
    with pytest.raises(EngineError, match="a list of these") as caught:
        asked(step)
    assert caught.value.code == "invalid_script"


@pytest.mark.parametrize("steps", ["Done.", call("calculator", expression="2"), {"role": "assistant"}])
def test_steps_are_a_list(steps):
    """A text would play letter by letter."""
    with pytest.raises(EngineError, match="a list of steps"):
        ScriptedEngine(steps)


def test_too_many_and_too_few_steps_are_told():
    with pytest.raises(AssertionError, match=r"1 scripted steps .*'more'"):
        asked("Done.", "more")[1].assert_complete()
    with pytest.raises(EngineError) as caught:
        asked()
    assert caught.value.code == "script_exhausted"
