"""HybridMemory: words and meaning, fused by rank, in the same SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jarvis_nb.memory.base import Chunk, IndexedFile, MemoryHit
from jarvis_nb.memory.sqlite import SQLiteMemory, match_expression
from jarvis_nb.memory.terms import query_terms
from jarvis_nb.memory.text import findable
from jarvis_nb.memory.vectors import (
    LEAST_SIMILARITY,
    NO_EMBEDDINGS,
    POOL,
    PROBE,
    Embed,
    VectorIndex,
    default_embed,
    embedded,
    fuse,
)

if TYPE_CHECKING:
    from jarvis_nb.core.events import EventBus

BATCH = 1000

TABLES = """
CREATE TABLE IF NOT EXISTS vectors (rowid INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vector_table (dimensions INTEGER NOT NULL, probe BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS chunks_vectors AFTER DELETE ON chunks
    BEGIN DELETE FROM vectors WHERE rowid = old.rowid; END
"""
# The trigger keeps vectors true where SQLiteMemory, which knows nothing of them, deletes from the same file.

MISSING = """
SELECT rowid, content, metadata FROM chunks WHERE rowid NOT IN (SELECT rowid FROM vectors) ORDER BY rowid LIMIT ?
"""


def _texts(rows: Sequence[tuple[int, str, str]]) -> list[str]:
    return [findable(content, json.loads(metadata)) for _, content, metadata in rows]


class HybridMemory(SQLiteMemory):
    """Full-text search and static embeddings, fused by reciprocal rank.

    A file of :class:`SQLiteMemory` may be opened as this and the other way round: missing vectors are made when the
    file is opened. Without embeddings it works as SQLiteMemory does and says so in :attr:`note` and ``repr``.

    Args:
        db_path: The database file, made if absent; ``":memory:"`` for one that ends with the process.
        embed: Texts to an array of one row each; None for this package's static table (extra ``semantic``).
        bus: Where memory events go.

    Raises:
        MemoryBackendError: As :class:`SQLiteMemory`; ``bad_embedding``: ``embed`` gives no rows of numbers.
    """

    backend_id: ClassVar[str] = "hybrid"

    def __init__(
        self,
        db_path: str | os.PathLike[str] = ":memory:",
        *,
        embed: Embed | None = None,
        bus: EventBus | None = None,
    ) -> None:
        self._embed = embed or default_embed()
        self._index: VectorIndex | None = None
        self._version = -1
        self._added = self._changed = True
        super().__init__(db_path, bus=bus)
        if self._embed is not None:
            self._prepare_vectors()

    @property
    def note(self) -> str:
        """What is missing, if anything."""
        return "" if self._embed is not None else NO_EMBEDDINGS

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{', words only' if self._embed is None else ''})"

    def clear(self) -> None:
        """Delete everything."""
        super().clear()
        self._changed = True

    def delete(self, id: str) -> bool:  # noqa: A002 - the field's name everywhere
        """Delete one passage; return whether there was one."""
        self._changed = True
        return super().delete(id)

    def _replace(self, files: Sequence[IndexedFile], remove: Sequence[str]) -> None:
        self._changed = True
        super()._replace(files, remove)

    def _insert(self, connection: sqlite3.Connection, chunks: Sequence[Chunk], file: int | None) -> list[str]:
        ids = super()._insert(connection, chunks, file)
        if self._embed is not None and chunks:
            last: int = connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"
            ).fetchone()[0]
            self._store_vectors(
                connection,
                range(last - len(chunks) + 1, last + 1),
                [findable(c.content, c.metadata) for c in chunks],
            )
            self._added = True
        return ids

    def _find(self, query: str, top_k: int) -> list[MemoryHit]:
        terms = query_terms(query)
        if self._embed is None or not terms:
            return super()._find(query, top_k)
        vector = self._vectors_of([query])[0]
        pool = max(POOL, 2 * top_k)
        with self._snapshot() as connection:
            index = self._fresh_index(connection)
            words = connection.execute(
                "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words), rowid LIMIT ?",
                (match_expression(terms), pool),
            )
            near = index.search(vector, pool, LEAST_SIMILARITY)
            best = fuse([[row for (row,) in words], [row for row, _ in near]])[:top_k]
            return self._hits(connection, best)

    def _fresh_index(self, connection: sqlite3.Connection) -> VectorIndex:
        """Return the vectors in memory, brought up to what this and other processes have written."""
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        changed = self._changed or version != self._version
        index = self._index
        if index is None or (changed and not self._still_holds(connection, index)):
            dimensions: int = connection.execute("SELECT dimensions FROM vector_table").fetchone()[0]
            index = self._index = VectorIndex(dimensions)
        if changed or self._added:
            cursor = connection.execute(
                "SELECT rowid, vector FROM vectors WHERE rowid > ? ORDER BY rowid", (index.last,)
            )
            while rows := cursor.fetchmany(BATCH):
                index.add([row for row, _ in rows], b"".join(vector for _, vector in rows))
        self._version, self._added, self._changed = version, False, False
        return index

    def _still_holds(self, connection: sqlite3.Connection, index: VectorIndex) -> bool:
        """Whether nothing of what is in memory was deleted: row numbers are never used again, so a count tells."""
        count = "SELECT count(*) FROM vectors WHERE rowid <= ?"
        return connection.execute(count, (index.last,)).fetchone()[0] == len(index)

    def _prepare_vectors(self) -> None:
        """Make the tables, and the vectors that are missing or were made with another table of embeddings."""
        probe = self._vectors_of([PROBE])
        with self._write() as connection:
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            known = connection.execute("SELECT dimensions, probe FROM vector_table").fetchone()
            if known != (probe.shape[1], probe.tobytes()):
                connection.execute("DELETE FROM vectors")
                connection.execute("DELETE FROM vector_table")
                connection.execute(
                    "INSERT INTO vector_table VALUES (?, ?)", (probe.shape[1], probe.tobytes())
                )
            while rows := connection.execute(MISSING, (BATCH,)).fetchall():
                self._store_vectors(connection, [row for row, _, _ in rows], _texts(rows))

    def _store_vectors(
        self, connection: sqlite3.Connection, rows: Sequence[int], texts: Sequence[str]
    ) -> None:
        vectors = self._vectors_of(texts)
        connection.executemany(
            "INSERT INTO vectors VALUES (?, ?)",
            ((row, vector.tobytes()) for row, vector in zip(rows, vectors, strict=True)),
        )

    def _vectors_of(self, texts: Sequence[str]) -> Any:
        assert self._embed is not None  # noqa: S101 - callers have checked
        return embedded(self._embed, texts, repr(self))
