"""What every test gets: the registries as they were, so that no test sees another's tools."""

from __future__ import annotations

import pytest

from jarvis_nb.core.registry import AgentRegistry, EngineRegistry, MemoryRegistry, ToolRegistry


@pytest.fixture(autouse=True)
def registries_as_they_were(monkeypatch):
    for registry in (AgentRegistry, EngineRegistry, MemoryRegistry, ToolRegistry):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
