"""Rows under headings, as a value that shows itself: what the ``%jarvis`` magic returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jarvis_nb.core.pictured import Pictured
from jarvis_nb.display import blocks
from jarvis_nb.display.escape import one_line, prose

CELL = 200


@dataclass(frozen=True, slots=True)
class Listing(Pictured):
    """A titled table."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return f"Listing({self.title!r}, {len(self.rows)} rows)"


def listing_text(given: Listing) -> str:
    """Return a listing as text, a line a row."""
    rows = [[one_line(cell, 100) for cell in row] for row in given.rows]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(len(given.head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([one_line(given.title), *(f"  {line}" for line in lines)])


def listing_html(given: Listing) -> str:
    """Return a listing as a card."""
    rows: list[Sequence[str]] = [[prose(one_line(cell, CELL)) for cell in row] for row in given.rows]
    title = blocks.line(f"<b>{prose(one_line(given.title))}</b>")
    return blocks.frame([title, blocks.table(rows, head=given.head)])
