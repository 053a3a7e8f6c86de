"""Run the measurements and print one table: ``python -m benchmarks [NAME …] [--repeats N]``.

Every repeat visits both sides of every row once, each in a fresh process, in turns; a figure is the median over
the repeats, a ratio the median of the ratios within each repeat, so that load which comes and goes hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks import start
from benchmarks.rows import ROWS, SCALE, Row

OTHERS = ("transports", "memory", "embedded")
"""Measurements with tables of their own, run by name first: ``python -m benchmarks memory …``."""
FEWEST = 7
PATIENCE = 300
"""Seconds one measurement may take."""

Samples = dict[str, list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: with ``--check`` 1 where a goal was missed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    others = [name for name in OTHERS if find_spec(f"benchmarks.{name}")]
    if arguments and arguments[0] in others:
        return subprocess.call([sys.executable, "-m", f"benchmarks.{arguments[0]}", *arguments[1:]])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    names = [row.name for row in ROWS]
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(names + others)}; none: all rows"
    )
    parser.add_argument("--repeats", type=int, default=FEWEST, help="of every row (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--json", metavar="FILE", help="write every single figure there")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"unknown: {' '.join(unknown)}; there are {', '.join(names + others)}")
    rows = [row for row in ROWS if not given.names or row.name in given.names]
    begun = time.monotonic()
    with server() as url:
        measured = run(rows, given.repeats, url)
    if given.json:
        Path(given.json).write_text(json.dumps(measured, indent=1), encoding="utf-8")
    print(f"\n{given.repeats} repeats, {time.monotonic() - begun:.0f} s; {machine()}\n")
    missed = print_table(rows, measured)
    return missed if given.check else 0


@contextmanager
def server() -> Generator[str]:
    """Run the model server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=start.environment()) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def run(rows: list[Row], repeats: int, url: str) -> dict[str, Samples]:
    """Measure every row, repeat by repeat, when all modules are compiled."""
    for side in ("ours", "floor"):
        start.first(side, url)
    measured: dict[str, Samples] = {row.name: {"ours": [], "floor": []} for row in rows}
    for repeat in range(repeats):
        for row in rows:
            say(f"repeat {repeat + 1} of {repeats}: {row.title}")
            sides = ["ours", "floor"] if repeat % 2 else ["floor", "ours"]
            for side in sides:
                if side == "ours" or row.floor != "":
                    measured[row.name][side].append(measure(row, side, url))
    say("")
    return measured


def measure(row: Row, side: str, url: str) -> float:
    """Measure one side of one row in a fresh process."""
    what, params = row.what, row.params
    if side == "floor" and row.floor:
        other = next(r for r in ROWS if r.name == row.floor)
        what, params = other.what, other.params
    if hasattr(start, what):
        return getattr(start, what)(side, url)[row.metric] * SCALE[row.unit]
    command = [sys.executable, "-m", "benchmarks.measure", side, what, url, json.dumps(params)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=start.environment(), timeout=PATIENCE, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("@@")]
    if done.returncode or not lines:
        raise SystemExit(f"\n{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    result: dict[str, float] = json.loads(lines[-1][2:])
    return result[row.metric] * SCALE[row.unit]


def print_table(rows: list[Row], measured: dict[str, Samples]) -> int:
    """Print the lines as Markdown; return how many goals were missed, as 0 or 1."""
    print("| workload | ours | floor | ratio | goal | |")
    print("|---|--:|--:|--:|--:|---|")
    missed = 0
    for row in rows:
        ours, floor = measured[row.name]["ours"], measured[row.name]["floor"]
        ratios = [a / b for a, b in zip(ours, floor, strict=True)] if floor else []
        value = median(ours) if row.kind == "alone" else median(ratios)
        met = value >= row.goal if row.kind == "at least" else value <= row.goal
        missed |= not met
        unit = f" {row.unit}" if row.kind == "alone" and row.unit != "x" else " x"
        cells = [
            f"{row.title} (`{row.name}`)",
            f"{number(median(ours))} {row.unit}",
            f"{number(median(floor))} {row.unit}" if floor else "",
            f"{number(median(ratios))} x" if ratios else "",
            f"{'≥' if row.kind == 'at least' else '≤'} {row.goal:,g}{unit}",
            "met" if met else "**not met**",
        ]
        print("| " + " | ".join(cells) + " |")
    return int(missed)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def machine() -> str:
    """Say in a line what this was measured on."""
    model = ""
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = cpus.read_text(encoding="utf-8").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.system()}, {os.cpu_count()} x {model or platform.machine()}, load {load}"


def say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
