from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

import pytest

from jarvis_nb.config import Config
from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.memory import progress
from jarvis_nb.memory.handle import MemoryHandle, default_path
from jarvis_nb.memory.sqlite import SQLiteMemory
from jarvis_nb.tools.retrieval import RetrievalTool


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "shipping.md").write_text("# Shipping\n\nOrders ship within two days.\n")
    return tmp_path / "docs"


def test_16_index_search_stats_clear(docs):
    """tools.md 16: hits are dictionaries of content, score, source, metadata, id."""
    with MemoryHandle() as memory:
        report = memory.index("docs/")
        assert report.added == ["docs/shipping.md"]
        (hit,) = memory.search("when do orders ship?")
        assert set(hit) == {"content", "score", "source", "metadata", "id"}
        assert (hit["source"], hit["metadata"]["heading"]) == ("docs/shipping.md", "Shipping")
        assert memory.search("orders", top_k=0) == []
        assert memory.stats() == {"backend": "sqlite", "count": 1, "files": 1, "path": ":memory:"}
        memory.clear()
        assert memory.stats()["count"] == 0


def test_hits_show_themselves(docs):
    """Issue 4: a list like any other, whose repr says what was found where; the same each time."""
    with MemoryHandle() as memory:
        memory.index("docs")
        hits = memory.search("orders")
        assert isinstance(hits, list)
        assert hits == [dict(hits[0])]
        assert "docs/shipping.md" in repr(hits)
        assert repr(hits) == repr(memory.search("orders"))
        assert "zeppelin" in repr(memory.search("zeppelin"))


def test_an_empty_memory_finds_nothing():
    """A person who searches before anything is in it is told just that, and nothing is opened."""
    with MemoryHandle() as memory:
        assert memory.search("orders") == []
        assert memory.stats()["count"] == 0


def test_opened_on_first_use(tmp_path):
    """Nothing is made before it is needed."""
    memory = MemoryHandle(tmp_path / "m.db")
    assert repr(memory).endswith("not opened yet)")
    assert list(tmp_path.iterdir()) == []
    memory.store("x")
    assert (tmp_path / "m.db").exists()
    assert repr(memory) == f"MemoryHandle(SQLiteMemory({str(tmp_path / 'm.db')!r}))"
    memory.close()


@pytest.mark.parametrize(
    ("memory", "config", "configured"),
    [
        (None, None, False),
        (None, Config(), False),
        (None, Config(memory="sqlite"), True),
        (None, Config(memory_path=":memory:"), True),
        ("sqlite", Config(), True),
        (SQLiteMemory(), Config(), True),
        (Path("m.db"), None, True),
    ],
)
def test_configured(memory, config, configured):
    """design.md, `context`: injection is on when a memory was configured and holds something."""
    assert MemoryHandle(memory, config).configured is configured
    if isinstance(memory, SQLiteMemory):
        memory.close()


def test_configured_once_something_is_in_it(docs):
    """Filling it is configuring it."""
    with MemoryHandle() as stored, MemoryHandle() as indexed:
        stored.store("x")
        indexed.index(docs)
        assert stored.configured
        assert indexed.configured


def test_keys_and_paths(tmp_path, monkeypatch):
    """A key alone means a file of the user's; a path is a file; a path in the config too."""
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path / "data"))
    with MemoryHandle("sqlite") as first:
        first.store("kept")
    with MemoryHandle(None, Config(memory="sqlite")) as second:
        assert second.stats() == {
            "backend": "sqlite",
            "count": 1,
            "files": 0,
            "path": str(tmp_path / "data" / "memory.db"),
        }
    with MemoryHandle(None, Config(memory_path=str(tmp_path / "x.db"))) as third:
        assert third.stats()["path"] == str(tmp_path / "x.db")
    monkeypatch.delenv("JARVIS_NB_DATA")
    assert default_path().name == "memory.db"


@pytest.mark.parametrize("odd", ["sqlit", "notes.db", 5, ["a"], SQLiteMemory])
def test_odd_memories_fail_where_they_are_written(odd):
    """The caller's mistakes raise, with what is valid."""
    with pytest.raises(InvalidRequest, match=r"sqlite|SQLite"):
        MemoryHandle(odd)


def test_closes_what_it_opened_only():
    """design.md: close() closes what the Jarvis opened, not what it was given."""
    given = SQLiteMemory()
    handle, opened = MemoryHandle(given), MemoryHandle()
    backend = opened.backend
    for memory in (handle, opened):
        memory.close()
        memory.close()
        with pytest.raises(MemoryBackendError) as caught:
            memory.count()
        assert caught.value.code == "closed"
    assert given.count() == 0
    given.close()
    with pytest.raises(MemoryBackendError):
        backend.count()


def test_08_events_once_on_the_one_bus(docs):
    """tools.md 8: whether the backend knows the bus or not."""
    bus = EventBus(record_history=True)
    for backend in (None, SQLiteMemory(), SQLiteMemory(bus=bus)):
        before = len(bus.history)
        memory = MemoryHandle(backend, bus=bus)
        memory.store("orders", source="x")
        memory.retrieve("orders")
        memory.index(docs)
        assert [e.event_type for e in bus.history[before:]] == [
            EventType.MEMORY_STORE, EventType.MEMORY_RETRIEVE, EventType.MEMORY_INDEX, EventType.MEMORY_INDEX,
        ]  # fmt: skip
        memory.backend.close()


def test_17_context_for_an_ask(docs):
    """tools.md 17: the block and the record that goes on the reply."""
    with MemoryHandle() as memory:
        memory.index("docs")
        text, record = asyncio.run(memory.context("when do orders ship?", 5, 1000))
        assert "[Source: docs/shipping.md] # Shipping" in text
        assert [(r["source"], r["used"], r["reason"]) for r in record] == [
            ("docs/shipping.md", True, "injected")
        ]
        assert asyncio.run(memory.context("zeppelin", 5, 1000)) == ("", [])


def test_11_as_a_tools_backend(docs):
    """tools.md 11, 19: retrieval gets the handle; without a memory it fails as data and opens nothing."""
    with MemoryHandle() as memory:
        tool = RetrievalTool(backend=memory)
        result = tool.execute(query="orders")
        assert (result.success, result.metadata["code"]) == (False, "no_memory")
        assert "not opened" in repr(memory)
        memory.index("docs")
        assert tool.execute(query="orders").content.startswith("[Source: docs/shipping.md]")


def test_16_shows_progress_in_a_terminal_only_if_it_takes_long(docs, monkeypatch):
    """tools.md 16: a line that is gone at the end; nothing where nobody looks."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with MemoryHandle() as memory:
        memory.index("docs")
        assert sys.stderr.getvalue() == ""
        monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0)
        memory.index("docs")
        shown = sys.stderr.getvalue()
        assert "indexing 0 of 1 files: docs/shipping.md" in shown
        assert shown.endswith("\r\x1b[2K")
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        memory.index("docs")
        assert sys.stderr.getvalue() == ""


def test_16_own_progress_is_used(docs):
    """A callback that is given is the one that is called."""
    seen = []
    with MemoryHandle() as memory:
        memory.index("docs", progress=lambda *step: seen.append(step))
    assert seen[-1] == (1, 1, "")


def test_light_import():
    """House rule: no heavy import behind the facade."""
    import subprocess

    heavy = "numpy pydantic httpx rich typer IPython jsonschema pypdf psycopg"
    code = (
        "import sys, jarvis_nb.memory.handle, jarvis_nb.memory.sqlite, jarvis_nb.memory.ingest, jarvis_nb.tools.retrieval;"
        f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
