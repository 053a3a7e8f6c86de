"""Indexing: files become passages; what is unchanged is skipped, what is gone is removed, all at once or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import InvalidRequest, JarvisError
from jarvis_nb.core.events import EventType
from jarvis_nb.core.files import FileRefused, read_regular
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.memory.base import IndexedFile, MemoryBackend
from jarvis_nb.memory.chunking import chunk
from jarvis_nb.memory.documents import Unreadable, read_document
from jarvis_nb.memory.walk import UNREADABLE, walk

if TYPE_CHECKING:
    from jarvis_nb.core.events import EventBus

MAX_FILE_BYTES = 20_000_000
FORMAT = 1
"""Raised when chunking changes, so that every file is indexed anew."""

Progress = Callable[[int, int, str], object]
"""Called with the files done, the files in all, and the one that is read."""


@dataclass(slots=True)
class IndexReport(Pictured):
    """What an indexing did, each file by its source name.

    Example:
        >>> IndexReport(added=["docs/a.md"], chunks=3)
        IndexReport(1 added, 0 updated, 0 unchanged, 0 removed, 0 skipped; 3 passages written)
    """

    added: list[str] = field(default_factory=list[str])
    updated: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Source to reason; a folder stands for all that is in it."""
    chunks: int = 0
    """Passages written."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "added": self.added,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "skipped": self.skipped,
            "chunks": self.chunks,
        }

    def __repr__(self) -> str:
        names = ("added", "updated", "unchanged", "removed", "skipped")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in names)
        return f"IndexReport({counts}; {self.chunks} passages written)"


def index(
    backend: MemoryBackend,
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    bus: EventBus | None = None,
) -> IndexReport:
    """Bring what a memory holds of a file or directory up to date.

    Hidden, vendored, generated, binary and secret-looking files and links are skipped, with a reason in the report.
    Everything is written in one transaction at the end: an interrupt before leaves the memory as it was.

    Raises:
        InvalidRequest: ``no_such_path``; ``not_indexable``: the one file that was named cannot be indexed.
        MemoryBackendError: The memory cannot be written, or does not keep track of files.
    """
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's word
        raise InvalidRequest(
            f"the path to index is {path!r:.100}",
            value=path,
            hint="give one file or directory; call again for another",
        )
    shown = os.fspath(path)
    root = Path(os.path.realpath(path))
    known = backend.indexed()
    before = [Path(name) for name in known if Path(name).is_relative_to(root)]
    if not root.exists() and not before:
        raise InvalidRequest(f"{shown!r} does not exist", code="no_such_path", value=shown)
    run = _Run(known, source=_namer())
    found = walk(root)
    for skipped, reason in found.skipped.items():
        run.report.skipped[run.source(skipped)] = reason
    for number, file in enumerate(found.files):
        _tell(progress, bus, number, len(found.files), run.source(file))
        run.read(file)
    report = run.report
    if root.is_file() and report.skipped:
        reason = next(iter(report.skipped.values()))
        raise InvalidRequest(f"{shown!r} cannot be indexed: {reason}", code="not_indexable", value=shown)
    run.write(backend, before)
    _tell(progress, bus, len(found.files), len(found.files), "", report=report.to_dict())
    return report


@dataclass(slots=True)
class _Run:
    """One indexing: what is known, what is fresh, what is to be told."""

    known: dict[str, str]
    source: Callable[[Path], str]
    report: IndexReport = field(default_factory=IndexReport)
    fresh: list[IndexedFile] = field(default_factory=list[IndexedFile])
    seen: set[str] = field(default_factory=set[str])

    def read(self, path: Path) -> None:
        """Read one file and chunk it, unless it is what is known already."""
        key, source, report = path.as_posix(), self.source(path), self.report
        try:
            data = read_regular(str(path), source, MAX_FILE_BYTES)
            # The content decides, not the clock: two edits may share a time stamp, a checkout changes all of them.
            name = f"{FORMAT}\0{source}\0".encode(errors="surrogateescape")
            fingerprint = hashlib.blake2b(name + data, digest_size=16).hexdigest()
            known = self.known.get(key)
            if fingerprint == known:
                report.unchanged.append(source)
            else:
                chunks = chunk(read_document(data, source), source)
                (report.added if known is None else report.updated).append(source)
                self.fresh.append(IndexedFile(key, fingerprint, chunks))
                report.chunks += len(chunks)
            self.seen.add(key)
        except (FileRefused, Unreadable) as error:
            report.skipped[source] = _reason(error)

    def write(self, backend: MemoryBackend, before: list[Path]) -> None:
        """Replace what changed and remove what is gone; what could not be looked at this time stays."""
        unreadable = [name for name, reason in self.report.skipped.items() if reason.startswith(UNREADABLE)]
        gone: list[str] = []
        for path in sorted(before):
            source = self.source(path)
            hidden = any(source == name or source.startswith(f"{name}/") for name in unreadable)
            if path.as_posix() not in self.seen and not hidden:
                gone.append(path.as_posix())
                self.report.removed.append(source)
        if self.fresh or gone:
            backend.replace(self.fresh, gone)


def _reason(error: JarvisError) -> str:
    text = f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{UNREADABLE}: {text}" if error.code == "unreadable" else text


def _namer() -> Callable[[Path], str]:
    """Return what turns a path into a source: seen from the working directory, so that it is the same everywhere."""
    here = Path.cwd().resolve()
    return lambda path: (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _tell(
    progress: Progress | None, bus: EventBus | None, done: int, total: int, source: str, *, report: Any = None
) -> None:
    if progress is not None:
        progress(done, total, source)
    if bus is not None:
        extra = {} if report is None else {"report": report}
        bus.publish(EventType.MEMORY_INDEX, done=done, total=total, source=source, **extra)
