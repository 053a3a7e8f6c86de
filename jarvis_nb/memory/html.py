"""HTML as text: what a reader sees, with its headings."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from jarvis_nb.memory.chunking import Document, Heading

SKIPPED = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "object"})
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer",
     "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section",
     "summary", "table", "tr", "ul"}
)  # fmt: skip
HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DECLARATION = re.compile(r"<!--|<!|<\?")
_SPACE = re.compile(r"\s+")


def html_document(text: str) -> Document:
    r"""Return the visible text of a page: blocks on lines of their own, ``pre`` as it stands.

    Example:
        >>> html_document("<h1>Guide</h1><p>Some <b>text</b>.<script>x</script>").text
        'Guide\n\nSome text.'
    """
    reader = _Reader()
    reader.feed(without_declarations(text))
    reader.close()
    return Document(reader.text.rstrip(), tuple(h for h in reader.headings if h.title), "")


def without_declarations(text: str) -> str:
    """Return a page without comments, doctypes and processing instructions.

    Python's parser stops at some broken ones and takes quadratic time for many unclosed ones (CPython issue 135661).

    Example:
        >>> without_declarations("<!doctype html>a<!-- b > c -->d<!--")
        'ad'
    """
    pieces: list[str] = []
    done = 0
    closable = {"-->": True, ">": True}
    for match in _DECLARATION.finditer(text):
        if match.start() < done:
            continue
        closing = "-->" if match.group() == "<!--" else ">"
        end = text.find(closing, match.end()) if closable[closing] else -1
        closable[closing] = end >= 0
        pieces.append(text[done : match.start()])
        done = match.end() if end < 0 else end + len(closing)
    return "".join([*pieces, text[done:]])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.skipping = self.preformatted = 0
        self.breaks = 0
        """Line breaks to write before the next text."""
        self.space = False
        self.heading: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in SKIPPED:
            self.skipping += 1
        elif tag == "body":
            self.skipping = 0  # an unclosed head hides nothing of the body
        elif tag == "br":
            self.breaks = max(self.breaks, 1)
        elif tag in ("td", "th"):
            self.space = True
        elif tag in BLOCKS:
            self._block(tag)
            self.preformatted += tag == "pre"
            if tag in HEADINGS:
                self.heading = (len(self.pieces), HEADINGS[tag])

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED:
            self.skipping = max(self.skipping - 1, 0)
        elif tag in BLOCKS:
            self._block(tag)
            if tag == "pre":
                self.preformatted = max(self.preformatted - 1, 0)
            if tag in HEADINGS and self.heading is not None:
                first, level = self.heading
                self.heading = None
                whole = "".join(self.pieces[first:])
                title = _SPACE.sub(" ", whole).strip()[:200]
                self.headings.append(Heading(self.length - len(whole.lstrip()), level, title))

    def handle_data(self, data: str) -> None:
        if self.skipping:
            return
        if self.preformatted:
            self._write(data.rstrip("\n") if data.endswith("\n") else data)
            self.breaks = max(self.breaks, int(data.endswith("\n")))
            return
        words = _SPACE.sub(" ", data)
        self.space = self.space or words.startswith(" ")
        words, ends = words.strip(" "), words.endswith(" ")
        if words:
            self._write(words)
            self.space = ends

    def _block(self, tag: str) -> None:
        self.breaks = max(self.breaks, 1 if tag in ("li", "tr", "dt", "dd") else 2)
        self.space = False

    def _write(self, text: str) -> None:
        if self.pieces:
            text = "\n" * self.breaks + text if self.breaks else " " * self.space + text
        self.breaks = 0
        self.space = False
        self.pieces.append(text)
        self.length += len(text)
