"""The backends that the contract tests run on."""

from __future__ import annotations

import pytest

from jarvis_nb.memory.sqlite import SQLiteMemory


@pytest.fixture(params=["sqlite", "sqlite-file"])
def make_memory(request, tmp_path):
    """Return a function that opens the same store again and again; what it made is closed at the end."""
    opened = []

    def make(name="memory"):
        memory = SQLiteMemory() if request.param == "sqlite" else SQLiteMemory(tmp_path / f"{name}.db")
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(make_memory):
    """One empty memory."""
    return make_memory()
