"""What every memory is: text in, the best passages for a query out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.core.pictured import Pictured

if TYPE_CHECKING:
    from jarvis_nb.core.events import EventBus

MAX_TOP_K = 1000
"""A larger ``top_k`` is taken as this."""


@dataclass(frozen=True, slots=True)
class MemoryHit(Pictured):
    """One passage that a search found."""

    id: str
    content: str
    score: float
    """Higher is better; comparable within one search only."""
    source: str
    """Where the text comes from, such as a file's path; empty if nobody said."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """For an indexed file: ``heading`` and ``lines``, ``cells`` or ``pages``, as far as they are known."""

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as plain data."""
        return {
            "id": self.id,
            "content": self.content,
            "score": self.score,
            "source": self.source,
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage to store."""

    content: str
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file that is to stand in a memory, in place of whatever an earlier version of it left there."""

    path: str
    """Absolute, with ``/``: the key under which it is replaced."""
    fingerprint: str
    """Changes when the file's chunks would."""
    chunks: list[Chunk]


class MemoryBackend(Pictured, ABC):
    """The base of every memory.

    A query is data: nothing in it is syntax. ``top_k`` below 1 gives no hits, and a large one is clamped.
    The same stored texts give the same ids, scores and order.
    """

    backend_id: ClassVar[str] = ""
    """The registry key, such as ``sqlite``."""
    bus: EventBus | None = None
    """Where memory events go, if anywhere."""

    @abstractmethod
    def store(self, content: str, source: str = "", metadata: Mapping[str, Any] | None = None) -> str:
        """Store one text and return its id. A text that is stored twice is there twice."""

    @abstractmethod
    def retrieve(self, query: str, top_k: int = 5) -> list[MemoryHit]:
        """Return the best passages for a query, best first."""

    @abstractmethod
    def delete(self, id: str) -> bool:  # noqa: A002 - the field's name everywhere
        """Delete one passage; return whether there was one."""

    @abstractmethod
    def clear(self) -> None:
        """Delete everything."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of passages."""

    @abstractmethod
    def close(self) -> None:
        """Free what the memory holds. Safe to call twice."""

    # What indexing files needs beyond that. A backend without it can store and search all the same.

    def indexed(self) -> dict[str, str]:
        """Return the path and fingerprint of every indexed file.

        Raises:
            MemoryBackendError: ``not_indexable``: the backend does not keep track of files.
        """
        raise self._not_indexable()

    def replace(self, files: Iterable[IndexedFile], remove: Iterable[str] = ()) -> None:  # noqa: ARG002 - for subclasses
        """Put files in place of their earlier versions and remove others: all of it or, if it fails, nothing.

        Raises:
            MemoryBackendError: ``not_indexable``: the backend does not keep track of files.
        """
        raise self._not_indexable()

    def _not_indexable(self) -> MemoryBackendError:
        return MemoryBackendError(
            f"{type(self).__name__} cannot index files",
            code="not_indexable",
            hint="use SQLiteMemory, or implement indexed() and replace()",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
