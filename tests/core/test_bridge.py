"""Sync over async: under a running loop, interruptible, and never stuck because of one bad run."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import time

import pytest

from jarvis_nb.core import bridge
from jarvis_nb.core.bridge import heartbeat, in_caller, run_sync, together
from jarvis_nb.core.threads import workers


async def double(n):
    await asyncio.sleep(0)
    return 2 * n


def interrupt_after(seconds):
    """Press the stop button of a notebook."""
    main = threading.main_thread().ident
    threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGINT)).start()


def test_a_coroutine_gives_its_result_or_its_error():
    assert run_sync(double(4)) == 8

    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_sync(fail())


def test_it_works_under_a_running_loop():
    """tools.md 21: the sync calls work under a running event loop."""

    async def cell():
        return run_sync(double(4))

    assert asyncio.run(cell()) == 8


def test_it_works_inside_itself():
    """A tool that asks synchronously, however deep."""

    async def outer(depth):
        await asyncio.sleep(0)
        return depth if depth == 3 else run_sync(outer(depth + 1))

    assert run_sync(outer(0)) == 3


def test_a_tool_on_a_thread_may_ask_while_the_loop_that_started_it_waits():
    """A blocked loop, a worker below it, and a synchronous ask below that."""

    async def outer():
        return run_sync(workers().run(lambda: run_sync(double(4))))

    async def outermost():
        return run_sync(outer())

    assert run_sync(outermost()) == 8


def test_nesting_costs_no_thread_each_time():
    async def outer():
        return run_sync(double(4))

    run_sync(outer())
    before = threading.active_count()
    for _ in range(20):
        run_sync(outer())
    assert threading.active_count() == before


def test_a_loop_that_is_given_up_ends_what_ran_on_it(caplog):
    ended = []

    async def background():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)

    async def start():
        task = asyncio.ensure_future(background())
        await asyncio.sleep(0)
        return task

    thread = bridge.LoopThread()
    thread.run(start())
    thread.stop()
    thread.thread.join(5)
    assert not thread.thread.is_alive()
    assert ended == [1]
    assert not caplog.records


def test_it_runs_in_the_context_of_its_caller():
    """The notebook: what is printed belongs to the cell that called."""
    cell: contextvars.ContextVar[int] = contextvars.ContextVar("cell", default=0)

    async def read():
        return cell.get()

    cell.set(7)
    assert run_sync(read()) == 7


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_would_end_a_loop_reaches_the_caller_and_the_loop_lives(stop):
    """tools.md 4: KeyboardInterrupt passes through."""

    async def raise_it():
        raise stop

    with pytest.raises(stop):
        run_sync(raise_it())
    assert run_sync(double(4)) == 8


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to one thread here")
def test_an_interrupt_cancels_the_run_and_comes_out_at_once():
    """tools.md 21: stop within 0.5 s of an interrupt."""
    ended = []

    async def long():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    interrupt_after(0.05)
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_sync(long())
    assert time.monotonic() - before < 0.5
    assert ended == ["cancelled"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to one thread here")
def test_a_run_that_holds_the_loop_does_not_hold_the_caller_nor_later_runs():
    """tools.md 21: stop within 0.5 s, also where a coroutine blocks."""
    release = threading.Event()

    async def blocks():
        release.wait(10)

    interrupt_after(0.02)
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_sync(blocks())
    assert time.monotonic() - before < 0.5
    assert run_sync(double(4)) == 8
    release.set()


def test_in_caller_runs_on_the_waiting_thread():
    """notebook: input() belongs to the thread that waits."""

    async def ask():
        return await in_caller(threading.get_ident), threading.get_ident()

    there, here = run_sync(ask())
    assert there == threading.get_ident() != here
    assert asyncio.run(ask()) == (threading.get_ident(), threading.get_ident())

    async def fail():
        await in_caller(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        run_sync(fail())


def test_without_threads_only_what_needs_no_waiting_runs(monkeypatch):
    """design.md: no threads on emscripten."""
    monkeypatch.setattr(bridge, "HAS_THREADS", False)

    async def at_once():
        return 7

    assert run_sync(at_once()) == 7

    async def cell():
        run_sync(asyncio.sleep(1))

    with pytest.raises(RuntimeError, match="use `await`"):
        asyncio.run(cell())


@pytest.mark.skipif(sys.platform == "win32", reason="the loop there has no selector to watch")
def test_a_heartbeat_wakes_a_sleeping_loop():
    """design.md rule 1: await paths wake every 100 ms."""
    waits = []

    async def main():
        select = loop._selector.select

        def counted(timeout=None):
            waits.append(timeout)
            return select(timeout)

        loop._selector.select = counted
        async with heartbeat():
            await asyncio.sleep(0.35)
        beats = len([t for t in waits if t is None or t > 0])
        await asyncio.sleep(0.15)
        return beats, len([t for t in waits if t is None or t > 0])

    loop = asyncio.SelectorEventLoop()
    try:
        beats, after = loop.run_until_complete(main())
    finally:
        loop.close()
    assert beats >= 4
    assert all(timeout is None or timeout <= 0.16 for timeout in waits)
    assert after == beats + 1  # it beats only while a request is in flight


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_gets_a_loop_of_its_own():
    assert run_sync(double(1)) == 2
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run_sync(double(2)) == 4 else 1)
    assert os.waitpid(pid, 0)[1] == 0


# together.


async def _after(seconds, value, log=None):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if log is not None:
            log.append(f"{value} cancelled")
        raise
    if isinstance(value, BaseException):
        raise value
    return value


def test_together_keeps_order():
    assert run_sync(together([_after(0.02, 1), _after(0, 2), _after(0.01, 3)])) == [1, 2, 3]
    assert run_sync(together([])) == []


@pytest.mark.parametrize("failure", [ValueError("x"), KeyboardInterrupt()])
def test_together_a_failure_ends_the_others(failure):
    log = []
    started = time.perf_counter()
    with pytest.raises(type(failure)):
        run_sync(together([_after(5, "slow", log), _after(0.01, failure)]))
    assert log == ["slow cancelled"]
    assert time.perf_counter() - started < 2


def test_together_an_interrupt_leaves_the_loop_alive():
    """tools.md 4: raised out of a task of its own it would end a notebook's loop."""

    async def main():
        with pytest.raises(KeyboardInterrupt):
            await together([_after(0, KeyboardInterrupt()), _after(0, 1)])
        return await _after(0, "alive")

    assert asyncio.run(main()) == "alive"


def test_together_cancelled_from_outside():
    log = []

    async def main():
        task = asyncio.ensure_future(together([_after(5, "a", log), _after(5, "b", log)]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["a cancelled", "b cancelled"]
