"""local.md 1: a router of static embeddings picks the tool, or an answer in words."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolDefinition
from jarvis_nb.engines.router import describe, nearest, route


def described(name: str, description: str) -> ToolDefinition:
    return ToolDefinition(name, description, {"type": "object", "properties": {}})


USER = [
    described("get_weather", "Get the current weather of a city."),
    described("send_email", "Send an email to a person."),
    described("convert_currency", "Convert an amount of money from one currency to another."),
]
BUILT_IN = [ToolRegistry.create(name) for name in ("calculator", "think", "retrieval", "llm", "file_read")]
OFFERED = [tool.definition for tool in BUILT_IN]
EXAMPLES = {tool.name: tool.spec.metadata["examples"] for tool in BUILT_IN}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is 15% of 340?", "calculator"),
        ("How much is 3 plus 9?", "calculator"),
        ("Read the file notes.md", "file_read"),
        ("What do my notes say about the budget?", "retrieval"),
        ("Think carefully about the two options first.", "think"),
        ("Ask the model to write a poem.", "llm"),
    ],
)
def test_by_examples(question: str, name: str) -> None:
    found = route(question, OFFERED, EXAMPLES, may_answer=True).tool
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Is it sunny in Lima today?", "get_weather"),
        ("Write a mail to Anna.", "send_email"),
        ("Change 20 dollars into euros", "convert_currency"),
    ],
)
def test_by_description(question: str, name: str) -> None:
    found = route(question, USER, {}, may_answer=True).tool
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "question", ["Hello!", "Thank you so much.", "Who are you?", "What is the capital of France?"]
)
def test_what_no_tool_is_for_is_answered_in_words(question: str) -> None:
    assert route(question, OFFERED[:2], EXAMPLES, may_answer=True).tool is None


@pytest.mark.parametrize("question", ["Hello!", "", "🦜", "xyzzy"])
def test_required_leaves_the_answer_out(question: str) -> None:
    """local.md 1: `required` leaves out "answer"."""
    assert route(question, OFFERED, EXAMPLES, may_answer=False).tool is not None


def test_of_equal_tools_the_first_wins() -> None:
    """local.md 6: deterministic."""
    twins = [described("a", "Same."), described("a", "Same.")]
    assert route("Same", twins, {}, may_answer=False).tool is twins[0]


def test_the_order_of_the_offer_does_not_matter() -> None:
    for question in ("What is 15% of 340?", "Is it sunny in Lima?", "Read a.txt"):
        one = route(question, [*OFFERED, *USER], EXAMPLES, may_answer=True).tool
        two = route(question, [*USER, *reversed(OFFERED)], EXAMPLES, may_answer=True).tool
        assert one is two


def test_the_nearest_examples_come_last() -> None:
    found = nearest("What is 12% of 50?", EXAMPLES["calculator"], 3)
    assert len(found) == 3
    assert "%" in found[-1][0]
    assert nearest("x", [], 3) == []


def test_a_tool_is_described_in_words() -> None:
    tool = ToolDefinition("math.areaOfCircle", "Area.", {"properties": {"circle_radius": {}}})
    assert describe(tool) == "math area Of Circle. Area. circle radius"


def test_a_thousand_tools_are_embedded_once() -> None:
    import time

    many = [described(f"tool_{i}", f"Does the thing number {i} with great care.") for i in range(1000)]
    route("Do thing 7", many, {}, may_answer=False)
    started = time.perf_counter()
    route("Do thing 8", many, {}, may_answer=False)
    assert time.perf_counter() - started < 0.5
