"""A notebook-first SDK for tool calling: give a model tools, narrow them, run, and see the run in the cell.

Example:
    >>> from jarvis_nb import Jarvis, action
    >>> from jarvis_nb.engines import ScriptedEngine, call
    >>> @action
    ... def lookup_order(order_id: str) -> dict:
    ...     "Look up one order by ID."
    ...     return {"order_id": order_id, "total_cents": 4200}
    >>> j = Jarvis(engine=ScriptedEngine([call("lookup_order", order_id="ORD-5"), "It costs $42."]))
    >>> j.ask("What does ORD-5 cost?", tools=[lookup_order])
    'It costs $42.'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jarvis_nb.core.approval import ApprovalRequest, Approve, Deny
    from jarvis_nb.core.errors import EngineError, FlowError, InvalidRequest, JarvisError, ToolError
    from jarvis_nb.core.events import Event, EventBus, EventType
    from jarvis_nb.core.portable import Secret
    from jarvis_nb.core.registry import ToolRegistry
    from jarvis_nb.core.types import Message, Role, ToolCall, ToolResult
    from jarvis_nb.jarvis import Jarvis
    from jarvis_nb.reply import Attempt, Reply
    from jarvis_nb.tools.action import action
    from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec
    from jarvis_nb.tools.executor import ToolExecutor
    from jarvis_nb.toolsets.flow import Flow
    from jarvis_nb.toolsets.policy import ToolPolicy
    from jarvis_nb.toolsets.skills import Skills
    from jarvis_nb.toolsets.source import ToolSource
    from jarvis_nb.toolsets.toolset import Toolset

_HOMES = {
    "ApprovalRequest": "core.approval",
    "Approve": "core.approval",
    "Deny": "core.approval",
    "EngineError": "core.errors",
    "FlowError": "core.errors",
    "InvalidRequest": "core.errors",
    "JarvisError": "core.errors",
    "ToolError": "core.errors",
    "Event": "core.events",
    "EventBus": "core.events",
    "EventType": "core.events",
    "Secret": "core.portable",
    "ToolRegistry": "core.registry",
    "Message": "core.types",
    "Role": "core.types",
    "ToolCall": "core.types",
    "ToolResult": "core.types",
    "Jarvis": "jarvis",
    "Attempt": "reply",
    "Reply": "reply",
    "action": "tools.action",
    "BaseTool": "tools.base",
    "ToolContext": "tools.base",
    "ToolSpec": "tools.base",
    "ToolExecutor": "tools.executor",
    "Flow": "toolsets.flow",
    "ToolPolicy": "toolsets.policy",
    "Skills": "toolsets.skills",
    "ToolSource": "toolsets.source",
    "Toolset": "toolsets.toolset",
}

__all__ = [
    "ApprovalRequest",
    "Approve",
    "Attempt",
    "BaseTool",
    "Deny",
    "EngineError",
    "Event",
    "EventBus",
    "EventType",
    "Flow",
    "FlowError",
    "InvalidRequest",
    "Jarvis",
    "JarvisError",
    "Message",
    "Reply",
    "Role",
    "Secret",
    "Skills",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolExecutor",
    "ToolPolicy",
    "ToolRegistry",
    "ToolResult",
    "ToolSource",
    "ToolSpec",
    "Toolset",
    "__version__",
    "action",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"jarvis_nb.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(shell: Any) -> None:
    """Load the magics: ``%load_ext jarvis_nb``."""
    from jarvis_nb.magics import load

    load(shell)
