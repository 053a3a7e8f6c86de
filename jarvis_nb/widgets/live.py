"""A run in its cell: live while it runs, static when it is done, and gone when the reply shows itself."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.events import Event, EventType
from jarvis_nb.display.escape import plain
from jarvis_nb.run import live
from jarvis_nb.run.frontend import cell
from jarvis_nb.widgets.run_view import ITEMS, RunView

if TYPE_CHECKING:
    from jarvis_nb.agents.run import Run

log = logging.getLogger("jarvis_nb.widgets")

PATIENCE_SECONDS = 0.15
"""Before this nothing is shown, so that a run of a moment leaves no trace but its reply."""
EVERY_SECONDS = 0.05
KEPT = 8
"""Widgets of ended runs that stay in the kernel, for pages that were reloaded meanwhile."""
MOST_IN_A_CELL = 20

_ended: deque[RunView] = deque()
_in_cell: tuple[str, int] = ("", 0)


class LiveRun:
    """Subscribes to a run and shows it. Events come on any thread; what is sent goes from the run's loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._view = RunView()
        self._view.change([{"is": "run", "question": plain(run.reply.question)}])
        self._handle: Any = None
        self._cell = cell()
        self._loop = asyncio.get_running_loop()
        # What a kernel sends belongs to the cell that the context names (ipykernel 7).
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, Any], dict[str, Any]] = {}
        self._scheduled = False
        self._done = False
        self._next = time.monotonic() + PATIENCE_SECONDS
        self._stop = run.bus.subscribe(self._take)
        self._timer = self._loop.call_later(PATIENCE_SECONDS, self._show, context=self._context)

    def _take(self, event: Event) -> None:
        if event.event_type is EventType.RUN_END:
            self._end()
            return
        if event.event_type is EventType.APPROVAL_REQUEST and self._handle is None:
            self._show()  # the run stands above the gate
        with self._lock:
            if self._done:
                return
            for change in self._view.enter(event):
                key = (change["is"], change.get("id", change.get("number")))
                old = self._pending.get(key)
                if old is None:
                    self._pending[key] = change
                elif change["is"] == "text":
                    old["text"] += change["text"]
                else:
                    old.update(change)
            if self._scheduled or self._handle is None or not self._pending:
                return
            self._scheduled = True
        self._soon()

    def _soon(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone: the end shows what is left
            self._loop.call_soon_threadsafe(self._wait, context=self._context)

    def _wait(self) -> None:
        left = self._next - time.monotonic()
        if left > 0:
            self._loop.call_later(left, self._flush, context=self._context)
        else:
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            changes, self._pending = list(self._pending.values()), {}
            self._scheduled = False
            if self._done:
                return
        self._next = time.monotonic() + EVERY_SECONDS
        for start in range(0, len(changes), ITEMS):
            self._view.send(changes[start : start + ITEMS])

    def _show(self) -> None:
        if self._done or self._handle is not None or not _room(self._cell):
            return
        from IPython.display import display

        try:
            self._handle = display(self._view.bundle(), raw=True, display_id=True)
        except Exception:
            log.exception("the live view cannot be shown")
        with self._lock:
            self._pending.clear()  # the widget began with all of it

    def _end(self) -> None:
        with self._lock:
            if self._done:
                return
            self._done = True
        self._stop()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._timer.cancel)
        if self._handle is None:
            return
        reply = self._run.reply
        self._view.finish(reply)
        self._handle.update(self._view.static(), raw=True)
        live.remember(reply, self)
        _ended.append(self._view)
        while len(_ended) > KEPT:
            _ended.popleft().close()

    def clear(self) -> None:
        """Leave nothing in the cell, if it still is the one that runs: the reply itself is shown there."""
        if cell() == self._cell:
            self._handle.update({}, raw=True)


def _room(here: str) -> bool:
    """Whether the cell takes one more card: a loop of a thousand asks does not fill the page."""
    global _in_cell  # noqa: PLW0603 - one number for the cell that runs
    name, number = _in_cell
    _in_cell = (here, number + 1 if name == here else 1)
    return _in_cell[1] <= MOST_IN_A_CELL
