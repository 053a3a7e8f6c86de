"""What the backends of this package share: odd input made storable, ids, clamping, events."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.events import EventType
from jarvis_nb.core.portable import portable
from jarvis_nb.memory.base import MAX_TOP_K, Chunk, IndexedFile, MemoryBackend, MemoryHit

MAX_QUERY = 10_000
"""Characters of a query that are looked at."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class TextMemory(MemoryBackend):
    """A memory that keeps text, source and metadata in rows. Subclasses say how."""

    def store(self, content: str, source: str = "", metadata: Mapping[str, Any] | None = None) -> str:
        """Store one text and return its id. A text that is stored twice is there twice, under two ids.

        NUL and lone surrogates, which no database takes, are stored as U+FFFD.

        Raises:
            InvalidRequest: The content or source is no text, or the metadata no mapping.
            NotPortable: The metadata is not plain data.
            MemoryBackendError: The store cannot be written.
        """
        chunk = Chunk(
            _text(content, "content"), _text(source, "source"), {} if metadata is None else metadata
        )
        ids = self._add([storable(chunk)])
        if self.bus is not None:
            self.bus.publish(EventType.MEMORY_STORE, id=ids[0], source=source, characters=len(content))
        return ids[0]

    def store_many(self, chunks: Iterable[Chunk]) -> list[str]:
        """Store several texts at once, all or none, and return their ids."""
        ids = self._add([storable(chunk) for chunk in chunks])
        if self.bus is not None:
            self.bus.publish(EventType.MEMORY_STORE, count=len(ids))
        return ids

    def retrieve(self, query: str, top_k: int = 5) -> list[MemoryHit]:
        """Return the best passages for a query, best first; a query without words finds nothing.

        Raises:
            InvalidRequest: The query is no text or ``top_k`` no whole number.
            MemoryBackendError: The store cannot be read.
        """
        text = _UNSTORABLE.sub(" ", _text(query, "query")[:MAX_QUERY])
        if not isinstance(top_k, int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
            raise InvalidRequest(f"top_k is {top_k!r:.100}", value=top_k, hint="top_k is a whole number")
        hits = self._find(text, min(top_k, MAX_TOP_K)) if top_k >= 1 else []
        if self.bus is not None:
            found = [{"id": hit.id, "source": hit.source, "score": hit.score} for hit in hits]
            self.bus.publish(EventType.MEMORY_RETRIEVE, query=text, top_k=top_k, hits=found)
        return hits

    def replace(self, files: Iterable[IndexedFile], remove: Iterable[str] = ()) -> None:
        """Put files in place of their earlier versions and remove others: all of it or, if it fails, nothing."""
        ready = [changed(file, chunks=[storable(chunk) for chunk in file.chunks]) for file in files]
        self._replace(ready, sorted({*remove, *(file.path for file in ready)}))

    @abstractmethod
    def _add(self, chunks: Sequence[Chunk]) -> list[str]:
        """Store storable chunks in one transaction; return their ids."""

    @abstractmethod
    def _find(self, query: str, top_k: int) -> list[MemoryHit]:
        """Search; ``top_k`` is between 1 and MAX_TOP_K."""

    @abstractmethod
    def _replace(self, files: Sequence[IndexedFile], remove: Sequence[str]) -> None:
        """Remove the files of ``remove`` with their chunks, then add ``files``, in one transaction."""


def storable(chunk: Chunk) -> Chunk:
    """Return the chunk with nothing in it that a database refuses.

    Raises:
        NotPortable: The metadata is not plain data.
        InvalidRequest: The metadata is no mapping.
    """
    if not isinstance(chunk.metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - as above
        raise InvalidRequest(f"metadata is {chunk.metadata!r:.100}", value=chunk.metadata, hint="give a dict")
    if not chunk.metadata and not _UNSTORABLE.search(chunk.content) and not _UNSTORABLE.search(chunk.source):
        return chunk
    metadata: dict[str, Any] = portable(dict(chunk.metadata), "metadata")
    return Chunk(_UNSTORABLE.sub("\ufffd", chunk.content), _UNSTORABLE.sub("\ufffd", chunk.source), metadata)


def findable(content: str, metadata: Mapping[str, Any]) -> str:
    r"""Return what a passage is found by: its text, under the headings that stand further up in its file.

    Example:
        >>> findable("Run pip.", {"heading": "Guide > Install"})
        'Guide\nInstall\nRun pip.'
    """
    heading = metadata.get("heading")
    above = (
        [title for title in heading.split(" > ") if title not in content] if isinstance(heading, str) else []
    )
    return "\n".join([*above, content])


def content_hash(chunk: Chunk) -> str:
    """Return 12 hex digits that depend on source and content alone: the first part of a chunk's id."""
    return hashlib.blake2b(f"{chunk.source}\0{chunk.content}".encode(), digest_size=6).hexdigest()


def make_id(digest: str, copy: int) -> str:
    """Return the id of the ``copy``-th chunk with this hash.

    Example:
        >>> make_id("0f1e2d3c4b5a", 1), make_id("0f1e2d3c4b5a", 2)
        ('0f1e2d3c4b5a', '0f1e2d3c4b5a-2')
    """
    return digest if copy == 1 else f"{digest}-{copy}"


def split_id(id: object) -> tuple[str, int] | None:  # noqa: A002 - the field's name everywhere
    """Return hash and copy of an id, or None for what is no id."""
    match = re.fullmatch(r"([0-9a-f]{12})(?:-([1-9][0-9]{0,17}))?", id) if isinstance(id, str) else None
    return None if match is None else (match[1], int(match[2] or 1))


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    raise InvalidRequest(
        f"{what} is {value!r:.100}, a {type(value).__name__}", value=value, hint=f"{what} is text"
    )
