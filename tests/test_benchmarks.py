"""The measurements themselves: both sides do the same work, and the table says what was met."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rows import ROWS, Row
from benchmarks.server import Plan

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("body", "plan"),
    [
        (b'{"messages":[{"content":"hello"}]}', Plan(0, 1, 0, 1, 0)),
        (b'"bench rounds=3"', Plan(3, 1, 0, 1, 0)),
        (b'"bench rounds=2 calls=4 latency_ms=50 chunks=7 tool=slow_async"', Plan(2, 4, 50, 7, 3)),
        (b'"bench rounds=2 calls=4" {"id":"bm_2_4_0_1_0_0_3"}', Plan(2, 4, 0, 1, 0, 1)),
        (b'{"id":"bm_2_4_0_1_0_1_0"} "bench rounds=1"', Plan(1, 1, 0, 1, 0)),
    ],
)
def test_the_server_finds_the_plan(body, plan):
    assert Plan.read(body) == plan


@pytest.mark.parametrize(
    ("kind", "ours", "floor", "met"),
    [
        ("at most", [1.0, 1.2], [1.0, 1.0], True),
        ("at most", [2.0, 4.0], [1.0, 1.0], False),
        ("at least", [2.0, 4.0], [1.0, 1.0], True),
        ("at least", [1.0, 1.0], [1.0, 1.0], False),
        ("alone", [1.4, 1.6], [9.0, 9.0], True),
        ("alone", [1.6, 1.8], [], False),
    ],
)
def test_the_table_says_what_was_met(kind, ours, floor, met, capsys):
    from benchmarks.__main__ import print_table

    row = Row("r", "A row", "r", "cpu", "ms", 1.5, kind=kind)
    assert print_table([row], {"r": {"ours": ours, "floor": floor}}) == (0 if met else 1)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("| A row (`r`) |")
    assert line.endswith("| met |" if met else "| **not met** |")


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.slow
def test_both_sides_do_the_same_work():
    from benchmarks import floor, ours, samples
    from benchmarks.__main__ import server

    async def apart(side):
        yield await side.aask("bench rounds=1 calls=2 tool=slow_async", ("slow_async",))
        pieces = side.stream("bench rounds=0 chunks=5")
        yield [p async for p in pieces] if hasattr(pieces, "__aiter__") else list(pieces)
        await side.aclose()

    async def awaited(side):
        return [answer async for answer in apart(side)]

    def work(side):
        samples.RAN.clear()
        answer = side.ask("bench rounds=2 calls=3", ("add",))
        return [answer, len(samples.RAN), *asyncio.run(awaited(side))]

    with server() as url:
        mine, hand = ours.Side(url), floor.Side(url)
        assert work(mine) == work(hand) == [
            "done R=2 P=3",
            6,
            "done R=1 P=2",
            ["tok0 ", "tok1 ", "tok2 ", "tok3 ", "tok4 "],
        ]  # fmt: skip
    assert mine.events > 0


@pytest.mark.slow
def test_the_command_measures_and_prints():
    command = [sys.executable, "-m", "benchmarks", "rounds", "flow", "policy", "--repeats", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3, done.stdout
    assert all("met" in line for line in rows[1:])


def test_an_unknown_name_is_an_error_with_the_names():
    command = [sys.executable, "-m", "benchmarks", "speed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown: speed; there are import, first" in done.stderr
