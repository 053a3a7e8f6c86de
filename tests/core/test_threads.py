"""Worker threads: as many as needed, never in the way, and honest about what still runs."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time

import pytest

from jarvis_nb.core import bridge, threads
from jarvis_nb.core.threads import WorkerPool, workers


@pytest.fixture
def gate():
    """Lets stuck jobs go at the end of a test."""
    event = threading.Event()
    yield event
    event.set()


def eventually(condition, seconds=2.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_job_gives_its_result_or_its_error():
    pool = WorkerPool()
    job = pool.submit(lambda: 1 + 1)
    assert job.wait(5)
    assert job.value() == 2
    job = pool.submit(lambda: 1 / 0)
    assert job.wait(5)
    with pytest.raises(ZeroDivisionError):
        job.value()


def test_system_exit_is_the_jobs_outcome_and_the_thread_lives_on():
    """tools.md 4: SystemExit."""
    pool = WorkerPool()
    job = pool.submit(lambda: sys.exit(3))
    assert job.wait(5)
    with pytest.raises(SystemExit):
        job.value()
    assert pool.submit(threading.get_ident).wait(5)
    assert pool.threads == 1


def test_threads_are_used_again_and_jobs_of_one_caller_use_one():
    pool = WorkerPool()
    idents = set()
    for _ in range(200):
        job = pool.submit(threading.get_ident)
        assert job.wait(5)
        idents.add(job.value())
    assert len(idents) == pool.threads <= 2


def test_a_round_of_32_runs_at_once():
    """tools.md 7: calls of one round run concurrently; not in waves of cores + 4."""
    pool, barrier = WorkerPool(), threading.Barrier(32)
    jobs = [pool.submit(lambda: barrier.wait(5)) for _ in range(32)]
    assert all(job.wait(5) for job in jobs)
    assert sorted(job.value() for job in jobs) == list(range(32))


def test_stuck_jobs_cannot_grow_threads_without_bound(gate):
    """tools.md 5."""
    pool = WorkerPool(most=4)
    jobs = [pool.submit(gate.wait) for _ in range(4)]
    waiting = [pool.submit(lambda: None) for _ in range(20)]
    assert pool.threads == 4
    assert not waiting[0].wait(0.02)
    assert not waiting[0].started
    gate.set()
    assert all(job.wait(5) for job in jobs + waiting[1:])
    assert pool.threads == 4
    assert not waiting[0].started  # given up before its turn: it never starts
    assert not waiting[0].finished


def test_what_overran_is_marked_and_its_late_result_ignored(gate):
    """tools.md 5: the thread is marked abandoned."""
    told = []
    job = WorkerPool().submit(gate.wait, notify=lambda: told.append(1))
    assert not job.wait(0.01)
    assert (job.started, job.abandoned, job.finished) == (True, True, False)
    gate.set()
    eventually(lambda: job.finished)
    assert told == []


def test_giving_up_and_starting_never_both_win():
    """flows.md 5, tools.md 5: `started` is the truth, also when both come at once."""
    pool = WorkerPool(most=2)
    for _ in range(300):
        ran = []
        job = pool.submit(lambda ran=ran: ran.append(1))
        job.give_up()
        started = job.started
        pool.submit(lambda: None).wait(5)
        pool.submit(lambda: None).wait(5)
        if not started:
            assert not ran


def test_a_job_runs_in_the_context_of_its_caller():
    """tools.md 4 and the notebook: what a tool prints belongs to the cell that called it."""
    cell: contextvars.ContextVar[int] = contextvars.ContextVar("cell", default=0)
    pool = WorkerPool()
    seen = []
    for n in (1, 2):
        cell.set(n)
        job = pool.submit(lambda: (seen.append(cell.get()), cell.set(99)))
        assert job.wait(5)
        assert cell.get() == n
    assert seen == [1, 2]


def test_idle_threads_end_and_later_jobs_still_run(monkeypatch):
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)
    pool = WorkerPool()
    assert pool.submit(lambda: None).wait(5)
    eventually(lambda: pool.threads == 0)
    for _ in range(50):  # jobs that come just as a thread is leaving are not lost
        assert pool.submit(lambda: None).wait(5)
        time.sleep(0.0095)


def test_many_callers_lose_no_job():
    pool, done = WorkerPool(most=3), []

    def caller(n):
        for i in range(100):
            job = pool.submit(lambda i=i: (n, i))
            assert job.wait(10)
            done.append(job.value())

    callers = [threading.Thread(target=caller, args=(n,)) for n in range(8)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert sorted(done) == [(n, i) for n in range(8) for i in range(100)]
    assert pool.threads <= 3


def test_a_system_without_further_threads_uses_those_there_are(monkeypatch, gate):
    pool = WorkerPool()
    stuck = pool.submit(gate.wait)
    eventually(lambda: stuck.started)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    job = pool.submit(lambda: 7)
    gate.set()
    assert job.wait(5)
    assert job.value() == 7
    with pytest.raises(RuntimeError, match="new thread"):
        WorkerPool().submit(lambda: 7)


def test_without_threads_a_job_runs_at_once(monkeypatch):
    """design.md: no threads on emscripten."""
    monkeypatch.setattr(bridge, "HAS_THREADS", False)
    pool = WorkerPool()
    job = pool.submit(threading.get_ident)
    assert job.wait(0)
    assert job.value() == threading.get_ident()
    assert asyncio.run(pool.run(lambda: 7, seconds=1)) == 7
    assert pool.threads == 0


def test_awaiting_a_job():
    async def main():
        assert await workers().run(lambda: 7) == 7
        with pytest.raises(KeyError):
            await workers().run(lambda: {}["x"])
        with pytest.raises(KeyboardInterrupt):
            await workers().run(lambda: (_ for _ in ()).throw(KeyboardInterrupt))

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0.05, 0.0])
def test_awaiting_ends_at_the_deadline(gate, seconds):
    """tools.md 5: a timeout returns at the deadline."""

    async def main():
        box: list = []
        before = time.perf_counter()
        with pytest.raises(TimeoutError):
            await workers().run(gate.wait, seconds=seconds, job_box=box)
        assert time.perf_counter() - before < seconds + 0.1
        assert box[0].abandoned

    asyncio.run(main())


def test_cancelling_is_not_mistaken_for_the_deadline(gate):
    """flows.md 8, tools.md 21."""

    async def main():
        box: list = []
        task = asyncio.ensure_future(workers().run(gate.wait, seconds=30, job_box=box))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (box[0].started, box[0].abandoned) == (True, True)
        # A task that was cancelled once and goes on still tells its deadline from another cancelling.
        me = asyncio.current_task()
        assert me is not None
        me.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await workers().run(gate.wait, seconds=0.01)
        me.uncancel()

    asyncio.run(main())


def test_a_job_that_ends_after_its_loop_is_no_error(gate, caplog):
    async def main():
        task = asyncio.ensure_future(workers().run(gate.wait))
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(main())
    gate.set()
    time.sleep(0.02)
    assert not caplog.records


def test_very_long_deadlines_are_taken():
    assert WorkerPool().submit(lambda: 7).wait(1e30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_gets_a_pool_of_its_own():
    assert workers().submit(lambda: None).wait(5)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if workers().submit(lambda: None).wait(5) else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.slow
def test_a_stuck_tool_does_not_keep_the_process_from_exiting():
    """tools.md 5."""
    code = (
        "import time; from jarvis_nb.core.threads import workers\n"
        "job = workers().submit(lambda: time.sleep(60)); print(job.wait(0.1))"
    )
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "False\n"
    assert done.stderr == ""
    assert time.monotonic() - before < 10


def test_importing_starts_no_thread():
    """design.md rule 7."""
    assert WorkerPool().threads == 0
