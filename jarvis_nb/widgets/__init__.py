"""Live views, for people who look at the cell. ipywidgets and anywidget are imported when one is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.widgets.gate import ApprovalGate
    from jarvis_nb.widgets.picker import PolicyPicker
    from jarvis_nb.widgets.playground import Playground
    from jarvis_nb.widgets.run_view import RunView
    from jarvis_nb.widgets.tool_bench import ToolBench

_HOMES = {
    "ApprovalGate": "gate",
    "Playground": "playground",
    "PolicyPicker": "picker",
    "RunView": "run_view",
    "ToolBench": "tool_bench",
}

__all__ = ["ApprovalGate", "Playground", "PolicyPicker", "RunView", "ToolBench"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"jarvis_nb.widgets.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
