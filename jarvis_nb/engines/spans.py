"""Holding a small model to the question's own words, where an argument is a piece of the question.

A model of 135 million parameters asked for a city writes the parameter's description, or a language's code
that nobody mentioned. Which piece of the question an argument is, it picks well. So the grammar offers it the
pieces: for a parameter whose examples mostly are pieces of their questions, and for all of a tool without any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jarvis_nb.core.types import ToolDefinition

Schema = dict[str, Any]
Example = tuple[str, dict[str, Any]]

WHOLE = 14
"""Words of a question up to which a piece may be any run of them."""
LONGEST = 6
"""Words of a piece of a longer question."""
MOSTLY = 2 / 3
"""Share of a parameter's examples that must be pieces of their questions."""
MOST_WORDS = 60
"""Words of a question that count."""
INNER = ("items", "anyOf", "prefixItems", "additionalProperties")
AROUND = ".,;:!?\"'()[]{}"
NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?!\w)")


def pieces(question: str) -> list[str]:
    """Return the runs of words of a question, without the punctuation around them.

    Example:
        >>> pieces("Weather in Oslo?")
        ['Weather', 'Weather in', 'Weather in Oslo', 'in', 'in Oslo', 'Oslo']
    """
    words = [m.span() for m in re.finditer(r"\S+", question)][:MOST_WORDS]
    longest = len(words) if len(words) <= WHOLE else LONGEST
    found: dict[str, None] = {}
    for i, (start, _) in enumerate(words):
        for _, end in words[i : i + longest]:
            piece = question[start:end].strip(AROUND)
            found[piece] = None
            found[piece.removesuffix("'s")] = None
    return [piece for piece in found if piece]


def numbers(question: str) -> list[int | float]:
    """Return the numbers of a question, each once.

    Example:
        >>> numbers("From 3 to 2.5 of 1,250 in v2")
        [3, 2.5, 1250]
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", question)
    return [float(one) if "." in one else int(one) for one in dict.fromkeys(NUMBER.findall(plain))]


def narrowed(closed: Schema, question: str, examples: Sequence[Example]) -> Schema:
    """Offer the question's pieces and numbers for the parameters that are such.

    Args:
        closed: The structural part of a tool's schema (:func:`.bounding.bounded`).
        question: What was asked.
        examples: All of the tool's examples.
    """
    properties: Schema = {}
    for name, schema in closed.get("properties", {}).items():
        share = _share_of_pieces(name, examples)
        if share < MOSTLY:
            properties[name] = schema
        elif share < 1 or name in closed["required"] or not _is_number(schema) or numbers(question):
            properties[name] = _offer(schema, question)
        # else it is a number that may be left out, and the question has none
    return {**closed, "properties": properties}


def _share_of_pieces(name: str, examples: Sequence[Example]) -> float:
    """How many of a parameter's examples are pieces of their questions; all of a tool without any."""
    if not examples:
        return MOSTLY
    shown = [(asked, arguments[name]) for asked, arguments in examples if name in arguments]
    return sum(_stands_in(value, asked) for asked, value in shown) / len(shown) if shown else 0


def _is_number(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in ("integer", "number")


def _stands_in(value: Any, question: str) -> bool:
    if isinstance(value, list):
        return all(_stands_in(one, question) for one in value)
    if isinstance(value, bool | dict) or value is None:
        return True  # nothing is offered for these
    return value in numbers(question) if isinstance(value, int | float) else value in pieces(question)


def _offer(schema: Any, question: str) -> Any:
    if isinstance(schema, list):
        return [_offer(one, question) for one in schema]
    if not isinstance(schema, dict) or schema.keys() & {"enum", "const", "pattern", "format"}:
        return schema
    kind = schema.get("type")
    if kind == "string":
        offered = [
            one for one in pieces(question) if schema.get("minLength", 0) <= len(one) <= schema["maxLength"]
        ]
        return {"enum": offered} if offered else schema
    if _is_number(schema):
        held = [one for one in numbers(question) if _within(one, schema)]
        return {"enum": held} if held else schema
    inner = {key: _offer(value, question) for key, value in schema.items() if key in INNER}
    if "properties" in schema:
        inner["properties"] = {name: _offer(one, question) for name, one in schema["properties"].items()}
    return {**schema, **inner}


def _within(value: float, schema: Schema) -> bool:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema).is_valid(value)


DEMONSTRATION = (
    ToolDefinition(
        "book_table",
        "Reserve a table in a restaurant.",
        {
            "properties": {
                "restaurant": {"type": "string", "description": "Name of the restaurant"},
                "guests": {"type": "integer", "description": "Number of people"},
                "date": {"type": "string", "description": "Day of the visit"},
            }
        },
    ),
    "Please book a table for 4 people at Bella Roma on Friday.",
    {"restaurant": "Bella Roma", "guests": 4, "date": "Friday"},
)
"""What is shown for a tool without examples: another tool, a question, its arguments."""
