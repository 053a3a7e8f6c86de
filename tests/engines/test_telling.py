"""local.md 1: the answer after a tool is written from its result, a number arriving unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.engines.telling import faithful, quoted, readable, short_value, worded


@pytest.mark.parametrize(
    ("results", "value"),
    [
        (["51.0"], "51.0"),
        ([" 42\n"], "42"),
        (["cloudy, 4 C"], "cloudy, 4 C"),
        (["x" * 61], None),
        (["two\nlines"], None),
        (['{"a": 1}'], None),
        (["[1, 2]"], None),
        (["False"], None),  # a sentence of the question's words would contradict it
        (["null"], None),
        ([""], None),
        (["1", "2"], None),
    ],
)
def test_which_result_is_one_short_value(results: list[str], value: str | None) -> None:
    assert short_value(results) == value


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            '{"order_id": "ORD-5", "total": {"cents": 1250, "open": true}}',
            "order_id: ORD-5\ntotal cents: 1250\ntotal open: true",
        ),
        ('["a", "b"]', "a\nb"),
        ("[[1, null], 2.50]", "1\nnull\n2.5"),
        ("just text", "just text"),
        ("51.0", "51.0"),
        ("{not json", "{not json"),
    ],
)
def test_a_structure_is_read_as_lines(result: str, text: str) -> None:
    assert readable(result) == text


def test_a_long_structure_says_how_much_is_left_out() -> None:
    assert readable(json.dumps(list(range(50)))).endswith("19\n… and 30 more")


@pytest.mark.parametrize(
    ("answer", "question", "result", "is_faithful"),
    [
        ("15% of 340 is 51.0.", "What is 15% of 340?", "51.0", True),
        ("It is about 50.", "What is 15% of 340?", "51.0", False),
        ("It is 51.", "What is 15% of 340?", "51.0", False),
        ("It is fine.", "How is it?", "fine", True),
        ("  ", "How is it?", "fine", False),
        ("1,250 people", "How many?", "1,250", True),
    ],
)
def test_every_number_of_an_answer_is_known(
    answer: str, question: str, result: str, *, is_faithful: bool
) -> None:
    assert faithful(answer, question, [result]) is is_faithful


def test_a_short_text_is_quoted_whole() -> None:
    assert quoted("What?", ["error: order 'A1' does not exist"]) == "error: order 'A1' does not exist"
    assert quoted("What?", ["a: 1", '{"b": 2}']) == "a: 1\nb: 2"
    assert quoted("What?", [""]) == "(no result)"


def test_of_a_long_text_the_nearest_sentences_are_quoted_in_their_order() -> None:
    pytest.importorskip("numpy")
    filler = "The printer on the second floor is out of order until further notice. "
    text = (
        filler * 5
        + "Employees have 28 vacation days a year. "
        + filler * 5
        + "Unused holiday expires in March."
    )
    answer = quoted("How many days of vacation do I have?", [text])
    assert "28 vacation days" in answer
    assert len(answer) < 450
    assert answer.count("…") >= 1


def test_the_sentence_is_bound_to_the_questions_literals_and_the_value() -> None:
    grammar = worded("What is 15% of 340?", "51.0").grammar or ""
    assert '"51.0" "."' in grammar
    assert '"15%"' in grammar
    assert '"340"' in grammar
    words = grammar.split("WORD: ")[1]
    assert not any(sign.isdigit() for sign in words)  # a free word is never a number


@given(st.text(min_size=1, max_size=60), st.text(max_size=80))
def test_a_grammar_for_any_question_and_value_is_well_formed(value: str, question: str) -> None:
    """Nothing of the question or the result can break out of the grammar's strings."""
    if short_value([value]) is None:
        return
    value = value.strip()
    grammar = worded(question, value).grammar or ""
    assert json.dumps(value) in grammar
    for line in grammar.splitlines():
        outside = line
        for quoted_text in _strings(line):
            outside = outside.replace(quoted_text, "", 1)
        assert '"' not in outside


def _strings(line: str) -> list[str]:
    found: list[str] = []
    decoder = json.JSONDecoder()
    at = line.find('"')
    while at >= 0:
        _, end = decoder.raw_decode(line, at)
        found.append(line[at:end])
        at = line.find('"', end)
    return found
