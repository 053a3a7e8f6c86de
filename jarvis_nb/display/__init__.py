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
    return card_text(view), card_html(view, times=times)


_VIEWS: dict[str, Callable[..., Pictures]] = {"Reply": _reply}


def bundle(thing: Any, **options: Any) -> dict[str, str]:
    """Return the MIME bundle of an object: text that is useful alone, and static HTML."""
    text, html = _VIEWS[type(thing).__name__](thing, **options)
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
        body = f'<body style="font-family:system-ui,sans-serif;margin:24px">{html}</body>'
        Path(path).write_text(head + body + "\n", encoding="utf-8", errors="backslashreplace")
    return html
