"""Small records - a call, a result, an attempt, a policy, a Jarvis - as a line and a table of their fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from jarvis_nb.display import blocks
from jarvis_nb.display.escape import code, cut, json_text, one_line, plain, prose

VALUE = 1000


def record(thing: Any) -> tuple[tuple[str, str], ...]:
    """Return name and text of each field of a dataclass that says something."""
    if not is_dataclass(thing):
        return ()
    shown: list[tuple[str, str]] = []
    for one in fields(thing):
        value = getattr(thing, one.name)
        if one.repr and not one.name.startswith("_") and value not in (None, "", [], (), {}):
            shown.append((one.name, value if isinstance(value, str) else _text(value)))
    return tuple(shown)


def _text(value: Any) -> str:
    return json_text(value) if isinstance(value, dict | list | tuple | int | float | bool) else str(value)


def record_html(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a record as a small card."""
    cells = [(name, code(cut(text, VALUE, name))) for name, text in rows]
    return blocks.frame([blocks.line(f"<b>{prose(one_line(title, 200))}</b>"), blocks.pairs(cells)])


def record_text(thing: Any) -> str:
    """Return the repr of a record, bounded."""
    return cut(plain(repr(thing)), VALUE)
