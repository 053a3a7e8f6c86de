"""HTML as text: what a reader sees, with its headings.

Python's ``html.parser`` is not used: of broken pages it refuses some and reads others in quadratic time, up to half a
minute for 100 kB of unclosed tags (CPython issue 135462 and its kin). Here no attribute matters, so one pass does.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from jarvis_nb.memory.chunking import MAX_TITLE, Document, Heading

RAW = frozenset({"script", "style"})
"""Elements whose content is no HTML."""
SKIPPED = frozenset({"head", "iframe", "noscript", "object", "svg", "template"})
CELLS = frozenset({"td", "th"})
LINES = frozenset({"dd", "dt", "li", "summary", "tr"})
"""Elements that begin a line."""
BLOCKS = LINES | frozenset(
    """
    address article aside blockquote details div dl figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr main nav
    ol p pre section table ul
    """.split()  # noqa: SIM905 - easier to read than thirty quoted words
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}

_SPACE = re.compile(r"\s+")
_TAG = re.compile(r"(/?)([a-z][a-z0-9]*)", re.IGNORECASE)


def html_document(text: str) -> Document:
    r"""Return the visible text of a page: blocks on lines of their own, ``pre`` as it stands.

    Example:
        >>> html_document("<h1>Guide</h1><p>Some <b>text</b> &amp; more.<script>x</script>").text
        'Guide\n\nSome text & more.'
    """
    writer = _Writer()
    for tag, data in _tokens(text):
        if tag:
            writer.tag(tag.lstrip("/"), closing=tag.startswith("/"))
        else:
            writer.data(data)
    return Document("".join(writer.pieces).rstrip(), tuple(writer.headings), "")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield tags (``p``, ``/p``) and pieces of text, in one pass over the page."""
    position = 0
    ends = _Ends(text)
    while position < len(text):
        start = text.find("<", position)
        if start < 0:
            start = len(text)
        if start > position:
            yield "", html.unescape(text[position:start])
        match = _TAG.match(text, start + 1)
        if text.startswith("<!--", start):
            position = ends.after("-->", start + 4) or start + 4
        elif text.startswith(("<!", "<?"), start):
            position = ends.after(">", start + 2) or start + 2
        elif match is None or (end := ends.tag(start)) is None:
            if start < len(text):
                yield "", "<"
            position = start + 1
        else:
            name = match[2].lower()
            yield match[1] + name, ""
            position = (ends.after(f"</{name}", end) or len(text)) if name in RAW and not match[1] else end
            if name in RAW and not match[1] and position < len(text):
                position -= len(name) + 2  # its end tag is read as such


class _Ends:
    """Finds where things end, and remembers what does not occur any more, so that nobody searches for it again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.lower() if len(text.lower()) == len(text) else text
        self.absent: set[str] = set()

    def after(self, ending: str, position: int) -> int | None:
        """Return the position after the next ``ending``, or None."""
        if ending in self.absent:
            return None
        found = self.lower.find(ending, position)
        if found < 0:
            self.absent.add(ending)
            return None
        return found + len(ending)

    def tag(self, start: int) -> int | None:
        """Return the position after a tag; a ``>`` within quotes does not end it."""
        end = first = self.after(">", start)
        for _ in range(8):
            if end is None or not (
                self.text.count('"', start, end) % 2 or self.text.count("'", start, end) % 2
            ):
                return end or first
            end = self.after(">", end)
        return first


class _Writer:
    """Collects the text as it is seen, and the headings in it."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.headings: list[Heading] = []
        self.length = 0
        self.skipping = 0
        self.preformatted = 0
        self.breaks = 0
        """Line breaks that the next text begins with."""
        self.space = False
        """Whether it begins with a space, if not with a break."""
        self.heading: tuple[int, int] | None = None

    def tag(self, name: str, *, closing: bool) -> None:
        """Take note of a tag."""
        step = -1 if closing else 1
        if name in SKIPPED:
            self.skipping = max(self.skipping + step, 0)
        elif name == "body":
            self.skipping = 0  # an unclosed head hides nothing of the body
        elif name == "br":
            self.breaks = max(self.breaks, 1)
        elif name in CELLS:
            self.space = True
        elif name in BLOCKS:
            self.breaks = max(self.breaks, 1 if name in LINES else 2)
            self.space = False
            if name == "pre":
                self.preformatted = max(self.preformatted + step, 0)
            if name in HEADINGS:
                self.heading_tag(HEADINGS[name], closing=closing)

    def heading_tag(self, level: int, *, closing: bool) -> None:
        """Begin a heading, or end the one that was begun."""
        if not closing:
            self.heading = (len(self.pieces), level)
        elif self.heading is not None:
            first, level = self.heading
            self.heading = None
            written = "".join(self.pieces[first:])
            title = _SPACE.sub(" ", written).strip()[:MAX_TITLE]
            if title:
                self.headings.append(Heading(self.length - len(written.lstrip()), level, title))

    def data(self, text: str) -> None:
        """Write text: white space is one space outside ``pre``."""
        if self.skipping:
            return
        if self.preformatted:
            self.write(text.rstrip("\n"))
            self.breaks = max(self.breaks, int(text.endswith("\n")))
            return
        words = _SPACE.sub(" ", text)
        self.space = self.space or words.startswith(" ")
        if words.strip():
            self.write(words.strip())
            self.space = words.endswith(" ")

    def write(self, text: str) -> None:
        """Write text after the breaks or the space that are due."""
        if self.pieces:
            text = f"{chr(10) * self.breaks or ' ' * self.space}{text}"
        self.breaks = 0
        self.space = False
        self.pieces.append(text)
        self.length += len(text)
