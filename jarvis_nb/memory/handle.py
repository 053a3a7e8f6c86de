"""``j.memory``: the memory of one ``Jarvis``, opened when it is first used."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError
from jarvis_nb.core.events import EventType
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.memory.base import IndexedFile, MemoryBackend, MemoryHit

if TYPE_CHECKING:
    from jarvis_nb.config import Config
    from jarvis_nb.core.events import EventBus
    from jarvis_nb.memory.ingest import IndexReport, Progress


class Hits(Pictured, list[dict[str, Any]]):
    """Hits, best first, each with content, score, source, metadata and id. It is a list in every other way.

    Example:
        >>> Hits("ship", [{"content": "Orders ship fast.", "score": 1.25, "source": "a.md", "metadata": {}, "id": "x"}])
        Hits('ship': a.md 1.25)
    """

    def __init__(self, query: str, hits: Iterable[dict[str, Any]]) -> None:
        super().__init__(hits)
        self.query = query

    def __repr__(self) -> str:
        found = ", ".join(
            f"{str(hit['source'] or 'no source')!r:.60}"[1:-1] + f" {hit['score']:.3g}" for hit in self[:5]
        )
        more = f", {len(self) - 5:,} more" if len(self) > 5 else ""  # noqa: PLR2004 - as above
        return f"Hits({self.query!r:.100}: {found or 'none'}{more})"


class MemoryHandle(MemoryBackend):
    """A memory that is opened on first use, and tells the bus what happens in it.

    Args:
        memory: A backend (its owner closes it), a key such as ``"sqlite"``, a path of an SQLite file, or None: what
            the config names, else a memory that ends with this process.
        config: ``memory`` and ``memory_path`` are read from it.
        bus: Where events go.

    Raises:
        InvalidRequest: ``memory`` is none of these.

    Example:
        >>> memory = MemoryHandle()
        >>> id = memory.store("Orders ship within two days.", source="shipping.md")
        >>> memory.search("shipping")[0]["source"]
        'shipping.md'
    """

    backend_id: ClassVar[str] = "handle"

    def __init__(
        self,
        memory: Any = None,
        config: Config | None = None,
        *,
        bus: EventBus | None = None,
    ) -> None:
        if memory is not None and not isinstance(memory, MemoryBackend | str | os.PathLike):
            raise InvalidRequest(
                f"memory is {memory!r:.100}, a {type(memory).__name__}",
                value=memory,
                hint='give a MemoryBackend, a key such as "sqlite", or a Path',
            )
        self.bus = bus
        self._given = memory
        self._key = memory if isinstance(memory, str) else config.memory if config is not None else None
        self._path = os.fspath(memory) if isinstance(memory, os.PathLike) else config and config.memory_path
        if isinstance(self._key, str):
            self._class()  # an unknown key fails where it is written
        self._backend = memory if isinstance(memory, MemoryBackend) else None
        self._used = False
        self._closed = False
        self._lock = threading.Lock()

    @property
    def configured(self) -> bool:
        """Whether there is a memory to speak of: one was given, the config names one, or something was put in."""
        return self._given is not None or bool(self._key or self._path) or self._used

    @property
    def backend(self) -> MemoryBackend:
        """The backend itself, opened now if it was not.

        Raises:
            MemoryBackendError: It cannot be opened, or the handle is closed.
        """
        with self._lock:
            if self._closed:
                raise MemoryBackendError("the memory is closed", code="closed", hint="make a new Jarvis")
            if self._backend is None:
                self._backend = self._open()
            return self._backend

    def index(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> IndexReport:
        """Bring what the memory holds of a file or directory up to date; see :func:`jarvis_nb.memory.ingest.index`.

        Args:
            path: A file or directory.
            progress: Called with files done, files in all and the file that is read; None shows a progress line
                in a terminal or notebook if it takes longer than a moment.
        """
        from jarvis_nb.memory.ingest import index
        from jarvis_nb.memory.progress import shown

        backend = self.backend
        with shown(progress) as tell:
            report = index(backend, path, progress=tell, bus=self.bus)
        self._used = True
        return report

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Return the best passages as a list of dictionaries: content, score, source, metadata, id."""
        hits = self.retrieve(query, top_k) if self.configured else []
        return Hits(query, (hit.to_dict() for hit in hits))

    def stats(self) -> dict[str, Any]:
        """Return the number of passages (``count``), of indexed files, and what the memory is."""
        backend = self.backend
        stats: dict[str, Any] = {
            "backend": backend.backend_id or type(backend).__name__,
            "count": backend.count(),
        }
        path = getattr(backend, "db_path", None)
        if path is not None:
            stats["path"] = path
        note = getattr(backend, "note", "")
        if note:
            stats["note"] = note
        try:
            stats["files"] = len(backend.indexed())
        except MemoryBackendError as error:
            if error.code != "not_indexable":
                raise
        return stats

    async def context(
        self, query: str, top_k: int = 5, tokens: int = 1000
    ) -> tuple[str, list[dict[str, Any]]]:
        """Return the block for the system message and the record of what is in it, for one question.

        Args:
            query: The question.
            top_k: The most passages.
            tokens: The most tokens of the block.
        """
        from jarvis_nb.core.bridge import HAS_THREADS
        from jarvis_nb.core.threads import workers
        from jarvis_nb.memory.context import inject

        hits = (
            await workers().run(lambda: self.retrieve(query, top_k))
            if HAS_THREADS
            else self.retrieve(query, top_k)
        )
        injected = inject(hits, budget=tokens)
        return injected.text, [hit.to_dict() for hit in injected.hits]

    # The backend's own methods, with events.

    def store(self, content: str, source: str = "", metadata: Mapping[str, Any] | None = None) -> str:
        """Store one text and return its id."""
        backend = self.backend
        made = backend.store(content, source=source, metadata=metadata)
        self._used = True
        self._publish(backend, EventType.MEMORY_STORE, id=made, source=source, characters=len(content))
        return made

    def retrieve(self, query: str, top_k: int = 5) -> list[MemoryHit]:
        """Return the best passages for a query, best first.

        Raises:
            MemoryBackendError: ``no_memory``: none was configured and nothing was put in.
        """
        if not self.configured:
            raise MemoryBackendError(
                "there is no memory to search",
                code="no_memory",
                hint='fill one first: j.memory.index("docs/")',
            )
        backend = self.backend
        hits = backend.retrieve(query, top_k=top_k)
        found = [{"id": hit.id, "source": hit.source, "score": hit.score} for hit in hits]
        self._publish(backend, EventType.MEMORY_RETRIEVE, query=query, top_k=top_k, hits=found)
        return hits

    def delete(self, id: str) -> bool:  # noqa: A002 - the field's name everywhere
        """Delete one passage; return whether there was one."""
        return self.backend.delete(id)

    def clear(self) -> None:
        """Delete everything."""
        self.backend.clear()

    def count(self) -> int:
        """Return the number of passages."""
        return self.backend.count()

    def indexed(self) -> dict[str, str]:
        """Return the path and fingerprint of every indexed file."""
        return self.backend.indexed()

    def replace(self, files: Iterable[IndexedFile], remove: Iterable[str] = ()) -> None:
        """Put files in place of their earlier versions and remove others."""
        self.backend.replace(files, remove)
        self._used = True

    def close(self) -> None:
        """Close the memory if this handle opened it. Safe to call twice."""
        with self._lock:
            self._closed = True
            if self._backend is not None and self._backend is not self._given:
                self._backend.close()

    def __repr__(self) -> str:
        if self._backend is not None:
            return f"MemoryHandle({self._backend!r})"
        return f"MemoryHandle({self._key or self._path or 'in memory'!r}, not opened yet)"

    def _publish(self, backend: MemoryBackend, event_type: EventType, **data: Any) -> None:
        if self.bus is not None and backend.bus is not self.bus:  # else the backend has told it
            self.bus.publish(event_type, **data)

    def _class(self) -> type[Any]:
        from jarvis_nb.core.registry import MemoryRegistry

        return MemoryRegistry.get(self._key or "sqlite")

    def _open(self) -> MemoryBackend:
        if self._path is not None:
            return self._class()(self._path)
        if self._key == "postgres" or self._key not in (None, "sqlite", "hybrid"):
            return self._class()()
        return self._class()(default_path() if self._key else ":memory:")


def default_path() -> Path:
    """Return the file of a memory that was asked for by key alone: ``JARVIS_NB_DATA``, else the user's data folder."""
    given = os.environ.get("JARVIS_NB_DATA")
    if given:
        return Path(given).expanduser() / "memory.db"
    from platformdirs import user_data_path

    return user_data_path("jarvis_nb", appauthor=False) / "memory.db"
