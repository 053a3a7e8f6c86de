"""local.md 1: a literal expression, path or quoted text may be copied; no other rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.types import ToolDefinition
from jarvis_nb.engines.copying import copied, expressions, paths, quotations


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is 3 * (4 + 5)?", ["3 * (4 + 5)"]),
        ("Compute 3*4", ["3*4"]),
        ("sqrt(144) + 3**2", ["sqrt(144) + 3**2"]),
        ("Please evaluate: 7 × 6", ["7 × 6"]),
        ("What's 10 / 4 =", ["10 / 4"]),
        ("What is -5 + 3?", ["-5 + 3"]),
        ("What is max(3, 4) * 2", ["max(3, 4) * 2"]),
        ("2^10", ["2^10"]),
        ("How much is 17 % 5?", ["17 % 5"]),
        # Words that change the value: it is not what stands there.
        ("What is 15% of 340?", []),
        ("What is 1/2 of 30?", []),
        ("What is the square root of 3*4?", []),
        ("What is half of 3 * 4?", []),
        ("Round 10 / 3 to two places.", []),
        ("5 times 3 + 2", []),
        ("Is 3 + 4 more than 6?", []),
        # No arithmetic that anybody wants done.
        ("What is 5?", []),
        ("What day is 2024-05-01?", []),
        ("Is it open 24/7?", []),
        ("Solve: 2x + 5 = 13", []),
        ("What is 1or 2?", []),
        ("What is __import__('os').getcwd() + 1?", []),
        ("What is open(1) + 1?", []),
        ("(" * 200, []),
        ("1+" * 400 + "1", []),
        ("", []),
    ],
)
def test_expressions(question: str, found: list[str]) -> None:
    assert expressions(question) == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Read README.md.", ["README.md"]),
        ("What is in /home/user/todo.txt?", ["/home/user/todo.txt"]),
        ("Open ./a/b.py and c.txt", ["./a/b.py", "c.txt"]),
        ("the file ~/notes.txt, please", ["~/notes.txt"]),
        ("Read ../up/one.txt", ["../up/one.txt"]),
        ("Read .env please", [".env"]),
        ("in C:\\x\\y.txt?", ["C:\\x\\y.txt"]),
        ("see https://x.org/a.html", []),
        ("e.g. this, i.e. that, in the U.S.A. today", []),
        ("version 3.11 of it", []),
        ("What is 3.14 times 2?", []),
        ("Makefile", []),
    ],
)
def test_paths(question: str, found: list[str]) -> None:
    assert paths(question) == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ('Search for "red lamp".', ["red lamp"]),
        ("Translate 'good night' to French", ["good night"]),
        ("Say “hello there” or «salut»", ["hello there", "salut"]),
        ("It's Anna's lamp, don't touch", []),
        ('an empty "" one', []),
    ],
)
def test_quotations(question: str, found: list[str]) -> None:
    assert quotations(question) == found


def tool(**properties: Any) -> ToolDefinition:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolDefinition("t", "A tool.", schema)


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("definition", "examples", "question", "found"),
    [
        # Learnt from examples.
        (tool(where=TEXT), [("Read a.txt", {"where": "a.txt"})], "Show b/c.txt", {"where": "b/c.txt"}),
        (tool(what=TEXT), [('Say "a"', {"what": "a"})], 'Please say "b"', {"what": "b"}),
        (tool(where=TEXT), [("Read a.txt", {"where": "the file"})], "Show b/c.txt", {}),
        # Or told by the name.
        (tool(path=TEXT), [], "Read b.txt", {"path": "b.txt"}),
        (tool(expression=TEXT), [], "What is 3 * 4?", {"expression": "3 * 4"}),
        (tool(query=TEXT), [], "Find b.txt", {}),
        (tool(note=TEXT), [], "What is 3 * 4?", {}),
        # Open which one is meant, or not a free text.
        (tool(path=TEXT), [], "Compare a.txt with b.txt", {}),
        (tool(path=TEXT, file=TEXT), [], "Copy a.txt", {}),
        (tool(path={"type": "string", "enum": ["x"]}), [], "Read b.txt", {}),
        (tool(path={"type": "integer"}), [], "Read b.txt", {}),
    ],
)
def test_what_the_argument_can_only_be(
    definition: ToolDefinition, examples: Any, question: str, found: dict[str, str]
) -> None:
    """local.md 1: copied only where the argument can only be what stands in the question."""
    assert copied(question, definition, examples) == found


def test_an_optional_argument_is_not_copied() -> None:
    definition = ToolDefinition("t", "", {"type": "object", "properties": {"path": TEXT}})
    assert copied("Read b.txt", definition, []) == {}


@given(st.text(max_size=80))
def test_any_text_is_taken(text: str) -> None:
    for found in (expressions(text), paths(text), quotations(text)):
        assert all(one in text or " ".join(text.split()).find(one) >= 0 for one in found)


@given(st.integers(-999, 999), st.sampled_from("+-*/"), st.integers(1, 999))
def test_two_numbers_and_an_operator_are_copied_as_they_stand(a: int, sign: str, b: int) -> None:
    assert expressions(f"What is {a} {sign} {b}?") == [f"{a} {sign} {b}"]
