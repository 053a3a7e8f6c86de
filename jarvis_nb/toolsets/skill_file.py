"""One ``SKILL.md``: read without following links, and judged by the rules of its format.

The format is Agent Skills' (https://agentskills.io/specification); where the tutorial's limits are
stricter, in bytes and without Unicode folding, they hold.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from jarvis_nb.core.errors import close_names
from jarvis_nb.core.files import FileRefused, read_regular
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.toolsets.frontmatter import Field, Refused, Scalar, fields, split

FILE_NAME = "SKILL.md"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME = 64
"""Bytes."""
MAX_DESCRIPTION = 1_024
"""Bytes."""
MAX_FIELD = 1_024
"""Bytes of ``license``, ``compatibility`` and ``allowed-tools``."""
MAX_FILE = 262_144
"""Bytes of the whole file."""
MAX_ENTRIES = 10_000
"""Entries of a skill's directory that are looked through for another spelling of the file's name."""
KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


@dataclass(frozen=True, slots=True)
class SkillProblem(Pictured):
    """Why a skill is not offered, or what its author should look at."""

    path: str = field(repr=False)
    code: str
    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        parts = Path(self.path).parts
        name = parts[-1] if parts[-1] != FILE_NAME else "/".join(parts[-2:])
        place = "" if self.line is None else f":{self.line}:{self.column}"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{name}{place}: {self.message}{hint} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Skill(Pictured):
    """One skill that can be loaded: what its frontmatter says."""

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: str | None = None
    """Shown only: it never grants a tool."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """Text, or lists and mappings of text, as written."""
    warnings: tuple[SkillProblem, ...] = ()
    path: str = field(default="", repr=False, compare=False)
    """Its file."""

    def to_dict(self) -> dict[str, Any]:
        """Return the skill as plain data."""
        return {**asdict(self), "warnings": [warning.to_dict() for warning in self.warnings]}


def read_skill(directory: str, name: str) -> tuple[Skill, str]:
    """Read the skill of one directory and return it with its instructions.

    Args:
        directory: An absolute path whose folders are no links.
        name: What the directory is called where it was found: the skill's name has to be the same.

    Raises:
        Refused: Why it is not taken.
        FileNotFoundError: It has no ``SKILL.md`` under any spelling.
    """
    path = os.path.join(directory, FILE_NAME)  # noqa: PTH118 - a path object costs more than the read's own work
    _check_spelling(directory, path)
    try:
        data = read_regular(path, FILE_NAME, MAX_FILE)
    except FileRefused as refused:
        codes = {"too_large": "file_too_large", "changed_meanwhile": "symlink"}
        raise Refused(codes.get(refused.code, refused.code), refused.message) from None
    front, body = split(data)
    return _skill(fields(front), body, path, name), body


def _check_spelling(directory: str, path: str) -> None:
    """Refuse what is not exactly ``SKILL.md``, also where the file system does not tell the cases apart."""
    try:
        mode = os.lstat(path).st_mode
        twin = _exists(os.path.join(directory, "skill.md"))  # noqa: PTH118
        names = _names(directory) if twin else [FILE_NAME]
    except FileNotFoundError:
        mode, names = 0, _names(directory)
    if FILE_NAME not in names:
        close = [name for name in names if name.casefold() == FILE_NAME.casefold()]
        if not close:
            raise FileNotFoundError(path)
        raise Refused("wrong_file_name", f"the file is called {close[0]}", f"rename it to {FILE_NAME}")
    if stat.S_ISLNK(mode):
        raise Refused("symlink", f"{FILE_NAME} is a link", "put the file itself there")


def _names(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in islice(entries, MAX_ENTRIES)]


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except OSError:
        return False
    return True


def _skill(given: tuple[Field, ...], body: str, path: str, directory: str) -> Skill:
    by_name = {item.key.text: item.value for item in given}
    warnings = [_unknown(item, path) for item in given if item.key.text not in KNOWN]
    if not body.strip():
        warnings.append(
            SkillProblem(
                path, "empty_body", "the skill has no instructions", "write them below the frontmatter"
            )
        )
    return Skill(
        _name(by_name, directory),
        _description(by_name),
        _short_text(by_name, "license"),
        _short_text(by_name, "compatibility"),
        _short_text(by_name, "allowed-tools"),
        _metadata(by_name),
        tuple(warnings),
        path,
    )


def _unknown(item: Field, path: str) -> SkillProblem:
    key = item.key
    close = close_names(key.text[:100], KNOWN)
    hint = f"did you mean {close[0]!r}?" if close else "put it under metadata"
    return SkillProblem(
        path, "unknown_field", f"the unknown field {key.text!r:.80}", hint, key.line, key.column
    )


def _required(by_name: dict[str, Any], key: str) -> Scalar:
    value = by_name.get(key)
    if value is None:
        raise Refused("missing_field", f"{key} is missing", f"write `{key}: …` into the frontmatter", 1, 1)
    if not isinstance(value, Scalar):
        raise Refused("invalid_field", f"{key} is not text")
    if value.is_null or not value.text.strip():
        raise Refused("blank_field", f"{key} is blank", "", value.line, value.column)
    if value.other_type is not None:
        message = f"{key} is unquoted {value.text[:80]}, which YAML reads as {value.other_type}"
        raise Refused("quote_it", message, f'quote it: {key}: "{value.text[:80]}"', value.line, value.column)
    return value


def _check_size(value: str, key: str, limit: int, at: Scalar) -> None:
    size = len(value.encode(errors="surrogatepass"))
    if size > limit:
        raise Refused(
            f"{key}_too_long",
            f"{key} has {size:,} bytes, at most {limit:,} are taken",
            "",
            at.line,
            at.column,
        )


def _check_text(value: str, key: str, at: Scalar) -> None:
    """Refuse what an escape can bring into a value: controls, line separators, half surrogate pairs."""
    for character in value:
        if character != "\n" and unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            message = f"{key} holds the character U+{ord(character):04X}"
            raise Refused("control_character", message, "remove it", at.line, at.column)


def _name(by_name: dict[str, Any], directory: str) -> str:
    value = _required(by_name, "name")
    name = value.text
    _check_size(name, "name", MAX_NAME, value)
    if not NAME.fullmatch(name):
        hint = "words of a-z and 0-9, joined by single hyphens"
        raise Refused("invalid_name", f"{name!a} is not a skill name", hint, value.line, value.column)
    if name != directory:
        message = f"the name {name!r} is not that of its directory, {directory!a:.100}"
        raise Refused("name_mismatch", message, "rename one of them", value.line, value.column)
    return name


def _description(by_name: dict[str, Any]) -> str:
    value = _required(by_name, "description")
    _check_text(value.text, "description", value)
    description = value.text.strip()  # a block scalar ends in a line feed
    _check_size(description, "description", MAX_DESCRIPTION, value)
    return description


def _short_text(by_name: dict[str, Any], key: str) -> str | None:
    value = by_name.get(key)
    if isinstance(value, list) and value and all(isinstance(item, Scalar) for item in value):
        first = value[0]
        value = Scalar(
            " ".join(item.text for item in value), plain=False, line=first.line, column=first.column
        )
    if value is None or value == []:
        return None
    if not isinstance(value, Scalar):
        raise Refused("invalid_field", f"{key} is not text")
    if value.is_null:
        return None
    _check_size(value.text, key, MAX_FIELD, value)
    _check_text(value.text, key, value)
    return value.text


def _metadata(by_name: dict[str, Any]) -> dict[str, Any]:
    value = by_name.get("metadata")
    if value is None or (isinstance(value, Scalar) and value.is_null):
        return {}
    if not isinstance(value, dict):
        raise Refused(
            "invalid_field", "metadata is no mapping", "write indented lines of `key: value` below it"
        )
    return _data(value)


def _data(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _data(item) for key, item in node.items()}
    if isinstance(node, list):
        return [_data(item) for item in node]
    _check_text(node.text, "metadata", node)
    return None if node.is_null else node.text
