"""Untrusted text made safe for HTML outputs, and cut to a bounded length."""

from __future__ import annotations

import json
from html import escape as html_escape
from typing import Any

# A notebook's front end typesets $…$ and \(…\) inside HTML outputs (MathJax), except in code and pre. An
# element of its own around each such character keeps text as it is; a style that inherits keeps it invisible.
_MATH = {ord(c): f'<b style="font-weight:inherit">{c}</b>' for c in "$\\"}

_CONTROLS = {code: f"\\x{code:02x}" for code in range(32) if chr(code) not in "\t\n"} | {0x7F: "\\x7f"}
_BIDI = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}


def plain(text: object) -> str:
    r"""Return text with control and direction-changing characters shown, not obeyed.

    Example:
        >>> plain("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    shown = str(text).replace("\r\n", "\n").translate(_CONTROLS | _BIDI)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def prose(text: object) -> str:
    """Escape text for HTML outside of code: no tag, no entity, no formula.

    Example:
        >>> prose("<b>1</b>")
        '&lt;b&gt;1&lt;/b&gt;'
    """
    return html_escape(plain(text)).translate(_MATH)


def code(text: object) -> str:
    """Return text as an HTML code element."""
    return f"<code>{html_escape(plain(text))}</code>"


def pre(text: object, style: str = "") -> str:
    """Return text as a preformatted HTML block that wraps."""
    return f'<pre style="white-space:pre-wrap;margin:2px 0;{style}">{html_escape(plain(text))}</pre>'


def attribute(text: object) -> str:
    """Escape text for an HTML attribute."""
    return html_escape(plain(text), quote=True)


def markdown(text: object) -> str:
    r"""Escape text for Markdown, formulas too.

    Example:
        >>> markdown("*a* $b$ <i>")
        '\\*a\\* \\$b\\$ \\<i\\>'
    """
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|<>$~&" else c for c in plain(text))


def cut(text: str, limit: int, where: str = "") -> str:
    """Return at most ``limit`` characters and say how many are missing and where the whole is.

    Example:
        >>> cut("abcdef", 3, "reply.output")
        'abc… 3 more characters (reply.output)'
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… {len(text) - limit:,} more characters{f' ({where})' if where else ''}"


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON-ready data as text, non-ASCII as it is."""
    separators = (",", ":") if indent is None else None
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=str)


def arguments_text(arguments: dict[str, Any] | None) -> str:
    """Return arguments as they would stand in a call.

    Example:
        >>> arguments_text({"order_id": "ORD-5", "n": 2})
        'order_id="ORD-5", n=2'
    """
    if arguments is None:
        return ""
    return ", ".join(f"{key}={json_text(value)}" for key, value in arguments.items())
