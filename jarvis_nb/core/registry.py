"""Registries: names to classes, looked up when they are used, open to third parties by entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from jarvis_nb.core.errors import InvalidRequest, close_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    """A registry of classes by name. Each subclass is one registry of its own.

    Names come from three places: :meth:`register`, this package's own table, and the entry points of other
    packages (listed when a name is not found, or for a listing). The last two are imported on first use.
    """

    group: ClassVar[str]
    """The entry-point group, such as ``jarvis_nb.tools``."""
    noun: ClassVar[str]
    """What an entry is called in errors, such as ``tool``."""
    builtin: ClassVar[dict[str, str]]
    """Name to ``module:attribute`` for what ships in this package."""
    _entries: ClassVar[dict[str, Any]]
    _points: ClassVar[dict[str, EntryPoint] | None]

    def __init_subclass__(cls) -> None:
        cls._entries = {}
        cls._points = None

    @classmethod
    def register(cls, name: str) -> Callable[[C], C]:
        """Return a decorator that registers a class under ``name``.

        A class of the same module (its cell was run again, perhaps edited) replaces the first.

        Raises:
            InvalidRequest: ``name_taken``: another class of another module has the name.
        """

        def decorate(entry: C) -> C:
            held = cls._entries.get(name)
            owner = held.__module__ if held is not None else cls.builtin.get(name, "").partition(":")[0]
            if owner and owner != entry.__module__:
                raise InvalidRequest(
                    f"the {cls.noun} name {name!r} is taken by {owner}",
                    code="name_taken",
                    value=name,
                    hint="register it under another name",
                )
            cls._entries[name] = entry
            return entry

        return decorate

    @classmethod
    def get(cls, name: str) -> type[T]:
        """Return the class registered under ``name``.

        Raises:
            InvalidRequest: ``unknown_<noun>``, with the names there are; ``broken_entry_point``, where another
                package offers the name and cannot be imported.
        """
        if name in cls._entries:
            return cls._entries[name]
        if name in cls.builtin:
            module, _, attribute = cls.builtin[name].partition(":")
            return cls._entries.setdefault(name, getattr(importlib.import_module(module), attribute))
        point = cls._entry_points().get(name)
        if point is not None:
            return cls._entries.setdefault(name, cls._load(point))
        close = close_names(name, cls.keys())
        raise InvalidRequest(
            f"no {cls.noun} is called {name!r}",
            code=f"unknown_{cls.noun}",
            value=name,
            valid=cls.keys(),
            hint=f"did you mean {close[0]!r}?" if close else None,
        )

    @classmethod
    def create(cls, name: str, *args: Any, **kwargs: Any) -> T:
        """Look a class up and call it."""
        return cls.get(name)(*args, **kwargs)

    @classmethod
    def contains(cls, name: str) -> bool:
        """Whether ``name`` is registered, built in, or offered by an entry point."""
        return name in cls.keys()  # noqa: SIM118 - keys() also reads the entry points

    @classmethod
    def keys(cls) -> list[str]:
        """Return all names, sorted."""
        return sorted({*cls.builtin, *cls._entries, *cls._entry_points()})

    @classmethod
    def _entry_points(cls) -> dict[str, EntryPoint]:
        if cls._points is None:
            from importlib.metadata import entry_points

            cls._points = {point.name: point for point in entry_points(group=cls.group)}
        return cls._points

    @classmethod
    def _load(cls, point: EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:
            raise InvalidRequest(
                f"the {cls.noun} {point.name!r} of another package cannot be imported from {point.value}: "
                f"{type(error).__name__}: {error}",
                code="broken_entry_point",
                value=point.name,
                hint="update or uninstall that package",
            ) from error


class ToolRegistry(Registry[Any]):
    """Tools by name.

    Example:
        >>> ToolRegistry.get("calculator")().execute(expression="2+2").content
        '4'
    """

    group = "jarvis_nb.tools"
    noun = "tool"
    builtin: ClassVar[dict[str, str]] = {
        "calculator": "jarvis_nb.tools.calculator:CalculatorTool",
        "think": "jarvis_nb.tools.think:ThinkTool",
        "retrieval": "jarvis_nb.tools.retrieval:RetrievalTool",
        "llm": "jarvis_nb.tools.llm_tool:LLMTool",
        "file_read": "jarvis_nb.tools.file_read:FileReadTool",
    }


class EngineRegistry(Registry[Any]):
    """Engines by key. A preset of the OpenAI engine is a key too (see ``engines.presets``)."""

    group = "jarvis_nb.engines"
    noun = "engine"
    builtin: ClassVar[dict[str, str]] = {"local": "jarvis_nb.engines.local:LocalEngine"}


class MemoryRegistry(Registry[Any]):
    """Memory backends by key."""

    group = "jarvis_nb.memory"
    noun = "memory"
    builtin: ClassVar[dict[str, str]] = {
        "sqlite": "jarvis_nb.memory.sqlite:SQLiteMemory",
        "hybrid": "jarvis_nb.memory.hybrid:HybridMemory",
        "postgres": "jarvis_nb.memory.postgres:PostgresMemory",
    }


class AgentRegistry(Registry[Any]):
    """Agents by name."""

    group = "jarvis_nb.agents"
    noun = "agent"
    builtin: ClassVar[dict[str, str]] = {
        "simple": "jarvis_nb.agents.simple:SimpleAgent",
        "orchestrator": "jarvis_nb.agents.orchestrator:OrchestratorAgent",
    }
