from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.memory.sqlite import match_expression
from jarvis_nb.memory.terms import MAX_TERMS, folded, folded_words, query_terms, searchable


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("user's", ["user"]),
        ("the user’s C++", ["user", "c"]),
        ("snake_case and camelCase", ["snake", "case", "camelcase"]),
        ("What is it?", ["what", "is", "it"]),
        ("What is a flow?", ["flow"]),
        ("again AGAIN Again", ["again"]),
        ("NEAR(a b) AND NOT c*", ["near", "b", "c"]),
        ("東京", ["東 京"]),
        ("東京都 map", ["東 京", "京 都", "map"]),
        ("東", ["東"]),
        ("🚀 ? !", []),
        ("", []),
    ],
)
def test_15_terms(query, terms):
    """tools.md 15: words are all that counts."""
    assert [" ".join(term) for term in query_terms(query)] == terms


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_15_terms_are_bounded_words(query):
    """tools.md 15: no space, quote or other sign of a query language is left in a term, whatever the query."""
    terms = query_terms(query)
    assert len(terms) <= MAX_TERMS
    assert len(set(terms)) == len(terms)
    for term in terms:
        assert all(re.fullmatch(r"[^\s\"'*():^+.,-]+", word) for word in term)
    assert match_expression(terms).count('"') == 2 * len(terms)


def test_15_long_queries_are_cut():
    """A pasted page is searched for by its first words."""
    assert len(query_terms(" ".join(f"word{number}" for number in range(5000)))) == MAX_TERMS


@given(st.text(max_size=100))
def test_15_searchable_keeps_every_sign(text):
    """Only spaces are added."""
    assert searchable(text).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Café shipping.md a/b", "cafe shipping md a b"),
        ("naïve ÉCOLE", "naive ecole"),
        ("서울은", "서 울 은"),
        ("x_y", "x y"),
    ],
)
def test_15_what_postgres_sees(text, words):
    """The same words as a query has, not those of PostgreSQL's own parser."""
    assert folded_words(text, 1000) == words
    assert (
        " ".join(word for term in query_terms(folded(text)) for word in term if word != "a").split()[0]
        in words
    )


@given(st.text(max_size=200), st.integers(0, 100))
def test_folded_words_are_bounded(text, most):
    """Never more bytes than asked for."""
    assert len(folded_words(text, most).encode()) <= most
