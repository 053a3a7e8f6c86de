"""Who looks: an IPython kernel with a front end, a terminal, or nobody."""

from __future__ import annotations

import sys
from typing import Any


def kernel() -> Any:
    """Return the IPython kernel this process is, or None. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)


def live_kernel() -> Any:
    """Return the kernel if a person looks at it: under nbclient, papermill and nbval it allows no input."""
    found = kernel()
    return found if found is not None and getattr(found, "_allow_stdin", False) else None


def can_input() -> bool:
    """Whether ``input()`` reaches a person."""
    found = kernel()
    if found is not None:
        # JupyterLite's kernel: always with a page, and without ipykernel's flag.
        if sys.platform == "emscripten":
            return True
        return bool(getattr(found, "_allow_stdin", False))
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison] - None under pythonw


def cell() -> str:
    """Return what identifies the cell that runs; empty outside of a kernel."""
    found = kernel()
    try:
        return str(found.get_parent("shell")["header"]["msg_id"])
    except (AttributeError, KeyError, LookupError, TypeError):
        return ""
