"""For tests of code that uses this package: a strict server on loopback, its replies, pytest fixtures.

The fixtures ``strict_server`` and ``scripted_engine`` are there wherever this package is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.testing.checks import check_request
    from jarvis_nb.testing.replies import (
        CLOSE,
        HANG,
        Answer,
        ServerReply,
        answer,
        body,
        chunks,
        error,
        html,
        raw,
    )
    from jarvis_nb.testing.server import RecordedRequest, StrictServer

__all__ = [
    "CLOSE",
    "HANG",
    "Answer",
    "RecordedRequest",
    "ServerReply",
    "StrictServer",
    "answer",
    "body",
    "check_request",
    "chunks",
    "error",
    "html",
    "raw",
]

_HOMES = {"check_request": "checks", "StrictServer": "server", "RecordedRequest": "server"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"jarvis_nb.testing.{_HOMES.get(name, 'replies')}"), name)
