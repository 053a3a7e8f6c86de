"""Untrusted text made safe for HTML outputs, and cut to a bounded length."""

from __future__ import annotations

import json
import re
from html import escape as html_escape
from typing import Any

from jarvis_nb.core.text import ODD, cut, plain

# A notebook's front end typesets $…$ and \(…\) inside HTML outputs (MathJax), except in code and pre. It does
# not look across elements: one of its own around each such character keeps the text as it is.
_MATH = {ord(c): f"<span>{c}</span>" for c in "$\\"}

_LINES = re.compile(r"\s*\n\s*")


def one_line(text: object, limit: int = 160, where: str = "") -> str:
    r"""Return text on one line, cut.

    Example:
        >>> one_line("a\n  b")
        'a b'
    """
    shown = text if isinstance(text, str) else str(text)
    return cut(_LINES.sub(" ", plain(shown[: 4 * limit].rstrip())) + shown[4 * limit :], limit, where)


def prose(text: object) -> str:
    """Escape text for HTML outside of code: no tag, no entity, no formula.

    Example:
        >>> prose("<b>1</b>")
        '&lt;b&gt;1&lt;/b&gt;'
    """
    return html_escape(plain(text), quote=False).translate(_MATH)


def ticked(text: object) -> str:
    """Escape text whose backquoted words are code.

    Example:
        >>> ticked("not in `visible`")
        'not in <code>visible</code>'
    """
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:
        return prose(text)
    return "".join(code(part) if n % 2 else prose(part) for n, part in enumerate(parts))


def code(text: object) -> str:
    """Return text as an HTML code element."""
    return f"<code>{html_escape(plain(text), quote=False)}</code>"


def pre(text: object) -> str:
    """Return text as a preformatted HTML block that wraps."""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0 6px"
    return f'<pre style="{style}">{html_escape(plain(text), quote=False)}</pre>'


def markdown(text: object) -> str:
    r"""Escape text for Markdown, formulas too.

    Example:
        >>> markdown("*a* $b$ <i>")
        '\\*a\\* \\$b\\$ \\<i\\>'
    """
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|<>$~&" else c for c in plain(text))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON-ready data as text, non-ASCII as it is."""
    separators = (",", ":") if indent is None else None
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=str)


def json_shown(value: Any) -> str:
    r"""Return data as indented JSON that holds no control, direction-changing or invisible character as it is.

    It is the same data: what is edited and read again differs in nothing.

    Example:
        >>> print(json_shown({"a": chr(0x202E)}))
        {
          "a": "\u202e"
        }
    """
    return ODD.sub(lambda match: json.dumps(match[0])[1:-1], json_text(value, 2))


def arguments_text(arguments: dict[str, Any] | None) -> str:
    """Return arguments as they would stand in a call.

    Example:
        >>> arguments_text({"order_id": "ORD-5", "n": 2})
        'order_id="ORD-5", n=2'
    """
    if arguments is None:
        return ""
    return ", ".join(f"{key}={json_text(value)}" for key, value in arguments.items())


def brief(text: object, limit: int = 120) -> str:
    """Return the beginning of a text on one line, for a summary above the whole.

    Example:
        >>> brief("one two", 4)
        'one…'
    """
    shown = one_line(text, 10**9)
    return shown if len(shown) <= limit else f"{shown[:limit].rstrip()}…"


def took(seconds: float) -> str:
    """Return a duration.

    Example:
        >>> took(0.0042), took(0.25), took(12.3456)
        ('4.2 ms', '250 ms', '12.35 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"  # noqa: PLR2004 - ten milliseconds


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Example:
        >>> count(1, "call"), count(1200, "call"), count(0, "reply", "replies")
        ('1 call', '1,200 calls', '0 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
