"""The tutorials are tests: nbval runs each in a kernel of its own and compares what is stored with what comes."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark notebooks' cells as slow: they need a kernel."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.slow)
