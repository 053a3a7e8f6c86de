"""What is measured, and the goals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["at most", "at least", "alone"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ``at most`` and ``at least`` bound the ratio of ours to the floor's; ``alone`` bounds our own figure, in the
    row's unit.
    """

    name: str
    title: str
    what: str
    """The function that measures, in :mod:`benchmarks.measure`, :mod:`benchmarks.alone`,
    :mod:`benchmarks.cell` or :mod:`benchmarks.start`."""
    metric: str
    unit: str
    goal: float
    kind: Kind = "at most"
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    floor: str | None = None
    """What the floor measures, where it is something else than ours; empty for no floor."""


ROWS = [
    Row("import", "import, CPU", "importing", "cpu", "ms", 2.0),
    Row("first", "fresh process to the first answer, CPU", "first", "cpu", "ms", 2.0),
    Row("rounds", "CPU a round, 20 rounds", "rounds", "cpu", "µs", 1.2, params={"rounds": 20, "times": 9}),
    Row(
        "growth",
        "growth: client time, last 20 of 200 rounds / first 20",
        "rounds",
        "growth",
        "x",
        1.3,
        kind="alone",
        params={"rounds": 200, "times": 3},
    ),
    Row(
        "parallel",
        "32 calls of a sync 20 ms tool, wall",
        "together",
        "wall",
        "ms",
        1.0,
        params={"calls": 32, "tool": "slow", "times": 15},
    ),
    Row(
        "parallel_async",
        "32 calls of an async 20 ms tool, wall",
        "together",
        "wall",
        "ms",
        1.1,
        params={"calls": 32, "tool": "slow_async", "times": 15},
    ),
    Row(
        "asks",
        "64 asks at once, 50 ms latency, asks/s",
        "at_once",
        "rate",
        "/s",
        2.0,
        kind="at least",
        params={"asks": 64, "latency_ms": 50, "warm": True, "times": 3},
    ),
    Row(
        "asks_cold",
        "the same, the first ask ever among them",
        "at_once",
        "rate",
        "/s",
        2.0,
        kind="at least",
        params={"asks": 64, "latency_ms": 50, "warm": False, "times": 1},
    ),
    Row(
        "stream",
        "stream, CPU per 1,000 chunks",
        "stream",
        "cpu",
        "ms",
        1.3,
        params={"chunks": 1000, "times": 7},
    ),
    Row("schema", "1,000 functions to definitions, CPU", "schema", "cpu", "ms", 8.0),
    Row(
        "many_tools",
        "1,001 tools offered, later asks, CPU",
        "many_tools",
        "cpu",
        "ms",
        0.8,
        params={"times": 5},
    ),
    Row(
        "dispatch",
        "dispatch of a sync tool, CPU",
        "dispatch",
        "cpu",
        "µs",
        15.0,
        params={"tool": "add", "heard": False, "times": 3},
    ),
    Row(
        "dispatch_async",
        "dispatch of an async tool, CPU",
        "dispatch",
        "cpu",
        "µs",
        4.0,
        params={"tool": "add_async", "heard": False, "times": 3},
    ),
    Row(
        "heard",
        "dispatch of a sync tool, its events heard, CPU",
        "dispatch",
        "cpu",
        "µs",
        15.0,
        params={"tool": "add", "heard": True, "times": 3},
    ),
    Row(
        "heard_async",
        "dispatch of an async tool, its events heard, CPU",
        "dispatch",
        "cpu",
        "µs",
        4.0,
        params={"tool": "add_async", "heard": True, "times": 3},
    ),
    Row(
        "policy",
        "policy over 1,000 tools unchanged / a round of the floor",
        "policy",
        "cpu",
        "µs",
        0.01,
        params={"times": 3},
        floor="rounds",
    ),
    Row(
        "flow",
        "flow of 100 trivial steps, CPU",
        "flow",
        "cpu",
        "ms",
        5.0,
        kind="alone",
        params={"steps": 100, "times": 7},
        floor="",
    ),
    Row(
        "skills",
        "2,000 skills discovered, wall",
        "skills",
        "wall",
        "ms",
        1000.0,
        kind="alone",
        params={"number": 2000, "times": 3},
        floor="",
    ),
    Row(
        "updates",
        "live view: bytes of an update, in a run of 10,000 calls / of 10",
        "updates",
        "growth",
        "x",
        1.05,
        kind="alone",
        floor="",
    ),
    Row(
        "card",
        "static card of a reply of 20 calls, drawn, CPU",
        "card",
        "cpu",
        "ms",
        10.0,
        kind="alone",
        params={"calls": 20, "times": 9},
        floor="",
    ),
    Row(
        "card_size",
        "the same, its HTML",
        "card",
        "size",
        "kB",
        60.0,
        kind="alone",
        params={"calls": 20, "times": 1},
        floor="",
    ),
    Row(
        "hook",
        "CPU a round with the live hook and no front end / without the hook",
        "hook",
        "ratio",
        "x",
        1.02,
        kind="alone",
        params={"rounds": 20, "times": 60},
        floor="",
    ),
]

SCALE = {"ms": 1e3, "µs": 1e6, "/s": 1.0, "x": 1.0, "kB": 1e-3}
"""From seconds, and plain numbers, to the unit."""
