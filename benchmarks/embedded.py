"""What the embedded model can do, measured: ``python benchmarks/embedded.py [--limit N] [--skip-arguments]``.

Two sets: the development set of this folder (``embedded_set.py`` wrote it, before any result) and the Berkeley
Function Calling Leaderboard, whose wheel is downloaded through pip without its dependencies. Every figure is
made through ``LocalEngine`` or its router as a user's call is; the answers of BFCL are compared as its own
checker does (any listed value; text without case and punctuation; a parameter left out where "" is listed).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.types import Definitions, Message, Role, ToolDefinition
from jarvis_nb.engines import LocalEngine, Request
from jarvis_nb.engines.router import route
from jarvis_nb.tools.calculator import calculate

DATA = Path(__file__).parent / "data"
BFCL = "bfcl_eval==2026.3.23"
BUILT_IN = ("calculator", "think", "retrieval", "llm", "file_read")
IGNORED = frozenset({"a", "an", "the", "of", "about", "on", "please"})

Rows = list[tuple[str, str, str]]
Examples = dict[str, Any]


# The sets.


def development() -> tuple[list[ToolDefinition], Examples, list[dict[str, Any]]]:
    data = json.loads((DATA / "embedded.json").read_text(encoding="utf-8"))
    built_in = [ToolRegistry.create(name) for name in BUILT_IN]
    tools = [tool.definition for tool in built_in]
    tools += [ToolDefinition(t["name"], t["description"], t["parameters"]) for t in data["tools"]]
    return tools, {tool.name: tool.spec.metadata["examples"] for tool in built_in}, data["questions"]


def bfcl_files() -> zipfile.ZipFile:
    """BFCL's wheel, downloaded once into the temporary directory."""
    folder = Path(tempfile.gettempdir()) / "jarvis_nb_bfcl"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), BFCL]
        subprocess.run(command, check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def bfcl(
    files: zipfile.ZipFile, name: str
) -> Iterator[tuple[str, list[ToolDefinition], dict[str, Any] | None]]:
    """Yield question, functions, and the expected ``{function: {parameter: [values]}}`` (None: no call fits)."""

    def lines(path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in files.read(f"bfcl_eval/data/{path}").splitlines()]

    path = f"BFCL_v4_{name}.json"
    answers = {}
    if f"bfcl_eval/data/possible_answer/{path}" in files.namelist():
        answers = {row["id"]: row["ground_truth"][0] for row in lines(f"possible_answer/{path}")}
    for row in lines(path):
        question = [m["content"] for m in row["question"][-1] if m["role"] == "user"][-1]
        tools = [
            ToolDefinition(f["name"], f["description"], schema_of(f["parameters"])) for f in row["function"]
        ]
        if tools:
            yield question, tools, answers.get(row["id"])


def schema_of(node: Any) -> Any:
    """BFCL's schemas speak Python (dict, float, tuple, any): as JSON Schema."""
    kinds = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            found = {k: convert(v) for k, v in value.items() if k != "optional"}
            if isinstance(found.get("type"), str):
                found["type"] = kinds.get(found["type"], found["type"])
            return found
        return [convert(v) for v in value] if isinstance(value, list) else value

    return canonical_schema(convert(node))


# What counts as right.


def same_call(expected: dict[str, list[Any]], got: dict[str, Any]) -> bool:
    """BFCL's rule."""
    if set(got) - set(expected):
        return False
    return all(
        any(same_value(one, got[name]) for one in values) if name in got else "" in values
        for name, values in expected.items()
    )


def same_value(expected: Any, got: Any) -> bool:
    if isinstance(expected, dict) and isinstance(got, dict):
        return same_call({k: v if isinstance(v, list) else [v] for k, v in expected.items()}, got)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(same_value(a, b) for a, b in zip(expected, got, strict=True))
    if isinstance(expected, str) and isinstance(got, str):
        return re.sub(r"[ ,./\-_*^'\"]", "", expected).lower() == re.sub(r"[ ,./\-_*^'\"]", "", got).lower()
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return expected == got


def as_meant(expected: dict[str, str], got: dict[str, Any]) -> bool:
    """The development set's rule: values that compute to the same, numbers, and texts that hold every word."""
    return set(got) == set(expected) and all(meant(value, got[name]) for name, value in expected.items())


def meant(expected: str, got: Any) -> bool:
    if expected.startswith("="):
        try:
            return abs(float(calculate(str(got))) - float(calculate(expected[1:]))) < 1e-6
        except Exception:
            return False
    if isinstance(got, int | float):
        return str(got).removesuffix(".0") == expected
    words = [
        set(re.findall(r"[\w/.-]+", text.lower().rstrip("."))) - IGNORED for text in (expected, str(got))
    ]
    return words[0] <= words[1] and len(words[1]) <= len(words[0]) + 4


# Measuring.


def share(right: Sequence[bool]) -> str:
    return f"{100 * sum(right) / len(right):.1f} % of {len(right)}" if right else "-"


def routes(files: zipfile.ZipFile) -> Rows:
    tools, examples, questions = development()

    def right(row: dict[str, Any], offered: list[ToolDefinition], *, may_answer: bool) -> bool:
        found = route(row["question"], offered, examples, may_answer=may_answer).tool
        return (found.name if found else "") == row["tool"]

    own = [row for row in questions if row["tool"] in BUILT_IN]
    calls = [row for row in questions if row["tool"]]
    words = [row for row in questions if not row["tool"]]
    rows = [
        (
            "tool",
            "development, the 5 built-in tools (examples)",
            share([right(r, tools[:5], may_answer=False) for r in own]),
        ),
        (
            "tool",
            "development, all 11 tools (6 by description)",
            share([right(r, tools, may_answer=False) for r in calls]),
        ),
        (
            "tool or answer",
            "development, a tool is meant",
            share([right(r, tools, may_answer=True) for r in calls]),
        ),
        (
            "tool or answer",
            "development, an answer is meant",
            share([right(r, tools, may_answer=True) for r in words]),
        ),
    ]
    for name in ("multiple", "live_multiple"):
        found = [route(q, ts, {}, may_answer=False).tool for q, ts, answer in bfcl(files, name) if answer]
        wanted = [next(iter(answer)) for _, _, answer in bfcl(files, name) if answer]
        pairs = zip(found, wanted, strict=True)
        rows.append(
            ("tool", f"BFCL {name} (descriptions)", share([f is not None and f.name == w for f, w in pairs]))
        )
    for name in ("irrelevance", "live_irrelevance"):
        found = [route(q, ts, {}, may_answer=True).tool is None for q, ts, _ in bfcl(files, name)]
        rows.append(("tool or answer", f"BFCL {name}: no call", share(found)))
    found = [route(q, ts, {}, may_answer=True).tool is not None for q, ts, _ in bfcl(files, "simple_python")]
    rows.append(("tool or answer", "BFCL simple: a call", share(found)))
    return rows


async def arguments(engine: LocalEngine, files: zipfile.ZipFile, limit: int) -> tuple[Rows, list[float]]:
    tools, examples, questions = development()
    by_name = {tool.name: tool for tool in tools}
    seconds: list[float] = []
    rows: Rows = []
    right: dict[str, list[bool]] = {}
    for row in [row for row in questions if row["tool"]][: limit or None]:
        got = await call(engine, row["question"], [by_name[row["tool"]]], examples, seconds)
        right.setdefault(row["tool"], []).append(got is not None and as_meant(row["arguments"], got))
    rows += [("arguments", f"development, {name}", share(found)) for name, found in right.items()]
    rows.append(("arguments", "development, all", share([one for found in right.values() for one in found])))
    found: list[bool] = []
    valid: list[bool] = []
    for question, functions, answer in list(bfcl(files, "simple_python"))[: limit or None]:
        got = await call(engine, question, functions, {}, seconds)
        valid.append(got is not None)
        found.append(got is not None and same_call(next(iter((answer or {}).values())), got))
    rows.append(("arguments", "BFCL simple (no examples)", share(found)))
    rows.append(("a valid call", "BFCL simple", share(valid)))
    return rows, seconds


async def call(
    engine: LocalEngine,
    question: str,
    tools: Sequence[ToolDefinition],
    examples: Examples,
    seconds: list[float],
) -> dict[str, Any] | None:
    request = Request("", [Message(Role.USER, question)], Definitions(tools), "required", examples=examples)
    started = time.perf_counter()
    completion = await engine.generate(request)
    seconds.append(time.perf_counter() - started)
    calls = completion.message.get("tool_calls")
    return json.loads(calls[0]["function"]["arguments"]) if calls else None


async def measure(limit: int, *, skip_arguments: bool) -> Rows:
    files = bfcl_files()
    rows = routes(files)
    engine = LocalEngine()
    started = time.perf_counter()
    await engine.generate(Request("", [Message(Role.USER, "Hello")], max_tokens=1))
    rows.append(("time", "load and first token", f"{time.perf_counter() - started:.2f} s"))
    if not skip_arguments:
        found, seconds = await arguments(engine, files, limit)
        rows += found
        rows.append(("time", "a call, median", f"{statistics.median(seconds):.2f} s"))
        rows.append(("time", "a call, 95 of 100 within", f"{statistics.quantiles(seconds, n=20)[-1]:.2f} s"))
    await engine.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(("memory", "peak resident, this whole process", f"{peak:.0f} MB"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=0, help="questions a set for the arguments; 0 for all")
    parser.add_argument("--skip-arguments", action="store_true", help="only the router, which takes seconds")
    given = parser.parse_args()
    rows = asyncio.run(measure(given.limit, skip_arguments=given.skip_arguments))
    print("| what | set | measured |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
