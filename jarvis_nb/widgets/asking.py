"""Asking a person while a cell runs: the gate, and what is done where it cannot be shown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any
from weakref import WeakKeyDictionary

from jarvis_nb.core.approval import ApprovalRequest, Approve, Decision
from jarvis_nb.core.bridge import caller_waits, in_caller
from jarvis_nb.run.frontend import cell, live_kernel
from jarvis_nb.widgets.gate import ApprovalGate
from jarvis_nb.widgets.pump import NoPump, Pump

log = logging.getLogger("jarvis_nb.widgets")

HELLO_SECONDS = 10.0
"""A page whose widget said nothing in this time runs no scripts of ours: the question goes to ``input()``."""
POLL_SECONDS = 0.05
PLAIN_FUTURE = (7, 4)
"""From this ipykernel on, comm messages are handled while a cell awaits."""

Prompt = Callable[[ApprovalRequest], Decision]

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_records: list[tuple[str, str, Any]] = []
"""The gates of the cell that runs: the cell's id, the call's, the display handle."""


async def ask_in_cell(request: ApprovalRequest, always: set[str], prompt: Prompt) -> Decision:
    """Show the gate in the running cell and wait for the answer; one gate at a time.

    Args:
        request: The call.
        always: Tools that need no asking any more: looked at when this gate's turn comes.
        prompt: Asks by ``input()``, where the page does not answer.
    """
    loop = asyncio.get_running_loop()
    async with _turns.setdefault(loop, asyncio.Lock()):
        if request.name in always:
            return Approve()
        gate = ApprovalGate(request)
        handle = _show(gate)
        try:
            decision = await _wait(gate, loop)
            if decision is None:
                gate.change(status="answer in the text prompt below")
                decision = await in_caller(lambda: prompt(request))
                gate.settle(decision)
            return decision
        except BaseException:
            gate.change(status="■ interrupted: it does not run")
            raise
        finally:
            gate.commit()
            if handle is not None:
                handle.update(gate.static(), raw=True)


def _show(gate: ApprovalGate) -> Any:
    from IPython.display import display

    here = cell()
    _records[:] = [one for one in _records if one[0] == here]
    try:
        handle: Any = display(gate.bundle(), raw=True, display_id=True)
    except Exception:
        log.exception("the approval gate cannot be shown")
        return None
    _records.append((here, gate.request.call_id, handle))
    return handle


def clear_records(call_ids: Collection[str]) -> None:
    """Take the answered gates of these calls out of the cell that runs: its card tells what came of them."""
    here = cell()
    for name, call_id, handle in _records:
        if name == here and call_id in call_ids:
            handle.update({}, raw=True)
    _records[:] = [one for one in _records if one[0] == here and one[1] not in call_ids]


async def wait_for(gate: ApprovalGate, *, heard: bool = False) -> Decision | None:
    """Wait for the answer to a gate that stands somewhere already; None where none can come.

    Args:
        gate: The gate.
        heard: The page it stands in is known to run its script.
    """
    gate.heard = gate.heard or heard
    return await _wait(gate, asyncio.get_running_loop())


async def _wait(gate: ApprovalGate, loop: asyncio.AbstractEventLoop) -> Decision | None:
    """Wait for an answer from the page; None where the page will not give one."""
    kernel = live_kernel()
    if kernel is None:
        return None
    if caller_waits():
        return await in_caller(lambda: _block(gate, kernel))
    pump = None
    if _is_main(kernel, loop) and not _plain_future():
        try:
            pump = Pump(kernel)
        except NoPump:
            return None
    return await _await(gate, loop, pump)


def _block(gate: ApprovalGate, kernel: Any) -> Decision | None:
    """Wait on the caller's thread. On any but the main one the kernel itself handles the messages."""
    if threading.current_thread() is not threading.main_thread():
        _until(gate, gate.done.wait)
        return gate.decision
    try:
        pump = Pump(kernel)
    except NoPump:
        return None
    with pump:
        _until(gate, pump.poll)
    return gate.decision


def _until(gate: ApprovalGate, wait: Callable[[float], object]) -> None:
    end = time.monotonic() + HELLO_SECONDS
    while not gate.done.is_set() and (gate.heard or time.monotonic() < end):
        wait(POLL_SECONDS)


async def _await(gate: ApprovalGate, loop: asyncio.AbstractEventLoop, pump: Pump | None) -> Decision | None:
    woken = asyncio.Event()

    def wake() -> None:  # from whatever thread: ipykernel 7.0 to 7.3 use one for widgets
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(woken.set)

    gate.woken = wake
    end = time.monotonic() + HELLO_SECONDS
    with pump or contextlib.nullcontext():
        while not gate.done.is_set() and (gate.heard or time.monotonic() < end):
            if pump is not None:
                pump.poll(0)
            with contextlib.suppress(TimeoutError):  # wait_for of Python 3.11 may swallow an interrupt here
                async with asyncio.timeout(POLL_SECONDS if pump else HELLO_SECONDS / 20):
                    await woken.wait()
            woken.clear()
    return gate.decision


def _plain_future() -> bool:
    from ipykernel._version import version_info

    return tuple(version_info[:2]) >= PLAIN_FUTURE


def _is_main(kernel: Any, loop: asyncio.AbstractEventLoop) -> bool:
    return getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None) is loop or (
        threading.current_thread() is threading.main_thread()
    )
