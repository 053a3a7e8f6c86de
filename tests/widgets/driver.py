"""A bare Jupyter client that plays the front end: no browser, any ipykernel."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager


@dataclass
class Said:
    """What a cell sent, in order."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""
    error: str = ""

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [m["content"] for m in self.messages if m["msg_type"] in kinds]

    @property
    def text(self) -> str:
        return "".join(c["text"] for c in self.of("stream"))

    def outputs(self) -> list[dict[str, Any]]:
        """Return the outputs as a page would hold them at the end: updates applied."""
        shown: list[dict[str, Any]] = []
        by_id: dict[str, dict[str, Any]] = {}
        for message in self.messages:
            content = message["content"]
            kind = message["msg_type"]
            if kind in {"display_data", "execute_result"}:
                one = {"kind": kind, "data": content["data"]}
                shown.append(one)
                name = content.get("transient", {}).get("display_id")
                if name:
                    by_id[name] = one
            elif kind == "update_display_data":
                by_id[content["transient"]["display_id"]]["data"] = content["data"]
        return shown


OLDEST = "6.31.0"
"""The oldest ipykernel that is supported."""

Reaction = Callable[["Kernel", dict[str, Any]], None]


class Kernel:
    """One kernel and its client."""

    def __init__(self, env: dict[str, str] | None = None, *, subshell: bool = False) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env={**os.environ, **(env or {})})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.subshell_id: str | None = None
        if subshell:
            self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
            with contextlib.suppress(queue.Empty):
                reply = self.client.get_control_msg(timeout=5)
                self.subshell_id = reply["content"].get("subshell_id")

    def send(self, comm_id: str, content: dict[str, Any]) -> None:
        """Send what a widget's script would send."""
        data = {"method": "custom", "content": content}
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        if self.subshell_id:
            message["header"]["subshell_id"] = self.subshell_id
        self.client.shell_channel.send(message)

    def run(
        self,
        code: str,
        *,
        allow_stdin: bool = True,
        react: Reaction | None = None,
        answer: str | None = None,
        timeout: float = 40,
    ) -> Said:
        """Run a cell until it is idle; ``react`` sees each message, ``answer`` goes to ``input()``."""
        said = Said()
        sent = self.client.execute(code, allow_stdin=allow_stdin)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if answer is not None:
                with contextlib.suppress(queue.Empty):
                    asked = self.client.get_stdin_msg(timeout=0)
                    said.messages.append({"msg_type": "input_request", "content": asked["content"]})
                    self.client.input(answer)
            try:
                message = self.client.get_iopub_msg(timeout=0.1)
            except queue.Empty:
                continue
            said.messages.append(message)
            if react is not None:
                react(self, message)
            mine = message["parent_header"].get("msg_id") == sent
            if message["msg_type"] == "error" and mine:
                said.error = "\n".join(message["content"]["traceback"])
            if mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                said.status = "done"
                return said
        said.status = "hung"
        return said

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@contextlib.contextmanager
def kernel(env: dict[str, str] | None = None, *, subshell: bool = False) -> Iterator[Kernel]:
    """Start a kernel and end it."""
    one = Kernel(env, subshell=subshell)
    try:
        yield one
    finally:
        one.close()
