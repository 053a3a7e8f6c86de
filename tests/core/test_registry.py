"""Registries: names to classes, open to third parties."""

from __future__ import annotations

import importlib.metadata
from typing import Any, ClassVar

import pytest

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.registry import AgentRegistry, EngineRegistry, MemoryRegistry, Registry, ToolRegistry


class Point:
    def __init__(self, name, value, loaded):
        self.name, self.value, self.loaded = name, value, loaded

    def load(self):
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@pytest.fixture
def registry(monkeypatch):
    """A registry of its own, and a way to pretend that other packages are installed."""
    points: list[Point] = []
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: points if group == "test.things" else []
    )

    class Things(Registry[Any]):
        group = "test.things"
        noun = "thing"
        builtin: ClassVar[dict[str, str]] = {"ordered": "collections:OrderedDict"}

    Things.points = points  # type: ignore[attr-defined]
    return Things


def made(name, module):
    return type(name, (), {"__module__": module})


def test_a_registered_class_is_found_at_run_time(registry):
    """tools.md 2."""

    @registry.register("mine")
    class Mine:
        def __init__(self, size=1):
            self.size = size

    assert registry.get("mine") is Mine
    assert registry.create("mine", size=3).size == 3
    assert registry.contains("mine")
    assert not registry.contains("yours")
    assert registry.keys() == ["mine", "ordered"]


def test_running_a_cell_twice_replaces_the_class(registry):
    """tools.md 2: registering the same class again replaces it."""
    registry.register("mine")(made("First", "__main__"))
    second = registry.register("mine")(made("Second", "__main__"))
    assert registry.get("mine") is second


def test_two_modules_cannot_have_one_name(registry):
    """tools.md 2: two different classes under one name from two modules is an error."""
    registry.register("mine")(made("Mine", "a"))
    with pytest.raises(InvalidRequest) as info:
        registry.register("mine")(made("Mine", "b"))
    assert info.value.code == "name_taken"
    assert "taken by a" in str(info.value)


def test_a_builtin_name_is_taken_before_it_was_ever_used(registry):
    """tools.md 2."""
    with pytest.raises(InvalidRequest, match="taken by collections"):
        registry.register("ordered")(made("Mine", "__main__"))


def test_an_unknown_name_lists_what_exists(registry):
    """tools.md 20."""
    with pytest.raises(InvalidRequest) as info:
        registry.get("order")
    assert info.value.code == "unknown_thing"
    assert info.value.valid == ("ordered",)
    assert "did you mean 'ordered'?" in str(info.value)


def test_third_parties_come_in_by_entry_point_and_are_imported_when_asked_for(registry):
    """tools.md 2: third parties register through the entry-point group."""
    theirs = made("Theirs", "their_package")
    registry.points += [Point("theirs", "their_package:Theirs", theirs)]
    registry.points += [Point("broken", "broken_package:X", ImportError("no libfoo"))]
    assert registry.keys() == ["broken", "ordered", "theirs"]
    assert registry.get("theirs") is theirs
    with pytest.raises(InvalidRequest, match="no libfoo") as info:
        registry.get("broken")
    assert info.value.code == "broken_entry_point"


def test_a_builtin_wins_over_an_entry_point(registry):
    from collections import OrderedDict

    registry.points += [Point("ordered", "evil:X", made("Evil", "evil"))]
    assert registry.get("ordered") is OrderedDict


def test_registries_do_not_share_names(registry):
    registry.register("mine")(made("Mine", "__main__"))
    assert not ToolRegistry.contains("mine")


@pytest.mark.parametrize("one", [ToolRegistry, EngineRegistry, MemoryRegistry, AgentRegistry])
def test_the_four_groups(one):
    """tools.md 2: jarvis_nb.tools, likewise .engines, .memory, .agents."""
    assert one.group == f"jarvis_nb.{one.group.rpartition('.')[2]}"
    assert one.keys() == sorted(one.keys())


def test_the_five_tools_are_there_by_name():
    """tools.md 2, 9-13."""
    assert {"calculator", "think", "retrieval", "llm", "file_read"} <= set(ToolRegistry.keys())
