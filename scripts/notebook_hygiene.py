"""Say what must not be stored in a notebook: widget state, errors, noise of a run, paths of a machine.

    python scripts/notebook_hygiene.py [notebook …]

It needs nothing but Python, so a hook before each commit can run it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget"
TRACES = {
    "a path of a machine": re.compile(
        r"(?<![\w.])/(?:home|root|Users|tmp|work|var/folders|private)/\w|[A-Z]:\\Users|site-packages"
    ),
    "an address of an object": re.compile(r"\b0x[0-9a-f]{6,}\b"),
    "a port of one run": re.compile(r"127\.0\.0\.1:\d|localhost:\d"),
    "a key": re.compile(r"\bsk-[A-Za-z0-9]{12,}"),
    "a date and time": re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d"),
}
CELL_METADATA = {"tags", "jupyter", "nbgrader"}
METADATA = {"kernelspec", "language_info"}


def problems(path: Path) -> list[str]:
    """Return what is wrong with one stored notebook, a line each."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [f"{path.name}: {problem}" for problem in _problems(notebook)]


def _problems(notebook: dict[str, Any]) -> Iterator[str]:
    extra = sorted(notebook["metadata"].keys() - METADATA)
    if extra:
        yield f"metadata {', '.join(extra)}"
    if "version" in notebook["metadata"].get("language_info", {}):
        yield "the version of the Python it ran on"
    count = 0
    for number, cell in enumerate(notebook["cells"], 1):
        extra = sorted(cell["metadata"].keys() - CELL_METADATA)
        if extra:
            yield f"cell {number}: metadata {', '.join(extra)}"
        if cell["cell_type"] != "code":
            continue
        count += 1
        if cell["execution_count"] != count:
            yield f"cell {number}: run as {cell['execution_count']}, not as {count}"
        for output in cell["outputs"]:
            yield from (f"cell {number}: {problem}" for problem in _output_problems(output))


def _output_problems(output: dict[str, Any]) -> Iterator[str]:
    if output["output_type"] == "error":
        yield f"the error {output['ename']}: {output['evalue']}"
    if output.get("name") == "stderr":
        yield f"stderr: {_text(output['text'])[:80]!r}"
    for mime in output.get("data", {}):
        if mime.startswith(WIDGET):
            yield f"a widget ({mime})"
    shown = (
        [_text(output["text"])] if "text" in output else [_text(d) for d in output.get("data", {}).values()]
    )
    for what, pattern in TRACES.items():
        found = next((match for text in shown if (match := pattern.search(text))), None)
        if found:
            yield f"{what}: {found.string[max(0, found.start() - 20) : found.end() + 30]!r}"


def _text(value: Any) -> str:
    return (
        "".join(value) if isinstance(value, list) else value if isinstance(value, str) else json.dumps(value)
    )


def main() -> int:
    """Check the given notebooks, or all; return 1 if one is not clean."""
    paths = [Path(name) for name in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb"))
    found = [problem for path in paths for problem in problems(path)]
    print("\n".join(found) or f"{len(paths)} notebooks are clean")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
