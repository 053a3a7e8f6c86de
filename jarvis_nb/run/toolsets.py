"""The tools of one ``Jarvis``: names and functions become tools, wired to its memory, engine and model."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import InvalidRequest, JarvisError, close_names
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.run.options import check_list
from jarvis_nb.tools.base import BaseTool, ToolContext

if TYPE_CHECKING:
    from jarvis_nb.jarvis import Jarvis
    from jarvis_nb.toolsets.toolset import Toolset

KEPT = 16
"""Toolsets kept with their encoded definitions, newest first."""


class ToolsetHandle:
    """Makes toolsets for asks and keeps the recent ones, so that a repeated offer is not made again."""

    def __init__(self, jarvis: Jarvis) -> None:
        self._jarvis = weakref.ref(jarvis)
        self._named: dict[str, tuple[Any, BaseTool]] = {}
        """Registered name to what is registered and the tool made from it."""
        self._functions: weakref.WeakKeyDictionary[Any, BaseTool] = weakref.WeakKeyDictionary()
        self._kept: dict[tuple[int, ...], tuple[Sequence[BaseTool], Toolset]] = {}

    async def get(self, given: Any, context: ToolContext) -> Toolset:
        """Return the toolset of one ask: the call's tools or the Jarvis's own, then its sources' tools.

        Raises:
            InvalidRequest: ``unknown_tools``: with the names there are.
            ToolsetError: ``duplicate_tools``; or a source's SourceError.
        """
        __tracebackhide__ = True
        jarvis = self._jarvis()
        assert jarvis is not None  # noqa: S101 - an ask holds it
        own = self.resolve(jarvis.tools if given is None else given)
        if jarvis.tool_sources:
            from jarvis_nb.toolsets.source import load_sources, source_specs

            # A spec keeps what it checked and opened: made once, here, so that a bad one is the ask's error.
            jarvis.tool_sources = source_specs(jarvis.tool_sources)
            taken = {tool.name: "the agent" for tool in own}
            own = [*own, *await load_sources(jarvis.tool_sources, context, taken=taken)]
        return self._toolset(own)

    def resolve(self, given: Any) -> list[BaseTool]:
        """Return tools for names, tools, functions and flows, in order."""
        from jarvis_nb.toolsets.toolset import Toolset

        if isinstance(given, Toolset):
            return list(given.tools)
        check_list(given)
        __tracebackhide__ = True
        items = list(given)
        self._check_names([item for item in items if isinstance(item, str)])
        return [self._tool(item) for item in items]

    def _check_names(self, names: list[str]) -> None:
        unknown = [n for n in names if n not in ToolRegistry.builtin and not ToolRegistry.contains(n)]
        if unknown:
            valid = ToolRegistry.keys()
            close = {n: close_names(n, valid) for n in unknown}
            hints = [f"{n!r}: did you mean {c[0]!r}?" for n, c in close.items() if c]
            raise InvalidRequest(
                f"no tool is called {', '.join(map(repr, unknown))}",
                code="unknown_tools",
                value=unknown,
                valid=valid,
                hint="; ".join(hints) or None,
            )

    def _tool(self, item: Any) -> BaseTool:
        if isinstance(item, BaseTool):
            return item
        if isinstance(item, str):
            entry = ToolRegistry.get(item)
            held = self._named.get(item)
            if held is None or held[0] is not entry:  # first use, or its cell was run again
                held = self._named[item] = (entry, self._make(item, entry))
            return held[1]
        from jarvis_nb.tools.action import as_tool

        try:
            made = self._functions.get(item)
        except TypeError:  # not hashable or not weakly referable: made anew each time
            return as_tool(item)
        if made is None:
            made = self._functions[item] = as_tool(item)
        return made

    def registered(self) -> tuple[dict[str, BaseTool], list[JarvisError]]:
        """Return every registered tool by its name, and what is wrong with those that cannot be made."""
        tools: dict[str, BaseTool] = {}
        problems: list[JarvisError] = []
        for name in ToolRegistry.keys():  # noqa: SIM118 - not a dict
            try:
                tools[name] = self._tool(name)
            except JarvisError as error:
                problems.append(error)
        return tools, problems

    def _make(self, name: str, entry: Any) -> BaseTool:
        """Return the tool for what is registered: a class, or a function, action or flow as it is."""
        if not isinstance(entry, type):
            return self._tool(entry)
        try:
            return entry(**self._wiring(name))
        except TypeError as error:
            raise InvalidRequest(
                f"the tool {name!r} cannot be made from its name: {error}",
                code="tool_not_made",
                value=name,
                hint=f"give an instance: tools=[{entry.__name__}(…)]",
            ) from error

    def _wiring(self, name: str) -> dict[str, Any]:
        jarvis = self._jarvis()
        assert jarvis is not None  # noqa: S101 - an ask holds it
        if name == "retrieval":
            return {"backend": jarvis.memory}
        if name == "llm":
            return {"engine": jarvis.engines.lazy(), "model": jarvis.model or ""}
        if name == "file_read":
            return {"allowed_dirs": [os.getcwd()]}  # noqa: PTH109 - a string, as the tool takes it
        return {}

    def _toolset(self, tools: list[BaseTool]) -> Toolset:
        from jarvis_nb.toolsets.toolset import Toolset

        key = tuple(map(id, tools))
        kept = self._kept.get(key)
        if kept is None:
            kept = (tools, Toolset(tools))  # the list keeps the ids valid
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = kept
        return kept[1]

    def forget_named(self) -> None:
        """Make named tools anew on their next use, since what they are wired to has changed."""
        self._named.clear()
