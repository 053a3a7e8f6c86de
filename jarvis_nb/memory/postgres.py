"""PostgresMemory: one memory that a class or a team shares, by ``tsvector`` and, where it is installed, pgvector."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError
from jarvis_nb.core.types import dumps
from jarvis_nb.memory.base import Chunk, IndexedFile, MemoryHit
from jarvis_nb.memory.terms import folded, folded_words, query_terms
from jarvis_nb.memory.text import TextMemory, content_hash, findable, make_id, split_id
from jarvis_nb.memory.vectors import (
    LEAST_SIMILARITY,
    NO_EMBEDDINGS,
    POOL,
    PROBE,
    Embed,
    default_embed,
    embedded,
    fuse,
)

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

    from jarvis_nb.core.events import EventBus

MAX_INDEXED_BYTES = 500_000
"""Of one text; a ``tsvector`` is limited to a megabyte."""

SCHEMA = """
CREATE TABLE {files} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, path text NOT NULL UNIQUE, fingerprint text NOT NULL
);
CREATE TABLE {chunks} (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash text NOT NULL, copy bigint NOT NULL,
    source text NOT NULL, metadata text NOT NULL, file bigint REFERENCES {files} (id) ON DELETE CASCADE,
    content text NOT NULL, words tsvector NOT NULL, UNIQUE (hash, copy)
);
CREATE INDEX ON {chunks} USING gin (words);
CREATE INDEX ON {chunks} (file) WHERE file IS NOT NULL;
CREATE TEXT SEARCH DICTIONARY {stemmer} (TEMPLATE = snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION {search} (COPY = pg_catalog.english);
ALTER TEXT SEARCH CONFIGURATION {search} ALTER MAPPING REPLACE pg_catalog.english_stem WITH {stemmer};
"""
# PostgreSQL's own English configuration drops stop words from the text: "to be or not to be" would not be there.

VECTOR_SCHEMA = """
CREATE TABLE {vectors} (
    number bigint PRIMARY KEY REFERENCES {chunks} (number) ON DELETE CASCADE, vector vector({dimensions}) NOT NULL
);
CREATE TABLE {vector_table} (probe bytea NOT NULL);
"""
INSERT = """
INSERT INTO {chunks} (hash, copy, source, metadata, file, content, words) VALUES (
    %(hash)s, (SELECT 1 + coalesce(max(copy), 0) FROM {chunks} WHERE hash = %(hash)s),
    %(source)s, %(metadata)s, %(file)s, %(content)s, to_tsvector({config}, %(words)s)
) RETURNING number, hash, copy
"""
SEARCH = """
SELECT number, ts_rank(words, query, 1) AS score FROM {chunks}, to_tsquery({config}, %s) AS query
WHERE words @@ query ORDER BY score DESC, number LIMIT %s
"""
MISSING = """
SELECT number, content, metadata FROM {chunks} WHERE number NOT IN (SELECT number FROM {vectors}) ORDER BY number
"""
NEAREST = """
SELECT number FROM {vectors} WHERE vector <=> %(vector)s::vector < %(most)s
ORDER BY vector <=> %(vector)s::vector, number LIMIT %(limit)s
"""


class PostgresMemory(TextMemory):
    """Memory in PostgreSQL: full-text search, fused with static embeddings where pgvector is installed.

    Safe across threads, processes and machines.

    Args:
        conninfo: A connection string; empty for what the ``PG…`` environment variables say.
        table: The beginning of the tables' names: several memories may share a database.
        embed: Texts to an array of one row each; None for this package's static table (extra ``semantic``).
        bus: Where memory events go.

    Raises:
        MemoryBackendError: ``missing_extra``, ``unavailable``.
        InvalidRequest: ``table`` is not a plain lower-case name.
    """

    backend_id: ClassVar[str] = "postgres"

    def __init__(
        self,
        conninfo: str = "",
        *,
        table: str = "jarvis_memory",
        embed: Embed | None = None,
        bus: EventBus | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", table):
            raise InvalidRequest(
                f"{table!r:.100} is no table name", value=table, hint="lower-case letters, digits and _"
            )
        self.table = table
        self.bus = bus
        self.note = ""
        """What is missing, if anything."""
        self._conninfo = conninfo
        self._embed = embed or default_embed()
        self._lock = threading.RLock()
        self._closed = False
        self._connection: Connection[Any] | None = None
        self._process = 0
        try:
            with self._write() as cursor:
                self._make_tables(cursor)
            if self._embed is not None:
                self._prepare_vectors()
            else:
                self.note = NO_EMBEDDINGS
        except BaseException:
            self.close()
            raise

    def delete(self, id: str) -> bool:  # noqa: A002 - the field's name everywhere
        """Delete one passage; return whether there was one."""
        key = split_id(id)
        if key is None:
            return False
        with self._write() as cursor:
            return self._run(cursor, "DELETE FROM {chunks} WHERE hash = %s AND copy = %s", key).rowcount > 0

    def clear(self) -> None:
        """Delete everything."""
        with self._write() as cursor:
            self._run(cursor, "DELETE FROM {chunks}")
            self._run(cursor, "DELETE FROM {files}")

    def count(self) -> int:
        """Return the number of passages."""
        with self._read() as cursor:
            return self._run(cursor, "SELECT count(*) FROM {chunks}").fetchall()[0][0]

    def indexed(self) -> dict[str, str]:
        """Return the path and fingerprint of every indexed file."""
        with self._read() as cursor:
            return dict(
                self._run(
                    cursor, 'SELECT path, fingerprint FROM {files} ORDER BY path COLLATE "C"'
                ).fetchall()
            )

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def rebuild(self) -> None:
        """Make all vectors anew, with the embeddings of this memory.

        Raises:
            MemoryBackendError: ``bad_embedding``: there are none.
        """
        if self._embed is None:
            raise MemoryBackendError(f"{self!r} has no embeddings to make vectors with", code="bad_embedding")
        with self._write() as cursor:
            self._run(cursor, "DROP TABLE IF EXISTS {vectors}, {vector_table}")
        self._prepare_vectors()

    def __del__(self) -> None:
        connection: Connection[Any] | None = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def __repr__(self) -> str:
        return f"PostgresMemory(table={self.table!r}{'' if self._vectors else ', words only'})"

    @property
    def _vectors(self) -> bool:
        """Whether vectors are stored and searched."""
        return self._embed is not None and not self.note

    def _vectors_of(self, texts: Sequence[str]) -> Any:
        assert self._embed is not None  # noqa: S101 - callers have checked
        return embedded(self._embed, texts, repr(self))

    def _add(self, chunks: Sequence[Chunk]) -> list[str]:
        with self._write() as cursor:
            return self._insert(cursor, chunks, None)

    def _find(self, query: str, top_k: int) -> list[MemoryHit]:
        terms = query_terms(folded(query))
        with self._read() as cursor:
            if not terms:
                return []
            pool = max(POOL, 2 * top_k) if self._vectors else top_k
            best = self._run(cursor, SEARCH, (_tsquery(terms), pool)).fetchall()
            if self._vectors:
                vector = self._vectors_of([query])[0]
                near = {"vector": _vector(vector), "most": 1 - LEAST_SIMILARITY, "limit": pool}
                rankings = [[row for row, _ in best], [row for (row,) in self._run(cursor, NEAREST, near)]]
                best = fuse(rankings) if vector.any() else fuse(rankings[:1])
            return self._hits(cursor, best[:top_k])

    def _hits(self, cursor: Cursor[Any], best: Sequence[tuple[int, float]]) -> list[MemoryHit]:
        select = "SELECT number, hash, copy, source, metadata, content FROM {chunks} WHERE number = ANY(%s)"
        rows = {row[0]: row[1:] for row in self._run(cursor, select, ([number for number, _ in best],))}
        return [
            MemoryHit(make_id(digest, copy), content, float(score), source, json.loads(metadata))
            for number, score in best
            if number in rows  # somebody may have deleted it since
            for digest, copy, source, metadata, content in [rows[number]]
        ]

    def _replace(self, files: Sequence[IndexedFile], remove: Sequence[str]) -> None:
        with self._write() as cursor:
            self._run(cursor, "DELETE FROM {files} WHERE path = ANY(%s)", (list(remove),))
            for file in files:
                insert = "INSERT INTO {files} (path, fingerprint) VALUES (%s, %s) RETURNING id"
                self._insert(
                    cursor,
                    file.chunks,
                    self._run(cursor, insert, (file.path, file.fingerprint)).fetchall()[0][0],
                )

    def _insert(self, cursor: Cursor[Any], chunks: Sequence[Chunk], file: int | None) -> list[str]:
        rows = [
            {
                "hash": content_hash(chunk),
                "source": chunk.source,
                "metadata": dumps(chunk.metadata),
                "file": file,
                "content": chunk.content,
                "words": folded_words(findable(chunk.content, chunk.metadata), MAX_INDEXED_BYTES),
            }
            for chunk in chunks
        ]
        if not rows:
            return []
        cursor.executemany(self._sql(INSERT), rows, returning=True)
        made: list[tuple[int, str, int]] = []
        while True:
            made += cursor.fetchall()
            if not cursor.nextset():
                break
        if self._vectors:
            self._store_vectors(
                cursor,
                [number for number, _, _ in made],
                [findable(chunk.content, chunk.metadata) for chunk in chunks],
            )
        return [make_id(digest, copy) for _, digest, copy in made]

    def _store_vectors(self, cursor: Cursor[Any], numbers: Sequence[int], texts: Sequence[str]) -> None:
        vectors = self._vectors_of(texts)
        cursor.executemany(
            self._sql("INSERT INTO {vectors} VALUES (%s, %s::vector)"),
            [(number, _vector(row)) for number, row in zip(numbers, vectors, strict=True) if row.any()],
        )

    def _make_tables(self, cursor: Cursor[Any]) -> None:
        if self._run(cursor, "SELECT to_regclass({chunks_name})").fetchall()[0][0] is None:
            for statement in SCHEMA.strip().split(";\n"):
                self._run(cursor, statement)

    def _prepare_vectors(self) -> None:
        """Make the tables of vectors and the vectors that are missing, or do without and say why."""
        probe = self._vectors_of([PROBE])
        with self._write() as cursor:
            self.note = self._without_pgvector(cursor)
            if (
                not self.note
                and self._run(cursor, "SELECT to_regclass({vectors_name})").fetchall()[0][0] is None
            ):
                for statement in VECTOR_SCHEMA.strip().split(";\n"):
                    self._run(cursor, statement, dimensions=probe.shape[1])
                self._run(cursor, "INSERT INTO {vector_table} VALUES (%s)", (probe.tobytes(),))
            if (
                not self.note
                and bytes(self._run(cursor, "SELECT probe FROM {vector_table}").fetchall()[0][0])
                != probe.tobytes()
            ):
                self.note = (
                    "the vectors were made with other embeddings: words only (rebuild() makes them anew)"
                )
            if not self.note:
                rows = self._run(cursor, MISSING).fetchall()
                texts = [findable(content, json.loads(metadata)) for _, content, metadata in rows]
                self._store_vectors(cursor, [number for number, _, _ in rows], texts)

    def _without_pgvector(self, cursor: Cursor[Any]) -> str:
        """Install the extension if it is not; return why that is impossible, else nothing."""
        import psycopg

        found = cursor.execute(
            "SELECT installed_version FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        if found is None:
            return "this PostgreSQL has no pgvector: words only"
        if found[0] is None:
            try:
                with cursor.connection.transaction():
                    cursor.execute("CREATE EXTENSION vector")
            except psycopg.errors.InsufficientPrivilege:
                return "pgvector is not installed in this database: words only (its owner says CREATE EXTENSION vector)"
        return ""

    @contextmanager
    def _write(self) -> Generator[Cursor[Any]]:
        """Give a cursor within a transaction; writers of one memory follow one another."""
        with self._read() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self.table,))
            yield cursor

    @contextmanager
    def _read(self) -> Generator[Cursor[Any]]:
        """Give a cursor within a transaction."""
        with self._lock:
            connection = self._connected()
            import psycopg

            try:
                with connection.transaction(), connection.cursor() as cursor:
                    yield cursor
            except psycopg.Error as error:
                raise MemoryBackendError(f"{self!r}: {error}", code="unavailable") from error

    def _connected(self) -> Connection[Any]:
        if self._closed:
            raise MemoryBackendError(f"{self!r} is closed", code="closed", hint="make a new one")
        if self._connection is None or self._connection.closed or self._process != os.getpid():
            try:
                import psycopg
            except ImportError:
                raise MemoryBackendError(
                    "PostgresMemory needs psycopg",
                    code="missing_extra",
                    hint="pip install 'jarvis-nb[postgres]'",
                ) from None
            try:
                self._connection = psycopg.connect(self._conninfo, autocommit=True)
            except psycopg.Error as error:
                raise MemoryBackendError(
                    f"{self!r} cannot connect: {error}",
                    code="unavailable",
                    hint="is the server there, and the address right?",
                ) from error
            self._process = os.getpid()
        return self._connection

    def _run(
        self, cursor: Cursor[Any], statement: str, values: Any = None, *, dimensions: int = 0
    ) -> Cursor[Any]:
        return cursor.execute(self._sql(statement, dimensions), values)

    def _sql(self, statement: str, dimensions: int = 0) -> Any:
        """Return a statement with this memory's names in it, quoted."""
        from psycopg import sql

        names = ("files", "chunks", "vectors", "vector_table", "stemmer", "search")
        identifiers = {name: sql.Identifier(f"{self.table}_{name}") for name in names}
        literals = {
            "config": sql.Literal(f"{self.table}_search"),
            "chunks_name": sql.Literal(f"{self.table}_chunks"),
            "vectors_name": sql.Literal(f"{self.table}_vectors"),
            "dimensions": sql.Literal(dimensions),
        }
        return sql.SQL(statement).format(**identifiers, **literals)  # pyright: ignore[reportArgumentType] - all are constants above


def _tsquery(terms: Sequence[tuple[str, ...]]) -> str:
    """Return a query that matches any term; the words are letters and digits, and quoted."""
    return " | ".join(" <-> ".join(f"'{word}'" for word in term) for term in terms)


def _vector(row: Any) -> str:
    """Return signed bytes as pgvector reads them; only their direction counts."""
    return f"[{','.join(map(str, row.tolist()))}]"
