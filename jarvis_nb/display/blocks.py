"""The few HTML blocks all pictures are made of: inherited colours, inline styles, no script, no style sheet.

They live with JupyterLab's sanitizer and GitHub's allow-list, and read well with every style stripped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jarvis_nb.display.escape import prose

DIM = "opacity:.75"
GREEN = "rgba(60,150,90,.8)"
RED = "rgba(190,70,60,.8)"
AMBER = "rgba(190,140,40,.8)"
GREY = "rgba(128,128,128,.6)"

_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"


def frame(parts: Iterable[str]) -> str:
    """Put blocks into the bordered box of a card."""
    style = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 12px;max-width:860px;"
    return f'<div style="{style}font-size:13px;line-height:1.5;overflow-wrap:anywhere">{"".join(p for p in parts if p)}</div>'


def line(html: str, style: str = "") -> str:
    """Return one paragraph of ready HTML."""
    return f'<p style="margin:2px 0 4px;{style}">{html}</p>'


def dim(text: str) -> str:
    """Return one quiet line of text."""
    return line(prose(text), DIM)


def table(rows: Iterable[Sequence[str]], *, caption: str = "", head: Sequence[str] = ()) -> str:
    """Return a table of ready HTML cells."""
    top = (
        f'<caption style="text-align:left;{DIM};padding-bottom:2px">{prose(caption)}</caption>'
        if caption
        else ""
    )
    header = "".join(
        f'<th scope="col" style="{_CELL};font-weight:normal;{DIM}">{prose(h)}</th>' for h in head
    )
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows
    )
    if not body:
        return ""
    first = f"<tr>{header}</tr>" if header else ""
    return f'<table style="font-size:13px;border-collapse:collapse;margin:0 0 8px">{top}{first}{body}</table>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of a heading and ready HTML a row."""
    head = f"{_CELL};font-weight:normal;{DIM}"
    body = "".join(
        f'<tr><th scope="row" style="{head}">{prose(name)}</th><td style="{_CELL}">{html}</td></tr>'
        for name, html in rows
        if html
    )
    return (
        f'<table style="font-size:13px;border-collapse:collapse;margin:4px 0 0">{body}</table>'
        if body
        else ""
    )


def details(summary: str, body: str, *, open_: bool = False, colour: str = "") -> str:
    """Return a fold with ready HTML in its summary and body; a colour is only a hint beside the words."""
    bar = f"border-left:3px solid {colour};padding:2px 0 2px 8px;" if colour else ""
    state = " open" if open_ else ""
    return f'<details{state} style="{bar}margin:0 0 4px"><summary>{summary}</summary>{body}</details>'
