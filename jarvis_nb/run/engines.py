"""The engine of one ``Jarvis``: given, named or found, opened once, closed if it was opened here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.threads import workers
from jarvis_nb.engines.base import Completion, InferenceEngine, Request

if TYPE_CHECKING:
    from jarvis_nb.config import Config
    from jarvis_nb.core.events import EventBus


class EngineHandle:
    """Finds the engine on first use.

    Args:
        given: An engine, a key such as ``ollama``, or None to look for one.
        model: The model's name, or None for the engine's own.
        config: Settings the search starts from.
        bus: Told how the search goes.
    """

    def __init__(
        self, given: InferenceEngine | str | None, model: str | None, config: Config, bus: EventBus
    ) -> None:
        if given is not None and not isinstance(given, str | InferenceEngine):  # pyright: ignore[reportUnnecessaryIsInstance] - notebooks are not type-checked
            raise InvalidRequest(
                f"engine is a {type(given).__name__}",
                value=given,
                hint='give an engine, a key such as "ollama", or nothing',
            )
        self.named = model
        self._config, self._bus = config, bus
        self._key = None if isinstance(given, InferenceEngine) else given or config.engine
        self._engine = given if isinstance(given, InferenceEngine) else None
        self._owned = self._engine is None
        self._found_model = ""
        self._lock = threading.Lock()

    async def get(self) -> InferenceEngine:
        """Return the engine.

        Raises:
            EngineError: ``no_engine`` or what the named engine says.
        """
        return self._engine or await workers().run(self._find)

    def _find(self) -> InferenceEngine:
        from jarvis_nb.engines.discovery import find_engine

        with self._lock:  # the first ask ever may be one of many at once
            if self._engine is None:
                self._engine = find_engine(self._key, self._config, bus=self._bus).engine
            return self._engine

    async def model(self, engine: InferenceEngine) -> str:
        """Return the model to ask for.

        Raises:
            EngineError: ``no_model``: nobody named one, and the engine serves none or several.
        """
        from jarvis_nb.run.prepare import need_model

        name = self.named or self._config.model or engine.default_model or self._found_model
        if not name:
            name = self._found_model = need_model(engine, await engine.list_models())
        return name

    @property
    def label(self) -> str:
        """How a repr names the engine."""
        return repr(self._engine) if self._engine is not None else repr(self._key or "to be found")

    @property
    def model_name(self) -> str | None:
        """The model's name, where it is known yet."""
        own = self._engine.default_model if self._engine is not None else ""
        return self.named or self._config.model or own or self._found_model or None

    async def close(self) -> None:
        """Close the engine if it was opened here; a given one stays open."""
        if self._owned and self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.close()

    def lazy(self) -> InferenceEngine:
        """Return a stand-in that finds the engine when it is first asked, for tools wired before."""
        return _LazyEngine(self)


class _LazyEngine(InferenceEngine):
    engine_id = "lazy"

    def __init__(self, handle: EngineHandle) -> None:
        self._handle = handle

    async def generate(self, request: Request) -> Completion:
        engine = await self._handle.get()
        request.model = request.model or await self._handle.model(engine)
        return await engine.generate(request)

    async def resolve(self) -> tuple[InferenceEngine, str]:
        """Return the engine it stands for and that one's model."""
        engine = await self._handle.get()
        return engine, await self._handle.model(engine)
