"""JupyterLite in a browser: the site on loopback, a page, and notebooks in it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # Whatever is not this machine does not exist: a page that needs a CDN fails.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
START_SECONDS = 60
CELL_SECONDS = 60

OPEN = """path => {
    window.opened = false;
    void (async () => {
        const panel = await window.jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'});
        window.jupyterapp.shell.activateById(panel.id);
        await panel.context.ready;
        await panel.sessionContext.ready;
        window.panel = panel;
        window.opened = true;
    })();
}"""
SAVE = """async ([path, content]) => {
    await window.jupyterapp.serviceManager.contents.save(path, {type: 'notebook', format: 'json', content});
}"""
CELLS = "window.panel.content.widgets.map(cell => cell.model.toJSON())"
CLOSE = """async () => {
    await window.panel.sessionContext.shutdown();
    window.panel.dispose();
}"""
RUN = """index => {
    const panel = window.panel;
    window.jupyterapp.shell.activateById(panel.id);
    panel.content.activeCellIndex = index;
    panel.content.deselectAll();
    window.cellDone = false;
    void window.jupyterapp.commands.execute('notebook:run-cell').finally(() => { window.cellDone = true; });
}"""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a directory on loopback and give its address."""
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
    }

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
        """Say nothing."""


class Lite:
    """One page of JupyterLab in the browser, without a server behind it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.outside: list[str] = []
        self.log: list[str] = []
        page.on("console", lambda message: self.log.append(message.text))
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if request.url.startswith("http") and not request.url.startswith("http://127.0.0.1"):
            self.outside.append(request.url)

    def start(self) -> None:
        self.page.goto(f"{self.address}/lab/index.html")
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget", timeout=START_SECONDS * 1000)
        # Files of the notebook's directory and input() come through the service worker.
        self.page.wait_for_function(
            "navigator.serviceWorker.controller !== null", timeout=START_SECONDS * 1000
        )

    def write(self, path: str, *cells: str) -> None:
        content = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
            },
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"c{n}",
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": cell,
                }
                for n, cell in enumerate(cells)
            ],
        }
        self.page.evaluate(SAVE, [path, content])

    def open(self, path: str) -> None:
        self.page.evaluate(OPEN, path)  # waits for nothing: a dialog would keep it waiting for ever
        self.page.wait_for_function("window.opened", timeout=START_SECONDS * 1000)

    def run(self, index: int, answer: str | None = None) -> list[dict[str, Any]]:
        """Run one cell, answering ``input()``, and return its outputs."""
        self.page.evaluate(RUN, index)
        if answer is not None:
            box = self.page.locator(".jp-Cell.jp-mod-active .jp-Stdin-input").last
            box.wait_for(timeout=CELL_SECONDS * 1000)
            box.fill(answer)
            box.press("Enter")
        self.page.wait_for_function("window.cellDone", timeout=CELL_SECONDS * 1000)
        return self.page.evaluate(CELLS)[index]["outputs"]

    def close(self) -> None:
        """Close the notebook in front, and its kernel."""
        self.page.evaluate(CLOSE)

    def cells(self) -> list[dict[str, Any]]:
        return self.page.evaluate(CELLS)


def text(outputs: list[dict[str, Any]]) -> str:
    """Return what a reader sees, as text; an error with its traceback."""
    said: list[str] = []
    for output in outputs:
        if output["output_type"] == "stream":
            said.append("".join(output["text"]))
        elif output["output_type"] == "error":
            said.append("\n".join([f"{output['ename']}: {output['evalue']}", *output["traceback"]]))
        else:
            said.append("".join(output["data"].get("text/plain", "")))
    return "\n".join(said)


@contextlib.contextmanager
def browser(address: str) -> Iterator[Lite]:
    """Give a started page in a fresh profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=str(CHROMIUM) if CHROMIUM.exists() else None, args=FLAGS, headless=True
        )
        try:
            page = chromium.new_context(viewport={"width": 1280, "height": 1000}).new_page()
            page.set_default_timeout(CELL_SECONDS * 1000)
            lite = Lite(page, address)
            lite.start()
            yield lite
        finally:
            chromium.close()
