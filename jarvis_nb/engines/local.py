"""The embedded model as an engine: it runs in this process, offline, and gives the same bytes every time.

It is made of parts, and each says what it did (``Completion.provenance``): a *router* of static embeddings
picks the tool, the *model* (SmolLM2-135M unless another GGUF is given) fills the arguments under the tool's
schema, and what the argument can only be is *copied* from the question. ``docs/embedded-model.md`` has the
measured table of what it can and cannot do.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.engines import llama, models
from jarvis_nb.engines.base import Completion, InferenceEngine, Piece, Request, Support
from jarvis_nb.engines.steps import Steps

SYSTEM = "Answer briefly and correctly."
"""What the default model is told where the conversation has no system message: with its own, which the chat
template would add, it answers in French what the capital of France is."""


@dataclass(frozen=True, slots=True)
class _Held:
    """An engine's share of a loaded model."""

    process: int
    runtime: llama.Runtime
    is_known: bool
    detach: Callable[[], object]
    """Takes back the finalizer."""


class LocalEngine(InferenceEngine):
    """A language model in this process.

    The weights are loaded on the first call and shared by all engines of the process; calls wait in line.

    Args:
        model: A name of ``jarvis models list``; None for the default.
        path: Any GGUF file instead; None for the environment's ``JARVIS_NB_GGUF``, else the model's file.
        threads: Threads of the computation. One is fastest where cores are shared.
        context: Tokens of prompt and answer together.
        bus: Where loading is published (``EventType.MODEL_LOAD``).
        progress: Called with (done, total, text) while the model loads.

    Example:
        >>> engine = LocalEngine()              # jarvis models fetch, once
        >>> Jarvis(engine=engine).ask("What is 15% of 340?", tools=["calculator"])  # doctest: +SKIP
        '15% of 340 is 51.0.'
    """

    engine_id: ClassVar[str] = "local"
    supports = Support(tools=True, forced_choice=True, strict=True, images=False, stream=True)
    wants_examples = True

    def __init__(
        self,
        model: str | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        threads: int = 1,
        context: int = 2048,
        bus: EventBus | None = None,
        progress: llama.Progress | None = None,
    ) -> None:
        if threads < 1 or context < 256:  # noqa: PLR2004 - less holds no question with its tool
            raise InvalidRequest(
                f"threads={threads!r}, context={context!r}",
                code="invalid_engine",
                value=(threads, context),
                hint="threads is at least 1, context at least 256 tokens",
            )
        self.known = None if path else models.known_model(model or models.DEFAULT)
        self.path = Path(path).expanduser() if path else None
        self.settings = llama.Settings(threads, context)
        self.bus = bus
        self.progress = progress
        self._held: _Held | None = None

    def __repr__(self) -> str:
        return f"LocalEngine({self.default_model!r})"

    @property
    def default_model(self) -> str:
        """The model's name, or the stem of the GGUF file."""
        given = self.path or _environment()
        if given is not None:
            return given.stem
        assert self.known is not None  # noqa: S101 - set whenever there is no path
        return self.known.name

    async def list_models(self) -> list[str]:
        """Return the one model this engine runs."""
        return [self.default_model]

    async def health(self) -> bool:
        """Whether the runtime is installed and the file is there; nothing is loaded."""
        try:
            llama.import_runtime()
            self._file()
        except EngineError:
            return False
        return True

    async def close(self) -> None:
        """Free the model, unless another engine uses it."""
        held, self._held = self._held, None
        if held is not None:
            held.detach()
            if llama.release(held.runtime):
                await held.runtime.aclose()

    async def generate(self, request: Request) -> Completion:
        """Make one model call.

        Raises:
            EngineError: ``missing_extra``, ``missing_library``, ``no_model``, ``bad_model``,
                ``context_overflow``; each with the command to run or the next step.
        """
        return await self._answer(request, None)

    async def stream(self, request: Request) -> AsyncIterator[Piece | Completion]:
        """Make one model call, yielding the words of an answer as they come and the completion last."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        def on_text(text: str) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, text)

        task = asyncio.ensure_future(self._answer(request, on_text))
        task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield Piece(piece)
            yield await task
        finally:
            task.cancel()

    async def _answer(self, request: Request, on_text: llama.OnText | None) -> Completion:
        runtime, known = self._runtime()

        def on_load(done: float, total: float, text: str) -> None:
            self._report(request.bus, done, total, text)

        steps = Steps(
            runtime,
            request,
            on_text=on_text,
            on_load=on_load,
            system=SYSTEM if known else "",
            small=known,
        )
        completion = await steps.run()
        completion.model = self.default_model
        return completion

    def _report(self, bus: EventBus | None, done: float, total: float, text: str) -> None:
        """Tell everybody who wants to know how far loading is (on the model's thread)."""
        if self.progress is not None:
            self.progress(done, total, text)
        for listener in {id(b): b for b in (self.bus, bus) if b is not None}.values():
            listener.publish(
                EventType.MODEL_LOAD, model=self.default_model, done=done, total=total, text=text
            )

    def _runtime(self) -> tuple[llama.Runtime, bool]:
        """The model, and whether it is the small one whose limits are known."""
        if self._held is None or self._held.process != os.getpid():  # a fork has none of its parent's threads
            path, known = self._file()
            runtime = llama.acquire(path, self.settings, trusted_sha256=known.sha256 if known else None)
            # An engine that is dropped without close() frees its model too.
            finalizer = weakref.finalize(self, _drop, runtime)
            finalizer.atexit = False
            self._held = _Held(os.getpid(), runtime, known is not None, finalizer.detach)
        return self._held.runtime, self._held.is_known

    def _file(self) -> tuple[Path, models.KnownModel | None]:
        """The file to load and which known model it is, if it is one."""
        given = self.path or _environment()
        if given is not None:
            if not given.is_file():
                source = "path=" if self.path else "JARVIS_NB_GGUF"
                raise EngineError(
                    f"there is no model file {str(given)!r}",
                    code="no_model",
                    value=str(given),
                    hint=f"check {source}, or get the default one with: jarvis models fetch",
                )
            return given, models.recognise(given)
        assert self.known is not None  # noqa: S101 - set whenever there is no path
        path = models.model_path(self.known.name)
        if not path.is_file():
            raise EngineError(
                f"the embedded model {self.known.name} is not here yet",
                code="no_model",
                value=str(path),
                hint="run once: jarvis models fetch",
            )
        return path, self.known


def _environment() -> Path | None:
    given = os.environ.get("JARVIS_NB_GGUF")
    return Path(given).expanduser() if given else None


def _drop(runtime: llama.Runtime) -> None:
    if llama.release(runtime):
        runtime.close()
