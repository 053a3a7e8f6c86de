"""Measure each tutorial in a fresh kernel: seconds and peak memory (Linux). Writes docs/notebook-costs.md.

    python scripts/notebook_costs.py [--python PATH] [--most MB] [--no-page]

The second run of each notebook counts (the first fills the caches of the disk). Peak memory is the resident set of
the kernel process, as Linux keeps it. ``--python`` takes another interpreter's kernel. With ``--most`` the exit code
is 1 if a notebook takes more.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import notebooks

PAGE = notebooks.ROOT / "docs" / "notebook-costs.md"
HEAD = """# What the tutorials cost

Made by `python scripts/notebook_costs.py`: each notebook in a fresh kernel, second run. *Cells* is the time from the
first cell to the last, *processor* what the kernel itself computed in it (on a busy machine the two differ); *peak* is
the most memory the kernel had at once, Python and Jupyter included. The last line
is the embedded model, loaded and asked the question of lesson 1.

| notebook | cells, seconds | processor, seconds | peak, MB |
|---|---:|---:|---:|
"""


LIVE = """from jarvis_nb import Jarvis
with Jarvis(engine="local") as j:
    j.ask_full("What is 15% of 340?", tools=["calculator", "think"]).expect(calls=["calculator"])"""


def live() -> Any:
    """Return a notebook that asks the embedded model itself."""
    from nbformat import v4

    return v4.new_notebook(cells=[v4.new_code_cell(LIVE)])


def measure(notebook: Any, python: str) -> tuple[float, float, float]:
    """Return the cells' seconds by the clock and of the processor, and the kernel's peak memory in MB."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    manager = AsyncKernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    resources = {"metadata": {"path": str(notebooks.NOTEBOOKS)}}
    client = NotebookClient(notebook, km=manager, timeout=notebooks.CELL_SECONDS, resources=resources)
    with client.setup_kernel(env=notebooks.environment(), cleanup_kc=True):
        process = Path(f"/proc/{manager.provisioner.pid}")
        began, begun = processor(process), time.perf_counter()
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        taken, computed = time.perf_counter() - begun, processor(process) - began
        status = (process / "status").read_text(encoding="utf-8")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return taken, computed, int(peak[1]) / 1000


def processor(process: Path) -> float:
    """Return the processor seconds that a process has used."""
    fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure all and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, metavar="PATH")
    parser.add_argument("--most", type=float, metavar="MB")
    parser.add_argument("--no-page", action="store_true")
    args = parser.parse_args()
    jobs = [
        (f"[{source.stem}](lessons/{source.stem}.ipynb)", partial(notebooks.build, source))
        for source in notebooks.sources([])
    ]
    lines: list[str] = []
    most = 0.0
    for name, make in [*jobs, ("the embedded model, live", live)]:
        measure(make(), args.python)
        taken, computed, peak = measure(make(), args.python)
        most = max(most, peak)
        lines.append(f"| {name} | {taken:.1f} | {computed:.1f} | {peak:.0f} |")
        print(lines[-1], flush=True)
    python = f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}"
    if not args.no_page:
        PAGE.write_text(HEAD + "\n".join(lines) + f"\n\n{python}.\n", encoding="utf-8")
    return int(args.most is not None and most > args.most)


if __name__ == "__main__":
    sys.exit(main())
