"""Binder: what its image is made of. `python scripts/binder_check.py` replays the steps and runs the lessons."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"


def pins() -> dict[str, Requirement]:
    lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(one.name): one for one in found}


def wanted() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = (BINDER / "requirements.in").read_text(encoding="utf-8").splitlines()
    own = [text for line in own if (text := line.partition("#")[0].strip())]
    return [*project["dependencies"], *project["optional-dependencies"]["local"], *own]


def test_every_requirement_is_pinned_exactly():
    """Issue 6.5: pinned."""
    assert all(len(one.specifier) == 1 and str(one.specifier).startswith("==") for one in pins().values())


@pytest.mark.parametrize("line", wanted())
def test_pins_are_what_the_package_asks_for(line):
    """`make binder-pins` writes them anew."""
    asked = Requirement(line)
    pin = pins()[canonicalize_name(asked.name)]
    assert next(iter(pin.specifier)).version in asked.specifier


def test_steps():
    """Issue 6.5: Python named (else an old one is taken), the package installed, the model fetched at build."""
    assert (BINDER / "runtime.txt").read_text(encoding="utf-8").strip() == "python-3.11"
    script = (BINDER / "postBuild").read_text(encoding="utf-8")
    assert os.access(BINDER / "postBuild", os.X_OK)
    assert "set -euo pipefail" in script
    assert "pip install --no-cache-dir --no-deps ." in script
    assert "jarvis models fetch" in script


def test_badges_lead_to_the_lessons():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        "https://mybinder.org/v2/gh/jarvis-nb/jarvis_nb/HEAD?urlpath=lab/tree/notebooks/01-first-question.ipynb"
        in readme
    )


@pytest.mark.slow
def test_repo2docker_accepts_it():
    """notebook.md 16: `jupyter-repo2docker --no-build`, which needs no Docker."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import binder_check
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    rendered = binder_check.rendered()
    assert "python=3.11" in rendered
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in rendered
    assert "RUN ./binder/postBuild" in rendered
