"""Handles a widget's messages on the main thread while a cell runs there.

A kernel handles no message before the cell ends, so a click could not reach a cell that waits for it. This
reads the kernel's own queue meanwhile: comm messages are handled, all others are kept and given back in
order. It stands on private parts of ipykernel (6.31 and 7.0 to 7.4 were tried): where one is missing,
:class:`NoPump` is raised and the caller asks in another way.
"""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self


class NoPump(Exception):  # noqa: N818 - nothing failed: there is none
    """This kernel cannot be pumped."""


class Pump:
    """Use it as a context manager on the kernel's main thread.

    Raises:
        NoPump: When it is made: a part of the kernel is missing.
    """

    def __init__(self, kernel: Any) -> None:
        try:
            import zmq

            self._zmq = zmq
            self._kernel = kernel
            self._kept: list[Any] = []
            thread = getattr(kernel, "shell_channel_thread", None)
            self._seven = thread is not None
            manager = None if thread is None else thread.manager
            to_main = None if manager is None else manager._shell_channel_to_main  # noqa: SLF001 - see above
            self._stream: Any = kernel.shell_stream if to_main is None else to_main.to_stream
            self._socket = self._stream.socket
            self._callback = self._stream._recv_callback  # noqa: SLF001 - see above
            self._loop = asyncio.get_running_loop() if self._seven else kernel.io_loop.asyncio_loop
            handlers = kernel.shell_handlers
            needed = (self._stream.stop_on_recv, self._stream._handle_events, kernel.session.feed_identities)  # noqa: SLF001 - see above
            if self._callback is None or "comm_msg" not in handlers or not all(map(callable, needed)):
                raise NoPump
            self._ident()
        except (AttributeError, ImportError, LookupError, RuntimeError, TypeError) as error:
            raise NoPump from error

    def _ident(self) -> Any:
        return self._kernel._shell_parent_ident.get() if self._seven else self._kernel._parent_ident["shell"]  # noqa: SLF001 - see above

    def __enter__(self) -> Self:
        self._stream.stop_on_recv()
        return self

    def poll(self, seconds: float) -> None:
        """Wait so long for messages and handle those that came."""
        if not self._socket.poll(int(seconds * 1000), self._zmq.POLLIN):
            return
        while True:
            try:
                raw = self._socket.recv_multipart(self._zmq.NOBLOCK, copy=False)
            except self._zmq.Again:
                return
            self._handle(raw)

    def _handle(self, raw: Any) -> None:
        kernel = self._kernel
        try:
            idents, frames = kernel.session.feed_identities(raw, copy=False)
            kind = json.loads(bytes(frames[1]))["msg_type"]
        except Exception:
            self._kept.append(raw)  # the kernel itself says what is wrong with it
            return
        if kind not in {"comm_msg", "comm_open", "comm_close"}:
            self._kept.append(raw)
            return
        message = kernel.session.deserialize(frames, content=True, copy=False)
        parent, ident = kernel.get_parent("shell"), self._ident()
        kernel.set_parent(idents, message, channel="shell")
        try:
            kernel.shell_handlers[kind](self._stream, idents, message)
        except Exception:
            kernel.log.exception("a widget's message failed while a cell waits")
        finally:
            kernel.set_parent(ident, parent, channel="shell")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        for raw in self._kept:  # one task each: the kernel's lock keeps their order
            result = self._callback(raw)
            if asyncio.iscoroutine(result):
                asyncio.ensure_future(result)  # noqa: RUF006 - the kernel's loop runs it, as it would have
        self._stream.on_recv(self._callback, copy=False)
        self._stream._handle_events(self._socket, 0)  # noqa: SLF001 - zmq tells of a message once: look once
