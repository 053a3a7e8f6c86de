"""What travels between steps: plain data, copied at every hand-over, so that no step changes another's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.events import bounded
from jarvis_nb.core.types import ToolResult
from jarvis_nb.toolsets.flows.trace import FlowResult


def plain(value: Any) -> Any:
    """Return a tool's output as plain data that shares nothing mutable with it.

    Models, dataclasses, dates and the like take their JSON form, as they would on the way to a model.
    """
    kind = cast("type[Any]", type(value))
    if value is None or kind is str or kind is int or kind is bool or kind is float:
        return value
    if kind is dict:
        if all(type(key) is str for key in value):
            return {key: plain(item) for key, item in value.items()}
    elif kind is list or kind is tuple:
        return [plain(item) for item in value]
    from jarvis_nb.tools.content import json_value

    return json_value(value)


def copied(value: Any) -> Any:
    """Return a copy of plain data; what is not plain (a live context value) is passed as it is."""
    kind = cast("type[Any]", type(value))
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if kind is list:
        return [copied(item) for item in value]
    return value


def unwrapped(output: Any) -> tuple[Any, list[dict[str, Any]] | None]:
    """Return what a tool's raw output means as a step's result, and an inner flow's trace.

    A plain tool's :class:`ToolResult` becomes ``{"content": …, "metadata": …}``.

    Raises:
        ToolError: The tool said that it failed.
    """
    if isinstance(output, ToolResult):
        if not output.success:
            code = output.metadata.get("code")
            raise ToolError(
                output.content or "it gave no reason", code=code if isinstance(code, str) else None
            )
        return {"content": output.content, "metadata": plain(output.metadata)}, None
    if isinstance(output, FlowResult):
        return output.output, output.steps
    return plain(output), None


def as_mapping(value: Any) -> dict[str, Any]:
    """Return a flow's output as the mapping it always is: anything else stands under ``result``."""
    return value if isinstance(value, dict) else {"result": value}


def shown(value: Any) -> Any:
    """Return a value for the trace: bounded, JSON-ready, without live objects.

    Example:
        >>> shown({"rate": float("nan"), "client": object()})
        {'rate': 'nan', 'client': '<object>'}
    """
    return _finite(bounded(dict(value) if isinstance(value, Mapping) else value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
