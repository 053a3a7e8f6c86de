from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.memory.sqlite import SQLiteMemory


def code_of(db_path):
    with pytest.raises(MemoryBackendError) as caught:
        SQLiteMemory(db_path=db_path)
    return caught.value.code


def test_14_a_file_keeps_what_is_stored(tmp_path):
    """tools.md 14: db_path; folders on the way are made; WAL."""
    path = tmp_path / "deep" / "er" / "memory.db"
    with SQLiteMemory(db_path=path) as memory:
        memory.store("orders ship", source="a.md")
    with SQLiteMemory(db_path=str(path)) as memory:
        assert [hit.source for hit in memory.retrieve("order")] == ["a.md"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_14_memories_in_memory_are_apart():
    """tools.md 23: two of them share nothing."""
    with SQLiteMemory() as one, SQLiteMemory(":memory:") as two:
        one.store("x")
        assert (one.count(), two.count()) == (1, 0)


def test_a_file_that_is_no_memory_is_left_alone(tmp_path):
    """Errors say what is wrong; a foreign database is not touched."""
    (tmp_path / "text.db").write_text("no database at all, but quite long " * 100)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.commit()
    newer = tmp_path / "newer.db"
    SQLiteMemory(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert code_of(tmp_path / "text.db") == "not_a_memory"
    assert code_of(tmp_path / "foreign.db") == "not_a_memory"
    assert code_of(newer) == "newer_version"
    assert code_of(tmp_path) == "unavailable"
    assert code_of(tmp_path / "text.db" / "below.db") == "unavailable"
    assert foreign.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
    foreign.close()


def test_repr_is_deterministic():
    """House rule: no addresses."""
    with SQLiteMemory() as memory:
        assert repr(memory) == "SQLiteMemory(':memory:')"


def test_the_index_is_consistent_after_many_changes(tmp_path):
    """The full-text index has no more and no less than the rows: FTS5's own check, and a search for each row."""
    memory = SQLiteMemory(tmp_path / "m.db")
    ids = [memory.store(f"text number {number} 東京", source=str(number % 7)) for number in range(200)]
    for made in ids[::3]:
        memory.delete(made)
    with memory._read() as connection:
        rows = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        matched = connection.execute("SELECT count(*) FROM words WHERE words MATCH 'text'").fetchone()[0]
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
    assert rows == matched == len(memory.retrieve("東京", top_k=1000)) == 133
    memory.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path):
    """WAL: a long transaction of another connection leaves readers alone."""
    writer, reader = SQLiteMemory(tmp_path / "m.db"), SQLiteMemory(tmp_path / "m.db")
    writer.store("before")
    with writer._write() as connection:
        connection.execute("DELETE FROM chunks")
        start = time.perf_counter()
        assert reader.count() == 1
        assert time.perf_counter() - start < 1
    writer.close()
    reader.close()


def test_a_writer_that_waits_too_long_says_so(tmp_path, monkeypatch):
    """A locked database is an error with a code, after the busy time."""
    monkeypatch.setattr("jarvis_nb.memory.sqlite.BUSY_SECONDS", 0.05)
    one, two = SQLiteMemory(tmp_path / "m.db"), SQLiteMemory(tmp_path / "m.db")
    with one._write(), pytest.raises(MemoryBackendError) as caught:
        two.store("x")
    assert caught.value.code == "busy"
    two.store("y")
    assert one.count() == 1
    one.close()
    two.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_gets_a_connection_of_its_own(tmp_path):
    """SQLite connections do not survive a fork: the child opens the file anew."""
    memory = SQLiteMemory(tmp_path / "m.db")
    memory.store("parent")
    process = multiprocessing.get_context("fork").Process(target=lambda: memory.store("child"))
    process.start()
    process.join(20)
    assert process.exitcode == 0
    assert memory.count() == 2
    memory.close()


WRITER = """
import sys, threading
from jarvis_nb.memory.sqlite import SQLiteMemory
memory = SQLiteMemory(sys.argv[1])
def work(thread):
    for row in range(int(sys.argv[3])):
        memory.store(f"process {sys.argv[2]} thread {thread} row {row}", source=sys.argv[2])
threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
memory.close()
"""


@pytest.mark.slow
def test_14_two_processes_and_eight_threads_lose_nothing(tmp_path):
    """tools.md 14, issue 4: 10,000 rows from two processes of four threads each."""
    path = str(tmp_path / "m.db")
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(n), "1250"]) for n in range(2)]
    assert [process.wait(100) for process in processes] == [0, 0]
    with SQLiteMemory(path) as memory:
        assert memory.count() == 10_000
        assert len(memory.retrieve("row 1249", top_k=1000)) >= 8
        assert len({hit.id for hit in memory.retrieve("process", top_k=1000)}) == 1000


@pytest.mark.slow
def test_14_many_processes_may_open_a_new_file_at_once(tmp_path):
    """Making the tables and switching to WAL is safe when several do it together."""
    path = str(tmp_path / "m.db")
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(n), "2"]) for n in range(6)]
    assert [process.wait(60) for process in processes] == [0] * 6
    with SQLiteMemory(path) as memory:
        assert memory.count() == 48


INDEXER = """
import sys
from jarvis_nb.memory.handle import MemoryHandle
from pathlib import Path
handle = MemoryHandle(Path(sys.argv[1]))
print("begin", flush=True)
while True:
    for version in sys.argv[2:]:
        handle.index(version)
        handle.backend.replace([], list(handle.backend.indexed()))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_16_killed_while_indexing(tmp_path):
    """Issue 4: `kill -9` while indexing, then reopened: the old index or the new one, never half."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(40):
        (docs / f"{number}.md").write_text(f"document {number}\n" + "orders ship fast\n" * 400)
    states = set()
    for round_number in range(8):
        path = tmp_path / "m.db"
        process = subprocess.Popen(
            [sys.executable, "-c", INDEXER, str(path), str(docs)], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"begin\n"
        time.sleep(0.05 + 0.043 * round_number)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()
        with SQLiteMemory(path) as memory:
            files, count = len(memory.indexed()), memory.count()
            with memory._read() as connection:
                connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
                matched = connection.execute(
                    "SELECT count(*) FROM words WHERE words MATCH 'orders'"
                ).fetchone()[0]
        states.add((files, count, matched))
    assert states <= {(0, 0, 0), (40, 120, 120)}


def test_an_interrupt_leaves_no_open_transaction(tmp_path):
    """After an exception in a transaction the connection is usable at once, by this and other connections."""
    memory = SQLiteMemory(tmp_path / "m.db")

    def interrupted():
        with memory._write() as connection:
            connection.execute("DELETE FROM chunks")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    thread = threading.Thread(target=memory.store, args=("x",))
    thread.start()
    thread.join(5)
    assert memory.count() == 1
    memory.close()
