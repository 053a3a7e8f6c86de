"""Splitting a document into passages: nothing is lost, headings and line breaks are kept, places are known."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.memory.base import Chunk

CHUNK_WORDS = 512
OVERLAP_WORDS = 64
SECTION_WORDS = 64
"""A heading begins a new passage once the one before has this many words."""
MAX_TITLE = 200
"""Characters of a heading that are kept."""

# A sign of a script without spaces counts as a word, and so does each 64 characters of what has no spaces either
# (an encoded picture, a minified line): no passage grows without bound.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]{{1,64}}")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a document: a title, a notebook's section, a definition in code."""

    offset: int
    """Where it begins, in characters."""
    level: int
    title: str


@dataclass(slots=True)
class Document:
    """A file as text, with what is known of its structure."""

    text: str
    headings: Sequence[Heading] = ()
    """In order."""
    place: str = "lines"
    """What a passage's place is told in: ``lines``, ``cells`` or ``pages``; empty where nothing is known."""
    starts: Sequence[tuple[int, int]] = ()
    """Offset and number of each cell or page, in order; lines count themselves."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """Goes to every passage."""


def chunk(
    document: Document, source: str, *, words: int = CHUNK_WORDS, overlap: int = OVERLAP_WORDS
) -> list[Chunk]:
    r"""Split a document into passages of at most ``words`` words.

    A passage ends before a heading if it can, else at a blank line, a line or a word, as late as that is possible;
    after any end but a heading the next one begins ``overlap`` words earlier. Passages are pieces of the text as it
    stands: together they are all of it.

    Returns:
        Chunks with ``heading`` (such as ``Guide > Install``) and the place (such as ``lines: [3, 40]``) as metadata.

    Example:
        >>> [c.metadata["lines"] for c in chunk(Document("one\n" * 1000), "a.txt")]
        [[1, 512], [449, 960], [897, 1000]]
    """
    locate = _locator(document)
    offsets = [heading.offset for heading in document.headings]
    chunks: list[Chunk] = []
    for start, end, first, last in _Splitter(document.text, offsets, words, overlap).spans():
        metadata = dict(document.metadata)
        heading = _heading_path(document.headings[: bisect_right(offsets, first)])
        if heading:
            metadata["heading"] = heading
        if document.place:
            metadata[document.place] = [locate(first), locate(last)]
        chunks.append(Chunk(document.text[start:end], source, metadata))
    return chunks


class _Splitter:
    """Finds where passages begin and end, counted in words."""

    def __init__(self, text: str, headings: Sequence[int], size: int, overlap: int) -> None:
        self.text, self.size, self.overlap = text, size, overlap
        self.words = [match.span() for match in _WORD.finditer(text)]
        starts = [start for start, _ in self.words]
        self.sections = [bisect_left(starts, offset) for offset in headings]
        """The word at which each heading begins."""

    def spans(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield start and end of each passage, where its first word begins, and the last sign of its last word."""
        begin = 0
        while begin < len(self.words):
            end, clean = self.cut(begin)
            yield self.edge(begin), self.edge(end), self.words[begin][0], self.words[end - 1][1] - 1
            begin = end if clean else max(end - self.overlap, begin + 1)

    def cut(self, begin: int) -> tuple[int, bool]:
        """Return the word before which the passage that begins here ends, and whether the next one begins there too."""
        next_section = bisect_left(self.sections, begin + SECTION_WORDS)
        if next_section < len(self.sections) and self.sections[next_section] <= begin + self.size:
            return self.sections[next_section], True
        latest = begin + self.size
        if len(self.words) <= latest:
            return len(self.words), True
        line_end = 0
        for word in range(latest, latest - self.size // 4, -1):
            breaks = self.text.count("\n", self.words[word - 1][1], self.words[word][0])
            if breaks > 1:
                return word, False
            if breaks and not line_end:
                line_end = word
        return line_end or latest, False

    def edge(self, word: int) -> int:
        """Return the position before a word, and before its line's indentation if it is the first there."""
        if word == 0:
            return 0
        if word == len(self.words):
            return len(self.text)
        start = self.words[word][0]
        return self.text.rfind("\n", self.words[word - 1][1], start) + 1 or start


def _heading_path(headings: Sequence[Heading]) -> str:
    """Return the headings in force after these, outermost first."""
    path: list[str] = []
    level = None
    for heading in reversed(headings):
        if level is None or heading.level < level:
            level = heading.level
            path.append(heading.title)
    return " > ".join(reversed(path))


def _locator(document: Document) -> Callable[[int], int]:
    """Return what turns an offset into the number of its line, cell or page."""
    if document.place == "lines":
        breaks = [match.start() for match in re.finditer("\n", document.text)]
        return lambda offset: bisect_left(breaks, offset) + 1
    offsets = [offset for offset, _ in document.starts]
    return lambda offset: document.starts[max(bisect_right(offsets, offset) - 1, 0)][1]
