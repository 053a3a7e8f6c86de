"""One resource for each event loop: connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

log = logging.getLogger("jarvis_nb.engines")

PATIENCE_SECONDS = 1.0
"""How long closing waits for another loop."""

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One resource for each event loop it is used on, closed on the loop that it belongs to.

    A resource lives inside an asynchronous generator: a loop that ends orderly (``asyncio.run``) closes its
    generators, and so the resource, before its sockets could be found open. Loops that died without that are
    dropped.

    Args:
        make: Makes the resource, on its loop.
        free: Closes it, on its loop.
        drop: Lets go of one whose loop is dead.
    """

    def __init__(
        self, make: Callable[[], T], free: Callable[[T], Awaitable[None]], drop: Callable[[T], None]
    ) -> None:
        self._make, self._free, self._drop = make, free, drop
        self._held: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T]]] = {}
        weakref.finalize(self, _release, self._held, drop)

    async def get(self) -> T:
        """Return the running loop's resource."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        return held[0] if held is not None else await self._open(loop)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> T:
        for dead in [held for held in list(self._held) if held.is_closed()]:
            self._drop(self._held.pop(dead)[0])
        keeper = _keep(self._make, self._free, self._held, loop)
        resource = await anext(keeper)  # does not give way: of 64 first requests one makes it
        self._held[loop] = (resource, keeper)
        return resource

    async def close(self) -> None:
        """Close all resources, each on its own loop."""
        here = asyncio.get_running_loop()
        while self._held:
            loop, (resource, keeper) = self._held.popitem()
            if loop is here:
                await keeper.aclose()
            elif loop.is_closed():
                self._drop(resource)
            else:
                closing = _close_on(loop, keeper)
                if loop.is_running():
                    with contextlib.suppress(TimeoutError):  # that loop is busy: it closes when it gets to it
                        await asyncio.wait_for(asyncio.wrap_future(closing), PATIENCE_SECONDS)


async def _keep(
    make: Callable[[], T],
    free: Callable[[T], Awaitable[None]],
    held: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T]]],
    loop: asyncio.AbstractEventLoop,
) -> AsyncGenerator[T]:
    resource = make()
    del make  # it may belong to the engine, which would never be collected while this waits
    try:
        yield resource
    finally:
        if loop in held and held[loop][0] is resource:  # not one that was opened meanwhile
            del held[loop]
        await free(resource)


def _close_on(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[Any]) -> Future[None]:
    """Close a resource on its own loop, as soon as that runs; return what tells that it is closed."""
    closed: Future[None] = Future()

    async def close() -> None:
        try:
            await keeper.aclose()
        except Exception:
            log.exception("a connection could not be closed")
        finally:
            closed.set_result(None)

    with contextlib.suppress(RuntimeError):  # the loop was closed in this instant
        loop.call_soon_threadsafe(lambda: loop.create_task(close()))
    return closed


def _release(
    held: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any]]], drop: Callable[[Any], None]
) -> None:
    """Close what an engine that nobody closed leaves behind."""
    while held:
        loop, (resource, keeper) = held.popitem()
        if loop.is_closed():
            drop(resource)
        else:
            _close_on(loop, keeper)
