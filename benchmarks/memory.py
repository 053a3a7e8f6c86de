"""Memory: how well and how fast it finds. ``python -m benchmarks memory [quality|speed|all] [--sizes 1000,10000]``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks import memory_quality, memory_speed


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: with ``--check`` 1 where a goal of speed was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["quality", "speed", "all"], default="all")
    parser.add_argument("--sets", help=f"of {', '.join(memory_quality.SETS)} (default: all but reserve)")
    parser.add_argument("--sizes", default="1000,10000,100000", help="passages (default: %(default)s)")
    parser.add_argument("--words", type=int, default=100, help="of a passage (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="fail where a goal of speed is missed")
    given = parser.parse_args(arguments)
    met = True
    if given.what in ("quality", "all"):
        memory_quality.run(given.sets.split(",") if given.sets else [])
    if given.what in ("speed", "all"):
        met = memory_speed.run([int(size) for size in given.sizes.split(",")], given.words)
    return 1 if given.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
