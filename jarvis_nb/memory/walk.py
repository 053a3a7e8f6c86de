"""Which files of a directory are worth indexing, and why the others are not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from jarvis_nb.core.files import looks_secret

VENDORED_FOLDERS = frozenset(
    {
        "__pycache__",
        "bower_components",
        "dist-packages",
        "node_modules",
        "site-packages",
        "third_party",
        "vendor",
        "venv",
    }
)
GENERATED_FILES = ("*.min.js", "*.min.css", "*.map", "*.lock", "*-lock.json", "*-lock.yaml", "*.pyc")

SECRET = "looks like a file of secrets"  # noqa: S105 - a reason
UNREADABLE = "unreadable"
FOREIGN_NAME = "its name is not UTF-8"


@dataclass(slots=True)
class Walk:
    """The files of a directory in a fixed order, and what was left out."""

    files: list[Path] = field(default_factory=list[Path])
    skipped: dict[Path, str] = field(default_factory=dict[Path, str])
    """Path to reason; a folder stands for all that is in it."""


def walk(root: Path) -> Walk:
    """Find the files to index below an absolute path without links, whatever the root itself is called."""
    result = Walk()
    if not root.exists():
        return result  # it was indexed once and is gone
    if root.is_file():
        if looks_secret(root):
            result.skipped[root] = SECRET
        else:
            result.files.append(root)
        return result

    def failed(error: OSError) -> None:
        result.skipped[Path(error.filename)] = f"{UNREADABLE}: {error.strerror}"

    for folder, folders, names in os.walk(root, onerror=failed):
        here = Path(folder)
        folders.sort()
        for name in list(folders):
            reason = _folder_reason(here / name)
            if reason:
                result.skipped[here / name] = reason
                folders.remove(name)
        for name in sorted(names):
            reason = _file_reason(here / name)
            if reason:
                result.skipped[here / name] = reason
            else:
                result.files.append(here / name)
    return result


def _folder_reason(path: Path) -> str:
    if not _utf8(path.name):
        return FOREIGN_NAME
    if path.name.startswith("."):
        return "hidden"
    if path.is_symlink():
        return "link"
    if path.name in VENDORED_FOLDERS or path.name.endswith(".egg-info") or (path / "pyvenv.cfg").exists():
        return "vendored"
    return ""


def _file_reason(path: Path) -> str:
    if not _utf8(path.name):
        return FOREIGN_NAME
    if looks_secret(path):
        return SECRET
    if path.name.startswith("."):
        return "hidden"
    if path.is_symlink():
        return "link"  # what it leads to is indexed where it lies, if that is to be indexed
    return "generated" if any(fnmatchcase(path.name.lower(), pattern) for pattern in GENERATED_FILES) else ""


def _utf8(name: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in name)
