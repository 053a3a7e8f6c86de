from __future__ import annotations

import numpy as np
import pytest

from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.core.registry import MemoryRegistry
from jarvis_nb.memory.handle import MemoryHandle
from jarvis_nb.memory.hybrid import HybridMemory
from jarvis_nb.memory.sqlite import SQLiteMemory

MEANINGS = {"car": 0, "automobile": 0, "dog": 1, "puppy": 1, "rain": 2, "weather": 2}


def embed(texts):
    """A table of three meanings."""
    vectors = np.zeros((len(texts), 3))
    for row, text in enumerate(texts):
        for word in text.lower().replace(".", "").split():
            if word in MEANINGS:
                vectors[row, MEANINGS[word]] += 1
    return vectors


def sources(memory, query):
    return [hit.source for hit in memory.retrieve(query)]


def test_18_finds_by_meaning_and_by_word():
    """tools.md 18: what only the words or only the vectors find is found; what both find comes first."""
    with HybridMemory(embed=embed) as memory:
        memory.store("The automobile broke down.", source="meaning.md")
        memory.store("Zirconium broke records.", source="word.md")
        memory.store("A car that broke.", source="both.md")
        memory.store("A puppy.", source="neither.md")
        assert sources(memory, "broke car") == ["both.md", "meaning.md", "word.md"]
        assert sources(memory, "car") == ["both.md", "meaning.md"]
        assert sources(memory, "zirconium") == ["word.md"]
        assert sources(memory, "nothing of this") == []


def test_18_scores_are_reciprocal_ranks():
    """tools.md 18: k = 60."""
    with HybridMemory(embed=embed) as memory:
        memory.store("car")
        assert memory.retrieve("car")[0].score == pytest.approx(2 / 61)


def test_18_words_only_says_so(monkeypatch):
    """Issue 4: works with embeddings absent, saying so."""
    monkeypatch.setattr("jarvis_nb.memory.hybrid.default_embed", lambda: None)
    with HybridMemory() as memory:
        memory.store("The automobile broke down.", source="a.md")
        assert sources(memory, "automobiles") == ["a.md"]
        assert sources(memory, "car") == []
        assert "jarvis-nb[semantic]" in memory.note
        assert repr(memory) == "HybridMemory(':memory:', words only)"
        assert "jarvis-nb[semantic]" in MemoryHandle(memory).stats()["note"]
    with HybridMemory(embed=embed) as memory:
        assert (memory.note, repr(memory)) == ("", "HybridMemory(':memory:')")
        assert "note" not in MemoryHandle(memory).stats()


def test_18_one_file_for_both_backends(tmp_path):
    """A file of SQLiteMemory gets its vectors when it is opened, and what SQLiteMemory deletes is gone."""
    path = tmp_path / "m.db"
    with SQLiteMemory(path) as plain:
        plain.store("automobile", source="old.md")
        with HybridMemory(path, embed=embed) as hybrid:
            assert sources(hybrid, "car") == ["old.md"]
            made = hybrid.store("car", source="new.md")
            assert sources(hybrid, "car") == ["new.md", "old.md"]
            assert plain.delete(made)
            assert sources(hybrid, "car") == ["old.md"]
            plain.store("automobile again", source="later.md")
            assert sources(hybrid, "car") == ["old.md"]  # no vector yet
        with HybridMemory(path, embed=embed) as hybrid:
            assert sources(hybrid, "car") == ["old.md", "later.md"]


def test_18_two_connections_stay_in_step(tmp_path):
    """What another process stores, deletes or clears is seen by the next search."""
    one, two = HybridMemory(tmp_path / "m.db", embed=embed), HybridMemory(tmp_path / "m.db", embed=embed)
    ids = [one.store("automobile", source=f"{number}.md") for number in range(3)]
    assert sources(two, "car") == ["0.md", "1.md", "2.md"]
    two.delete(ids[1])
    assert sources(one, "car") == ["0.md", "2.md"]
    one.clear()
    assert sources(two, "car") == []
    for number in range(3, 6):
        one.store("automobile", source=f"{number}.md")
    assert sources(two, "car") == sources(one, "car") == ["3.md", "4.md", "5.md"]
    one.close()
    two.close()


def test_18_another_table_of_embeddings_makes_all_vectors_anew(tmp_path):
    """Vectors of two tables are never compared: the file knows what made its own."""

    def other(texts):
        return embed(texts)[:, [1, 2, 0]] + [0, 0, 0.001]

    def wider(texts):
        return np.hstack([embed(texts), np.ones((len(texts), 1)) * 0.001])

    for table in (embed, other, wider, embed):
        with HybridMemory(tmp_path / "m.db", embed=table) as memory:
            if not memory.count():
                memory.store("automobile", source="a.md")
                memory.store("puppy", source="b.md")
            assert sources(memory, "car") == ["a.md"]
            assert sources(memory, "dog") == ["b.md"]


@pytest.mark.parametrize(
    "odd", [lambda texts: [1.0, 2.0], lambda texts: [[1.0]] * 7, lambda texts: None, lambda texts: [["a"]]]
)
def test_18_an_embed_function_that_gives_no_rows(odd):
    """The caller's mistakes raise."""
    with pytest.raises(MemoryBackendError) as caught:
        HybridMemory(embed=odd)
    assert caught.value.code == "bad_embedding"


def test_a_failing_embed_stores_nothing():
    """Text and vector are one transaction."""

    def fails_later(texts):
        if texts == ["bad"]:
            raise RuntimeError("odd")
        return embed(texts)

    with HybridMemory(embed=fails_later) as memory:
        memory.store("car")
        with pytest.raises(RuntimeError):
            memory.store("bad")
        assert memory.count() == 1
        assert sources(memory, "bad car") == [""]


def test_registry():
    """Named in the registry."""
    assert MemoryRegistry.get("hybrid") is HybridMemory
