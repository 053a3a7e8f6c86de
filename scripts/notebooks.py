"""Build and run the tutorials: notebooks/source/*.md become notebooks/*.ipynb, outputs included.

    python scripts/notebooks.py                     build and run all
    python scripts/notebooks.py 04 06               only these
    python scripts/notebooks.py --check             write nothing: is what is stored in order, and up to date?
    python scripts/notebooks.py --student DIR       copies without solutions and outputs, for a class
    python scripts/notebooks.py --record            record the embedded model's answers anew

A source is jupytext's Markdown. Its tags ``exercise``, ``solution`` and ``check`` become nbgrader's metadata.
What is stored is the same in every run: ids come from what a cell says, versions and times are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
REPOSITORY = "jarvis-nb/jarvis_nb"
BINDER = "https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/notebooks/{name}.ipynb"
BADGE = "[![Open in Binder](https://mybinder.org/badge_logo.svg)]({link})"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION$", re.DOTALL | re.MULTILINE)
STUB = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"
CELL_SECONDS = 60
ASKED = {"01-embedded": ("What is 15% of 340?", ["calculator", "think"])}
"""What is recorded of the embedded model: the recording, the question and the tools."""


def sources(chosen: list[str]) -> list[Path]:
    """Return the sources whose names begin with one of these; all, where none is given."""
    found = sorted((NOTEBOOKS / "source").glob("[0-9][0-9]-*.md"))
    return [path for path in found if not chosen or path.stem.startswith(tuple(chosen))]


def build(source: Path) -> Any:
    """Return the notebook of one source, not run yet."""
    import jupytext

    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="md")
    notebook.metadata = {"kernelspec": dict(KERNEL), "language_info": dict(LANGUAGE)}
    notebook.nbformat_minor = 5
    title = notebook.cells[0]
    heading, _, rest = title.source.partition("\n")
    link = BINDER.format(repository=REPOSITORY, name=source.stem)
    title.source = f"{heading}\n\n{BADGE.format(link=link)}\n{rest}"
    numbers: dict[str, int] = {}
    for cell in notebook.cells:
        cell.metadata = _metadata(cell.metadata.get("tags", []), source.stem, numbers)
    _name_cells(notebook.cells)
    return notebook


def _metadata(tags: list[str], name: str, numbers: dict[str, int]) -> dict[str, Any]:
    """Return a cell's metadata: folded and marked for nbgrader, as its tag says."""
    kind = next((tag for tag in tags if tag in ("solution", "check")), None)
    if kind is None:
        return {"tags": tags} if tags else {}
    numbers[kind] = numbers.get(kind, 0) + 1
    graded = kind == "check"
    nbgrader: dict[str, Any] = {
        "grade": graded,
        "grade_id": f"{name}-{kind}-{numbers[kind]}",
        "locked": graded,
        "schema_version": 3,
        "solution": not graded,
        "task": False,
    }
    if graded:
        return {"nbgrader": nbgrader | {"points": 1}, "tags": tags}
    return {"jupyter": {"source_hidden": True}, "nbgrader": nbgrader, "tags": [*tags, "hide-input"]}


def _name_cells(cells: list[Any]) -> None:
    """Give each cell an id that changes with its text only."""
    taken: set[str] = set()
    for cell in cells:
        text, number = f"{cell.cell_type}\n{cell.source}", 0
        while (name := hashlib.sha256(f"{text}\n{number}".encode()).hexdigest()[:8]) in taken:
            number += 1
        taken.add(name)
        cell.id = name


def run(notebook: Any) -> None:
    """Run a notebook in a fresh kernel and leave only what is the same in every run."""
    from nbclient import NotebookClient

    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    client.execute(env=environment())
    notebook.metadata = {"kernelspec": dict(KERNEL), "language_info": dict(LANGUAGE)}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)


def environment() -> dict[str, str]:
    """Return an environment without keys and settings: a notebook has to run for somebody who has none."""
    own = ("JARVIS_NB_",)
    return {k: v for k, v in os.environ.items() if not k.startswith(own) and not k.endswith("_API_KEY")}


def text_of(notebook: Any) -> str:
    """Return the bytes that are stored."""
    import nbformat

    return nbformat.writes(notebook, version=4) + "\n"


def strip(notebook: Any) -> Any:
    """Take the solutions and outputs out, as nbgrader does for the students' version."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = SOLUTION.sub(STUB, cell.source)
            if "### BEGIN SOLUTION" not in cell.source and cell.metadata.get("jupyter"):
                del cell.metadata["jupyter"]
    return notebook


def student(target: Path, chosen: list[str]) -> None:
    """Write copies for a class, with the files the lessons read."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sources(chosen):
        (target / f"{source.stem}.ipynb").write_text(text_of(strip(build(source))), encoding="utf-8")
    for folder in ("data", "recordings"):
        if target.resolve() != NOTEBOOKS:
            shutil.copytree(NOTEBOOKS / folder, target / folder, dirs_exist_ok=True)


def check(chosen: list[str]) -> list[str]:
    """Return what is wrong with the stored notebooks; empty where nothing is."""
    import nbformat
    from notebook_hygiene import problems

    found: list[str] = []
    for source in sources(chosen):
        stored = NOTEBOOKS / f"{source.stem}.ipynb"
        if not stored.is_file():
            found.append(f"{stored.name}: not built")
            continue
        found += problems(stored)
        have = [(c.id, c.source, c.metadata) for c in nbformat.read(stored, as_version=4).cells]
        if have != [(c.id, c.source, c.metadata) for c in build(source).cells]:
            found.append(f"{stored.name}: differs from its source")
    stray = {p.stem for p in NOTEBOOKS.glob("*.ipynb")} - {s.stem for s in sources([])}
    return found + [f"{name}.ipynb: has no source" for name in sorted(stray)]


def record() -> None:
    """Ask the embedded model what the lessons ask it, and store its answers."""
    from jarvis_nb import Jarvis
    from jarvis_nb.engines import LocalEngine, ReplayEngine

    for name, (question, tools) in ASKED.items():
        engine = ReplayEngine(NOTEBOOKS / "recordings" / f"{name}.json", LocalEngine(), mode="record")
        with Jarvis(engine=engine, config={}) as j:
            print(j.ask_full(question, tools=tools))


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="the beginnings of names; all notebooks where none is given")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--student", type=Path, metavar="DIR")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.record:
        record()
    elif args.student:
        student(args.student, args.names)
    elif args.check:
        found = check(args.names)
        print("\n".join([*found, "run `make notebooks`"]) if found else "the notebooks are in order")
        return bool(found)
    else:
        for source in sources(args.names):
            notebook = build(source)
            run(notebook)
            (NOTEBOOKS / f"{source.stem}.ipynb").write_text(text_of(notebook), encoding="utf-8")
            print(f"{source.stem}: {len(notebook.cells)} cells", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
