"""Frontmatter of untrusted files: split from the body by exact fences, read as YAML events.

Nothing is constructed by the YAML loader. PyYAML scans and reports where an error is; what a scalar means
is decided here, so that YAML 1.1's other types (``yes``, ``1.0``, ``010``, a date) never reach a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

MAX_FRONTMATTER = 16_384
"""Bytes between the fences."""
MAX_OPEN = 64
"""Brackets open at once, counted before anything is parsed."""
MAX_DEPTH = 5
MAX_NODES = 1_000

FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0d-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters but tab, line feed, form feed and U+0085, which a body may hold (none ends a line)."""
NO_FRONTMATTER_TEXT = re.compile(r"[\t\f\x85\u2028\u2029\ufeff]")
"""Further characters that frontmatter may not hold."""
SIMPLE_LINE = re.compile(r"([a-z][a-z-]*): ([A-Za-z0-9](?:[ !\"$-9;-~]*[!\"$-9;-~])?)")
"""``key: value`` in printable ASCII without ``#`` and ``:`` in the value."""
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+")
"""Numbers of YAML 1.2, beside those PyYAML knows."""


class Refused(Exception):  # noqa: N818 - what happened to the file
    """Why a file is not taken, and where."""

    def __init__(
        self, code: str, message: str, hint: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.line, self.column = code, message, hint, line, column


@dataclass(frozen=True, slots=True)
class Scalar:
    """One YAML scalar as it was written."""

    text: str
    plain: bool
    """Written without quotes and not as a block."""
    line: int
    column: int

    @property
    def other_type(self) -> str | None:
        """The type YAML would give the plain scalar instead of text, such as ``bool`` or ``timestamp``."""
        if not self.plain:
            return None
        import yaml

        if self.text.casefold() in ("y", "n"):
            return "bool"
        for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(self.text[:1], ()):
            if pattern.match(self.text):
                return str(tag).rpartition(":")[2]
        return "number" if NUMBER.fullmatch(self.text) else None

    @property
    def is_null(self) -> bool:
        """Whether it is YAML's null: empty, ``~`` or ``null``, unquoted."""
        return self.other_type == "null"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the frontmatter's mapping."""

    key: Scalar
    value: Any
    """A :class:`Scalar`, or a list or dict of such."""


def split(data: bytes) -> tuple[str, str]:
    r"""Return the frontmatter and the body of a file.

    Line ends become LF. Only LF ends a line, and only a line of three hyphens at column 0 is a fence.

    Raises:
        Refused: ``not_utf8``, ``control_character``, ``no_frontmatter``, ``no_closing_fence``,
            ``frontmatter_too_large``.

    Example:
        >>> split(b"---\nname: greet\n---\nSay hello.\n")
        ('name: greet\n', 'Say hello.\n')
    """
    text = _decoded(data).replace("\r\n", "\n")
    if found := CONTROL.search(text):
        hint = "end lines with LF or CRLF" if found[0] == "\r" else "remove it"
        _refuse_at(
            text, found.start(), "control_character", f"the control character U+{ord(found[0]):04X}", hint
        )
    opening = FENCE.match(text)
    if opening is None:
        raise Refused(
            "no_frontmatter", "the file does not begin with frontmatter", "its first line is ---", 1, 1
        )
    closing = FENCE.search(text, opening.end())
    if closing is None:
        dots = "; ... does not end it" if re.search(r"^\.\.\.[ \t]*$", text, re.MULTILINE) else ""
        raise Refused(
            "no_closing_fence", "the frontmatter does not end", f"end it with a line of ---{dots}", 1, 1
        )
    front = text[opening.end() + 1 : closing.start()]
    size = len(front.encode())
    if size > MAX_FRONTMATTER:
        raise Refused(
            "frontmatter_too_large",
            f"the frontmatter has {size:,} bytes, at most {MAX_FRONTMATTER:,} are read",
            "",
            1,
            1,
        )
    return front, text[closing.end() + 1 :]


def _decoded(data: bytes) -> str:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("not_utf8", "the file is UTF-16", "save it as UTF-8", 1, 1)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"the file is not UTF-8: byte {data[error.start]:#04x}"
        raise Refused("not_utf8", message, "save it as UTF-8", line, column) from None


def _refuse_at(
    text: str, at: int, code: str, message: str, hint: str = "", *, first_line: int = 1
) -> NoReturn:
    line = text.count("\n", 0, at) + first_line
    raise Refused(code, message, hint, line, at - text.rfind("\n", 0, at))


@lru_cache(maxsize=4096)  # a root is read again at each request, and seldom changed
def fields(front: str) -> tuple[Field, ...]:
    """Return the fields of a frontmatter's mapping, in order.

    Raises:
        Refused: ``invalid_yaml``, or a code of its own for what YAML allows and this does not: ``anchor``,
            ``alias``, ``tag``, ``merge_key``, ``duplicate_key``, ``several_documents``, ``tab``,
            ``too_deep``, ``unquoted_colon``.

    Example:
        >>> [(field.key.text, field.value.text) for field in fields("name: greet")]
        [('name', 'greet')]
    """
    simple = _simple_fields(front)
    return _yaml_fields(front) if simple is None else simple


def _simple_fields(front: str) -> tuple[Field, ...] | None:
    """Return the fields of lines that YAML reads as they stand, which most frontmatter is made of, else None.

    PyYAML takes 100 µs for two lines; a root of 2,000 skills is read at each request.
    """
    found: dict[str, Field] = {}
    lines = front.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 2):
        match = SIMPLE_LINE.fullmatch(line)
        if match is None or match[1] in found:
            return None
        key = Scalar(match[1], plain=True, line=number, column=1)
        value = Scalar(match[2], plain=True, line=number, column=match.start(2) + 1)
        found[match[1]] = Field(key, value)
    return tuple(found.values())


def _yaml_fields(front: str) -> tuple[Field, ...]:
    import yaml

    if found := NO_FRONTMATTER_TEXT.search(front):
        code, what = ("tab", "a tab") if found[0] == "\t" else ("control_character", f"U+{ord(found[0]):04X}")
        hint = "use spaces" if code == "tab" else "remove it"
        _refuse_at(front, found.start(), code, f"{what} in the frontmatter", hint, first_line=2)
    if found := re.search(r"^\.\.\.(?=\s|$)", front, re.MULTILINE):
        hint = "end the frontmatter with ---"
        _refuse_at(front, found.start(), "several_documents", "... ends a YAML document", hint, first_line=2)
    _check_brackets(front)
    reader = _Reader(yaml.parse(front, Loader=yaml.SafeLoader))
    try:
        return reader.document()
    except yaml.reader.ReaderError as error:
        _refuse_at(
            front,
            error.position,
            "control_character",
            "a character YAML does not take",
            "remove it",
            first_line=2,
        )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 2, mark.column + 1) if mark else (2, 1)
        problem = error.problem or error.context or "not valid YAML"
        if problem.startswith("mapping values are not allowed"):
            raise Refused(
                "unquoted_colon", "a colon in an unquoted value", "quote the value", line, column
            ) from None
        raise Refused("invalid_yaml", f"not valid YAML: {problem}", "quote the value", line, column) from None


def _check_brackets(front: str) -> None:
    depth = 0
    for found in re.finditer(r"[\[\]{}]", front):
        depth += 1 if found[0] in "[{" else -1
        if depth > MAX_OPEN:
            _refuse_at(
                front, found.start(), "too_deep", f"more than {MAX_OPEN} brackets are open", first_line=2
            )


class _Reader:
    """Builds plain nodes from YAML events, and stops at the first thing that is not allowed."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._nodes = 0

    def document(self) -> tuple[Field, ...]:
        import yaml

        next(self._events)  # the stream's start
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            raise Refused("no_fields", "the frontmatter is empty", "give name and description", 2, 1)
        if getattr(event, "version", None) or getattr(event, "tags", None):
            self._refuse(event, "invalid_yaml", "a YAML directive")
        event = next(self._events)
        if not isinstance(event, yaml.MappingStartEvent):
            self._refuse(event, "no_fields", "the frontmatter is no mapping", "write lines of `name: value`")
        found = tuple(self._pairs(event, 0))
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._refuse(event, "several_documents", "a second YAML document", "end the frontmatter with ---")
        return found

    def _pairs(self, start: Any, depth: int) -> Iterator[Field]:
        import yaml

        self._check(start)
        seen: set[str] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                self._refuse(event, "invalid_yaml", "a key that is no text")
            if key.plain and key.text == "<<":
                self._refuse(event, "merge_key", "a merge key", "write the fields out")
            if key.text in seen:
                self._refuse(event, "duplicate_key", f"the key {key.text!r:.80} stands twice", "leave one")
            seen.add(key.text)
            yield Field(key, self._node(next(self._events), depth + 1))

    def _node(self, event: Any, depth: int) -> Any:
        import yaml

        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            self._refuse(
                event, "too_deep", f"deeper than {MAX_DEPTH} levels or more than {MAX_NODES:,} values"
            )
        self._check(event)
        if isinstance(event, yaml.ScalarEvent):
            mark = event.start_mark
            return Scalar(event.value, event.style is None, mark.line + 2, mark.column + 1)
        if isinstance(event, yaml.MappingStartEvent):
            return {field.key.text: field.value for field in self._pairs(event, depth)}
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _check(self, event: Any) -> None:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, "alias", f"the alias *{event.anchor:.80}", "quote the value")
        if event.anchor is not None:
            self._refuse(event, "anchor", f"the anchor &{event.anchor:.80}", "quote the value")
        if event.tag is not None:
            self._refuse(event, "tag", f"the tag {event.tag:.80}", "quote the value")

    def _refuse(self, event: Any, code: str, message: str, hint: str = "") -> NoReturn:
        mark = event.start_mark
        raise Refused(code, message, hint, mark.line + 2, mark.column + 1)
