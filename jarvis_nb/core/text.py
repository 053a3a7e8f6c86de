"""Text that people read: nothing in it obeyed by a terminal or a browser, and bounded in length."""

from __future__ import annotations

import re

# What a terminal or a browser would obey, or show nothing for although a model reads it: control characters
# (not \t and \n), changes of direction, zero-width characters (not the joiners that scripts and emoji need),
# line separators, tag characters, noncharacters of private protocols.
ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - Python's own escapes


def plain(text: object) -> str:
    r"""Return text with control, direction-changing and invisible characters shown, not obeyed.

    Example:
        >>> plain("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    return ODD.sub(_shown, str(text).replace("\r\n", "\n"))


def cut(text: str, limit: int, where: str = "") -> str:
    """Return at most ``limit`` characters and say how many are missing and where the whole is.

    Example:
        >>> cut("abcdef", 3, "reply.output")
        'abc… 3 more characters (reply.output)'
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… {len(text) - limit:,} more characters{f' ({where})' if where else ''}"
