"""Engines: one seam to every model, real, embedded, scripted or replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.engines.base import Completion, InferenceEngine, Request
    from jarvis_nb.engines.local import LocalEngine
    from jarvis_nb.engines.openai import OpenAIEngine
    from jarvis_nb.engines.replay import ReplayEngine
    from jarvis_nb.engines.scripted import ScriptedEngine, call

__all__ = [
    "Completion",
    "InferenceEngine",
    "LocalEngine",
    "OpenAIEngine",
    "ReplayEngine",
    "Request",
    "ScriptedEngine",
    "call",
]

_HOMES = {
    "Completion": "base",
    "InferenceEngine": "base",
    "Request": "base",
    "LocalEngine": "local",
    "OpenAIEngine": "openai",
    "ReplayEngine": "replay",
    "ScriptedEngine": "scripted",
    "call": "scripted",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"jarvis_nb.engines.{_HOMES[name]}"), name)
