"""A run as a stream of events, for ``astream``."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from jarvis_nb.core.events import Event, EventBus, EventType


class EventChannel:
    """Carries events from any thread to one waiting consumer on the loop it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        """Enter one event."""
        self._events.append(event)
        if threading.get_ident() == self._thread:
            self.wake()
        else:
            self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Let the consumer look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self, task: asyncio.Task[Any]) -> AsyncGenerator[Event]:
        """Yield events until ``task`` is done and all are taken."""
        task.add_done_callback(lambda _: self.wake())
        while True:
            while self._events:
                yield self._events.popleft()
            if task.done():
                return
            self._waiter = self._loop.create_future()
            await self._waiter
            self._waiter = None


async def stream_events(run: Callable[[EventBus], Awaitable[Any]], bus: EventBus) -> AsyncGenerator[Event]:
    """Run and yield what happens; the last event holds the reply.

    Whoever leaves the loop early cancels the run.
    """
    own = EventBus(parent=bus)
    channel = EventChannel()
    own.subscribe(channel.put)

    async def body() -> Any:
        try:
            return await run(own)
        except (
            KeyboardInterrupt
        ) as stop:  # out of a task it would end the loop, and with it a notebook's kernel
            return stop

    task = asyncio.get_running_loop().create_task(body())
    last: Event | None = None
    try:
        async for event in channel.take(task):
            if event.event_type is EventType.RUN_END:
                last = event
            else:
                yield event
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    reply = task.result()
    if isinstance(reply, KeyboardInterrupt):
        raise reply.with_traceback(None)
    if last is not None:
        yield replace(last, reply=reply)
