"""Reading a call as it comes: which tool it means, and with which arguments; or why that cannot be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn, cast

from jarvis_nb.core.errors import ErrorInfo, close_names
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.tools.content import json_value

MOST_NAMES = 50
"""Names that are listed where a name was wrong."""


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", _decoder).scan_once
"""What `decode` is made of, without its care for blanks around the value."""


def read_arguments(raw: Any) -> dict[str, Any] | ErrorInfo:
    """Return the arguments as an object, or why they are none.

    Nothing, blanks and null are ``{}``; an object is taken as it is.

    Example:
        >>> read_arguments('{"city":"Paris"}')
        {'city': 'Paris'}
        >>> read_arguments('["Paris"]').message
        'the arguments are a list: expected an object'
    """
    if type(raw) is str:
        try:
            value, end = _scan(raw, 0)
            if end == len(raw) and type(value) is dict:
                return value
        except (StopIteration, ValueError, RecursionError):
            pass  # told below
    return _read_slowly(raw)


def _read_slowly(raw: Any) -> dict[str, Any] | ErrorInfo:
    if isinstance(raw, dict):
        return cast("dict[str, Any]", raw)
    problem = ""
    if isinstance(raw, str):
        try:
            value = _decoder.decode(raw)
        except (ValueError, RecursionError) as error:
            problem = str(error)
        else:
            if type(value) is dict:
                return value
    # The wire's own reader knows how models get it wrong.
    from jarvis_nb.engines.arguments import read_arguments as read

    found = read(raw)
    if found.value is not None and (found.oddity or not problem):
        return found.value
    return found.error or ErrorInfo("invalid_json", f"the arguments cannot be read as JSON: {problem}")


def find_tool(name: Any, tools: Mapping[str, BaseTool]) -> BaseTool | None:
    """Return the tool a name means: itself, or its last segment where only one tool fits."""
    found = tools.get(name) if isinstance(name, str) else None
    if found is not None or not isinstance(name, str):
        return found
    from jarvis_nb.engines.names import find_name

    meant = find_name(name, tools)
    return None if meant is None else tools[meant]


def unknown_tool(name: Any, valid: Iterable[str]) -> ErrorInfo:
    """Return what a model reads that called a tool that does not exist: the closest names, and all."""
    valid = list(valid)
    close = close_names(str(name)[:200], valid)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ErrorInfo("unknown_tool", f"no tool is called {name!r:.100}{hint}", _names(valid))


def not_offered(name: str, offered: Container[str], names: Collection[str]) -> ErrorInfo:
    """Return what a model reads that called a tool which was not offered to it."""
    valid = [one for one in names if one in offered]
    return ErrorInfo("tool_not_offered", f"{name!r} is not offered in this request", _names(valid))


def _names(valid: list[str]) -> dict[str, Any]:
    if len(valid) <= MOST_NAMES:
        return {"valid": valid}
    return {"valid": valid[:MOST_NAMES], "more": len(valid) - MOST_NAMES}


def copied(value: Any) -> Any:
    """Return a copy of JSON data: what is recorded or shown is not what a tool may change."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {str(key): copied(item) for key, item in value.items()}
    if kind is list:
        return [copied(item) for item in value]
    return json_value(value)  # a host's own objects, and floats that JSON cannot hold
