"""local.md 5: calls are always valid: the schema has the last word, also over what a grammar cannot express."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from jarvis_nb.core.types import ToolDefinition, Usage
from jarvis_nb.engines.filling import ATTEMPTS, fill, prompt
from jarvis_nb.engines.generation import Generated, Order


def tool(properties: dict[str, Any], required: Sequence[str] | None = None, **more: Any) -> ToolDefinition:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
        **more,
    }
    return ToolDefinition("t", "A tool.", schema)


class Model:
    """Gives the texts one after the other and keeps the orders."""

    def __init__(self, *texts: str, constrained: bool = True) -> None:
        self.texts = list(texts)
        self.orders: list[Order] = []
        self.constrained = constrained

    async def __call__(self, order: Order) -> Generated:
        self.orders.append(order)
        return Generated(self.texts.pop(0), "stop", Usage(10, 2), self.constrained)


def filled(definition: ToolDefinition, model: Model, **options: Any) -> Any:
    return asyncio.run(fill("Do it with 4", definition, [], model, **options))


EVEN = tool({"n": {"type": "integer", "not": {"const": 4}}})


def test_what_the_model_writes_is_taken_when_the_schema_takes_it() -> None:
    model = Model('{"n":3}')
    found = filled(EVEN, model)
    assert (found.arguments, found.provenance, found.usage) == ({"n": 3}, "model", Usage(10, 2))
    (order,) = model.orders
    assert order.temperature == 0
    assert order.must_start == "{"


def test_what_the_grammar_cannot_express_is_drawn_again_from_fixed_seeds() -> None:
    model = Model('{"n":4}', '{"n":4}', '{"n":5}')
    found = filled(EVEN, model)
    assert found.arguments == {"n": 5}
    assert found.usage == Usage(30, 6)
    assert [(order.temperature > 0, order.seed) for order in model.orders] == [
        (False, 0),
        (True, 1),
        (True, 2),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"n":4}', "n: "),
        ('{"n":', "did not come to an end"),
        ("[1]", "no JSON object"),
        ('{"m":1}', "t: "),
    ],
)
def test_after_the_attempts_there_are_no_arguments_and_it_says_why(text: str, says: str) -> None:
    model = Model(*[text] * ATTEMPTS)
    found = filled(EVEN, model)
    assert found.arguments is None
    assert says in found.problem
    assert len(model.orders) == ATTEMPTS


def test_a_grammar_that_was_not_taken_is_noticed_at_once() -> None:
    """llama.cpp drops a grammar it cannot compile without a word."""
    model = Model("Sure! Here", constrained=False)
    found = filled(EVEN, model)
    assert found.arguments is None
    assert "more than the runtime's grammar can hold" in found.problem
    assert len(model.orders) == 1


def test_a_narrower_grammar_is_only_the_first_attempts() -> None:
    model = Model('{"n":4}', '{"n":5}')
    found = filled(EVEN, model, narrow=lambda closed: {**closed, "properties": {"n": {"enum": [4]}}})
    assert found.arguments == {"n": 5}
    assert ['"enum": [4]' in (order.grammar or "") for order in model.orders] == [True, False]


def test_a_schema_without_a_finite_value_asks_no_model() -> None:
    found = filled(tool({"n": {"$ref": "#"}}), Model())
    assert found.arguments is None
    assert "finite" in found.problem


PATH = tool({"path": {"type": "string"}, "lines": {"type": "integer"}}, ["path"])


def test_a_copied_argument_that_is_the_only_one_needs_no_model() -> None:
    found = filled(tool({"path": {"type": "string"}}), Model(), fixed={"path": "a.txt"})
    assert (found.arguments, found.provenance) == ({"path": "a.txt"}, "copy")


def test_beside_a_copied_argument_the_model_writes_the_others() -> None:
    """local.md 1: each step says who did it."""
    model = Model('{"path":"a.txt","lines":3}')
    found = filled(PATH, model, fixed={"path": "a.txt"})
    assert (found.arguments, found.provenance) == ({"path": "a.txt", "lines": 3}, "copy and model")
    assert '"const": "a.txt"' in (model.orders[0].grammar or "")


def test_a_copied_argument_the_schema_refuses_is_not_used_blindly() -> None:
    short = tool({"path": {"type": "string", "maxLength": 3}})
    found = filled(short, Model(*['{"path":"a.txt"}'] * ATTEMPTS), fixed={"path": "a.txt"})
    assert found.arguments is None


def test_the_prompt_shows_examples_or_else_the_tool() -> None:
    examples = [("Far?", {"n": 1}), ("Near?", {"n": 2})]
    shown = prompt("Now?", EVEN, examples)
    assert [m["content"] for m in shown[1:]] == ["Far?", '{"n":1}', "Near?", '{"n":2}', "Now?"]
    assert not any("Tool:" in message["content"] for message in shown)
    bare = prompt("Now?", PATH, [])
    assert bare[-1]["content"] == "Tool: t: A tool.\n- path: string\n- lines: integer\nQuestion: Now?"
    assert len(bare) == 4  # a demonstration with another tool stands before it


@pytest.mark.parametrize("seconds", [2.0])
def test_a_hostile_pattern_does_not_hang(seconds: float) -> None:
    """A pattern is checked on what the model wrote; one that backtracks without end must not hold the loop."""
    hostile = tool({"s": {"type": "string", "pattern": "^(a+)+$"}})
    text = json.dumps({"s": "a" * 40 + "!"})

    async def within() -> Any:
        return await asyncio.wait_for(fill("x", hostile, [], Model(*[text] * ATTEMPTS)), seconds)

    assert asyncio.run(within()).arguments is None
