"""Vectors beside the text: one signed byte a number, searched in full, block by block.

Measured at 100,000 vectors of 256 numbers: 4 ms a query and 26 MB, against 2 ms and 102 MB as 32-bit floats.
sqlite-vec was no choice: many Python builds cannot load SQLite extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import MemoryBackendError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int8 = NDArray[np.int8]
    Floats = NDArray[np.float32]

Embed = Callable[[Sequence[str]], Any]
"""Texts to an array of one row each."""

POOL = 100
"""Hits of each kind that are fused, at least."""
LEAST_SIMILARITY = 0.35
"""Passages less similar than this are no hits: something is always nearest. Of a question and an unrelated docstring
one pair in sixty is more similar. Long passages seldom are, so that in long texts words decide more."""
PROBE = "The quick brown fox jumps over the lazy dog."
"""Embedded and kept beside the vectors: another table gives other numbers, and the two are never compared."""
NO_EMBEDDINGS = "no embeddings: words only (pip install 'jarvis-nb[semantic]')"
BLOCK = 4096
SCALE = 127


def quantise(vectors: Any) -> Int8:
    """Return rows of length 1 as signed bytes; a row of zeros (a text without known words) stays zeros.

    Raises:
        ValueError: The array is not two-dimensional or holds numbers that are not finite.
    """
    import numpy as np

    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or not np.isfinite(array).all():  # noqa: PLR2004 - rows and columns
        raise ValueError(f"embed() gave an array of shape {array.shape}: one finite row a text is wanted")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    return np.rint(array / np.where(lengths > 0, lengths, 1) * SCALE).astype(np.int8)


def embedded(embed: Embed, texts: Sequence[str], owner: str) -> Int8:
    """Return the vectors of texts, one row each.

    Raises:
        MemoryBackendError: ``bad_embedding``: the function gives something else.
    """
    import numpy as np

    if not texts:
        return np.empty((0, 0), dtype=np.int8)
    try:
        vectors = quantise(embed(texts))
    except (ValueError, TypeError) as error:
        raise MemoryBackendError(f"{owner}: {error}", code="bad_embedding") from error
    if len(vectors) != len(texts):
        raise MemoryBackendError(
            f"{owner}: embed() gave {len(vectors)} rows for {len(texts)} texts", code="bad_embedding"
        )
    return vectors


class VectorIndex:
    """Row numbers, in rising order, and their vectors. Not thread-safe.

    Example:
        >>> index = VectorIndex(2)
        >>> index.add([7, 9], quantise([[1.0, 0.0], [0.0, 2.0]]).tobytes())
        >>> [(row, round(similarity, 1)) for row, similarity in index.search([0.1, 1.0], 1)]
        [(9, 1.0)]
    """

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        self.dimensions = dimensions
        self._rows = np.empty(0, dtype=np.int64)
        self._vectors = np.empty((0, dimensions), dtype=np.int8)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def last(self) -> int:
        """The highest row number; 0 if there is none."""
        return int(self._rows[self._size - 1]) if self._size else 0

    def add(self, rows: Sequence[int], vectors: bytes) -> None:
        """Append vectors whose row numbers are higher than all before.

        Args:
            rows: The row numbers, rising.
            vectors: What :func:`quantise` gave, row after row.
        """
        import numpy as np

        needed = self._size + len(rows)
        if needed > len(self._rows):
            room = max(needed, 2 * self._size, 64)
            self._rows = np.concatenate(
                [self._rows[: self._size], np.empty(room - self._size, dtype=np.int64)]
            )
            more = np.empty((room - self._size, self.dimensions), dtype=np.int8)
            self._vectors = np.concatenate([self._vectors[: self._size], more])
        self._rows[self._size : needed] = rows
        self._vectors[self._size : needed] = np.frombuffer(vectors, dtype=np.int8).reshape(
            -1, self.dimensions
        )
        self._size = needed

    def search(self, query: Any, most: int, least: float = 0.0) -> list[tuple[int, float]]:
        """Return row numbers and cosine similarities above ``least``, best first; equal ones by row number."""
        import numpy as np

        # Whole numbers below 2 ** 24: their sums are exact, so the order of hits is the same on every machine.
        vector = quantise([query])[0].astype(np.float32)
        similarities = np.empty(self._size, dtype=np.float32)
        buffer = np.empty((min(BLOCK, self._size), self.dimensions), dtype=np.float32)
        for start in range(0, self._size, BLOCK):
            block = self._vectors[start : min(start + BLOCK, self._size)]
            buffer[: len(block)] = block
            # Not np.dot: its threads gain nothing here and, where other programs have the cores, wait for each other.
            np.einsum("ij,j->i", buffer[: len(block)], vector, out=similarities[start : start + len(block)])
        similarities /= SCALE**2
        found = np.flatnonzero(similarities > least)
        if len(found) > most:
            best = np.partition(similarities[found], len(found) - most)[len(found) - most]
            found = found[similarities[found] >= best]
        order = np.lexsort((self._rows[found], -similarities[found]))[:most]
        return [(int(self._rows[i]), float(similarities[i])) for i in found[order]]


def fuse(rankings: Sequence[Sequence[int]], k: int = 60) -> list[tuple[int, float]]:
    """Return row numbers with their reciprocal rank fusion scores, best first; equal ones by row number.

    The method of Cormack, Clarke and Büttcher (SIGIR 2009), with their k.

    Example:
        >>> fuse([[1, 2], [2, 3]])[0]
        (2, 0.03252247488101534)
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def default_embed() -> Embed | None:
    """Return this package's static table as a function, or None where numpy is not installed."""
    from importlib.util import find_spec

    if find_spec("numpy") is None:
        return None
    from jarvis_nb.engines.embedding import embed

    return embed
