"""What every test gets: the registries as they were, so that no test sees another's tools."""

from __future__ import annotations

import pytest

from jarvis_nb.core.registry import AgentRegistry, EngineRegistry, MemoryRegistry, ToolRegistry


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test that a busy machine made miss a deadline two more tries; the summary counts them."""
    for item in items:
        if isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))


@pytest.fixture(autouse=True)
def registries_as_they_were(monkeypatch):
    for registry in (AgentRegistry, EngineRegistry, MemoryRegistry, ToolRegistry):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
