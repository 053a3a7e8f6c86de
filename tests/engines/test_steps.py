"""local.md 1, 5: the steps of one call, with a model that answers by script; each says who did it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

pytest.importorskip("numpy")

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.types import Definitions, Message, Role, ToolCall, ToolDefinition, Usage
from jarvis_nb.engines.base import Completion, Request
from jarvis_nb.engines.generation import ContextOverflow, Generated, Order
from jarvis_nb.engines.llama import Runtime, Settings
from jarvis_nb.engines.steps import Steps, picked

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
WEATHER = ToolDefinition("get_weather", "Weather of a city.", CITY)
FILE = ToolDefinition("file_read", "Read a file.", PATH)
USER = Message(Role.USER, "What is the weather in Oslo?")


class Model:
    """A runtime by script: texts, or what to do with an order."""

    settings = Settings()

    def __init__(self, *steps: str | Callable[[Order], str]) -> None:
        self.steps = list(steps)
        self.orders: list[Order] = []

    async def generate(self, order: Order, *, on_text: Any = None, on_load: Any = None) -> Generated:
        self.orders.append(order)
        step = self.steps.pop(0)
        text = step if isinstance(step, str) else step(order)
        if on_text is not None:
            on_text(text)
        return Generated(text, "stop", Usage(5, 2))


def run(
    model: Model, request: Request, *, small: bool = True, on_text: Any = None, system: str = ""
) -> Completion:
    def silent(*_: Any) -> None:
        """Nobody watches."""

    steps = Steps(
        cast("Runtime", model), request, on_text=on_text, on_load=silent, system=system, small=small
    )
    return asyncio.run(steps.run())


def ask(
    *messages: Message, tools: tuple[ToolDefinition, ...] = (), choice: Any = "auto", **more: Any
) -> Request:
    return Request("", messages or (USER,), Definitions(tools), choice if tools else None, **more)


def results(*contents: str) -> tuple[Message, ...]:
    calls = [ToolCall(f"call_{i}", "get_weather") for i in range(len(contents))]
    answers = [
        Message(Role.TOOL, text, tool_call_id=call.id) for call, text in zip(calls, contents, strict=True)
    ]
    return (USER, Message(Role.ASSISTANT, None, calls), *answers)


def test_the_router_picks_and_the_model_fills() -> None:
    """local.md 1: each step says who did it."""
    found = run(Model('{"city":"Oslo"}'), ask(tools=(WEATHER, FILE)))
    (call,) = found.message["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    assert call["id"] == "call_1"
    assert found.provenance == {"tool": "router", "arguments": "model"}
    assert found.finish_reason == "tool_calls"
    assert found.usage == Usage(5, 2)


def test_a_path_in_the_question_is_copied_without_the_model() -> None:
    found = run(Model(), ask(Message(Role.USER, "Read notes/a.txt"), tools=(WEATHER, FILE)))
    assert found.message["tool_calls"][0]["function"]["arguments"] == '{"path":"notes/a.txt"}'
    assert found.provenance == {"tool": "router", "arguments": "copy"}


@pytest.mark.parametrize(
    ("tools", "choice", "name", "who"),
    [
        (
            (WEATHER, FILE),
            {"type": "function", "function": {"name": "file_read"}},
            "file_read",
            "tool choice",
        ),
        ((FILE,), "required", "file_read", "tool choice"),
        ((FILE, WEATHER), "required", "get_weather", "router"),
        ((FILE, WEATHER), "auto", "get_weather", "router"),
        ((FILE, WEATHER), "none", None, ""),
        ((), None, None, ""),
    ],
)
def test_policy_and_forced_choice_bind_the_router(
    tools: Any, choice: Any, name: str | None, who: str
) -> None:
    """local.md 1."""
    tool, picked_by = picked(ask(tools=tools, choice=choice), USER.text, answered=False)
    assert (tool.name if tool else None, picked_by) == (name, who)


def test_small_talk_is_answered_in_words_and_required_calls_all_the_same() -> None:
    hello = Message(Role.USER, "Hello, how are you?")
    found = run(Model("Hi!"), ask(hello, tools=(WEATHER, FILE)))
    assert (found.message["content"], found.provenance) == ("Hi!", {"answer": "model"})
    assert (
        picked(ask(hello, tools=(WEATHER, FILE), choice="required"), hello.text, answered=False)[0]
        is not None
    )


def test_a_named_tool_that_is_not_offered_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidRequest, match="'nope'") as caught:
        picked(ask(tools=(FILE,), choice={"function": {"name": "nope"}}), "x", answered=False)
    assert caught.value.valid == ("file_read",)


def test_after_a_result_comes_an_answer_unless_a_call_is_required() -> None:
    answered = ask(*results("4 C"), tools=(WEATHER, FILE))
    assert picked(answered, USER.text, answered=True) == (None, "")
    required = ask(*results("4 C"), tools=(WEATHER, FILE), choice="required")
    tool, _ = picked(required, USER.text, answered=True)
    assert tool is WEATHER


def test_a_short_result_is_worded_by_the_model_with_the_value_unchanged() -> None:
    """local.md 1: a number arriving unchanged."""
    model = Model("The weather in Oslo is 4 C.")
    found = run(model, ask(*results("4 C"), tools=(WEATHER,)))
    assert (found.message["content"], found.provenance) == (
        "The weather in Oslo is 4 C.",
        {"answer": "model"},
    )
    assert '"4 C" "."' in (model.orders[0].grammar or "")


def test_an_answer_that_lost_the_value_is_replaced_by_the_result() -> None:
    found = run(Model("The weather is 5 C."), ask(*results("4 C")))
    assert (found.message["content"], found.provenance) == ("4 C", {"answer": "copy"})


@pytest.mark.parametrize(
    ("contents", "answer"),
    [
        (('{"city": "Oslo", "celsius": 4}',), "city: Oslo\ncelsius: 4"),
        (("error: no such city",) * 2, "error: no such city\nerror: no such city"),
        (("True",), "True"),
    ],
)
def test_other_results_are_quoted_without_the_model(contents: tuple[str, ...], answer: str) -> None:
    found = run(Model(), ask(*results(*contents)))
    assert (found.message["content"], found.provenance) == (answer, {"answer": "copy"})


def test_a_larger_model_answers_freely_and_is_checked() -> None:
    model = Model("In Oslo it is 4 degrees.", "About 5 degrees.")
    good = run(model, ask(*results('{"celsius": 4}')), small=False)
    assert (good.message["content"], good.provenance) == ("In Oslo it is 4 degrees.", {"answer": "model"})
    assert model.orders[0].grammar is None
    bad = run(model, ask(*results('{"celsius": 4}')), small=False)
    assert (bad.message["content"], bad.provenance) == ("celsius: 4", {"answer": "copy"})


def test_arguments_that_no_attempt_makes_valid_are_said_in_words() -> None:
    """local.md 5: a call that is made is valid; else there is none."""
    found = run(Model(*["{}"] * 4), ask(tools=(WEATHER,), choice="required"))
    assert "tool_calls" not in found.message
    assert found.message["content"].startswith("I could not call get_weather: ")


def test_ids_are_unique_in_the_transcript() -> None:
    again = Message(Role.USER, "And in Lima?")
    found = run(
        Model('{"city":"Lima"}'), ask(*results("4 C", "5 C"), again, tools=(WEATHER,), choice="required")
    )
    assert found.message["tool_calls"][0]["id"] == "call_3"


def test_a_chat_without_a_system_message_gets_the_engines() -> None:
    model = Model("Hi.", "Hi.")
    run(model, ask(Message(Role.USER, "Hello")), system="Be brief.")
    assert model.orders[0].messages[0] == {"role": "system", "content": "Be brief."}
    run(model, ask(Message(Role.SYSTEM, "Sing."), Message(Role.USER, "Hello")), system="Be brief.")
    assert [m["content"] for m in model.orders[1].messages] == ["Sing.", "Hello"]


def test_of_a_conversation_that_is_too_long_the_oldest_turns_are_left_out_and_it_says_so() -> None:
    def overflow(order: Order) -> str:
        raise ContextOverflow(3000, 2048)

    turns = [Message(Role.SYSTEM, "S"), *(Message(Role.USER, str(i)) for i in range(4))]
    model = Model(overflow, overflow, "Fine.")
    found = run(model, ask(*turns))
    assert [m["content"] for m in model.orders[-1].messages] == ["S", "2", "3"]
    (repair,) = found.repairs
    assert (repair.code, repair.message) == (
        "history_cut",
        "2 of the oldest messages were left out: the model reads 2,048 tokens",
    )
    with pytest.raises(ContextOverflow, match=r"3,000 tokens.*2,048"):
        run(Model(overflow), ask(Message(Role.USER, "x")))


def test_the_words_of_an_answer_are_passed_on_and_those_of_arguments_are_not() -> None:
    heard: list[str] = []
    run(Model('{"city":"Oslo"}'), ask(tools=(WEATHER,)), on_text=heard.append)
    assert heard == []
    run(Model("Hi!"), ask(Message(Role.USER, "Hello")), on_text=heard.append)
    assert heard == ["Hi!"]


def test_the_examples_nearest_to_the_question_are_shown() -> None:
    examples = {
        "get_weather": [
            (f"Is it sunny in {c}?", {"city": c}) for c in ("Rome", "Lima", "Bonn", "Oslo", "Kiel")
        ]
    }
    model = Model('{"city":"Oslo"}')
    run(model, ask(tools=(WEATHER,), examples=examples))
    shown = [m["content"] for m in model.orders[0].messages if m["role"] == "assistant"]
    assert len(shown) == 3
    assert json.loads(shown[-1]) == {"city": "Oslo"}
