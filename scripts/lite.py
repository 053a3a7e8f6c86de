"""Build the tutorials as pages that run in the browser: JupyterLite, with Python and all packages beside it.

    python scripts/lite.py                          into site/lite
    python scripts/lite.py --output docs/_build/lite

What is downloaded (Pyodide from npm, wheels from PyPI, all pinned in lite/) stays in a cache directory, and a
page loads nothing from any other place than the site itself. A notebook needs no %pip: the first cell that
imports a package loads it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "lite"
REQUIREMENTS = CONFIG / "requirements.txt"
NOTEBOOKS = ROOT / "notebooks"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "jarvis_nb" / "lite"

EPOCH = "1767225600"
"""The time that all files of the site bear, so that each build has the same bytes."""
REGISTRY = "https://registry.npmjs.org"
PYTHON = "3.14"
ABI = "pyemscripten_2026_0_wasm32"
TARGET = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "platform_system": "Emscripten",
    "python_full_version": "3.14.2",
    "python_version": PYTHON,
    "sys_platform": "emscripten",
}
"""The browser's Python, as the markers of requirements see it."""

RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
STRIPPED = "pyyaml"
"""Has no wheel for the browser, but works without its compiled part."""
PROVIDED = {"widgetsnbextension"}
"""Comes with the kernel."""
MORE = {"pyrsistent-as-rpds-py": ("pyrsistent",)}
"""What a package needs and does not say without an extra."""
EXTENSIONS = ("@jupyterlite/pyodide-kernel-extension", "@jupyter-widgets/jupyterlab-manager", "anywidget")
BADGE = re.compile(r"^\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)\n*", re.MULTILINE)
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
CONTENTS = ("*.ipynb", "data/**/*", "recordings/*")


def main() -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=ROOT / "site" / "lite")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="the directory that is served")
    options = parser.parse_args()
    build(options.output.resolve(), options.cache.resolve(), options.notebooks.resolve())
    print(f"{options.output}: python -m http.server --bind 127.0.0.1 -d {options.output}")


def build(output: Path, cache: Path, notebooks: Path = NOTEBOOKS) -> None:
    """Build the site into ``output``, which is emptied first if it is a site; downloads stay in ``cache``.

    Raises:
        SystemExit: The pinned packages do not fit together, or a tool failed.
    """
    runtime, wheels = fetch_runtime(cache), fetch_wheels(cache)
    if output.exists():
        if not (output / "jupyter-lite.json").is_file() and any(output.iterdir()):
            raise SystemExit(f"{output} is not empty, and no site of this script: it is left alone")
        shutil.rmtree(output)
    with tempfile.TemporaryDirectory() as place:
        stage = Path(place)
        pyodide = stage / "static" / "pyodide"
        pyodide.mkdir(parents=True)
        for name in RUNTIME:
            shutil.copy(runtime / name, pyodide)
        for wheel in [*wheels, build_package(stage / "wheel")]:
            shutil.copy(wheel, pyodide)
        stand_in(pyodide)
        lock = make_lock(
            sorted(pyodide.glob("*.whl")), json.loads((runtime / "pyodide-lock.json").read_text())
        )
        (pyodide / "pyodide-lock.json").write_text(json.dumps(lock, indent=1))
        stage_contents(notebooks, stage / "files")
        configure(stage, output)
        _run(sys.executable, "-m", "jupyter", "lite", "build", cwd=stage)


def fetch_runtime(cache: Path) -> Path:
    """Return the directory with the files of the pinned Pyodide.

    Raises:
        SystemExit: What came is not what lite/package-lock.json says.
    """
    pinned = json.loads((CONFIG / "package-lock.json").read_text())["packages"]["node_modules/pyodide"]
    place = cache / f"pyodide-{pinned['version']}"
    if not place.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as half:
            archive = _pack(pinned["version"], Path(half))
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if f"sha512-{digest}" != pinned["integrity"]:
                raise SystemExit(f"pyodide {pinned['version']} is not the one in lite/package-lock.json")
            with tarfile.open(archive) as opened:
                opened.extractall(half, filter="data")
            (Path(half) / "package").rename(place)
    return place


def _pack(version: str, place: Path) -> Path:
    """Download Pyodide's package: by npm, or without it from where npm would."""
    npm = shutil.which("npm")
    archive = place / f"pyodide-{version}.tgz"
    if npm is not None:
        _run(npm, "pack", f"pyodide@{version}", "--silent", f"--pack-destination={place}")
    else:
        urllib.request.urlretrieve(f"{REGISTRY}/pyodide/-/{archive.name}", archive)
    return archive


def fetch_wheels(cache: Path) -> list[Path]:
    """Return the pinned wheels; a set that was downloaded once needs no network again."""
    pins = REQUIREMENTS.read_bytes()
    place = cache / f"wheels-{hashlib.sha256(pins).hexdigest()[:12]}"
    if not place.is_dir():
        lines = [line.partition("#")[0].strip() for line in pins.decode().splitlines()]
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as half:
            download = Path(half) / "wheels"
            _download([line for line in lines if line and not line.startswith(STRIPPED)], ABI, download)
            compiled = Path(half) / "compiled"
            _download([line for line in lines if line.startswith(STRIPPED)], "manylinux2014_x86_64", compiled)
            for wheel in compiled.iterdir():
                strip(wheel, download)
            download.rename(place)
    return sorted(place.iterdir())


def _download(requirements: list[str], platform: str, place: Path) -> None:
    _run(
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary=:all:", f"--platform={platform}", f"--python-version={PYTHON}", "--implementation=cp",
        "--abi=cp314", f"--dest={place}", *requirements,
    )  # fmt: skip


def strip(wheel: Path, place: Path) -> None:
    """Write a wheel again without its compiled modules, as one that runs everywhere."""
    name, version = wheel.name.split("-")[:2]
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if not n.endswith(("/", ".so", "/RECORD", "/WHEEL"))]
        write_wheel(place, name, version, {name: archive.read(name) for name in names})


def stand_in(place: Path) -> None:
    """Write the wheel that takes the place of rpds-py, whose compiled original is not on PyPI for the browser."""
    code = b"from pyrsistent_as_rpds.pure import *\n"
    metadata = "Metadata-Version: 2.1\nName: rpds-py\nVersion: 1.0\nRequires-Dist: pyrsistent-as-rpds-py\n"
    files = {
        "rpds.py": code,
        "rpds_py-1.0.dist-info/METADATA": metadata.encode(),
    }
    write_wheel(place, "rpds_py", "1.0", files)


def write_wheel(place: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    """Write a wheel of pure Python; the same files give the same bytes."""
    info = f"{name}-{version}.dist-info"
    tags = b"Wheel-Version: 1.0\nGenerator: jarvis_nb\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, data in {**files, f"{info}/WHEEL": tags, f"{info}/RECORD": b""}.items():
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)


def build_package(place: Path) -> Path:
    """Return the wheel of the package as it is in this tree."""
    _run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-build-isolation", f"--wheel-dir={place}", str(ROOT),
    )  # fmt: skip
    return next(place.glob("*.whl"))


def make_lock(wheels: list[Path], original: dict[str, Any]) -> dict[str, Any]:
    """Return Pyodide's list of packages: these wheels and no other, so that it looks nowhere else.

    Raises:
        SystemExit: A wheel asks for something that is not there, or not in this version.
    """
    metadata = {wheel: _metadata(wheel) for wheel in wheels}
    versions = {_canonical(data["Name"]): data["Version"] for data in metadata.values()}
    packages: dict[str, Any] = {}
    problems: list[str] = []
    for wheel, data in metadata.items():
        name = _canonical(data["Name"])
        needs = list(_needs(data.get_all("Requires-Dist") or [], versions, name, problems))
        packages[name] = {
            "name": name,
            "version": data["Version"],
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": _modules(wheel),
            "depends": sorted({*needs, *MORE.get(name, ())}),
            "unvendored_tests": False,
        }
    if problems:
        raise SystemExit("lite/requirements.txt does not fit:\n" + "\n".join(problems))
    return {**original, "packages": dict(sorted(packages.items()))}


def _needs(
    requirements: Iterable[str], versions: dict[str, str], owner: str, problems: list[str]
) -> Iterator[str]:
    from packaging.requirements import Requirement

    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate(TARGET):
            continue
        name = _canonical(requirement.name)
        if name in PROVIDED:
            continue
        held = versions.get(name)
        if held is None:
            problems.append(f"{owner} needs {text}, which is not there")
        elif not requirement.specifier.contains(held, prereleases=True):
            problems.append(f"{owner} needs {text}, and {held} is there")
        else:
            yield name


def _metadata(wheel: Path) -> Any:
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def _modules(wheel: Path) -> list[str]:
    """Return the names that a wheel lets one import."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    return sorted(top.removesuffix(".py") for top in tops if not top.endswith((".dist-info", ".data")))


def _canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return canonicalize_name(name)


def stage_contents(notebooks: Path, place: Path) -> None:
    """Copy what the pages show: notebooks, for the browser's kernel, and the files they read."""
    for pattern in CONTENTS:
        for path in sorted(notebooks.glob(pattern)):
            if path.is_file():
                target = place / path.relative_to(notebooks)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(_for_kernel(path))


def _for_kernel(path: Path) -> bytes:
    """Return a file's bytes; a notebook's name the kernel, or the page asks its reader for one.

    Badges are left out: they are images of other sites, and lead to where the reader is already.
    """
    data = path.read_bytes()
    if path.suffix != ".ipynb":
        return data
    notebook = json.loads(data)
    notebook["metadata"]["kernelspec"] = KERNEL
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = BADGE.sub("", "".join(cell["source"]))
    return json.dumps(notebook, indent=1, ensure_ascii=False).encode()


def configure(stage: Path, output: Path) -> None:
    """Write what JupyterLite reads: these extensions only, whatever else is installed here."""
    shutil.copy(CONFIG / "jupyter-lite.json", stage)
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    missing = [name for name in EXTENSIONS if not (installed / name).is_dir()]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}; pip install -e '.[lite]'")
    settings = {
        "output_dir": str(output),
        "cache_dir": str(stage / "cache"),
        "apps": ["lab", "notebooks"],
        "ignore_sys_prefix": True,
        "federated_extensions": [str(installed / name) for name in EXTENSIONS],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "output_archive": str(stage / "unused.tgz"),
    }
    (stage / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": settings}))


def _run(*command: str, cwd: Path | None = None) -> None:
    environment = {"SOURCE_DATE_EPOCH": EPOCH, **os.environ}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    main()
