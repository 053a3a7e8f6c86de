from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.memory.vectors import BLOCK, VectorIndex, fuse, quantise


def filled(count, dimensions=16, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)
    index = VectorIndex(dimensions)
    index.add(range(1, count + 1), quantise(vectors).tobytes())
    return index, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_18_agrees_with_exact_search(count):
    """tools.md 18: bytes lose little; block borders lose nothing."""
    index, vectors = filled(count)
    found = index.search(vectors[count // 2], 10, -1.0)
    exact = vectors @ vectors[count // 2]
    assert found[0][0] == count // 2 + 1
    assert [similarity for _, similarity in found] == sorted((s for _, s in found), reverse=True)
    for row, similarity in found:
        assert similarity == pytest.approx(float(exact[row - 1]), abs=0.02)
    assert len(found) == min(count, 10)


def test_18_grows_and_keeps_row_numbers():
    """Appending in pieces is the same as at once."""
    whole, vectors = filled(300)
    pieces = VectorIndex(16)
    for start in range(0, 300, 7):
        part = vectors[start : start + 7]
        pieces.add(range(start + 1, start + 1 + len(part)), quantise(part).tobytes())
    assert (len(pieces), pieces.last) == (300, 300)
    assert pieces.search(vectors[9], 20) == whole.search(vectors[9], 20)
    assert (VectorIndex(4).last, VectorIndex(4).search([1, 0, 0, 0], 5)) == (0, [])


def test_18_equal_vectors_come_in_the_order_of_rows():
    """tools.md 15: deterministic."""
    index = VectorIndex(2)
    index.add(range(1, 101), quantise(np.tile([1.0, 1.0], (100, 1))).tobytes())
    assert [row for row, _ in index.search([1.0, 1.0], 5)] == [1, 2, 3, 4, 5]


def test_18_a_text_without_known_words_is_near_to_nothing():
    """Zeros stay zeros: no division by zero, no hit."""
    index = VectorIndex(2)
    index.add([1], quantise([[0.0, 0.0]]).tobytes())
    assert index.search([1.0, 0.0], 5) == []
    assert index.search([0.0, 0.0], 5) == []


@pytest.mark.parametrize("odd", [[1.0, 2.0], [[float("nan")]], [[float("inf")]], [[[1.0]]]])
def test_18_odd_arrays_are_refused(odd):
    """An embed function that gives something else is told what is wanted."""
    with pytest.raises(ValueError, match="one finite row"):
        quantise(odd)


@given(st.lists(st.lists(st.integers(0, 20), max_size=10, unique=True), max_size=3))
@settings(max_examples=200)
def test_18_fusion(rankings):
    """tools.md 18: reciprocal rank fusion with k = 60: every row once, first in all lists is first."""
    fused = fuse(rankings)
    assert {row for row, _ in fused} == {row for ranking in rankings for row in ranking}
    assert [score for _, score in fused] == sorted((s for _, s in fused), reverse=True)
    for row, score in fused:
        assert score == pytest.approx(sum(1 / (61 + r.index(row)) for r in rankings if row in r))
    if rankings and all(r and r[0] == rankings[0][0] for r in rankings):
        assert fused[0][0] == rankings[0][0]
