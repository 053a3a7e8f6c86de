"""Docstrings: what a function does, and what each of its parameters is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

_STYLE = re.compile(
    r"""^[ \t]*(?:
        (?P<google>Args|Arguments|Params|Parameters|Keyword[ ]Args|Keyword[ ]Arguments|Other[ ]Parameters
            |Other[ ]Args|Attributes|Returns|Yields|Receives|Raises|Exceptions|Warns|Examples?)[ ]*:[ \t]*$
        |(?P<numpy>Parameters|Other[ ]Parameters|Attributes|Returns|Yields|Receives|Raises|Warns|Examples)
            [ \t]*\n[ \t]*-{3,}[ \t]*$
        |:(?P<sphinx>param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|exception)\b
            [^:\n]*:
    )""",
    re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Doc:
    """What a docstring says."""

    description: str = ""
    """The text without the sections on parameters, results and errors."""
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    """Parameter name to description, each on one line."""


def read_docstring(text: str | None) -> Doc:
    r"""Read a docstring in google, numpy or sphinx style, or without any.

    Example:
        >>> read_docstring("Look up one order by ID.\n\nArgs:\n    order_id: Like ORD-5.")
        Doc(description='Look up one order by ID.', parameters={'order_id': 'Like ORD-5.'})
    """
    if not text:
        return Doc()
    found = _STYLE.search(text)
    if found is None or found.lastgroup is None:
        return Doc(cleandoc(text).strip())
    return _read_sections(text, found.lastgroup)


def _read_sections(text: str, style: str) -> Doc:
    from griffe import Docstring, Parser

    parts: list[str] = []
    parameters: dict[str, str] = {}
    for section in Docstring(text).parse(Parser(style), warnings=False):
        kind, value = section.kind.value, section.value
        if kind == "text":
            parts.append(value)
        elif kind in ("parameters", "other parameters"):
            for item in value:
                parameters[item.name.lstrip("*")] = " ".join(item.description.split())
        elif kind == "admonition":
            parts.append(_admonition(section, value))
    return Doc("\n\n".join(part.strip() for part in parts if part.strip()), parameters)


def _admonition(section: Any, value: Any) -> str:
    """Return a note or a warning as it was written: the model should read it."""
    title = section.title or value.kind.capitalize()
    return f"{title}: {' '.join(value.contents.split())}"
