"""Copying an argument from the question, where the argument can only be what stands there.

Three things are recognised, and nothing else: a literal arithmetic expression, a path, a quoted text. Which
of them a parameter takes is learnt from the tool's examples (all of whose values for it must be of that kind
and stand in their questions), or, without examples, told by the parameter's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from jarvis_nb.core.types import ToolDefinition

Example = tuple[str, dict[str, Any]]

WORDS_OF_ASKING = (
    "what what's whats is are the value result of please compute calculate evaluate work out how "
    "much does do equal equals solve can could you tell me give find answer to i need want for it"
)
ASKING = frozenset(WORDS_OF_ASKING.split())
"""Words that ask for a value and say nothing about it."""
SIGNS = str.maketrans({"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-"})
WRITTEN = re.compile(r"[\w\s.,+*/%()^-]+")
MAX_EXPRESSION = 500
"""Characters."""
NAMES = frozenset("pi e sqrt abs round min max log log10 log2 ln sin cos tan ceil floor".split())  # noqa: SIM905 - words
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
PATH = re.compile(
    r"(?<![\w/\\.:])(?:~|\.{1,2}|[A-Za-z]:)?[\\/]?(?:[\w.@+-]+[\\/])*(?:[\w@+-][\w.@+-]*)?\.[A-Za-z]\w{0,7}(?![\w/\\])"
)
INITIALS = re.compile(r"(?:\w\.)+\w")
"""Such as ``e.g`` or ``U.S.A``."""
URL = re.compile(r"\w+://\S+")
QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|(?<!\w)'([^'\n]+)'(?!\w)|`([^`\n]+)`")


def expressions(text: str) -> list[str]:
    """Return the arithmetic expression of a text that asks for nothing but its value, else nothing.

    Example:
        >>> expressions("What is 3 * (4 + 5)?"), expressions("What is half of 3 * 4?"), expressions("15% of 340?")
        (['3 * (4 + 5)'], [], [])
    """
    if len(text) > MAX_EXPRESSION:
        return []
    words = text.strip().rstrip("?.!= ").split()
    while words and words[0].lower().rstrip(":,") in ASKING:
        words.pop(0)
    while words and words[-1].lower() in ASKING:
        words.pop()
    rest = " ".join(words).rstrip(",= ")
    return [rest] if _is_sum(rest) else []


def _is_sum(text: str) -> bool:
    """Whether a text is arithmetic with at least one operation (and no date)."""
    import ast

    plain = text.translate(SIGNS)
    # A letter right after a digit (2x, 1or) is no number, and Python warns of some of these.
    if not WRITTEN.fullmatch(plain) or DATE.fullmatch(plain) or re.search(r"\d[^\W\d]", plain):
        return False
    try:
        tree = ast.parse(plain.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    arithmetic = (
        ast.BinOp,
        ast.UnaryOp,
        ast.Call,
        ast.Constant,
        ast.Name,
        ast.operator,
        ast.unaryop,
        ast.Load,
    )
    for node in ast.walk(tree):
        if not isinstance(node, arithmetic) or (isinstance(node, ast.Name) and node.id not in NAMES):
            return False
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            return False
        if isinstance(node, ast.Call) and (node.keywords or not isinstance(node.func, ast.Name)):
            return False
    return isinstance(tree, ast.BinOp | ast.Call)


def paths(text: str) -> list[str]:
    """Return the file paths in a text, each once.

    Example:
        >>> paths("Show the first 3 lines of data/sales.csv, please.")
        ['data/sales.csv']
    """
    found = dict.fromkeys(m.group() for m in PATH.finditer(URL.sub(" ", text)))
    return [path for path in found if not INITIALS.fullmatch(path)]


def quotations(text: str) -> list[str]:
    """Return the quoted parts of a text, each once.

    Example:
        >>> quotations('Search for "red lamp".')
        ['red lamp']
    """
    return [*dict.fromkeys(next(part for part in m.groups() if part) for m in QUOTED.finditer(text))]


KINDS: dict[str, Callable[[str], list[str]]] = {
    "expression": expressions,
    "path": paths,
    "quotation": quotations,
}
NAMED = {
    "expression": "expression",
    "formula": "expression",
    "path": "path",
    "file": "path",
    "filename": "path",
    "file_path": "path",
    "filepath": "path",
    "file_name": "path",
}


def copied(question: str, tool: ToolDefinition, examples: Sequence[Example]) -> dict[str, str]:
    """Return the arguments that can only be what stands in the question.

    Args:
        question: What was asked.
        tool: The tool that was picked.
        examples: All of its examples.
    """
    properties = tool.parameters.get("properties") or {}
    required = [name for name in tool.parameters.get("required") or () if name in properties]
    found: dict[str, str] = {}
    for kind, literals in KINDS.items():
        takers = [name for name in required if _takes(name, properties[name], kind, examples)]
        values = literals(question)
        if len(takers) == 1 and len(values) == 1:  # else it is open which one is meant
            found[takers[0]] = values[0]
    return found


def _takes(name: str, schema: Any, kind: str, examples: Sequence[Example]) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "string" or schema.keys() & {"enum", "const"}:
        return False
    shown = [(asked, arguments[name]) for asked, arguments in examples if name in arguments]
    if not shown:
        return NAMED.get(name.lower()) == kind
    if (
        kind == "expression"
    ):  # some examples word their sum: those that write it out say that the name takes one
        return NAMED.get(name.lower()) == kind or any(value in expressions(asked) for asked, value in shown)
    return all(value in KINDS[kind](asked) for asked, value in shown)
