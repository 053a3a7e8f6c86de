"""The toolset: an ordered value of distinct tools, checked where it is built."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

from jarvis_nb.core.errors import InvalidRequest, ToolsetError, close_names
from jarvis_nb.core.types import Definitions, ToolDefinition
from jarvis_nb.tools.base import BaseTool, ToolLike, check_name

SOURCE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
"""A name a source may give (matched whole): an author's name, or one with ``-``."""


class Toolset:
    """Distinct tools in order; a value of its own that needs no agent, model or process.

    Args:
        tools: Tools, actions, flows or plain functions, in the order the model is to see them.

    Raises:
        ToolsetError: ``duplicate_tools``: an object or a name (also in another case) stands in it twice;
            ``invalid_name``; ``blank_description``; ``invalid_schema``; ``not_a_tool``.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> from jarvis_nb.tools.think import ThinkTool
        >>> Toolset([CalculatorTool(), ThinkTool()])
        Toolset('calculator', 'think')
    """

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        if isinstance(tools, str | bytes | BaseTool) or not isinstance(tools, Iterable):
            raise _not_a_tool(tools, "a toolset is made of a list of tools")
        given = [_as_tool(tool) for tool in tools]
        _check_distinct(given)
        for tool in given:
            _check_tool(tool)
        self._tools = tuple(given)
        self._by_name = {tool.name: tool for tool in given}
        self._definitions = Definitions([tool.definition for tool in given])
        self.offers: OrderedDict[Any, Any] = OrderedDict()
        """Offers resolved from this toolset, kept by :mod:`jarvis_nb.toolsets.policy`."""

    @property
    def tools(self) -> tuple[BaseTool, ...]:
        """The tools, in order."""
        return self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._by_name)

    def validate(self) -> None:
        """Check everything again, each parameter schema against JSON Schema's own rules too.

        Raises:
            ToolsetError: As when it is built; ``invalid_schema`` names the tool.
        """
        from jarvis_nb.core.schema import check_schema

        _check_distinct(self._tools)
        for tool in self._tools:
            _check_tool(tool)
            check_schema(tool.definition.parameters, f"tool {tool.name!r}")

    def definitions(self) -> Definitions:
        """Return what a model is told of each tool: plain data that shares nothing with the toolset."""
        return Definitions(
            [ToolDefinition(d.name, d.description, deepcopy(d.parameters)) for d in self._definitions]
        )

    def __getitem__(self, name: str) -> BaseTool:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            close = close_names(name, self._by_name) if isinstance(name, str) else []
            raise InvalidRequest(
                f"no tool is called {name!r:.100}",
                code="unknown_tools",
                value=name,
                valid=self.names,
                hint=f"did you mean {close[0]!r}?" if close else None,
            ) from None

    def __contains__(self, item: object) -> bool:
        return item in self._tools if isinstance(item, BaseTool) else item in self.names

    def __iter__(self) -> Iterator[BaseTool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __add__(self, other: Toolset | Iterable[ToolLike]) -> Toolset:
        return Toolset([*self._tools, *other])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(map(repr, self._by_name))})"


def _as_tool(given: Any) -> BaseTool:
    if isinstance(given, BaseTool):
        return given
    if isinstance(given, str):
        raise _not_a_tool(given, "names become tools in Jarvis(tools=[…]); here the tool itself is needed")
    if isinstance(given, type) and issubclass(given, BaseTool):
        raise _not_a_tool(given, f"give an instance: {given.__name__}()")
    from jarvis_nb.tools.action import as_tool

    return as_tool(given)


def _not_a_tool(given: Any, hint: str) -> ToolsetError:
    what = (
        given.__name__
        if isinstance(given, type)
        else repr(given)
        if isinstance(given, str)
        else type(given).__name__
    )
    return ToolsetError(f"{what:.100} is not a tool", code="not_a_tool", value=given, hint=hint)


def _check_distinct(tools: Iterable[BaseTool]) -> None:
    """Raise for an object or a name that stands twice. Names are compared without case."""
    seen: dict[str, tuple[int, BaseTool]] = {}
    for place, tool in enumerate(tools, 1):
        key = tool.name.casefold()
        if key not in seen:
            seen[key] = (place, tool)
            continue
        at, first = seen[key]
        if first is tool:
            message = f"the tool {tool.name!r} stands twice in the toolset, at {at} and at {place}"
        elif first.name == tool.name:
            message = f"two tools are called {tool.name!r}: {first!r} at {at} and {tool!r} at {place}"
        else:
            message = f"{first.name!r} at {at} and {tool.name!r} at {place} differ in case only"
        raise ToolsetError(
            message,
            code="duplicate_tools",
            value=tool.name,
            hint="leave one out, or rename it: tool.with_name('…')",
        )


def _check_tool(tool: BaseTool) -> None:
    if tool.source is None:
        check_name(tool.name)
    elif not SOURCE_NAME.fullmatch(tool.name):
        raise ToolsetError(
            f"{tool.name!r:.100} of source {tool.source!r:.100} is not a tool name",
            code="invalid_name",
            value=tool.name,
            hint="a lower-case letter, then letters, digits, _ or -, at most 63",
        )
    description = tool.definition.description
    if not isinstance(description, str) or not description.strip():
        raise ToolsetError(
            f"the tool {tool.name!r} has no description",
            code="blank_description",
            value=tool.name,
            hint="the model chooses by it: say what the tool does",
        )
