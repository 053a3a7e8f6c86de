"""The tools of the measurements: both sides get the same functions. ``RAN`` counts what really ran."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

RAN: list[int] = []
SLOW_SECONDS = 0.02


def add(a: int, b: int) -> int:
    """Add two integers.

    Args:
        a: First number.
        b: Second number.
    """
    RAN.append(1)
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add two integers.

    Args:
        a: First number.
        b: Second number.
    """
    RAN.append(1)
    return a + b


def slow(a: int, b: int) -> int:
    """Add two integers slowly.

    Args:
        a: First number.
        b: Second number.
    """
    time.sleep(SLOW_SECONDS)
    RAN.append(1)
    return a + b


async def slow_async(a: int, b: int) -> int:
    """Add two integers slowly, without blocking.

    Args:
        a: First number.
        b: Second number.
    """
    await asyncio.sleep(SLOW_SECONDS)
    RAN.append(1)
    return a + b


FUNCTION = '''
def tool_{i}(query: str, limit: int = {i}, ratio: float = 0.5, exact: bool = False,
             tags: Optional[list[str]] = None) -> str:
    """Search collection {i} for matching records.

    Args:
        query: Words to search for.
        limit: Most records to return.
        ratio: Share of words that must match.
        exact: Match whole words only.
        tags: Keep records with one of these tags.

    Returns:
        The records as text.
    """
    return query
'''


@cache
def thousand() -> tuple[Callable[..., Any], ...]:
    """Return 1,000 distinct functions of a real module."""
    source = "from typing import Optional\n" + "".join(FUNCTION.format(i=i) for i in range(1000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "thousand_tools.py")
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("thousand_tools", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["thousand_tools"] = module
        spec.loader.exec_module(module)
    return tuple(getattr(module, f"tool_{i}") for i in range(1000))


def functions(names: tuple[str, ...]) -> list[Callable[..., Any]]:
    """Return functions by name; ``thousand`` names a thousand of them."""
    found: list[Callable[..., Any]] = []
    for name in names:
        found += thousand() if name == "thousand" else [globals()[name]]
    return found
