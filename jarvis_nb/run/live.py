"""The hook between a run and the cell it runs in: nothing unless a person looks."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from jarvis_nb.run.frontend import live_kernel

if TYPE_CHECKING:
    from jarvis_nb.agents.run import Run
    from jarvis_nb.reply import Reply

_inside: ContextVar[bool] = ContextVar("jarvis_nb_live", default=False)

_shown: OrderedDict[int, tuple[ref[Reply], Any]] = OrderedDict()
KEPT = 32


def watch(run: Run, *, wanted: bool = True) -> contextlib.AbstractContextManager[bool]:
    """Show a run live in its cell, where a person looks; give whether it is shown.

    A run inside a watched run (a tool that asks), and each of many at once (``map``), is not.
    """
    if not wanted or _inside.get() or live_kernel() is None:
        return _NOBODY
    return _watched(run)


_NOBODY = contextlib.nullcontext(False)


@contextlib.contextmanager
def _watched(run: Run) -> Generator[bool]:
    from jarvis_nb.widgets.live import LiveRun

    LiveRun(run)
    with unwatched():
        yield True


@contextlib.contextmanager
def unwatched() -> Generator[None]:
    """Show no run live that begins in this block."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def remember(reply: Reply, area: Any) -> None:
    """Note that a reply's card stands in a live area."""
    while len(_shown) >= KEPT:
        _shown.popitem(last=False)
    _shown[id(reply)] = (ref(reply), area)


def give_way(reply: Reply) -> None:
    """Clear what stands in the cell for a reply that is shown itself there now: one card, not two."""
    found = _shown.pop(id(reply), None)
    if found is not None and found[0]() is reply:
        found[1].clear()
    asking = sys.modules.get("jarvis_nb.widgets.asking")  # imported where a person was asked
    if asking is not None:
        asking.clear_records({attempt.call_id for attempt in reply.tool_attempts})
