"""Reads the tool document: its code blocks and its tables, by section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TEXT = (Path(__file__).parent / "openjarvis_tools.md").read_text()


@dataclass(frozen=True)
class Section:
    """One section: its text, its code blocks by language, and its tables."""

    title: str
    text: str

    def code(self, language: str = "python") -> str:
        """Return the one block of a language, with the package's name changed."""
        (block,) = re.findall(rf"^```{language}\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return block.replace("openjarvis.tools._stubs", "jarvis_nb.tools").replace("openjarvis", "jarvis_nb")

    @property
    def tables(self) -> list[list[dict[str, str]]]:
        """The tables, each a list of rows."""
        return [_rows(found) for found in re.findall(r"(?:^\|.*\|\n)+", self.text, re.MULTILINE)]


def _rows(table: str) -> list[dict[str, str]]:
    head, _, *body = (
        [cell.strip() for cell in line.strip("|\n").split(" | ")] for line in table.splitlines()
    )
    return [dict(zip(head, cells, strict=True)) for cells in body]


def section(title: str) -> Section:
    """Return a section, up to the next heading."""
    (text,) = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return Section(title, text)
