"""Sync over async: run a coroutine on a loop thread and wait for it interruptibly.

The sync facade works under Jupyter's running loop because its coroutine runs on another thread's loop, and
it stops at once because the waiting thread is the one that gets the interrupt.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 0.25
"""How long an interrupted run may take to close its history before the caller gets the interrupt."""
HEARTBEAT_SECONDS = 0.1

POLL_SECONDS = 0.1 if os.name == "nt" else None
"""Windows delivers an interrupt to a waiting thread only between waits."""

HAS_THREADS = sys.platform != "emscripten"


class LoopThread:
    """One daemon thread that runs one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.blocked = False
        """Whether synchronous code on this very loop waits for another one."""
        self._stopping = False
        self.thread = threading.Thread(target=self._run, name="jarvis-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopping:
            # A task that raises one of these also throws it out of the loop. Its caller gets it from the
            # task; the loop goes on for everybody else.
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()
        self._clear()
        self.loop.close()

    def _clear(self) -> None:
        """Cancel what a run left behind (a tool's background task) and give it a moment."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            if left:
                self.loop.run_until_complete(asyncio.wait(left, timeout=GRACE_SECONDS))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())

    def _stop(self) -> None:
        self._stopping = True
        self.loop.stop()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; an interrupt cancels it, waits a moment, and is raised."""
        __tracebackhide__ = True
        waiter = _Waiter(coroutine)
        self.loop.call_soon_threadsafe(waiter.start)
        try:
            waiter.serve()
        except BaseException:
            self.loop.call_soon_threadsafe(waiter.cancel)
            if not waiter.finished(GRACE_SECONDS):
                # Synchronous code inside a coroutine holds this loop: later runs get a fresh one.
                _Process.forget(self)
            raise
        return waiter.value()

    def stop(self) -> None:
        """End the thread once the loop is free."""
        self.loop.call_soon_threadsafe(self._stop)


class _Waiter:
    """A coroutine's way to the loop, its outcome's way back, and what the caller's thread does meanwhile."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine
        self.context = contextvars.copy_context()
        self.context.run(_caller.set, self)
        self.inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.coroutine, context=self.context)
        self.task.add_done_callback(self._finish)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _finish(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # taken here: an interrupted caller never asks for it
        self.inbox.put(None)

    def serve(self) -> None:
        """Wait for the end on the caller's thread, running there what the coroutine asks for."""
        while True:
            try:
                work = self.inbox.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if work is None:
                return
            work()

    def finished(self, seconds: float) -> bool:
        """Wait for the end without running anything more."""
        try:
            while self.inbox.get(timeout=seconds) is not None:
                pass
        except Empty:
            return False
        return True

    def value(self) -> Any:
        __tracebackhide__ = True
        assert self.task is not None  # noqa: S101 - the task alone ends serve()
        return self.task.result()


_caller: contextvars.ContextVar[_Waiter | None] = contextvars.ContextVar("jarvis_nb_caller", default=None)


def caller_waits() -> bool:
    """Whether a thread waits in :func:`run_sync` for what runs here, so that :func:`in_caller` reaches it."""
    return _caller.get() is not None


async def in_caller(fn: Callable[[], T]) -> T:
    """Run ``fn`` on the thread that waits in :func:`run_sync`: the main thread of a notebook.

    ``input()`` and a kernel's sockets belong to that thread. Without a waiting thread (``await`` in a
    notebook) the loop's own thread is that thread, and ``fn`` runs at once.
    """
    waiter = _caller.get()
    if waiter is None:
        return fn()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # pyright: ignore[reportArgumentType] - T may be None

    def work() -> None:
        try:
            result = fn()
        except Exception as error:
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, result, None)

    waiter.inbox.put(work)
    return await future


class _Process:
    """The loop threads of this process, made on first use; a fork gets fresh ones.

    There is one, and one more for each loop whose own thread waits in :func:`run_sync`.
    """

    lock = threading.Lock()
    loops: ClassVar[list[LoopThread]] = []

    @classmethod
    def get(cls) -> LoopThread:
        with cls.lock:
            cls.loops = [one for one in cls.loops if one.thread.is_alive()]
            free = next((one for one in cls.loops if not one.blocked), None)
            if free is None:
                free = LoopThread()
                cls.loops.append(free)
            return free

    @classmethod
    def of_this_thread(cls) -> LoopThread | None:
        me = threading.current_thread()
        return next((one for one in cls.loops if one.thread is me), None)

    @classmethod
    def forget(cls, stuck: LoopThread) -> None:
        with cls.lock:
            cls.loops = [one for one in cls.loops if one is not stuck]
        stuck.stop()

    @classmethod
    def after_fork(cls) -> None:
        cls.lock = threading.Lock()
        cls.loops = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.after_fork)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, under a running loop or not.

    Raises:
        KeyboardInterrupt: Of the waiting thread, after the coroutine was cancelled.

    Example:
        >>> import asyncio
        >>> run_sync(asyncio.sleep(0, "done"))
        'done'
    """
    __tracebackhide__ = (
        True  # how we wait tells nothing about what went wrong: IPython and pytest leave it out
    )
    if not HAS_THREADS:
        return _inline(coroutine)
    own = _Process.of_this_thread()
    if own is None:
        return _Process.get().run(coroutine)
    # A tool on one of our loops asks synchronously: waiting there for the same loop would never end.
    own.blocked = True
    try:
        return _Process.get().run(coroutine)
    finally:
        own.blocked = False


def _inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """Without threads: by the browser's stack switching where there is some, else step by step."""
    try:
        from pyodide import ffi  # pyright: ignore[reportMissingImports] - in a browser only
    except ImportError:
        pass
    else:
        if ffi.can_run_sync():
            result, error = ffi.run_sync(_settled(coroutine))
            if error is not None:
                raise error
            return result
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("this browser cannot wait in synchronous code: use `await` with the a… method instead")


async def _settled(coroutine: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """Return an exception instead of raising it: Pyodide shows one that leaves its task, even if it is caught."""
    try:
        return await coroutine, None
    except BaseException as error:
        return None, error


class Heart:
    """Wakes the running loop every 100 ms until it is stopped; see :func:`heartbeat`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._beat()

    def _beat(self) -> None:
        self._next = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)

    def stop(self) -> None:
        """Let the loop sleep again."""
        self._next.cancel()


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncGenerator[None]:
    """Keep the running loop awake while a request is in flight.

    A Jupyter kernel cancels an awaiting cell through a callback that does not wake a sleeping loop
    (ipykernel 7.4), so a stop button takes effect only when something else wakes it.
    """
    heart = Heart()
    try:
        yield
    finally:
        heart.stop()


async def together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Await coroutines side by side and return their results in order; the first failure ends the others.

    ``KeyboardInterrupt`` of one of them is raised here. Raised out of a task of its own, as with
    ``asyncio.gather``, it would end the running loop, and with it a notebook's kernel.

    Example:
        >>> import asyncio
        >>> run_sync(together([asyncio.sleep(0, 1), asyncio.sleep(0, 2)]))
        [1, 2]
    """
    tasks = [asyncio.ensure_future(_carried(coroutine)) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except _Interrupted:
        raise KeyboardInterrupt from None
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE_SECONDS)


class _Interrupted(Exception):  # noqa: N818 - what happened, on its way out of a task
    pass


async def _carried(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return await coroutine
    except KeyboardInterrupt:
        raise _Interrupted from None
