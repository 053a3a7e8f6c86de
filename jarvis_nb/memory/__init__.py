"""Memory: text that is stored once and found again, for the retrieval tool and for what an ask carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.memory.base import MemoryBackend, MemoryHit
    from jarvis_nb.memory.handle import MemoryHandle
    from jarvis_nb.memory.hybrid import HybridMemory
    from jarvis_nb.memory.postgres import PostgresMemory
    from jarvis_nb.memory.sqlite import SQLiteMemory

__all__ = ["HybridMemory", "MemoryBackend", "MemoryHandle", "MemoryHit", "PostgresMemory", "SQLiteMemory"]

_HOMES = {
    "MemoryBackend": "base",
    "MemoryHit": "base",
    "MemoryHandle": "handle",
    "SQLiteMemory": "sqlite",
    "HybridMemory": "hybrid",
    "PostgresMemory": "postgres",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"jarvis_nb.memory.{_HOMES[name]}"), name)
