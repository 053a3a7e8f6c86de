"""A real kernel for tests: runs cells, interrupts them, and tells how long the stop took."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop


@dataclass
class Cell:
    """What came of one cell."""

    status: str = ""
    error: str | None = None
    """The exception's name."""
    printed: str = ""
    value: str | None = None
    """The last expression's value, as text."""
    stopped_in: float | None = None
    """Seconds from the interrupt to the kernel's idle."""
    trace: str = ""


class Kernel:
    """One kernel.

    Args:
        command: How it is started; None for the kernel of this Python.
    """

    def __init__(self, command: list[str] | None = None) -> None:
        self._manager = KernelManager(kernel_name="python3")
        if command is not None:
            self._manager.kernel_spec.argv = command
        self._manager.start_kernel()
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    @property
    def pid(self) -> int:
        return self._manager.provisioner.pid

    def alive(self) -> bool:
        return self._manager.is_alive()

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    def run(
        self, code: str, *, interrupt_when: Callable[[], bool] | None = None, timeout: float = 20
    ) -> Cell:
        """Run one cell to its idle."""
        cell, stopped_at = Cell(), []
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.01):
                if interrupt_when():
                    time.sleep(0.1)  # what was entered is under way
                    stopped_at.append(time.perf_counter())
                    self.interrupt()
                    return

        def take(message: Any) -> None:
            content, kind = message["content"], message["msg_type"]
            if kind == "stream":
                cell.printed += content["text"]
            elif kind == "error":
                cell.error, cell.trace = content["ename"], "\n".join(content["traceback"])
            elif kind == "execute_result":
                cell.value = content["data"]["text/plain"]
            elif kind == "status" and content["execution_state"] == "idle" and stopped_at:
                cell.stopped_in = time.perf_counter() - stopped_at[0]

        watcher = threading.Thread(target=watch) if interrupt_when else None
        if watcher:
            watcher.start()
        try:
            reply = self._client.execute_interactive(code, output_hook=take, timeout=timeout)
        finally:
            done.set()
            if watcher:
                watcher.join()
        cell.status = reply["content"]["status"]
        return cell

    def ok(self, code: str) -> Cell:
        """Run one cell that must not fail."""
        cell = self.run(code)
        assert cell.status == "ok", cell.trace
        return cell

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.context.destroy()
        ensure_event_loop().close()  # the client's own: nobody else closes it
