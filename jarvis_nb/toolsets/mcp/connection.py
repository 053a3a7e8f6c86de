"""One MCP session in a task of its own, on a loop of its own, usable from any loop."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from jarvis_nb.core.bridge import HAS_THREADS, LoopThread
from jarvis_nb.core.errors import JarvisError, SourceError
from jarvis_nb.toolsets.mcp.transport import Tail, http_transport, stdio_transport

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

T = TypeVar("T")

CLOSE_SECONDS = 10.0
"""How long closing waits for a session's end; a server that ignores its end is killed before that."""


class Lost(SourceError):  # noqa: N818 - what happened to the connection
    """The connection could not be opened, or ended while it was used."""

    code = "mcp_disconnected"


class Connection:
    """Opens a session when it is first used and again when it ended, one at a time.

    The SDK's sessions belong to the task and the loop that opened them; a notebook asks from a new loop
    each time. So the session lives on a thread's loop here, and callers hand their work over.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._guard = threading.Lock()
        self._home: LoopThread | None = None
        # Used on the home's loop only.
        self._opening: asyncio.Lock | None = None
        self._held: _Held | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    async def run(self, work: Callable[[ClientSession], Awaitable[T]], config: dict[str, Any]) -> T:
        """Run ``work`` with the session, from any loop.

        Args:
            work: Awaited on the connection's own loop.
            config: How to open it, secrets resolved.

        Raises:
            Lost: It cannot be opened, or it ended before the work was done.
        """
        home = self._start()
        future = asyncio.run_coroutine_threadsafe(self._work(work, config), home.loop)
        return await asyncio.wrap_future(future)

    def drop(self) -> None:
        """Let the session end without waiting for it; the next use opens another."""
        with self._guard:
            if self._home is not None:
                self._home.loop.call_soon_threadsafe(self._let_go)

    def abandon(self) -> None:
        """End the session and its loop without waiting: nobody has the source any more."""
        home = self._leave()
        if home is not None:
            closed = asyncio.run_coroutine_threadsafe(self._close(), home.loop)
            closed.add_done_callback(lambda _: home.stop())

    async def aclose(self) -> None:
        """End the session and its loop. Using it again opens another."""
        home = self._leave()
        if home is None:
            return
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close(), home.loop))
        finally:
            home.stop()

    def _start(self) -> LoopThread:
        if not HAS_THREADS:
            raise Lost("MCP servers need threads, which this platform lacks", code="missing_extra")
        if find_spec("mcp") is None:
            raise Lost(
                "the MCP SDK is not installed", code="missing_extra", hint="pip install 'jarvis-nb[mcp]'"
            )
        with self._guard:
            if self._home is None:
                self._home = LoopThread()
                atexit.register(self._close_at_exit)
            return self._home

    def _leave(self) -> LoopThread | None:
        with self._guard:
            home, self._home = self._home, None
        if home is not None:
            atexit.unregister(self._close_at_exit)
        return home

    def _close_at_exit(self) -> None:
        """End a server's process with ours, where nobody closed the source."""
        home = self._home
        if home is not None:
            try:
                asyncio.run_coroutine_threadsafe(self._close(), home.loop).result(CLOSE_SECONDS)
            except TimeoutError:
                return  # the process ends now: nothing is left to tell

    # On the home's loop.

    async def _work(self, work: Callable[[ClientSession], Awaitable[T]], config: dict[str, Any]) -> T:
        from mcp import MCPError

        self._keep(asyncio.current_task())
        held = await self._connected(config)
        task = asyncio.ensure_future(work(held.ready.result()))
        self._keep(task)
        try:
            await asyncio.wait({task, held.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if not task.done():
            raise self._lost(held, "ended the connection")
        try:
            return task.result()
        except (MCPError, OSError) as error:
            self._let_go()
            await asyncio.wait({held.task}, timeout=1)  # what it wrote last may say why
            raise self._lost(held, f"broke off ({error})") from None

    async def _connected(self, config: dict[str, Any]) -> _Held:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._held is not None and not self._held.task.done() and not self._held.closing.is_set():
                return self._held
            held = self._held = _Held(config)
            self._keep(held.task)
            try:
                await asyncio.wait({held.task, held.ready}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                held.give_up()
                raise
            if held.ready.done():
                return held
            raise self._lost(held, "cannot be reached")

    def _keep(self, task: asyncio.Future[Any] | None) -> None:
        """Hold the task until it is done, and take its outcome."""
        assert task is not None  # noqa: S101 - coroutines of this class run as tasks
        self._tasks.add(task)

        def done(task: asyncio.Future[Any]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                task.exception()

        task.add_done_callback(done)

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.closing.set()
            if not self._held.ready.done():
                self._held.give_up()

    def _lost(self, held: _Held, what: str) -> Lost:
        reason = "" if held.failure is None else f": {_leaf(held.failure)}"
        said = held.tail.text()
        if said:
            reason += f"; it wrote: {said}"
        return Lost(f"the MCP server {what}{reason}", value=self._label)

    async def _close(self) -> None:
        self._let_go()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
            for task in left:
                task.cancel()
        self._held = self._opening = None


class _Held:
    """One open session: the task that opened it holds it until it is told to close it, or it ends."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.tail = Tail()
        self.closing = asyncio.Event()
        self.ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self.failure: BaseException | None = None
        self.given_up = False
        self.task = asyncio.get_running_loop().create_task(self._hold(config))

    def give_up(self) -> None:
        """Cancel the opening, once: a second cancellation would interrupt the clearing up after the first."""
        if not self.given_up:
            self.given_up = True
            self.task.cancel()

    async def _hold(self, config: dict[str, Any]) -> None:
        from mcp import Client

        try:
            async with Client(_transport(config, self.tail, self.closing.set), cache=None) as client:
                self.ready.set_result(client.session)
                await self.closing.wait()
        except Exception as error:
            self.failure = error


@asynccontextmanager
async def _transport(config: dict[str, Any], tail: Tail, ended: Callable[[], None]) -> AsyncGenerator[Any]:
    opened = http_transport(config) if "url" in config else stdio_transport(config, tail, ended)
    async with opened as streams:
        yield streams


def _leaf(error: BaseException) -> str:
    """Return the first single error of a group as text."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = error.message if isinstance(error, JarvisError) else str(error)
    return f"{type(error).__name__}: {text:.500}" if text else type(error).__name__
