"""local.md 2: embeddings from a static table: numpy only, at most 10 MB, a clear licence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from jarvis_nb.core.errors import EngineError  # noqa: E402 - numpy may be missing
from jarvis_nb.engines import embedding  # noqa: E402
from jarvis_nb.engines.embedding import DIMENSIONS, Tokenizer, embed, embeddings, words  # noqa: E402

DATA = Path(embedding.__file__).parent / "data"
RETRIEVAL = Path(__file__).parents[2] / "benchmarks" / "data" / "retrieval.json"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("Café naïve", ["cafe", "naive"]),
        ("日本語", ["日", "本", "語"]),
        ("don't 3.14", ["don", "'", "t", "3", ".", "14"]),
        ("a\u0000b\ufffd\u200bc", ["abc"]),
        ("tab\tand\nline", ["tab", "and", "line"]),
        ("x=y+$z", ["x", "=", "y", "+", "$", "z"]),
        ("", []),
    ],
)
def test_words_are_split_as_bert_does(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_word_is_split_into_the_longest_pieces_from_the_left() -> None:
    tokenizer = Tokenizer(["un", "##aff", "##able", "una", "##ffa", "##ble", "##f"])
    assert tokenizer.ids("unaffable") == [3, 4, 5]
    assert tokenizer.ids("xyz") == []  # no piece begins like that
    assert tokenizer.ids("una" * 100) == []  # longer than BERT takes


def test_the_published_tokenization() -> None:
    """BERT's own example, by the shipped vocabulary."""
    tokenizer = embeddings().tokenizer
    vocabulary = (DATA / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    pieces = [vocabulary[i] for i in tokenizer.ids("unaffable tokenization")]
    assert pieces == ["una", "##ffa", "##ble", "token", "##ization"]


def test_rows_have_length_one_and_like_texts_are_near() -> None:
    rows = embed(["a happy dog", "a joyful puppy", "the tax law of 1984"])
    assert rows.shape == (3, DIMENSIONS)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]


def test_a_text_without_known_words_gives_zeros() -> None:
    assert not embed(["", "\u0000", "🦜"]).any()
    assert embed([]).shape == (0, DIMENSIONS)


@given(st.text(max_size=200))
def test_any_text_is_taken_and_alone_or_in_company_it_gives_the_same_bytes(text: str) -> None:
    """local.md 6: same text, same bytes."""
    alone = embed([text])[0]
    company = embed(["first", text, "last"])[1]
    assert alone.tobytes() == company.tobytes()
    assert np.isfinite(alone).all()


def test_the_table_is_small_and_says_whose_it_is() -> None:
    """local.md 2: at most 10 MB; the licence is clear."""
    assert sum(one.stat().st_size for one in DATA.iterdir()) <= 10_000_000
    notice = (DATA / "NOTICE").read_text(encoding="utf-8")
    assert "Apache License" in notice
    assert "all-MiniLM-L6-v2" in notice


def test_it_finds_passages_that_share_no_words_with_the_question() -> None:
    """local.md 2: the retrieval set; the measured share is in docs/embedded-model.md."""
    rows = json.loads(RETRIEVAL.read_text(encoding="utf-8"))
    passages = embed([row["passage"] for row in rows])
    questions = embed([row["question"] for row in rows])
    rank = (questions @ passages.T > (questions * passages).sum(axis=1)[:, None] + 1e-6).sum(axis=1)
    assert (rank < 1).mean() >= 0.5
    assert (rank < 5).mean() >= 0.8


def test_without_numpy_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """local.md 4."""
    embeddings.cache_clear()
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(EngineError, match=r"pip install 'jarvis-nb\[semantic\]'") as caught:
        embeddings()
    assert caught.value.code == "missing_extra"


def test_importing_it_does_not_import_numpy() -> None:
    code = "import sys, jarvis_nb.engines.router; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
