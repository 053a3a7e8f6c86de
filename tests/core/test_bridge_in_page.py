"""Sync over async in a browser, where the page's stack switching waits (the real one: tests/lite)."""

from __future__ import annotations

import asyncio
import sys
import types

import pytest

from jarvis_nb.core import bridge

failed: list[BaseException] = []


def run_sync(coroutine):
    """Stand in for Pyodide's: it also shows an exception that leaves the task."""
    with asyncio.Runner() as runner:
        try:
            return runner.run(coroutine)
        except BaseException as error:
            failed.append(error)
            raise


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch):
    failed.clear()
    ffi = types.SimpleNamespace(can_run_sync=lambda: True, run_sync=run_sync)
    module = types.ModuleType("pyodide")
    module.ffi = ffi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyodide", module)
    monkeypatch.setattr(bridge, "HAS_THREADS", False)
    return ffi


async def soon(value=None, error: BaseException | None = None):
    await asyncio.sleep(0)
    if error is not None:
        raise error
    return value


@pytest.mark.usefixtures("page")
def test_a_value_comes_back():
    assert bridge.run_sync(soon(7)) == 7
    assert bridge.run_sync(soon(None)) is None


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    "error", [ValueError("no"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)]
)
def test_an_exception_reaches_the_caller_and_no_one_else(error):
    """Pyodide prints what ends a task, though the caller may catch it."""
    with pytest.raises(type(error)) as caught:
        bridge.run_sync(soon(error=error))
    assert caught.value is error
    assert failed == []


def test_without_stack_switching_what_never_waits_works(page):
    """And what waits is refused, with what to do."""
    page.can_run_sync = lambda: False

    async def at_once():
        return 1

    assert bridge.run_sync(at_once()) == 1
    with pytest.raises(RuntimeError, match="await"):
        bridge.run_sync(soon(1))
