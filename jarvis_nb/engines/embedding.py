"""Sentence embeddings from a static table: no model runs, a text is the sum of its word pieces' vectors.

The table is distilled from all-MiniLM-L6-v2 (Apache-2.0) by ``scripts/make_table.py``; ``data/NOTICE`` says
what it is made of. It needs numpy only, takes some 8 MB and tens of microseconds a text, and knows English.
The tokenizer is BERT's (uncased WordPiece), as published with that model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS = 256
MAX_PIECES = 1024
"""Pieces of a text that count; the rest of a longer one is left out."""
MAX_WORD = 100
"""Characters of a word; a longer one has no vector, as in BERT."""
MOST_WORDS = 50_000
"""Words whose pieces are remembered."""


class Tokenizer:
    """BERT's uncased WordPiece tokenizer.

    Args:
        vocabulary: The pieces, in the order of their ids; those that continue a word begin with ``##``.

    Example:
        >>> Tokenizer(["token", "##ization", "!"]).ids("Tokenization!")
        [0, 1, 2]
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: i for i, piece in enumerate(vocabulary)}
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the ids of the pieces of a text; a word that has none is left out."""
        return [i for word in words(text) for i in self._pieces(word)]

    def _pieces(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= MOST_WORDS:
                self._known.clear()
            known = self._known[word] = self._split(word)
        return known

    def _split(self, word: str) -> list[int]:
        """Take the longest piece that fits, from the left."""
        if len(word) > MAX_WORD:
            return []
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return []
        return found


def words(text: str) -> list[str]:
    """Split a text as BERT does: lower case, no accents, punctuation and CJK characters on their own.

    Example:
        >>> words("Café, 日本!")
        ['cafe', ',', '日', '本', '!']
    """
    found: list[str] = []
    current: list[str] = []

    def end() -> None:
        if current:
            found.append("".join(current))
            current.clear()

    for sign in unicodedata.normalize("NFD", text.lower()):
        kind = _kind(sign)
        if kind == "letter":
            current.append(sign)
        elif kind != "nothing":
            end()
            if kind == "alone":
                found.append(sign)
    end()
    return found


@cache
def _kind(sign: str) -> str:
    code, category = ord(sign), unicodedata.category(sign)
    if sign.isspace():
        return "space"
    if category == "Mn" or category[0] == "C" or code == 0xFFFD:  # noqa: PLR2004 - the replacement character
        return "nothing"
    ascii_sign = code < 128 and not sign.isalnum()  # noqa: PLR2004 - the end of ASCII
    if category[0] == "P" or ascii_sign or 0x3400 <= code <= 0x4DBF or 0x4E00 <= code <= 0x9FFF:  # noqa: PLR2004 - CJK
        return "alone"
    return "letter"


class StaticEmbeddings:
    """The table and its tokenizer. Get the shared one with :func:`embeddings`."""

    def __init__(
        self, vocabulary: Sequence[str], vectors: NDArray[np.int8], scales: NDArray[np.float16]
    ) -> None:
        self.tokenizer = Tokenizer(vocabulary)
        self._vectors = vectors
        self._scales = scales

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 a text; a text without known words gives a row of zeros.

        Example:
            >>> one, two, three = embeddings().embed(["a happy dog", "a joyful puppy", "tax law"])
            >>> bool(one @ two > one @ three)
            True
        """
        import numpy as np

        out = np.zeros((len(texts), DIMENSIONS), np.float32)
        for i, text in enumerate(texts):
            ids = self.tokenizer.ids(text)[:MAX_PIECES]
            if ids:
                # Not by BLAS, whose order of summing, and so the last bit, depends on threads and sizes.
                total = (self._vectors[ids] * self._scales[ids].astype(np.float32)[:, None]).sum(axis=0)
                out[i] = total / max(float(np.sqrt(np.square(total).sum())), 1e-12)
        return out


@cache
def embeddings() -> StaticEmbeddings:
    """Return the shared table, read on first use.

    Raises:
        EngineError: ``missing_extra``: numpy is not installed.
    """
    try:
        import numpy as np
    except ModuleNotFoundError:
        raise EngineError(
            "embeddings need numpy",
            code="missing_extra",
            value="semantic",
            hint="run: pip install 'jarvis-nb[semantic]'",
        ) from None
    data = files("jarvis_nb.engines") / "data"
    vocabulary = (data / "vocabulary.txt").read_text(encoding="utf-8").split("\n")

    def array(name: str) -> Any:
        with (data / name).open("rb") as file:
            return np.load(file, allow_pickle=False)

    return StaticEmbeddings(vocabulary, array("vectors.npy"), array("scales.npy"))


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts with the shared table: one row of length 1 a text, :data:`DIMENSIONS` wide.

    Raises:
        EngineError: ``missing_extra``: numpy is not installed.
    """
    return embeddings().embed(texts)
