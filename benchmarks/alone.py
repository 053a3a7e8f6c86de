"""Measurements without a hand-written counterpart, held against a limit or a part of the floor's round."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import samples
from benchmarks.measure import Result, a_call, check, cpu


def policy(side: Any, url: str, *, times: int) -> Result:  # noqa: ARG001
    """A request's policy over 1,000 tools, resolved and encoded once more."""
    from jarvis_nb import Toolset, action
    from jarvis_nb.core.schema import encode_tools
    from jarvis_nb.toolsets.policy import resolve

    toolset = Toolset(action(fn) for fn in samples.thousand())
    asked = {"hidden": ["tool_3"]}
    encoded = b""

    def batch(number: int) -> str:
        nonlocal encoded
        for _ in range(number):
            encoded = encode_tools(resolve(toolset, asked).definitions, "default")
        return f"3 {len(encoded)}"

    used = a_call(batch, times)
    check(b'"tool_4"' in encoded and b'"tool_3"' not in encoded, encoded[:100])
    return {"cpu": used}


def flow(side: Any, url: str, *, steps: int, times: int) -> Result:  # noqa: ARG001
    """A flow of trivial steps, each reading the one before."""
    from jarvis_nb import Flow, action

    @action
    def increment(number: int) -> dict[str, int]:
        """Add one."""
        return {"number": number + 1}

    made = Flow("count", "Count up.", inputs={"start": int})
    step: Any = None
    value: Any = made.input("start")
    for index in range(steps):
        step = made.step(f"step_{index}", increment, number=value)
        value = step["number"]
    made.output(step)
    check(made.run(start=1) == {"number": steps + 1}, "the first run")
    used: list[float] = []
    for _ in range(times):
        before = cpu()
        result = made.run(start=1)
        used.append(cpu() - before)
        check(result == {"number": steps + 1}, result)
    return {"cpu": median(used)}


def skills(side: Any, url: str, *, number: int, times: int) -> Result:  # noqa: ARG001
    """Discovering skills under one root."""
    from jarvis_nb import Skills

    walls: list[float] = []
    with tempfile.TemporaryDirectory() as root:
        for index in range(number):
            folder = Path(root, f"skill-{index}")
            folder.mkdir()
            head = (
                f"---\nname: skill-{index}\ndescription: What to do about case {index}, step by step.\n---\n"
            )
            (folder / "SKILL.md").write_text(head + "Read the case first.\n" * 40, encoding="utf-8")
        for _ in range(times):
            before = perf_counter()
            found = Skills.discover([root])
            walls.append(perf_counter() - before)
            check(len(found) == number and not found.problems, found.problems)
    return {"wall": median(walls)}
