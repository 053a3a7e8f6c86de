"""Tutorials and documentation are tests too.

nbval runs each notebook in a kernel of its own and compares what is stored with what comes. Sybil runs the code of
the pages, each page's blocks one after the other in one namespace, in a folder that is thrown away.
"""

from __future__ import annotations

import os
import tempfile
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

collect_ignore_glob = ["docs/lessons/*", "site/*"]  # copies, and what is built


def _enter(namespace: dict[str, Any]) -> None:
    namespace["__folder"] = folder = tempfile.TemporaryDirectory()
    namespace["__before"] = Path.cwd()
    os.chdir(folder.name)


def _leave(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["__before"])
    namespace["__folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=_enter,
    teardown=_leave,
).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs a kernel (notebooks) or the embedded model (the README)."""
    for item in items:
        if item.path.suffix == ".ipynb" or item.path.name == "README.md":
            item.add_marker(pytest.mark.slow)
