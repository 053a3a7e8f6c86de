"""Notebooks without anybody looking: nbconvert with JS off, strict nbval, papermill's way: notebook.md 2, 12, 15 and 16."""

import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
import samples
from lab import CHROMIUM, notebook
from test_approval import SETUP

TESTS = Path(__file__).parent.parent / "display"

CELLS = [
    f"import sys; sys.path.insert(0, {str(TESTS)!r})\nimport samples\nfrom jarvis_nb.widgets import *",
    *(f"samples.ORDINARY[{name!r}]()" for name in samples.ORDINARY),
    "PolicyPicker(samples.toolset(), {'requirement': 'required'})",
    "ToolBench(samples.refund)",
    "Playground(samples.jarvis(), tools=samples.toolset().tools)",
    "RunView.of(samples.reply())",
    SETUP,
    "make().ask_full('Refund it')",
    "await make().aask_full('Refund it')",
    "r = make().ask_full('Refund it')",
]
WORDS = [
    "Discount order ORD-5, refund the difference", "○ hidden by you", "Toolset · 4 tools", "asks a person before it runs",
    "must call calculator", "○ not sent", "13 differences", "✓ no difference", "✗ order", "not offered", "2 passages",
    "the model has to call a tool", "⊘ refund", "nobody can be asked about refund",
]  # fmt: skip


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook, executed as nbconvert, papermill and CI do it: no front end."""
    path = tmp_path_factory.mktemp("export") / "all.ipynb"
    notebook(path, *CELLS)
    made = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(made, timeout=60, kernel_name="python3").execute()
    nbformat.write(made, path)
    return path


def test_02_nothing_live_is_stored(executed):
    """notebook.md 2: one output a cell, static, no widget state; nothing for a reply that is only assigned."""
    made = nbformat.read(executed, as_version=4)
    assert "widgets" not in made.metadata
    for cell in made.cells:
        assert len(cell.outputs) <= 1
        for output in cell.outputs:
            assert set(output.get("data", {})) <= {"text/plain", "text/html", "text/vnd.mermaid"}
    assert made.cells[-1].outputs == []
    assert made.cells[-2].outputs[0]["output_type"] == "execute_result"


def test_16_nbconvert_with_javascript_off_shows_every_card(executed):
    """notebook.md 16: offline, no script."""
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", str(executed)],
        check=True,
        capture_output=True,
        cwd=executed.parent,
    )
    page_file = executed.with_suffix(".html")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(java_script_enabled=False, offline=True)
        page = context.new_page()
        page.goto(page_file.as_uri())
        text = page.inner_text("body")
        browser.close()
    for word in WORDS:
        assert word in text, word


def test_16_strict_nbval(executed):
    """notebook.md 16: no sanitizer file, and the stored outputs are a test."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--nbval",
            "--nbval-cell-timeout=60",
            "-p",
            "no:cacheprovider",
            str(executed),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=executed.parent,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(CELLS)} passed" in done.stdout
