"""A progress line for indexing: in a terminal or a notebook, and only if it takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.memory.ingest import Progress

PATIENCE_SECONDS = 1.0
"""Before this nothing is shown, so that a quick index leaves no trace in a notebook's stored output."""
EVERY_SECONDS = 0.2


@contextmanager
def shown(given: Progress | None) -> Generator[Progress | None]:
    """Give the callback to use: the caller's own, or one that shows a line which is gone at the end."""
    if given is not None:
        yield given
        return
    line = _Line(_write_to())
    try:
        yield line.tell if line.write is not None else None
    finally:
        line.clear()


class _Line:
    def __init__(self, write: Any) -> None:
        self.write = write
        self.next = time.monotonic() + PATIENCE_SECONDS
        self.visible = False

    def tell(self, done: int, total: int, source: str) -> None:
        now = time.monotonic()
        if now >= self.next:
            self.next = now + EVERY_SECONDS
            self.visible = True
            self.write(f"indexing {done} of {total} files: {source}"[:100])

    def clear(self) -> None:
        if self.visible:
            self.write("")


def _write_to() -> Any:
    """Return a function that shows one line in place of the one before; None where nobody looks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return _notebook_writer()
    if sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None under pythonw
        return _terminal_writer
    return None


def _terminal_writer(text: str) -> None:
    print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)  # noqa: T201 - progress


def _notebook_writer() -> Any:
    from IPython.display import display

    handles: list[Any] = []

    def write(text: str) -> None:
        data = {"text/plain": text}
        if handles:
            handles[0].update(data, raw=True)
        else:
            handles.append(display(data, raw=True, display_id=True))

    return write
