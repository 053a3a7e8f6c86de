"""Awaiting a tool within a deadline that holds whatever the tool does, and that costs nothing if it never waits.

``asyncio.wait_for`` needs a task or a timer for every call, and it waits for a coroutine that swallows its
cancelling. Here a coroutine that ends without waiting is only called, and one that waits goes on in the
task it began in (``asyncio.timeout``, task groups and context variables inside it keep working) until the
deadline, when it is cancelled and left behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from inspect import iscoroutine
from types import coroutine as generator_coroutine
from typing import Any

from jarvis_nb.core.bridge import Heart
from jarvis_nb.core.threads import DeadlinePassed

log = logging.getLogger("jarvis_nb.tools")

GRACE_SECONDS = 0.2
"""How long a cancelled coroutine is waited for, so that it can leave a trace and close what it opened."""
CLEANUP_SECONDS = 2.0
"""How long one that was left behind may go on cleaning up before it is closed."""

Waiting = Coroutine[Any, Any, Any]
_left_behind: set[asyncio.Task[None]] = set()


async def within(awaitable: Awaitable[Any], seconds: float | None) -> Any:
    """Await a result, but not beyond the deadline.

    Args:
        awaitable: A coroutine, or anything else that can be awaited.
        seconds: The deadline; None for none.

    Raises:
        DeadlinePassed: At the deadline. The coroutine has been cancelled; if it goes on all the same, it is
            left behind, and what it does later is ignored.
        asyncio.CancelledError: The caller was cancelled; the coroutine had a moment to end.
    """
    coroutine = awaitable if iscoroutine(awaitable) else _wrapped(awaitable)
    try:
        pending = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return await Rest(coroutine, pending, seconds)


async def _wrapped(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class Rest:
    """A coroutine from its first wait on, carried on step by step in the task it began in.

    Args:
        coroutine: It has begun.
        pending: What it waits for.
        seconds: The deadline; None for none.
        beat: Keep the loop awake meanwhile (see :func:`~jarvis_nb.core.bridge.heartbeat`).
    """

    def __init__(
        self, coroutine: Waiting, pending: Any, seconds: float | None, *, beat: bool = False
    ) -> None:
        self._coroutine = coroutine
        self._pending = pending
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._cancelled_before = 0 if self._task is None else self._task.cancelling()
        self._own_cancels = 0
        self._ended = False
        self._result: Any = None
        self._leaving: BaseException | None = None
        """What is raised as soon as the coroutine ends or is left behind."""
        self._heart = Heart() if beat else None
        self._deadline = None if seconds is None else self._loop.time() + max(seconds, 0)
        self._timer: asyncio.TimerHandle | None = None
        self._set_timer(self._deadline)

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._wake)

    def _wake(self) -> None:
        """Cancel our own task, as ``asyncio.timeout`` does; :meth:`__await__` takes it back."""
        if self._task is not None:
            self._own_cancels += 1
            self._task.cancel()

    def _cancelled_outside(self) -> bool:
        """Whether somebody cancels the task we run in, and nobody inside has taken that upon himself."""
        return self._task is not None and self._task.cancelling() - self._own_cancels > self._cancelled_before

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            while not self._ended:
                try:
                    sent = yield self._pending
                except asyncio.CancelledError as error:
                    self._stop(error)
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                else:
                    self._advance(partial(self._coroutine.send, sent))
            return self._result
        finally:
            if self._heart is not None:
                self._heart.stop()
            self._set_timer(None)
            if self._task is not None:
                for _ in range(self._own_cancels):
                    self._task.uncancel()

    def _advance(self, step: Callable[[], Any]) -> None:
        try:
            self._pending = step()
        except StopIteration as stop:
            self._ended, self._result = True, stop.value
        except BaseException as error:
            if self._still_leaving() is None or self._leaving is error:
                raise
            raise self._leaving from error  # pyright: ignore[reportGeneralTypeIssues] - it is not None
        if self._still_leaving() is not None and self._ended:
            raise self._leaving from None  # pyright: ignore[reportGeneralTypeIssues] - it is not None

    def _still_leaving(self) -> BaseException | None:
        """Return what is to be raised; None where a time-out or a task group inside had cancelled its own task."""
        if isinstance(self._leaving, asyncio.CancelledError) and not self._cancelled_outside():
            self._leaving = None
            self._set_timer(self._deadline)
        return self._leaving

    def _stop(self, error: asyncio.CancelledError) -> None:
        """Cancel the coroutine; where it goes on, wait a moment for it or not at all."""
        if self._leaving is None:
            if self._own_cancels and not self._cancelled_outside():
                self._leaving = DeadlinePassed()
            else:
                self._leaving = error
                self._set_timer(self._loop.time() + GRACE_SECONDS)
            self._advance(partial(self._coroutine.throw, error))
            if not isinstance(self._leaving, DeadlinePassed):
                return
        # The deadline, the end of the grace, or an impatient caller.
        task = self._loop.create_task(_clean_up(self._coroutine, self._pending))
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
        raise self._leaving from None


async def _clean_up(coroutine: Waiting, pending: Any) -> None:
    """Let what was left behind close its connections; then close it, whatever it wants."""
    try:
        async with asyncio.timeout(CLEANUP_SECONDS):
            await _to_the_end(coroutine, pending)
    except Exception:
        log.debug("a tool that was left behind failed", exc_info=True)


@generator_coroutine
def _to_the_end(coroutine: Waiting, pending: Any) -> Generator[Any, Any, None]:
    while True:
        try:
            sent = yield pending
        except BaseException:  # the time is over, or the loop is closing
            coroutine.close()
            raise
        try:
            pending = coroutine.send(sent)
        except (StopIteration, asyncio.CancelledError):
            return
