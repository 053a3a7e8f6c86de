"""Worker threads for synchronous tools: kept, bounded, and never in the way of the process's exit.

``concurrent.futures`` joins its threads at exit and ``asyncio``'s default executor has as many threads as
cores + 4, so one stuck tool holds the process, and a round of 32 calls runs in waves. These threads are
daemons, as many as a round needs up to a cap, and an overrunning one is left behind.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from typing import Any

MOST = 128
"""Threads at most; further jobs wait, and a job that waits past its deadline never starts."""
IDLE_SECONDS = 30.0


class Job:
    """One function call on a worker thread."""

    __slots__ = ("_done", "_notify", "abandoned", "context", "error", "finished", "fn", "result", "started")

    def __init__(self, fn: Callable[[], Any], notify: Callable[[], object] | None = None) -> None:
        self.fn = fn
        self.context = contextvars.copy_context()
        self.started = False
        self.abandoned = False
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._notify = notify
        self._done = allocate_lock()
        self._done.acquire()

    def run(self) -> None:
        """Run the function unless the job was given up before it could start."""
        if self.abandoned:
            return
        self.started = True
        try:
            self.result = self.context.run(self.fn)
        except BaseException as error:  # a tool may call sys.exit: it is the job's outcome
            self.error = error
        self.finished = True
        self._done.release()
        if self._notify is not None and not self.abandoned:
            self._notify()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait, interruptibly, until the job is done; return whether it is.

        On time-out and on an interrupt the job is abandoned: its late result is ignored.
        """
        try:
            done = self._done.acquire(timeout=-1 if seconds is None else max(seconds, 0))
        except BaseException:
            self.abandoned = True
            raise
        if not done:
            self.abandoned = True
        return done

    def value(self) -> Any:
        """Return the result of a finished job, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.result


class WorkerPool:
    """A pool of daemon threads that grows to what is needed and shrinks when idle."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._jobs: deque[Job] = deque()
        self._idle: deque[Any] = deque()  # one locked lock per waiting thread: the newest is woken first
        self._threads = 0
        self._lock = threading.Lock()

    @property
    def threads(self) -> int:
        """How many threads the pool holds now."""
        return self._threads

    def submit(self, fn: Callable[[], Any], notify: Callable[[], object] | None = None) -> Job:
        """Start ``fn`` on a thread, in a copy of the caller's context.

        Args:
            fn: A function of no arguments.
            notify: Called on the worker thread when a job that was not abandoned is done.
        """
        job = Job(fn, notify)
        with self._lock:
            self._jobs.append(job)
            if self._idle:
                self._idle.pop().release()
            elif self._threads < self.most:
                self._threads += 1
                threading.Thread(target=self._work, name="jarvis-worker", daemon=True).start()
        return job

    async def run(self, fn: Callable[[], Any], *, seconds: float | None = None, job_box: list[Job] | None = None) -> Any:
        """Run ``fn`` on a thread and await its result.

        Args:
            fn: A function of no arguments.
            seconds: The deadline; None for none.
            job_box: Filled with the job, for a caller that must know whether it had started.

        Raises:
            TimeoutError: The deadline passed; the thread is abandoned.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def done() -> None:
            if not future.done():
                future.set_result(None)

        def notify() -> None:
            try:
                loop.call_soon_threadsafe(done)
            except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
                job.abandoned = True

        job = self.submit(fn, notify)
        if job_box is not None:
            job_box.append(job)
        timer = None
        if seconds is not None:
            timer = loop.call_later(seconds, future.cancel)
        try:
            await future
        except asyncio.CancelledError:
            job.abandoned = True
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            if job.finished:  # it finished in the instant of the deadline
                return job.value()
            raise TimeoutError from None
        finally:
            if timer is not None:
                timer.cancel()
        return job.value()

    def _work(self) -> None:
        wake = allocate_lock()
        wake.acquire()
        while True:
            with self._lock:
                job = self._jobs.popleft() if self._jobs else None
                if job is None:
                    self._idle.append(wake)
            if job is not None:
                job.run()
                del job
                continue
            if not wake.acquire(timeout=IDLE_SECONDS):
                with self._lock:
                    if wake in self._idle:
                        self._idle.remove(wake)
                        self._threads -= 1
                        return
                wake.acquire()  # woken between the time-out and the lock


class _Process:
    """The pool of this process; a fork gets a fresh one, since threads do not survive it."""

    pool = WorkerPool()


def workers() -> WorkerPool:
    """Return the process's worker pool. It starts no thread before the first job."""
    return _Process.pool


def _after_fork() -> None:
    _Process.pool = WorkerPool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


