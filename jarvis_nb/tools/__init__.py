"""Tools: the base class, the executor, ``@action`` and the five built-in tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.core.types import ToolCall, ToolResult
    from jarvis_nb.tools.action import Action, action
    from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec
    from jarvis_nb.tools.executor import ToolExecutor

__all__ = [
    "Action",
    "BaseTool",
    "ToolCall",
    "ToolContext",
    "ToolExecutor",
    "ToolResult",
    "ToolSpec",
    "action",
]

_HOMES = {
    "Action": "tools.action",
    "action": "tools.action",
    "BaseTool": "tools.base",
    "ToolContext": "tools.base",
    "ToolSpec": "tools.base",
    "ToolExecutor": "tools.executor",
    "ToolCall": "core.types",
    "ToolResult": "core.types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"jarvis_nb.{_HOMES[name]}"), name)
