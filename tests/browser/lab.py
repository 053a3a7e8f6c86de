"""A real JupyterLab and Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

CHROMIUM = next(
    (
        p
        for p in (os.environ.get("CHROMIUM", ""), "/usr/bin/chromium", "/usr/bin/chromium-browser")
        if p and Path(p).exists()
    ),
    "",
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
SHOTS = Path(os.environ.get("JARVIS_NB_SHOTS") or tempfile.gettempdir()) / "jarvis_nb_shots"
"""Screenshots are kept here, outside of the repository."""


def notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "python3", "language": "python"}
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(made, path)


def _settings(theme: str) -> str:
    root = Path(tempfile.mkdtemp())
    for name, content in {
        "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/apputils-extension/themes": {"theme": theme},
        "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # every cell stands in the page
    }.items():
        file = root / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    return str(root)


class Lab:
    """A running server."""

    def __init__(self, root: Path, theme: str = "JupyterLab Light") -> None:
        self.root = root
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.token = secrets.token_hex(12)
        self.base = f"http://127.0.0.1:{port}"
        names = (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "IPYTHONDIR",
        )
        env = {
            **os.environ,
            **{name: tempfile.mkdtemp() for name in names},
            "JUPYTERLAB_SETTINGS_DIR": _settings(theme),
        }
        env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
        env["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        self.log = root / "server.log"
        self._out = self.log.open("w")
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--expose-app-in-browser",
                "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
                f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={root}",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            stdout=self._out, stderr=subprocess.STDOUT, env=env, start_new_session=True,
        )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{self.base}/api/status?token={self.token}", timeout=1):
                    return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(self.log.read_text()) from None
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()


@contextlib.contextmanager
def chromium(width: int = 1280, height: int = 1000) -> Iterator[Any]:
    """Give a browser context."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, headless=True)
        try:
            yield browser.new_context(viewport={"width": width, "height": height})
        finally:
            browser.close()


class Page:
    """One notebook in one page."""

    def __init__(self, lab: Lab, context: Any, name: str) -> None:
        self.lab, self.name = lab, name
        self.page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.open()

    def open(self) -> None:
        self.page.goto(f"{self.lab.base}/lab/tree/{self.name}?token={self.lab.token}&reset")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", state="visible")
        self.ready()

    def ready(self) -> None:
        """Wait for the kernel: the status icon says idle even before there is one."""
        self.page.wait_for_function(
            """async () => { const w = window.jupyterapp?.shell?.currentWidget; const sc = w?.sessionContext;
            if (!sc) return false; await sc.ready; const k = sc.session?.kernel;
            return !!k && k.connectionStatus === 'connected'; }""",
            timeout=60_000,
        )

    def run(self, cell: int, *, wait: bool = True) -> None:
        """Run a cell."""
        self.page.evaluate(
            """i => { const p = window.jupyterapp.shell.currentWidget; p.content.activeCellIndex = i;
            p.content.deselectAll(); void window.jupyterapp.commands.execute('notebook:run-cell'); }""",
            cell,
        )
        if wait:
            self.idle(cell)

    def idle(self, cell: int) -> None:
        """Wait until a cell has run."""
        self.page.wait_for_function(
            """i => { const c = window.jupyterapp.shell.currentWidget.content.widgets[i].model;
            return c.executionState ? c.executionState === 'idle' && c.executionCount !== null : c.executionCount !== null; }""",
            arg=cell,
        )

    def command(self, name: str) -> None:
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def output(self, cell: int) -> Any:
        """Return the locator of a cell's output area."""
        return (
            self.page.locator(".jp-NotebookPanel .jp-Notebook .jp-CodeCell")
            .nth(cell)
            .locator(".jp-Cell-outputArea")
        )

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(SHOTS / f"{name}.png"))

    def saved(self) -> Any:
        """Save, and return the notebook as it is on the disk."""
        self.command("docmanager:save")
        return nbformat.read(self.lab.root / self.name, as_version=4)

    def close(self) -> None:
        self.page.close()


AXE = """async scope => { const r = await axe.run(scope, {resultTypes: ['violations']});
  return {bad: r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 200)).join(' | ')), passed: r.passes.length}; }"""


def axe(page: Any, scope: str) -> dict[str, Any]:
    """Return what axe finds within a selector."""
    import axe_playwright_python

    if page.evaluate("typeof window.axe") == "undefined":
        source = Path(axe_playwright_python.__file__).parent / "axe.min.js"
        page.evaluate(source.read_text(encoding="utf-8"))
    return page.evaluate(AXE, scope)
