"""local.md 1: the model fills the arguments; a small one picks among the pieces of the question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.engines.bounding import bounded
from jarvis_nb.engines.spans import narrowed, numbers, pieces

QUESTION = "Convert 54 EUR to GBP, please."


def offered(properties: dict[str, Any], examples: Any = (), question: str = QUESTION) -> dict[str, Any]:
    closed = bounded({"type": "object", "properties": properties, "required": list(properties)})
    assert closed is not None
    return narrowed(closed, question, examples)["properties"]


def test_pieces_are_the_runs_of_words_without_punctuation() -> None:
    found = pieces("Where is Tom's order ORD-5?")
    assert {"Tom", "Tom's order", "ORD-5", "order ORD-5", "Where is Tom's order ORD-5"} <= set(found)
    assert len(found) == len(set(found))


def test_of_a_long_question_pieces_are_short() -> None:
    assert max(len(one.split()) for one in pieces("word " * 40)) == 6
    assert len(pieces(" ".join(f"w{i}" for i in range(1000)))) < 400


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("From 3 to 2.5", [3, 2.5]),
        ("1,250 people in v2", [1250]),
        ("minus -4, 4 and 4", [-4, 4]),
        ("ORD-5 and 3D", []),
        ("none", []),
    ],
)
def test_numbers(question: str, found: list[float]) -> None:
    assert numbers(question) == found


def test_a_tool_without_examples_is_offered_the_question() -> None:
    found = offered({"amount": {"type": "number"}, "code": {"type": "string"}})
    assert found["amount"] == {"enum": [54]}
    assert "GBP" in found["code"]["enum"]


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        ({"enum": ["a"]}, {"enum": ["a"]}),
        ({"type": "boolean"}, {"type": "boolean"}),
        ({"type": "string", "pattern": "^x$"}, {"type": "string", "pattern": "^x$", "maxLength": 200}),
        ({"type": "integer", "maximum": 10}, {"type": "integer", "maximum": 10}),  # 54 does not fit: free
        ({"type": "string", "minLength": 100}, {"type": "string", "minLength": 100, "maxLength": 200}),
        (
            {"type": "array", "items": {"type": "integer"}},
            {"type": "array", "minItems": 0, "maxItems": 16, "items": {"enum": [54]}},
        ),
    ],
)
def test_only_what_the_schema_takes_is_offered(schema: dict[str, Any], result: dict[str, Any]) -> None:
    assert offered({"x": schema})["x"] == result


@pytest.mark.parametrize(
    ("examples", "is_piece"),
    [
        ([("Is it sunny in Oslo?", {"x": "Oslo"})], True),
        ([("Is it sunny in Oslo?", {"x": "Oslo"}), ("And Rome?", {"x": "Roma"})], False),
        ([("Is it sunny in Oslo?", {"other": 1})], False),
        ([(f"Is it sunny in {c}?", {"x": c}) for c in ("Oslo", "Bonn")] + [("Home?", {"x": "here"})], True),
    ],
)
def test_with_examples_they_decide(examples: Any, *, is_piece: bool) -> None:
    assert ("enum" in offered({"x": {"type": "string"}}, examples)["x"]) is is_piece


@pytest.mark.parametrize(
    ("question", "is_offered"), [("Show the first 7 lines", True), ("Show it all", False)]
)
def test_a_number_that_examples_always_quote_is_left_out_where_there_is_none(
    question: str, *, is_offered: bool
) -> None:
    closed = bounded({"type": "object", "properties": {"lines": {"type": "integer"}}})
    assert closed is not None
    found = narrowed(closed, question, [("Show 5 lines", {"lines": 5})])["properties"]
    assert found == ({"lines": {"enum": [7]}} if is_offered else {})


@given(st.text(max_size=120))
def test_every_piece_stands_in_the_question(question: str) -> None:
    assert all(one in question for one in pieces(question))
