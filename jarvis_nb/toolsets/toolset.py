"""The toolset: an ordered value of distinct tools, checked where it is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

from jarvis_nb.core.errors import InvalidRequest, JarvisError, ToolsetError, close_names
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Definitions, ToolDefinition
from jarvis_nb.tools.base import BaseTool, ToolLike, check_name

T = TypeVar("T")

SOURCE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
"""A name that a source may give (matched whole): an author's name, and ``-``."""

MAX_REMEMBERED = 64
"""Offers a toolset remembers; then it starts afresh."""


class Toolset(Pictured):
    """Distinct tools in order: a value that works without an agent, a model or a process.

    Args:
        tools: Tools, actions, flows or plain functions, in the order the model is to see them. Empty is valid.

    Raises:
        ToolsetError: ``duplicate_tools``: an object or a name (also in another case) stands in it twice;
            ``invalid_name``; ``blank_description``; ``invalid_schema``; ``not_a_tool``.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> from jarvis_nb.tools.think import ThinkTool
        >>> tools = Toolset([CalculatorTool(), ThinkTool()])
        >>> tools
        Toolset('calculator', 'think')
        >>> "think" in tools, len(tools), tools["calculator"]
        (True, 2, CalculatorTool('calculator'))
    """

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._tools = tuple(_as_tool(tool) for tool in _iterable(tools))
        _check_distinct(self._tools)
        for tool in self._tools:
            _check_tool(tool)
        self._by_name = {tool.name: tool for tool in self._tools}
        self._names = tuple(self._by_name)
        self._remembered: dict[Hashable, Any] = {}

    @property
    def tools(self) -> tuple[BaseTool, ...]:
        """The tools, in order."""
        return self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return self._names

    def validate(self) -> None:
        """Check everything again, and that each tool's parameters are valid JSON Schema.

        Raises:
            ToolsetError: As when it is built.
        """
        _check_distinct(self._tools)
        for tool in self._tools:
            _check_tool(tool)
            _check_schema(tool)

    def definitions(self) -> Definitions:
        """Return what a model is told of each tool, in order: plain data that shares nothing with the tools.

        Raises:
            ToolsetError: The toolset is not valid; no part of the definitions is returned then.

        Example:
            >>> from jarvis_nb.tools.think import ThinkTool
            >>> [definition.name for definition in Toolset([ThinkTool()]).definitions()]
            ['think']
        """
        self.validate()
        return Definitions([_copy_of(tool.definition) for tool in self._tools])

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` returned for this key, made once while the toolset remembers it."""
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered = {}
            found = self._remembered[key] = make()
        return cast("T", found)

    def __getitem__(self, name: str) -> BaseTool:
        tool = self._by_name.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] - a user's key
        if tool is None:
            close = close_names(str(name), self._by_name)
            raise InvalidRequest(
                f"no tool is called {name!r:.100}",
                code="unknown_tools",
                value=name,
                valid=self.names,
                hint=f"did you mean {close[0]!r}?" if close else None,
            )
        return tool

    def __contains__(self, item: object) -> bool:
        return item in self._tools if isinstance(item, BaseTool) else item in self._names

    def __iter__(self) -> Iterator[BaseTool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __add__(self, other: Iterable[ToolLike]) -> Toolset:
        return Toolset([*self._tools, *_iterable(other)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Toolset) and self._tools == other._tools

    def __hash__(self) -> int:
        return hash(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({', '.join(map(repr, self._by_name))})"


def _copy_of(definition: ToolDefinition) -> ToolDefinition:
    """Return an equal definition with parameters of its own."""
    return ToolDefinition(definition.name, definition.description, _copied(definition.parameters))


def _copied(value: Any) -> Any:
    """Copy plain data: definitions hold nothing else, and ``deepcopy`` takes ten times as long."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _iterable(tools: Any) -> Iterable[Any]:
    if isinstance(tools, str | bytes | Mapping | BaseTool) or not isinstance(tools, Iterable):
        raise _not_a_tool(tools, "a toolset is made of a list of tools")
    return tools


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
    if isinstance(given, type):
        what = f"the class {given.__name__}"
    else:
        what = f"{given!r:.100}" if isinstance(given, str | BaseTool) else f"a {type(given).__name__}"
    kind = "a list of tools" if isinstance(given, BaseTool) else "a tool"
    return ToolsetError(f"{what} is not {kind}", code="not_a_tool", value=given, hint=hint)


def _check_distinct(tools: Iterable[BaseTool]) -> None:
    """Raise for an object or a name that stands twice. Names are compared without case."""
    seen: dict[str, tuple[int, BaseTool]] = {}
    for place, tool in enumerate(tools, 1):
        at, first = seen.setdefault(tool.name.casefold(), (place, tool))
        if at == place:
            continue
        if first is tool:
            message = f"the tool {tool.name!r} stands in the toolset twice, at {at} and at {place}"
        elif first.name == tool.name:
            message = (
                f"two tools are called {tool.name!r}: {_owner(first)} at {at} and {_owner(tool)} at {place}"
            )
        else:
            message = f"the tools {first.name!r} at {at} and {tool.name!r} at {place} differ in case only"
        raise ToolsetError(
            message,
            code="duplicate_tools",
            value=tool.name,
            hint="leave one out, or rename it: tool.with_name('…')",
        )


def _owner(tool: BaseTool) -> str:
    return f"{tool!r} of {tool.source}" if tool.source else repr(tool)


def _check_tool(tool: BaseTool) -> None:
    """Raise unless the tool has a name, a description and parameters that a definition can be made of."""
    if tool.source is None:
        check_name(tool.name)
    elif not SOURCE_NAME.fullmatch(tool.name):
        raise ToolsetError(
            f"{tool.name!r:.100} of {tool.source:.100} is not a tool name",
            code="invalid_name",
            value=tool.name,
            hint="a name is a lower-case letter, then letters, digits, _ or -, at most 63",
        )
    try:
        description: Any = tool.definition.description
    except JarvisError as error:
        raise ToolsetError(
            f"the tool {tool.name!r}: {error.message}", code=error.code, value=tool.name, hint=error.hint
        ) from error
    if not isinstance(description, str) or not description.strip():
        raise ToolsetError(
            f"the tool {tool.name!r} has no description",
            code="blank_description",
            value=tool.name,
            hint="the model chooses by it: say what the tool does",
        )
    if tool.kind == "tool":  # the others' schemas are generated, or checked where they were listed
        _check_schema(tool)


def _check_schema(tool: BaseTool) -> None:
    from jarvis_nb.core.schema import schema_problem

    problem = schema_problem(tool.definition.parameters)
    if problem:
        raise ToolsetError(f"the tool {tool.name!r}: {problem}", code="invalid_schema", value=tool.name)
