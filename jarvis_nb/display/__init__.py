"""Views as data, then as text and static HTML: pure functions that everything with a picture calls.

One hook connects the rooms: :func:`bundle` finds the view of an object by its type's name, so that no room
imports a picture before somebody looks at it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Pictures = tuple[str, str]
"""Text and HTML of one object."""


def _reply(reply: Any, *, times: bool = False) -> Pictures:
    from jarvis_nb.display.card import card
    from jarvis_nb.display.card_html import card_html
    from jarvis_nb.display.card_text import card_text

    view = card(reply)
    return card_text(view, times=times), card_html(view, times=times)


def _toolset(given: Any) -> Pictures:
    from jarvis_nb.display.tools import tool, toolset_html, toolset_text

    views = tuple(map(tool, given.tools))
    return toolset_text(views), toolset_html(views)


def _tool(given: Any) -> Pictures:
    from jarvis_nb.display.tools import tool, tool_html, tool_text

    view = tool(given)
    return tool_text(view), tool_html(view)


def _offer(given: Any) -> Pictures:
    from jarvis_nb.display.ledger import ledger, ledger_html, ledger_text

    view = ledger(given)
    return ledger_text(view), ledger_html(view)


def _preview(given: Any) -> Pictures:
    from jarvis_nb.display.before_after import preview, preview_html, preview_text

    view = preview(given)
    return preview_text(view), preview_html(view)


def _diff(given: Any) -> Pictures:
    from jarvis_nb.display.before_after import diff, diff_html, diff_text

    rows = diff(given)
    return diff_text(rows), diff_html(rows)


def _hits(given: Any) -> Pictures:
    from jarvis_nb.display.found import hits, hits_html, hits_text

    view = hits(given)
    return hits_text(view), hits_html(view)


def _skills(given: Any) -> Pictures:
    from jarvis_nb.display.found import skills, skills_html, skills_text

    view = skills(given)
    return skills_text(view), skills_html(view)


def _explanation(view: Any) -> Pictures:
    from jarvis_nb.display.flow import draw

    return str(view), draw(view)


def _flow(given: Any) -> Pictures:
    return _explanation(given.explain())


def _flow_run(given: Any, *, times: bool = False) -> Pictures:
    return _explanation(given.view(times=times))


def _listing(given: Any) -> Pictures:
    from jarvis_nb.display.lists import listing_html, listing_text

    return listing_text(given), listing_html(given)


def _record(given: Any) -> Pictures:
    from jarvis_nb.display.fields import record_html, record_text

    return record_text(given), record_html(given)


_VIEWS: dict[str, Callable[..., Pictures]] = {
    "Reply": _reply,
    "Toolset": _toolset,
    "BaseTool": _tool,
    "Offer": _offer,
    "Preview": _preview,
    "ReplyDiff": _diff,
    "Hits": _hits,
    "Skills": _skills,
    "Flow": _flow,
    "Explanation": _explanation,
    "FlowTrace": _flow_run,
    "Listing": _listing,
}


def _view(thing: Any) -> Callable[..., Pictures]:
    """Return the view for an object's type, or for the nearest base of it that has one."""
    for base in type(thing).__mro__:
        if base.__name__ in _VIEWS and base.__module__.startswith("jarvis_nb."):
            return _VIEWS[base.__name__]
    return _record


def bundle(thing: Any, **options: Any) -> dict[str, str]:
    """Return the MIME bundle of an object: text that is useful alone, and static HTML."""
    text, html = _view(thing)(thing, **options)
    return {"text/plain": text, "text/html": html}


class Shown:
    """An object's picture under options of its own, for the end of a cell."""

    def __init__(self, thing: Any, **options: Any) -> None:
        self._bundle = bundle(thing, **options)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self._bundle

    def __repr__(self) -> str:
        return self._bundle["text/plain"]


def show(thing: Any, **options: Any) -> Shown:
    """Return the picture of an object, with the options of its view."""
    return Shown(thing, **options)


def write_html(thing: Any, path: str | os.PathLike[str] | None, **options: Any) -> str:
    """Return the static HTML of an object; with a path, also write it as one offline page."""
    html = bundle(thing, **options)["text/html"]
    if path is not None:
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>jarvis_nb</title>'
        head += '<meta name="color-scheme" content="light dark">'
        head += '<meta name="viewport" content="width=device-width,initial-scale=1">'
        body = f'<body style="font-family:system-ui,sans-serif;margin:24px">{html}</body>'
        Path(path).write_text(head + body + "\n", encoding="utf-8", errors="backslashreplace")
    return html
