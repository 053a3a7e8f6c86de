"""SQLiteMemory: full-text search with BM25 in one SQLite file, or in memory."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.core.types import dumps
from jarvis_nb.memory.base import Chunk, IndexedFile, MemoryHit
from jarvis_nb.memory.terms import query_terms, searchable
from jarvis_nb.memory.text import TextMemory, content_hash, findable, make_id, split_id

if TYPE_CHECKING:
    from jarvis_nb.core.events import EventBus

BUSY_SECONDS = 30.0
"""How long a writer waits for another process's transaction."""
APPLICATION_ID = 0x4A4E4221
VERSION = 1

SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL);
CREATE TABLE chunks (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL, copy INTEGER NOT NULL,
    source TEXT NOT NULL, metadata TEXT NOT NULL, file INTEGER REFERENCES files (id), content TEXT NOT NULL
);
CREATE UNIQUE INDEX chunks_by_id ON chunks (hash, copy);
CREATE INDEX chunks_by_file ON chunks (file) WHERE file IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5 (content, content='', tokenize='porter unicode61 remove_diacritics 2');
"""
# The full-text table is contentless: it sees `searchable` text, the rows keep the original, neither keeps both.
# A row number is never used again (AUTOINCREMENT): what another process cached under it stays true.

INSERT = """
INSERT INTO chunks (rowid, hash, copy, source, metadata, file, content)
VALUES (?1, ?2, (SELECT 1 + coalesce(max(copy), 0) FROM chunks WHERE hash = ?2), ?3, ?4, ?5, ?6)
"""
SEARCH = """
SELECT hash, copy, score, source, metadata, content FROM chunks JOIN (
    SELECT rowid AS row, -bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY score DESC, row LIMIT ?
) ON chunks.rowid = row ORDER BY score DESC, row
"""


class SQLiteMemory(TextMemory):
    """Memory in SQLite FTS5: BM25 ranking, English stemming, any script.

    Safe across threads, and across processes where ``db_path`` is a file.

    Args:
        db_path: The database file, made if absent; ``":memory:"`` for one that ends with the process.
        bus: Where memory events go.

    Raises:
        MemoryBackendError: ``not_a_memory``, ``newer_version``, ``unavailable``: the file cannot be used.

    Example:
        >>> memory = SQLiteMemory()
        >>> id = memory.store("Orders ship within two days.", source="shipping.md")
        >>> [hit.source for hit in memory.retrieve("When does my order ship?")]
        ['shipping.md']
    """

    backend_id: ClassVar[str] = "sqlite"

    def __init__(self, db_path: str | os.PathLike[str] = ":memory:", *, bus: EventBus | None = None) -> None:
        self.db_path = os.fspath(db_path)
        self.bus = bus
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._connection = self._open()

    def delete(self, id: str) -> bool:  # noqa: A002 - the field's name everywhere
        """Delete one passage; return whether there was one."""
        key = split_id(id)
        if key is None:
            return False
        with self._write() as connection:
            rows = self._forget(connection, "hash = ? AND copy = ?", key)
        return rows > 0

    def clear(self) -> None:
        """Delete everything."""
        with self._write() as connection:
            connection.execute("DELETE FROM chunks")
            connection.execute("DELETE FROM files")
            connection.execute("INSERT INTO words (words) VALUES ('delete-all')")

    def count(self) -> int:
        """Return the number of passages."""
        with self._read() as connection:
            return connection.execute("SELECT count(*) FROM chunks").fetchone()[0]

    def indexed(self) -> dict[str, str]:
        """Return the path and fingerprint of every indexed file."""
        with self._read() as connection:
            return dict(connection.execute("SELECT path, fingerprint FROM files ORDER BY path"))

    def close(self) -> None:
        """Close the database. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._connection.close()

    def __del__(self) -> None:
        connection: sqlite3.Connection | None = getattr(self, "_connection", None)
        if connection is not None:  # a notebook's memory that nobody closed: Python 3.13 warns of those
            connection.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.db_path!r})"

    def _add(self, chunks: Sequence[Chunk]) -> list[str]:
        with self._write() as connection:
            return self._insert(connection, chunks, None)

    def _find(self, query: str, top_k: int) -> list[MemoryHit]:
        terms = query_terms(query)
        with self._read() as connection:
            if not terms:
                return []
            rows = connection.execute(SEARCH, (match_expression(terms), top_k)).fetchall()
        return [_hit(row) for row in rows]

    def _hits(self, connection: sqlite3.Connection, rows: Sequence[tuple[int, float]]) -> list[MemoryHit]:
        """Return the passages of row numbers with their scores, in the order given."""
        found: list[MemoryHit] = []
        for row, score in rows:
            select = "SELECT hash, copy, ?, source, metadata, content FROM chunks WHERE rowid = ?"
            found.append(_hit(connection.execute(select, (score, row)).fetchone()))
        return found

    def _replace(self, files: Sequence[IndexedFile], remove: Sequence[str]) -> None:
        with self._write() as connection:
            for path in remove:
                found = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
                if found is not None:
                    self._forget(connection, "file = ?", found)
                    connection.execute("DELETE FROM files WHERE id = ?", found)
            for file in files:
                cursor = connection.execute(
                    "INSERT INTO files (path, fingerprint) VALUES (?, ?)", (file.path, file.fingerprint)
                )
                self._insert(connection, file.chunks, cursor.lastrowid)

    def _insert(self, connection: sqlite3.Connection, chunks: Sequence[Chunk], file: int | None) -> list[str]:
        used = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'").fetchone()
        first: int = 1 + (used[0] if used else 0)
        connection.executemany(
            INSERT,
            (
                (
                    row,
                    content_hash(chunk),
                    chunk.source,
                    dumps(chunk.metadata) if chunk.metadata else "{}",
                    file,
                    chunk.content,
                )
                for row, chunk in enumerate(chunks, first)
            ),
        )
        connection.executemany(
            "INSERT INTO words (rowid, content) VALUES (?, ?)",
            (
                (row, searchable(findable(chunk.content, chunk.metadata)))
                for row, chunk in enumerate(chunks, first)
            ),
        )
        added = connection.execute("SELECT hash, copy FROM chunks WHERE rowid >= ? ORDER BY rowid", (first,))
        return [make_id(digest, copy) for digest, copy in added]

    def _forget(self, connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> int:
        """Delete rows; a contentless index must be told the very text it was given. Return how many they were."""
        select = f"SELECT rowid, content, metadata FROM chunks WHERE {where}"  # noqa: S608 - a constant of the callers
        rows = connection.execute(select, values).fetchall()
        connection.executemany(
            "INSERT INTO words (words, rowid, content) VALUES ('delete', ?, ?)",
            ((row, searchable(findable(content, json.loads(metadata)))) for row, content, metadata in rows),
        )
        connection.executemany("DELETE FROM chunks WHERE rowid = ?", ((row,) for row, _, _ in rows))
        return len(rows)

    @contextmanager
    def _read(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise MemoryBackendError(f"{self!r} is closed", code="closed", hint="make a new one")
            if self._process != os.getpid():  # a fork may not use its parent's connection
                self._process = os.getpid()
                self._parents = self._connection  # kept: closing it would drop the parent's locks
                self._connection = self._open()
            try:
                yield self._connection
            except sqlite3.Error as error:
                code = "busy" if "locked" in str(error) else "unavailable"
                raise MemoryBackendError(f"{self!r}: {error}", code=code) from error

    def _write(self) -> AbstractContextManager[sqlite3.Connection]:
        """Give the connection within a transaction that is undone by any exception, an interrupt too."""
        return self._transaction("BEGIN IMMEDIATE")

    def _snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """Give the connection such that several reads see one state, whatever others write meanwhile."""
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        with self._read() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self.db_path != ":memory:":
            try:
                Path(self.db_path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise MemoryBackendError(
                    f"{self!r}: {error}", code="unavailable", value=self.db_path
                ) from error
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                self.db_path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=64,
            )
            _prepare(connection, repr(self))
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise _unusable(error, repr(self)) from error
            raise
        return connection


def match_expression(terms: Sequence[tuple[str, ...]]) -> str:
    """Return an FTS5 expression that matches any of the terms; quoted, so that no word is an operator.

    Example:
        >>> match_expression([("near",), ("東", "京")])
        '"near" OR "東 京"'
    """
    return " OR ".join(f'"{" ".join(term)}"' for term in terms)


def _hit(row: tuple[str, int, float, str, str, str]) -> MemoryHit:
    digest, copy, score, source, metadata, content = row
    return MemoryHit(make_id(digest, copy), content, score, source, json.loads(metadata))


def _prepare(connection: sqlite3.Connection, owner: str) -> None:
    """Set the connection up, and the tables where the database is new."""
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -32000")
    connection.execute("PRAGMA temp_store = MEMORY")
    _patiently(connection, "PRAGMA journal_mode = WAL")
    if _version(connection, owner) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, owner) == 0:  # nobody was faster
            for statement in SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement that SQLite refuses at once, without its own waiting, while another process opens the file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _version(connection: sqlite3.Connection, owner: str) -> int:
    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    version = pragma("user_version")
    application = pragma("application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (tables or version):
        raise MemoryBackendError(
            f"{owner} is some other program's database", code="not_a_memory", hint="give a path of its own"
        )
    if version > VERSION:
        raise MemoryBackendError(
            f"{owner} was made by a newer version of this package",
            code="newer_version",
            hint="upgrade jarvis-nb",
        )
    return version


def _unusable(error: sqlite3.Error, owner: str) -> MemoryBackendError:
    if "fts5" in str(error):
        return MemoryBackendError(
            f"{owner}: this Python's SQLite {sqlite3.sqlite_version} has no FTS5", code="unavailable"
        )
    code = "not_a_memory" if "not a database" in str(error) else "unavailable"
    return MemoryBackendError(
        f"{owner} cannot be opened: {error}", code=code, hint="is the path a file you may write?"
    )
