from __future__ import annotations

import os

import pytest

from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.memory.base import MemoryBackend
from jarvis_nb.memory.handle import MemoryHandle
from jarvis_nb.memory.ingest import IndexReport, index
from jarvis_nb.memory.sqlite import SQLiteMemory


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A small tree, seen from its parent."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / "b.md").write_text("# Shipping\n\nOrders ship within two days.\n")
    (root / "a.txt").write_text("Returns are refunded.\n")
    (root / "sub" / "c.py").write_text("def refund():\n    return 'money'\n")
    return root


@pytest.fixture
def memory():
    with SQLiteMemory() as backend:
        yield backend


def found(memory, query):
    return sorted({hit.source for hit in memory.retrieve(query, top_k=50)})


def test_16_indexes_a_folder_in_a_fixed_order(memory, docs):
    """tools.md 16: sources are paths from the working directory; chunks know heading and lines."""
    report = index(memory, "docs/")
    assert report.added == ["docs/a.txt", "docs/b.md", "docs/sub/c.py"]
    assert (
        repr(report)
        == "IndexReport(3 added, 0 updated, 0 unchanged, 0 removed, 0 skipped; 3 passages written)"
    )
    (hit,) = memory.retrieve("orders")
    assert (hit.source, hit.metadata) == ("docs/b.md", {"heading": "Shipping", "lines": [1, 3]})
    assert hit.content == "# Shipping\n\nOrders ship within two days.\n"
    assert memory.retrieve("money")[0].metadata == {"heading": "refund", "lines": [1, 2]}


def test_16_replaced_not_duplicated_and_incremental(memory, docs):
    """tools.md 16: unchanged files are skipped, changed ones replaced, deleted ones removed."""
    index(memory, docs)
    assert index(memory, docs).unchanged == ["docs/a.txt", "docs/b.md", "docs/sub/c.py"]
    assert memory.count() == 3
    stat = (docs / "b.md").stat()
    (docs / "b.md").write_text("# Shipping\n\nOrders ship within ten days.\n")
    os.utime(docs / "b.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the clock says nothing happened
    (docs / "a.txt").unlink()
    (docs / "new.txt").write_text("Gift cards.")
    report = index(memory, docs)
    assert report.to_dict() == {
        "added": ["docs/new.txt"],
        "updated": ["docs/b.md"],
        "unchanged": ["docs/sub/c.py"],
        "removed": ["docs/a.txt"],
        "skipped": {},
        "chunks": 2,
    }
    assert (memory.count(), found(memory, "two"), found(memory, "ten")) == (3, [], ["docs/b.md"])
    assert found(memory, "refunded") == ["docs/sub/c.py"]


def test_16_one_file_and_overlapping_roots(memory, docs, monkeypatch):
    """A file is the same file by whatever path it is reached; other files are left alone."""
    index(memory, docs)
    assert index(memory, docs / "b.md").unchanged == ["docs/b.md"]
    assert index(memory, str(docs / "sub")).unchanged == ["docs/sub/c.py"]
    assert index(memory, "docs/../docs/b.md").unchanged == ["docs/b.md"]
    assert memory.count() == 3
    monkeypatch.chdir(docs)
    assert index(memory, ".").updated == ["a.txt", "b.md", "sub/c.py"]  # they are called otherwise from here
    assert (memory.count(), found(memory, "orders")) == (3, ["b.md"])


def test_16_files_outside_the_working_directory_have_absolute_sources(memory, docs, monkeypatch):
    """There is no shorter name that is clear."""
    monkeypatch.chdir(docs / "sub")
    index(memory, docs / "b.md")
    assert found(memory, "orders") == [(docs / "b.md").as_posix()]


def test_16_what_is_skipped_and_why(memory, docs):
    """tools.md 16: hidden, vendored, binary and secret files, links, generated ones; each with a reason."""
    for name in (".git/config.md", ".hidden.md", "node_modules/x.md", "__pycache__/x.py", "env/pyvenv.cfg", "env/x.md",
                 ".env", "server.pem", "credentials.json", "app.min.js", "uv.lock", "x.egg-info/x.txt"):  # fmt: skip
        (docs / name).parent.mkdir(exist_ok=True)
        (docs / name).write_text("orders hush")
    (docs / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\xff")
    (docs / "latin.txt").write_bytes(b"caf\xe9 orders")
    (docs / "broken.ipynb").write_text("{")
    if os.name == "posix":
        (docs / "link.md").symlink_to(docs / "b.md")
        (docs / "out").symlink_to("/etc")
        os.mkfifo(docs / "pipe")
    report = index(memory, "docs")
    assert found(memory, "orders") == ["docs/b.md"]
    assert found(memory, "hush") == []
    reasons = {source.removeprefix("docs/"): reason for source, reason in report.skipped.items()}
    assert {k: v for k, v in reasons.items() if len(v) < 30} == {
        ".git": "hidden",
        ".hidden.md": "hidden",
        "node_modules": "vendored",
        "__pycache__": "vendored",
        "env": "vendored",
        "x.egg-info": "vendored",
        ".env": "looks like a file of secrets",
        "server.pem": "looks like a file of secrets",
        "credentials.json": "looks like a file of secrets",
        "app.min.js": "generated",
        "uv.lock": "generated",
        **({"link.md": "link", "out": "link"} if os.name == "posix" else {}),
    }
    assert "binary" in reasons["photo.png"]
    assert "UTF-8" in reasons["latin.txt"]
    assert "notebook" in reasons["broken.ipynb"]
    assert "FIFO" in reasons.get("pipe", "FIFO")


def test_16_the_root_may_be_hidden(memory, tmp_path, monkeypatch):
    """Who names a folder means it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".notes").mkdir()
    (tmp_path / ".notes" / "a.md").write_text("orders")
    assert index(memory, ".notes").added == [".notes/a.md"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [(".env", b"KEY=1", "secrets"), ("x.bin", b"\0", "binary"), ("id_rsa", b"x", "secrets")],
)
def test_16_one_named_file_that_cannot_be_indexed_is_an_error(memory, tmp_path, name, data, says):
    """The caller's mistakes raise."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidRequest, match=says) as caught:
        index(memory, tmp_path / name)
    assert caught.value.code == "not_indexable"
    assert memory.count() == 0


def test_16_a_path_that_does_not_exist(memory, docs):
    """An error names it, unless it was indexed before: then it is removed."""
    with pytest.raises(InvalidRequest, match=r"nowhere") as caught:
        index(memory, "nowhere")
    assert caught.value.code == "no_such_path"
    index(memory, docs)
    (docs / "b.md").unlink()
    assert index(memory, docs / "b.md").removed == ["docs/b.md"]
    assert memory.count() == 2


def test_16_what_became_unreadable_stays(memory, docs, monkeypatch):
    """A folder that cannot be listed today is not a folder whose files are gone."""
    index(memory, docs)
    real = os.scandir

    def refuse(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = index(memory, docs)
    assert report.removed == []
    assert report.skipped == {"docs/sub": "unreadable: Permission denied"}
    assert memory.count() == 3


def test_16_a_file_that_became_binary_is_removed(memory, docs):
    """What the memory holds is what the files say."""
    index(memory, docs)
    (docs / "a.txt").write_bytes(b"\0\0")
    report = index(memory, docs)
    assert (report.removed, list(report.skipped)) == (["docs/a.txt"], ["docs/a.txt"])
    assert memory.count() == 2


def test_16_empty_files_are_indexed_as_nothing(memory, docs):
    """An empty file has no passage, and is known."""
    (docs / "empty.md").write_text("\n")
    assert "docs/empty.md" in index(memory, docs).added
    assert index(memory, docs).added == []


@pytest.mark.parametrize("when", [0, 1, 2])
def test_16_an_interrupt_leaves_the_old_index(memory, docs, when):
    """tools.md 16: interrupted half way it leaves the old index or the new one, never half."""
    index(memory, docs)
    before = [hit.to_dict() for hit in memory.retrieve("orders returns refund", top_k=50)]
    for path in docs.rglob("*.*"):
        path.write_text(f"{path.read_text()} changed")

    def stop(done, total, source):
        if done == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(memory, docs, progress=stop)
    assert [hit.to_dict() for hit in memory.retrieve("orders returns refund", top_k=50)] == before


def test_16_progress_and_events(memory, docs):
    """tools.md 16 and 8: progress by callback and on the bus, the report with the last event."""
    seen, bus = [], EventBus(record_history=True)
    report = index(memory, docs, progress=lambda *step: seen.append(step), bus=bus)
    assert seen == [(0, 3, "docs/a.txt"), (1, 3, "docs/b.md"), (2, 3, "docs/sub/c.py"), (3, 3, "")]
    assert {event.event_type for event in bus.history} == {EventType.MEMORY_INDEX}
    assert [(e.data["done"], e.data["total"], e.data["source"]) for e in bus.history] == seen
    assert bus.history[-1].data["report"] == report.to_dict()


def test_16_markup_in_other_forms(memory, docs):
    """Issue 4: notebooks and HTML."""
    (docs / "n.ipynb").write_text(
        '{"cells": [{"cell_type": "markdown", "source": "# Lesson\\nVolcanoes erupt."}]}'
    )
    (docs / "p.html").write_text("<h1>Glaciers</h1><p>Glaciers <b>melt</b>.</p>")
    index(memory, docs)
    assert memory.retrieve("volcano")[0].metadata == {"heading": "Lesson", "cells": [1, 1]}
    assert memory.retrieve("glacier melting")[0].metadata == {"heading": "Glaciers"}


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_16_names_that_are_no_text(memory, docs):
    """A file whose name is not UTF-8 is skipped with a reason."""
    (docs / os.fsdecode(b"caf\xe9.md")).write_text("orders")
    report = index(memory, docs)
    assert list(report.skipped.values()) == ["its name is not UTF-8"]


def test_a_backend_that_keeps_no_files_says_so(docs):
    """The six methods make a memory; indexing needs two more."""

    class Plain(MemoryBackend):
        def store(self, content, source="", metadata=None):
            return "1"

        def retrieve(self, query, top_k=5):
            return []

        def delete(self, id):  # noqa: A002
            return False

        def clear(self):
            return None

        def count(self):
            return 0

        def close(self):
            return None

    with pytest.raises(MemoryBackendError, match="Plain") as caught:
        index(Plain(), docs)
    assert caught.value.code == "not_indexable"


def test_report_is_plain_data():
    """Dictionaries at the edge."""
    assert IndexReport().to_dict() == {
        "added": [], "updated": [], "unchanged": [], "removed": [], "skipped": {}, "chunks": 0,
    }  # fmt: skip


@pytest.mark.parametrize("path", [["a.md", "b.md"], None, 5])
def test_16_what_is_no_path_is_told(path):
    """tools.md 16: j.memory.index(path)."""
    with pytest.raises(InvalidRequest, match="one file or directory"):
        MemoryHandle().index(path)
