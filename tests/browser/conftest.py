"""One server, one browser for all; skipped with a reason only where Chromium is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "display"), str(HERE.parent / "widgets")]

from lab import CHROMIUM, Lab, Page, chromium, notebook  # noqa: E402 - it stands beside this file


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == HERE:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(180))
            if not CHROMIUM:
                item.add_marker(
                    pytest.mark.skip(reason="no Chromium: apt-get install chromium, or set CHROMIUM")
                )


@pytest.fixture(
    scope="module"
)  # Playwright's loop runs in this thread until it ends: no other module can run one
def browser():
    with chromium() as context:
        yield context


@pytest.fixture
def page(browser):
    one = browser.new_page()
    yield one
    one.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    server = Lab(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture
def opened(lab, browser):
    """Write a notebook and open it."""
    pages = []

    def open_(name, *cells):
        notebook(lab.root / name, *cells)
        pages.append(Page(lab, browser, name))
        return pages[-1]

    yield open_
    for one in pages:
        if one.page.is_closed():
            continue
        one.page.evaluate("void window.jupyterapp?.serviceManager.sessions.shutdownAll()")
        one.close()
