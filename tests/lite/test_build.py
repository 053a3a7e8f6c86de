"""What the site of the tutorials is made of (issue 6, 6)."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts import lite


def wheel(place: Path, name: str, *needs: str, version: str = "1.0", files: tuple[str, ...] = ()) -> Path:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
    module = name.replace("-", "_")
    content = dict.fromkeys([f"{module}/__init__.py", *files], b"")
    lite.write_wheel(
        place, module, version, {**content, f"{module}-{version}.dist-info/METADATA": metadata.encode()}
    )
    return place / f"{module}-{version}-py3-none-any.whl"


def test_the_lock_lists_these_wheels_and_no_other(tmp_path: Path):
    """Pyodide then loads a package with what it needs, by the name that a cell imports, and asks no CDN."""
    wheels = [wheel(tmp_path, "one-thing", "other>=1"), wheel(tmp_path, "other")]
    lock = lite.make_lock(wheels, {"info": {"python": "3.14"}, "packages": {"numpy": {}}})
    assert lock["info"] == {"python": "3.14"}
    assert set(lock["packages"]) == {"one-thing", "other"}
    one = lock["packages"]["one-thing"]
    assert (one["imports"], one["depends"]) == (["one_thing"], ["other"])
    assert one["sha256"] == hashlib.sha256(wheels[0].read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("need", "problem"),
    [
        ("absent", "one needs absent, which is not there"),
        ("other>=2", "one needs other>=2, and 1.0 is there"),
        ("absent; sys_platform == 'emscripten'", "which is not there"),
        ("absent; sys_platform != 'emscripten'", ""),
        ("absent; extra == 'more'", ""),
        ("absent; python_version < '3.14'", ""),
        ("widgetsnbextension>=4", ""),
        ("Other>=1", ""),
    ],
)
def test_a_set_that_does_not_fit_is_refused(tmp_path: Path, need: str, problem: str):
    """The requirements are read as the browser's Python reads them."""
    wheels = [wheel(tmp_path, "one", need), wheel(tmp_path, "other")]
    if not problem:
        lite.make_lock(wheels, {})
        return
    with pytest.raises(SystemExit, match=problem):
        lite.make_lock(wheels, {})


def test_a_stripped_wheel_is_pure_and_always_the_same(tmp_path: Path):
    compiled = tmp_path / "thing-2.0-cp314-cp314-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(compiled, "w") as archive:
        for name in ("thing/__init__.py", "thing/_fast.cpython-314-x86_64-linux-gnu.so"):
            archive.writestr(name, name)
        archive.writestr("thing-2.0.dist-info/METADATA", "Name: thing\nVersion: 2.0\n")
        archive.writestr("thing-2.0.dist-info/WHEEL", "Root-Is-Purelib: false\n")
        archive.writestr("thing-2.0.dist-info/RECORD", "x")
    twice = []
    for place in (tmp_path / "a", tmp_path / "b"):
        place.mkdir()
        lite.strip(compiled, place)
        twice.append((place / "thing-2.0-py3-none-any.whl").read_bytes())
    assert twice[0] == twice[1]
    with zipfile.ZipFile(io.BytesIO(twice[0])) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        assert b"Root-Is-Purelib: true" in archive.read("thing-2.0.dist-info/WHEEL")
        assert archive.read("thing/__init__.py") == b"thing/__init__.py"


def test_notebooks_are_for_the_browsers_kernel_and_show_no_foreign_badge(tmp_path: Path):
    badge = "[![Open in Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/x)"
    notebook = {
        "metadata": {"kernelspec": {"name": "python3"}, "language_info": {"name": "python"}},
        "cells": [{"cell_type": "markdown", "source": ["# Title\n", "\n", f"{badge}\n", "\n", "Text."]}],
    }
    (tmp_path / "in" / "data").mkdir(parents=True)
    (tmp_path / "in" / "source").mkdir()
    (tmp_path / "in" / "source" / "01.md").write_text("left out")
    (tmp_path / "in" / "01.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "in" / "data" / "a.txt").write_bytes(b"\xff as it is")
    lite.stage_contents(tmp_path / "in", tmp_path / "out")
    staged = json.loads((tmp_path / "out" / "01.ipynb").read_text())
    assert staged["metadata"]["kernelspec"] == lite.KERNEL
    assert staged["cells"][0]["source"] == "# Title\n\nText."
    assert (tmp_path / "out" / "data" / "a.txt").read_bytes() == b"\xff as it is"
    assert not (tmp_path / "out" / "source").exists()


def test_a_directory_that_is_no_site_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lite, "fetch_runtime", lambda _: tmp_path)
    monkeypatch.setattr(lite, "fetch_wheels", lambda _: [])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(SystemExit, match="left alone"):
        lite.build(tmp_path / "mine", tmp_path / "cache")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def packed(integrity_of: bytes | None = None) -> tuple[bytes, str]:
    """Return an npm package, and the integrity that a lock file holds for it (or for other bytes)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("package/pyodide.mjs")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"js"))
    digest = hashlib.sha512(buffer.getvalue() if integrity_of is None else integrity_of).digest()
    return buffer.getvalue(), f"sha512-{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize("genuine", [True, False])
def test_the_runtime_is_the_one_in_the_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, genuine: bool
):
    """Without npm it comes from the registry itself; either way its digest is checked, and it comes once."""
    data, integrity = packed(None if genuine else b"another")
    registry = tmp_path / "registry" / "pyodide" / "-"
    registry.mkdir(parents=True)
    (registry / "pyodide-9.9.9.tgz").write_bytes(data)
    config = tmp_path / "config"
    config.mkdir()
    pinned = {"packages": {"node_modules/pyodide": {"version": "9.9.9", "integrity": integrity}}}
    (config / "package-lock.json").write_text(json.dumps(pinned))
    monkeypatch.setattr(lite, "CONFIG", config)
    monkeypatch.setattr(lite, "REGISTRY", (tmp_path / "registry").as_uri())
    monkeypatch.setattr(lite.shutil, "which", lambda _: None)
    if not genuine:
        with pytest.raises(SystemExit, match="not the one"):
            lite.fetch_runtime(tmp_path / "cache")
        assert not list((tmp_path / "cache").iterdir())
        return
    assert (lite.fetch_runtime(tmp_path / "cache") / "pyodide.mjs").read_text() == "js"
    (registry / "pyodide-9.9.9.tgz").unlink()
    assert (lite.fetch_runtime(tmp_path / "cache") / "pyodide.mjs").exists()
