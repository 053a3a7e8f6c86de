"""The backends that the contract tests run on."""

from __future__ import annotations

import re
import zlib

import pytest

from jarvis_nb.memory.sqlite import SQLiteMemory


def toy_embed(texts):
    """Embed by hashed words, long ones only, without their endings: texts with no common word are at right angles."""
    import numpy as np

    vectors = np.zeros((len(texts), 4096), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w{4,}", text.casefold())[:20_000]:
            vectors[row, zlib.crc32(word[:5].encode("utf-8", "replace")) % 4096] += 1
    return vectors


@pytest.fixture(params=["sqlite", "sqlite-file", "hybrid", "hybrid-file", "hybrid-words-only"])
def make_memory(request, tmp_path, monkeypatch):
    """Return a function that opens the same store again and again; what it made is closed at the end."""
    from jarvis_nb.memory.hybrid import HybridMemory

    opened = []
    if request.param == "hybrid-words-only":
        monkeypatch.setattr("jarvis_nb.memory.hybrid.default_embed", lambda: None)

    def make(name="memory"):
        path = tmp_path / f"{name}.db" if request.param.endswith("file") else ":memory:"
        if request.param.startswith("sqlite"):
            memory = SQLiteMemory(path)
        else:
            memory = HybridMemory(path, embed=None if request.param.endswith("only") else toy_embed)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(make_memory):
    """One empty memory."""
    return make_memory()
