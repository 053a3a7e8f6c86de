"""The tutorials as stored: built from their sources, clean, the same bytes in every run, and worth solving.

That each cell gives what is stored is what nbval checks, with strict comparison (see ``addopts``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in STORED]


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(ROOT / "scripts"))
    import notebook_hygiene

    import notebooks

    yield notebooks, notebook_hygiene
    sys.path.remove(str(ROOT / "scripts"))


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def text(cell: dict) -> str:
    return "".join(cell["source"])


def test_there_are_the_thirteen_lessons():
    """Issue 6.1."""
    assert [name[:2] for name in NAMES] == [f"{n:02}" for n in range(1, 14)]


@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_stored_without_state_noise_or_paths(path, scripts):
    """notebook.md 2, 16; issue 6.3."""
    assert scripts[1].problems(path) == []


@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_ends_in_an_exercise_with_a_check_and_a_solution(path):
    """Issue 6.1, 6.2: something the reader changes, checked by `expect`, its solution between nbgrader's marks."""
    tagged = {tag: cell for cell in cells(path) for tag in cell["metadata"].get("tags", [])}
    assert "..." in text(tagged["exercise"])
    assert text(tagged["solution"]).count("### BEGIN SOLUTION") == 1
    assert text(tagged["solution"]).count("### END SOLUTION") == 1
    assert tagged["solution"]["metadata"]["nbgrader"]["solution"]
    assert tagged["solution"]["metadata"]["jupyter"]["source_hidden"]
    assert ".expect(" in text(tagged["check"])
    assert tagged["check"]["metadata"]["nbgrader"]["grade"]


@pytest.mark.parametrize("path", STORED, ids=NAMES)
def test_explains_before_it_shows(path):
    """Each begins with its title and words on why; no cell of code is longer than a screen."""
    first, *rest = cells(path)
    assert first["cell_type"] == "markdown"
    assert text(first).startswith(f"# {int(path.stem[:2])} · ")
    assert f"urlpath=lab/tree/notebooks/{path.name}" in text(first)
    assert max(text(cell).count("\n") for cell in rest if cell["cell_type"] == "code") < 40


def test_links_between_lessons_lead_somewhere():
    import re

    for path in STORED:
        for target in re.findall(r"\]\(([\w-]+\.ipynb)\)", "\n".join(map(text, cells(path)))):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


@pytest.mark.slow
def test_built_from_the_sources(scripts):
    """What is stored says what its source says."""
    assert scripts[0].check([]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_another_run_gives_the_same_bytes(name, scripts):
    """Issue 6.3. The stored run was the first, nbval's is the second."""
    notebooks = scripts[0]
    notebook = notebooks.build(ROOT / "notebooks" / "source" / f"{name}.md")
    notebooks.run(notebook)
    assert notebooks.text_of(notebook) == (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")


@pytest.mark.slow
def test_students_get_no_solution_and_no_output(tmp_path):
    """Issue 6.2: what a teacher gives out."""
    command = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "--student", str(tmp_path), "03", "08"]
    subprocess.run(command, check=True, timeout=60)
    assert sorted(p.name for p in tmp_path.glob("*.ipynb")) == [
        f"{n}.ipynb" for n in NAMES if n[:2] in ("03", "08")
    ]
    for path in tmp_path.glob("*.ipynb"):
        assert all(not cell.get("outputs") for cell in cells(path))
        solution = next(c for c in cells(path) if "solution" in c["metadata"].get("tags", []))
        head, *stub = text(solution).splitlines()
        assert head.endswith("is ...:")
        assert [line.strip() for line in stub] == ["# YOUR CODE HERE", "raise NotImplementedError()"]
        assert "source_hidden" not in str(solution["metadata"])
    assert (tmp_path / "data" / "handbook" / "refunds.md").is_file()


BROKEN = {
    "widget state": lambda n: n["metadata"].update(widgets={}),
    "a widget": lambda n: output(n, data={"application/vnd.jupyter.widget-view+json": {"model_id": "x"}}),
    "an error": lambda n: output(n, output_type="error", ename="ValueError", evalue="x", traceback=[]),
    "a path": lambda n: output(n, data={"text/plain": ["'/home/ada/orders.csv'"]}),
    "an address": lambda n: output(n, data={"text/html": ["&lt;object at 0x7f55cc0df110&gt;"]}),
    "a port": lambda n: output(n, data={"text/plain": "http://127.0.0.1:40123/v1"}),
    "stderr": lambda n: output(n, output_type="stream", name="stderr", text=["Warning"]),
    "a key": lambda n: output(n, output_type="stream", name="stdout", text="sk-abcdefghijklmnop"),
    "a time": lambda n: output(n, data={"text/plain": "2026-01-02 03:04:05"}),
    "execution times": lambda n: n["cells"][1]["metadata"].update(execution={"iopub.execute_input": "x"}),
    "a cell that was not run in order": lambda n: n["cells"][1].update(execution_count=7),
    "a Python version": lambda n: n["metadata"]["language_info"].update(version="3.11.7"),
}


def output(notebook, output_type="execute_result", **fields):
    notebook["cells"][1]["outputs"] = [{"output_type": output_type, "metadata": {}, **fields}]


@pytest.mark.parametrize("what", BROKEN)
def test_the_check_finds(what, scripts, tmp_path):
    """Issue 6.3: a check that could not fail would be none."""
    notebook = {
        "metadata": {"kernelspec": {}, "language_info": {"name": "python"}},
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# 1"]},
            {"cell_type": "code", "metadata": {}, "source": ["1"], "execution_count": 1, "outputs": []},
        ],
    }
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(notebook))
    assert scripts[1].problems(path) == []
    BROKEN[what](notebook)
    path.write_text(json.dumps(notebook))
    assert len(scripts[1].problems(path)) == 1
