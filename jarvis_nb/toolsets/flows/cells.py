"""Which run of a notebook cell this is: so that a cell that runs again replaces what it declared."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

_counters: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()


def cell_run() -> int:
    """Return a number that differs between two runs of notebook cells; 0 where there is no notebook.

    IPython's own ``execution_count`` does not tell: it stands still for cells run without history.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return 0
    counter = _counters.get(shell)
    if counter is None:
        counter = _counters[shell] = [1]

        def tick(*_: Any) -> None:
            counter[0] += 1

        shell.events.register("pre_run_cell", tick)
    return counter[0]
