"""Measure each tutorial in a fresh kernel: seconds and peak memory. Writes docs/notebook-costs.md.

    python scripts/notebook_costs.py [--most MB]

The second run of each notebook counts (the first fills the caches of the disk). Peak memory is the resident set of
the kernel process, as Linux keeps it. With ``--most`` the exit code is 1 if a notebook takes more.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from pathlib import Path

import notebooks

PAGE = notebooks.ROOT / "docs" / "notebook-costs.md"
HEAD = """# What the tutorials cost

Made by `python scripts/notebook_costs.py`: each notebook in a fresh kernel, second run. *Cells* is the time from the
first cell to the last; *peak* is the most memory the kernel had at once, Python and Jupyter included.

| notebook | cells, seconds | with the kernel's start, seconds | peak, MB |
|---|---:|---:|---:|
"""


def measure(source: Path) -> tuple[float, float, float]:
    """Return seconds of the cells, seconds in all, and the kernel's peak memory in MB."""
    from nbclient import NotebookClient

    notebook = notebooks.build(source)
    client = NotebookClient(
        notebook,
        timeout=notebooks.CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebooks.NOTEBOOKS)}},
    )
    begun = time.perf_counter()
    with client.setup_kernel(env=notebooks.environment()):
        ready = time.perf_counter()
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        done = time.perf_counter()
        pid = client.km.provisioner.pid
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return done - ready, done - begun, int(peak[1]) / 1000


def main() -> int:
    """Measure all and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=float, metavar="MB")
    args = parser.parse_args()
    lines: list[str] = []
    most = 0.0
    for source in notebooks.sources([]):
        measure(source)
        cells, whole, peak = measure(source)
        most = max(most, peak)
        link = f"[{source.stem}](lessons/{source.stem}.ipynb)"
        lines.append(f"| {link} | {cells:.1f} | {whole:.1f} | {peak:.0f} |")
        print(lines[-1], flush=True)
    python = f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}"
    PAGE.write_text(HEAD + "\n".join(lines) + f"\n\n{python}.\n", encoding="utf-8")
    return int(args.most is not None and most > args.most)


if __name__ == "__main__":
    sys.exit(main())
