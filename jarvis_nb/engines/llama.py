"""llama.cpp in this process: one model in memory however many engines use it, one request at a time.

The runtime is the wheel ``xllamacpp``, which holds llama.cpp's own server. What it does otherwise than one
expects, as measured with 2026.10: it always opens an HTTP port (here on 127.0.0.1, with a random key, without
CORS and without its web page); a grammar it cannot compile is dropped without a word, so whatever comes back
is checked; its prompt cache makes an answer depend on what ran before, so it is off; and destroying a server
that never answered deadlocks, so the first thing a new one does is to answer one token.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.threads import WorkerPool
from jarvis_nb.engines.generation import Generated, Listener, OnText, Order

BATCH = 128
"""Prompt tokens evaluated at a time: an interrupt is noticed between two batches."""
PROBE_SECONDS = 300
CLOSE_SECONDS = 3.0
INSTALL = "pip install 'jarvis-nb[local]'"

Progress = Callable[[float, float, str], object]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is loaded."""

    threads: int = 1
    context: int = 2048
    """Tokens of prompt and answer together."""


def import_runtime() -> Any:
    """Import xllamacpp.

    Raises:
        EngineError: ``missing_extra`` or ``missing_library``, with the one command to run.
    """
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        if error.name != "xllamacpp":
            raise
        raise EngineError(
            "the embedded model needs the extra 'local'",
            code="missing_extra",
            value="local",
            hint=f"run: {INSTALL}",
        ) from None
    except ImportError as error:
        gomp = "apt-get install libgomp1 (or your system's package of GNU OpenMP)"
        raise EngineError(
            f"the embedded model's runtime cannot be loaded: {error}",
            code="missing_library",
            hint=f"run: {gomp if 'libgomp' in str(error) else INSTALL}",
        ) from error
    return xllamacpp


class Runtime:
    """One loaded model. Requests wait in line and run one after the other on its own thread."""

    def __init__(self, path: Path, settings: Settings, *, trusted_sha256: str | None = None) -> None:
        self.path = path
        self.settings = settings
        self._trusted = trusted_sha256
        self._line = WorkerPool(most=1)
        self._server: Any = None
        self._closing = threading.Event()

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory now."""
        return self._server is not None

    async def generate(
        self, order: Order, *, on_text: OnText | None = None, on_load: Progress | None = None
    ) -> Generated:
        """Wait in line, load the model if need be, and write an answer.

        Args:
            order: What to write.
            on_text: Called with pieces of the text, on the model's thread.
            on_load: Called with (done, total, text) while the model loads, on the model's thread.

        Raises:
            ContextOverflow: The prompt is too long.
            EngineError: ``missing_extra``, ``missing_library``, ``no_model``, ``bad_model``, ``bad_response``.
        """
        stop = threading.Event()
        try:
            return await self._line.run(lambda: self._generate(order, on_text, on_load, stop))
        except asyncio.CancelledError:
            stop.set()
            raise

    async def load(self, on_load: Progress | None = None) -> None:
        """Load the model now."""
        await self._line.run(lambda: self._load(on_load))

    def close(self) -> None:
        """Stop what runs at its next token and free the memory."""
        self._closing.set()
        self._line.submit(self._free).wait(CLOSE_SECONDS)

    async def aclose(self) -> None:
        """Do the same without holding the loop."""
        self._closing.set()
        await self._line.run(self._free)

    def _free(self) -> None:
        if _Process.forked and self._server is not None:
            _keep_for_ever(self._server)
        self._server = None
        gc.collect()
        _give_back()

    def _load(self, on_load: Progress | None) -> Any:
        if self._server is not None:
            return self._server
        if self._closing.is_set():
            raise EngineError("the engine was closed", code="closed", hint="make a new LocalEngine")
        report = on_load or _silent
        report(0, 3, f"checking {self.path.name}")
        runtime = import_runtime()
        check_file(self.path, self._trusted, self.settings)
        report(1, 3, f"loading {self.path.name}")
        server = start_server(runtime, self.path, self.settings)
        report(2, 3, f"warming up {self.path.name}")
        server.handle_completions(
            {"prompt": "Hello", "max_tokens": 1, "temperature": 0, "cache_prompt": False}
        )
        self._server = server
        report(3, 3, f"{self.path.name} is ready")
        return server

    def _generate(
        self, order: Order, on_text: OnText | None, on_load: Progress | None, stop: threading.Event
    ) -> Generated:
        server = self._load(on_load)
        listener = Listener(order.must_start, on_text, lambda: stop.is_set() or self._closing.is_set())
        server.handle_chat_completions(_payload(order), listener)
        return listener.result(self.settings.context)


def _payload(order: Order) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "messages": list(order.messages),
        "max_tokens": order.max_tokens,
        "temperature": order.temperature,
        "seed": order.seed,
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a chunk after every batch of the prompt: an interrupt is noticed there too
        "chat_template_kwargs": {"enable_thinking": False},
    }
    if order.grammar is not None:
        payload["grammar"] = order.grammar
    if order.no_loops:
        payload |= {"dry_multiplier": 0.8, "dry_allowed_length": 6, "dry_penalty_last_n": 256}
    return payload


def start_server(runtime: Any, path: Path, settings: Settings) -> Any:
    """Load a checked file.

    Raises:
        EngineError: ``bad_model``: llama.cpp refuses it.
    """
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = settings.context, BATCH, BATCH, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.cache_prompt, params.cache_ram_mib, params.n_ctx_checkpoints = False, 0, 0
    params.warmup, params.fit_params, params.verbosity = False, False, -1
    params.hostnames, params.n_threads_http, params.api_keys = ["127.0.0.1"], 1, [secrets.token_hex(32)]
    params.cors_origins, params.ui, params.endpoint_slots, params.offline = "", False, False, True
    try:
        return runtime.Server(params)
    except Exception as error:
        raise EngineError(
            f"llama.cpp cannot load {str(path)!r}: {error}",
            code="bad_model",
            value=str(path),
            hint="it may need a newer llama.cpp or more memory; the default model: jarvis models fetch",
        ) from error


def check_file(path: Path, trusted_sha256: str | None, settings: Settings) -> None:
    """Make sure that loading the file cannot end this process.

    A file with the checksum we know is safe. Any other is read here first and then loaded once in a process
    of its own, since llama.cpp may abort on a file that is broken inside.

    Raises:
        EngineError: ``no_model`` or ``bad_model``.
    """
    from jarvis_nb.engines.gguf import read_gguf
    from jarvis_nb.engines.models import sha256_of

    read_gguf(path)
    status = path.stat()
    key = (str(path), status.st_size, status.st_mtime_ns)
    if key in _Process.checked:
        return
    if trusted_sha256 is None:
        _probe(path, settings)
    elif sha256_of(path) != trusted_sha256:
        raise EngineError(
            f"{str(path)!r} is damaged: its checksum is not the known one",
            code="bad_model",
            value=str(path),
            hint="get it again with: jarvis models fetch",
        )
    _Process.checked.add(key)


def _probe(path: Path, settings: Settings) -> None:
    code = (
        "import sys; from pathlib import Path; from jarvis_nb.engines import llama; "
        "r = llama.import_runtime(); "
        "s = llama.start_server(r, Path(sys.argv[1]), llama.Settings(1, int(sys.argv[2]))); "
        "s.handle_completions({'prompt': 'Hello', 'max_tokens': 1})"
    )
    command = [sys.executable, "-c", code, str(path), str(settings.context)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=False)  # noqa: S603 - our own
    except subprocess.TimeoutExpired:
        why = f"it did not load within {PROBE_SECONDS} s"
    else:
        if done.returncode == 0:
            return
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1][:300] if lines else "no message"
        if done.returncode < 0:
            why = f"llama.cpp crashed on it (signal {-done.returncode})"
    raise EngineError(
        f"{str(path)!r} cannot be used: {why}",
        code="bad_model",
        value=str(path),
        hint="try another GGUF file, or get the default one with: jarvis models fetch",
    )


def _silent(done: float, total: float, text: str) -> None:
    """Report to nobody."""


def _give_back() -> None:
    """Return freed memory to the system: glibc keeps some 25 MB of a model that was closed, every time."""
    import ctypes

    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def _keep_for_ever(thing: object) -> None:
    """Never destroy an object: in a fork, llama.cpp's server waits for threads of the parent and aborts."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class _Process:
    """The models of this process by path, with how many engines use each."""

    lock = threading.Lock()
    loaded: dict[Path, tuple[Runtime, int]] = {}  # noqa: RUF012 - the process's one table
    checked: set[tuple[str, int, int]] = set()  # noqa: RUF012 - the same
    forked = False
    """Whether a parent process had loaded a model: its threads do not exist here."""

    @classmethod
    def after_fork(cls) -> None:
        cls.lock = threading.Lock()
        for runtime, _ in cls.loaded.values():
            cls.forked = True
            _keep_for_ever(runtime)
        cls.loaded = {}

    @classmethod
    def at_exit(cls) -> None:
        for runtime, _ in list(cls.loaded.values()):
            runtime.close()


def acquire(path: Path, settings: Settings, *, trusted_sha256: str | None = None) -> Runtime:
    """Return the runtime of a file, shared by every engine that uses it. It loads on first use.

    Raises:
        InvalidRequest: ``model_settings``: the file is in use with other threads or another context.
    """
    path = path.resolve()
    with _Process.lock:
        runtime, users = _Process.loaded.get(path, (None, 0))
        if runtime is None:
            runtime = Runtime(path, settings, trusted_sha256=trusted_sha256)
        elif runtime.settings != settings:
            raise InvalidRequest(
                f"{path.name} is in use with {runtime.settings}, asked for was {settings}",
                code="model_settings",
                value=settings,
                hint="use the same threads= and context=, or close the other engine first",
            )
        _Process.loaded[path] = (runtime, users + 1)
        return runtime


def release(runtime: Runtime) -> bool:
    """Give a runtime back; True if nobody else uses it, so that the caller must close it."""
    with _Process.lock:
        held, users = _Process.loaded.get(runtime.path, (None, 0))
        if held is not runtime:
            return False
        if users > 1:
            _Process.loaded[runtime.path] = (runtime, users - 1)
            return False
        del _Process.loaded[runtime.path]
        return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.after_fork)
atexit.register(_Process.at_exit)
