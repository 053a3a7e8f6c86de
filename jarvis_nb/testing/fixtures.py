"""Pytest fixtures, loaded in every project that has this package: nothing heavy is imported until one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jarvis_nb.engines.scripted import ScriptedEngine
    from jarvis_nb.testing.server import StrictServer


@pytest.fixture
def strict_server() -> Iterator[Callable[..., StrictServer]]:
    """Start a :class:`~jarvis_nb.testing.StrictServer` by its arguments; it is closed when the test ends.

    Example:
        >>> def test_it(strict_server):
        ...     server = strict_server(["Hello."])
        ...     j = Jarvis(engine=OpenAIEngine(base_url=server.url, api_key="k"), model="m")
        ...     assert j.ask("Hi") == "Hello."
        ...     server.assert_complete()
    """
    from jarvis_nb.testing.server import StrictServer

    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> StrictServer:
            return stack.enter_context(StrictServer(*args, **options))

        yield start


@pytest.fixture
def scripted_engine() -> Iterator[Callable[..., ScriptedEngine]]:
    """Make a ``ScriptedEngine`` by its arguments; at the end of the test its script must be used up.

    Example:
        >>> def test_it(scripted_engine):
        ...     engine = scripted_engine(["Hello."])
        ...     assert Jarvis(engine=engine).ask("Hi") == "Hello."
    """
    from jarvis_nb.engines.scripted import ScriptedEngine

    engines: list[ScriptedEngine] = []

    def make(*args: Any, **options: Any) -> ScriptedEngine:
        engine = ScriptedEngine(*args, **options)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.assert_complete()
