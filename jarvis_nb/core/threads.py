"""Worker threads for synchronous tools: kept, bounded, and never in the way of the process's exit.

``concurrent.futures`` joins its threads at exit and ``asyncio``'s default executor has as many threads as
cores + 4, so one stuck tool holds the process, and a round of 32 calls runs in waves. These threads are
daemons, as many as a round needs up to a cap, and an overrunning one is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from typing import Any

from jarvis_nb.core import bridge

MOST = 128
"""Threads at most; further jobs wait, and a job that waits past its deadline never starts."""
IDLE_SECONDS = 30.0


class DeadlinePassed(TimeoutError):  # noqa: N818 - what happened, apart from a TimeoutError of the job's own
    """The time for a call was over; what it does from now on is ignored."""


class Job:
    """One function call on a worker thread."""

    started = False
    """Whether the function was entered."""
    finished = False
    abandoned = False
    """Whether nobody waits any more."""
    result: Any = None
    error: BaseException | None = None

    def __init__(self, fn: Callable[[], Any], notify: Callable[[], object] | None = None) -> None:
        self.notify = notify
        self.context = contextvars.copy_context()
        self.done = allocate_lock()
        """Held until the job is done."""
        self.done.acquire()
        self._todo = [fn]  # taken by whoever comes first: the worker, or the one who gives up

    def run(self) -> None:
        """Run the function unless the job was given up before it could start."""
        try:
            fn = self._todo.pop()
        except IndexError:
            return
        self.started = True
        try:
            self.result = self.context.run(fn)
        except BaseException as error:  # a tool may call sys.exit: it is the job's outcome
            self.error = error
        self.finished = True

    def give_up(self) -> None:
        """Stop waiting: the job never starts, or, where :attr:`started`, its late result is ignored."""
        self.abandoned = True
        try:
            self._todo.pop()
        except IndexError:
            self.started = True  # the worker has it, and may be just about to say so

    def wait(self, seconds: float | None = None) -> bool:
        """Wait, interruptibly, until the job is done; return whether it is.

        On time-out and on an interrupt the job is given up.
        """
        if seconds is None or seconds > threading.TIMEOUT_MAX:
            seconds = -1
        elif seconds < 0:
            seconds = 0
        try:
            done = self.done.acquire(True, seconds)
        except BaseException:
            self.give_up()
            raise
        if not done:
            self.give_up()
        return done

    def value(self) -> Any:
        """Return the result of a finished job, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.result


class _Worker:
    """One thread's mailbox. Its lock is held except in the moment a job was put in."""

    __slots__ = ("job", "wake")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.wake = allocate_lock()
        self.wake.acquire()


class WorkerPool:
    """A pool of daemon threads that grows to what is needed and shrinks when idle.

    A job goes straight into the mailbox of an idle worker, without a queue between: the hand-over costs
    little more than the two thread switches it is made of.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._queue: deque[Job] = deque()  # only while all threads are busy
        self._idle: deque[_Worker] = deque()  # the newest is woken first
        self._threads = 0
        self._lock = threading.Lock()

    @property
    def threads(self) -> int:
        """How many threads the pool holds now."""
        return self._threads

    def submit(self, fn: Callable[[], Any], notify: Callable[[], object] | None = None) -> Job:
        """Start ``fn`` on a thread, in a copy of the caller's context.

        Where there are no threads (emscripten) it runs at once, on the caller's.

        Args:
            fn: A function of no arguments.
            notify: Called on the worker thread when a job that was not abandoned is done.

        Raises:
            RuntimeError: The system gives no thread, and the pool has none.
        """
        job = Job(fn, notify)
        try:
            worker = self._idle.pop()
        except IndexError:
            self._submit_slowly(job)
        else:
            worker.job = job
            worker.wake.release()
        return job

    def _submit_slowly(self, job: Job) -> None:
        if not bridge.HAS_THREADS:
            job.run()
            job.done.release()
            if job.notify is not None:
                job.notify()
            return
        # A worker calls itself idle (or gone) and then looks into the queue; here the order is the other way
        # round, so whoever comes second sees the other, and no job is left lying.
        self._queue.append(job)
        try:
            worker = self._idle.pop()
        except IndexError:
            self._grow(job)
        else:
            worker.wake.release()

    def _grow(self, job: Job) -> None:
        with self._lock:
            if self._threads >= self.most:
                return
            self._threads += 1
        thread = threading.Thread(target=self._work, args=(_Worker(),), name="jarvis-worker", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system's own limit, or the interpreter is going down
            with self._lock:
                self._threads -= 1
                alone = self._threads == 0
            if alone:
                self._queue.remove(job)
                raise

    async def run(
        self, fn: Callable[[], Any], *, seconds: float | None = None, job_box: list[Job] | None = None
    ) -> Any:
        """Run ``fn`` on a thread and await its result.

        Args:
            fn: A function of no arguments.
            seconds: The deadline; None for none.
            job_box: Filled with the job, for a caller that must know whether it had started.

        Raises:
            DeadlinePassed: The job is given up.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        def notify() -> None:
            # A loop that was closed meanwhile raises: then nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake)

        job = self.submit(fn, notify)
        if job_box is not None:
            job_box.append(job)
        timer = None if seconds is None else loop.call_later(seconds, wake)
        try:
            await future
        except asyncio.CancelledError:
            job.give_up()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not job.finished:
            job.give_up()
            raise DeadlinePassed
        return job.value()

    def _work(self, worker: _Worker) -> None:
        while True:
            job = worker.job or self._next()
            worker.job = None
            if job is not None:
                job.run()
            # Idle before the caller wakes, so that its next job finds this thread.
            self._idle.append(worker)
            again = bool(self._queue) and self._take_back(worker)
            if job is not None:
                done, notify = job.done, None if job.abandoned else job.notify
                del job  # an idle thread holds nothing
                done.release()
                if notify is not None:
                    notify()
                    del notify
            # From here on the caller needs Python's lock: the shorter the way to the next line, the better.
            if again or worker.wake.acquire(True, IDLE_SECONDS):
                continue
            if not self._take_back(worker):
                worker.wake.acquire()  # a job came between the time-out and this line
            elif self._leave():
                return

    def _leave(self) -> bool:
        with self._lock:
            self._threads -= 1
        if not self._queue:
            return True
        with self._lock:
            self._threads += 1
        return False

    def _next(self) -> Job | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _take_back(self, worker: _Worker) -> bool:
        """Leave the idle list; False where somebody has just taken this worker from it."""
        try:
            self._idle.remove(worker)
        except ValueError:
            return False
        return True


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
