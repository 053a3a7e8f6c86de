"""Files as documents: text, Markdown, Python, notebooks, HTML and PDF."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.core.files import decode_text
from jarvis_nb.memory.chunking import MAX_TITLE, Document, Heading

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_CLOSING_HASHES = re.compile(r"\s+#+\s*$")
_DEFINITION = re.compile(r"(?m)^(?:[ \t]*@.*\n){0,20}([ \t]*)(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Unreadable(MemoryBackendError):  # noqa: N818 - a file that cannot be made a document
    """A file that holds no text this package can get at; the message says why."""

    code = "unreadable_document"


def read_document(data: bytes, name: str) -> Document:
    r"""Return a file's bytes as a document, by the kind its name tells.

    Raises:
        FileRefused: ``binary_file``: it is not UTF-8 text.
        Unreadable: A broken notebook or PDF, a PDF without text or without the extra.

    Example:
        >>> read_document(b"# Guide\nText", "guide.md").headings
        (Heading(offset=0, level=1, title='Guide'),)
    """
    suffix = PurePath(name).suffix.lower()
    if suffix == ".pdf":
        return _pdf(data, name)
    text = decode_text(data, name).removeprefix("\ufeff")
    return READERS.get(suffix, _plain)(text, name)


def _plain(text: str, name: str) -> Document:  # noqa: ARG001 - all readers are called alike
    return Document(text)


def _markdown(text: str, name: str) -> Document:  # noqa: ARG001
    return Document(text, tuple(markdown_headings(text)))


def markdown_headings(text: str, shift: int = 0) -> list[Heading]:
    """Return the ``#`` headings outside code fences, their offsets moved by ``shift``."""
    headings: list[Heading] = []
    fence = ""
    offset = shift
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark is not None and not fence:
            fence = mark[1]
        elif mark is not None and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence and (match := _ATX.match(line)) is not None:
            title = _CLOSING_HASHES.sub("", match[2]).strip()[:MAX_TITLE]
            headings.append(Heading(offset, len(match[1]), title))
        offset += len(line)
    return headings


def _python(text: str, name: str) -> Document:  # noqa: ARG001
    """Return code whose classes and functions are headings, nested as they are indented."""
    found = _DEFINITION.finditer(text)
    return Document(text, tuple(Heading(m.start(), len(m[1].expandtabs()), m[2][:MAX_TITLE]) for m in found))


def _notebook(text: str, name: str) -> Document:
    """Return the cells' sources and the text of their outputs; places are cells, counted from 1."""
    try:
        cells = json.loads(text)["cells"]
        parts = [
            (kind, number, part) for number, cell in enumerate(cells, 1) for kind, part in _cell_parts(cell)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unreadable(
            f"{name} is not a notebook of format 4", hint="open and save it in Jupyter"
        ) from None
    pieces: list[str] = []
    headings: list[Heading] = []
    starts: list[tuple[int, int]] = []
    offset = 0
    for kind, number, part in parts:
        starts.append((offset, number))
        if kind == "markdown":
            headings += markdown_headings(part, offset)
        pieces.append(f"{part}\n\n")
        offset += len(pieces[-1])
    return Document("".join(pieces), tuple(headings), "cells", starts)


def _cell_parts(cell: dict[str, Any]) -> list[tuple[str, str]]:
    parts = [(str(cell["cell_type"]), _joined(cell.get("source")))]
    for output in cell.get("outputs") or ():
        data: dict[str, Any] = output.get("data") or {}
        text = _joined(output.get("text") or data.get("text/markdown") or data.get("text/plain"))
        if output.get("output_type") == "error":
            text = f"{output.get('ename')}: {output.get('evalue')}"
        parts.append(("output", _ANSI.sub("", text)))
    return [(kind, part) for kind, part in parts if part.strip()]


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _html(text: str, name: str) -> Document:  # noqa: ARG001
    from jarvis_nb.memory.html import html_document

    return html_document(text)


def _pdf(data: bytes, name: str) -> Document:
    try:
        import pypdf
    except ImportError:
        raise Unreadable(
            f"{name}: PDF files need pypdf", code="missing_extra", hint="pip install 'jarvis-nb[pdf]'"
        ) from None
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    except Exception as error:  # a broken PDF may fail in any way
        raise Unreadable(f"{name} is no readable PDF: {type(error).__name__}: {error}") from error
    starts: list[tuple[int, int]] = []
    offset = 0
    for number, page in enumerate(pages, 1):
        starts.append((offset, number))
        offset += len(page) + 2
    text = "".join(f"{page}\n\n" for page in pages)
    if not text.strip():
        raise Unreadable(
            f"{name} has no text: its pages are pictures", hint="run it through a text recognition first"
        )
    return Document(text, (), "pages", starts)


READERS: dict[str, Callable[[str, str], Document]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".qmd": _markdown,
    ".rmd": _markdown,
    ".py": _python,
    ".pyi": _python,
    ".ipynb": _notebook,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
}
"""Suffix to reader; every other file is plain text, if it is text."""
