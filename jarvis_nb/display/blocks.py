"""The few HTML blocks all pictures are made of: inherited colours, inline styles, no script, no style sheet.

They live with JupyterLab's sanitizer and GitHub's allow-list, and read well with every style stripped: what a
colour, a bar or an opacity says is said by a word or a sign too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jarvis_nb.display.escape import prose

DIM = "opacity:.75"
"""Quiet text: above a contrast of 4.5 on every theme whose own text is above 8."""
GREEN = "rgba(60,150,90,.8)"
RED = "rgba(190,70,60,.8)"
AMBER = "rgba(190,140,40,.8)"
GREY = "rgba(128,128,128,.6)"
FAINT = "rgba(128,128,128,.25)"

COLOURS = {
    "✓": GREEN,
    "✗": RED,
    "⊘": AMBER,
    "‖": AMBER,
    "⚠": AMBER,
    "■": GREY,
}
"""The colour that goes with a sign."""

_CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"
_LAST = f"{_CELL};overflow-wrap:anywhere"
_ROW_HEAD = f"{_CELL};font-weight:normal;white-space:nowrap;{DIM}"
_TABLE = "font-size:13px;border-collapse:collapse;margin:2px 0 8px"


def frame(parts: Iterable[str]) -> str:
    """Put blocks into the bordered box of a card."""
    style = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;max-width:860px;"
    body = "".join(part for part in parts if part)
    return f'<div style="{style}font-size:13px;line-height:1.5;overflow-wrap:break-word">{body}</div>'


def line(html: str, style: str = "") -> str:
    """Return one paragraph of ready HTML."""
    return f'<p style="margin:2px 0 4px;{style}">{html}</p>'


def dim(text: str) -> str:
    """Return one quiet line of text."""
    return line(prose(text), DIM)


def heading(html: str) -> str:
    """Return a quiet line of ready HTML that begins a part."""
    return line(html, f"margin-top:8px;{DIM}")


def table(rows: Iterable[Sequence[str]], *, caption: str = "", head: Sequence[str] = ()) -> str:
    """Return a table of ready HTML cells; empty where there is no row."""
    body = "".join(f"<tr>{''.join(map(_cell, row[:-1]))}{_cell(row[-1], _LAST)}</tr>" for row in rows)
    if not body:
        return ""
    style = f"text-align:left;white-space:nowrap;{DIM};padding:6px 0 2px"
    top = f'<caption style="{style}">{prose(caption)}</caption>' if caption else ""
    names = "".join(f'<th scope="col" style="{_CELL};font-weight:normal;{DIM}">{prose(h)}</th>' for h in head)
    first = f"<tr>{names}</tr>" if names else ""
    return _scrolling(f'<table style="{_TABLE}">{top}{first}{body}</table>')


def _cell(html: str, style: str = _CELL) -> str:
    return f'<td style="{style}">{html}</td>'


def _scrolling(table: str) -> str:
    """A table that is too wide scrolls by itself, on a phone for instance."""
    return f'<div style="overflow-x:auto">{table}</div>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of a heading and ready HTML a row; empty where there is none."""
    body = "".join(
        f'<tr><th scope="row" style="{_ROW_HEAD}">{prose(name)}</th>{_cell(html, _LAST)}</tr>'
        for name, html in rows
        if html
    )
    return _scrolling(f'<table style="{_TABLE}">{body}</table>') if body else ""


def bullets(items: Iterable[str], *, most: int = 50) -> str:
    """Return a list of ready HTML items, the first of them; empty where there is none."""
    lines = list(items)
    if not lines:
        return ""
    more = [prose(f"… {len(lines) - most:,} more")] if len(lines) > most else []
    inner = "".join(f"<li>{item}</li>" for item in lines[:most] + more)
    return f'<ul style="margin:0 0 8px;padding-left:20px">{inner}</ul>'


def bar(html: str, colour: str) -> str:
    """Return ready HTML with a coloured edge, a hint beside the words."""
    return f'<div style="{_edge(colour)}">{html}</div>'


def details(summary: str, body: str, *, open_: bool = False, colour: str = "") -> str:
    """Return a fold with ready HTML in its summary and body; a colour is only a hint beside the words."""
    style = _edge(colour) if colour else "margin:0 0 4px"
    state = " open" if open_ else ""
    return f'<details{state} style="{style}"><summary>{summary}</summary>{body}</details>'


def _edge(colour: str) -> str:
    return f"border-left:3px solid {colour};padding:1px 0 1px 9px;margin:0 0 5px"


def span(start: float, length: float, colour: str, *, solid: bool = True) -> str:
    """Return a bar from ``start`` percent on; an outline where not ``solid``, so that shape tells too."""
    start, length = max(0.0, min(start, 99.5)), max(0.5, min(length, 100 - start))
    fill = f"background-color:{colour}" if solid else f"border:1px solid {colour}"
    place = f"margin-left:{start:.1f}%;width:{length:.1f}%;height:8px;box-sizing:border-box;margin-top:5px"
    return f'<div style="min-width:160px"><div style="{place};{fill}"></div></div>'
