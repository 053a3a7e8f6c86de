"""Answering from a tool's result, so that its numbers arrive unchanged.

A 135-million-parameter model asked to "use" a number writes another one. So the answer is bound by a grammar:
plain words are free, and whatever is more than plain words (numbers, codes, paths) can only be a literal of
the question or the result. A short result must be in the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jarvis_nb.engines.llama import Order

SHORT = 80
"""Characters up to which a result is one value that must stand in the answer."""
MAX_RESULT = 1500
"""Characters of a long result shown to the model."""
MAX_LITERALS = 40
MAX_TOKENS = 96
SYSTEM = "Answer the question from the result, in one short sentence."
EXAMPLES = (
    ("What is 7 plus 8?", "15", "7 plus 8 is 15."),
    (
        "How much does the red lamp cost?",
        "item: red lamp\nprice: 25\ncurrency: EUR",
        "The red lamp costs 25 EUR.",
    ),
)
PLAIN = re.compile(r"[A-Za-z][A-Za-z']*")


def order(question: str, results: Sequence[str]) -> Order:
    """Return the generation that answers a question from the results of its tools."""
    shown = [readable(result)[:MAX_RESULT] for result in results]
    messages = [{"role": "system", "content": SYSTEM}]
    for asked, result, answer in EXAMPLES:
        messages += [
            {"role": "user", "content": f"{asked}\nResult: {result}"},
            {"role": "assistant", "content": answer},
        ]
    messages.append({"role": "user", "content": "\n".join([question, *(f"Result: {r}" for r in shown)])})
    value = shown[0] if len(shown) == 1 and len(shown[0]) <= SHORT and "\n" not in shown[0] else None
    rules = _short(question, value) if value else _long(question, shown)
    return Order(messages, grammar=rules, max_tokens=MAX_TOKENS)


def _short(question: str, value: str) -> str:
    """The question's literals in their order, each at most once, then the value."""
    optional = "".join(f" ({json.dumps(one)} TEXT?)?" for one in literals(question) if one != value)
    return f'%llguidance {{}}\nstart: TEXT?{optional} {json.dumps(value)} "."\nTEXT: /[A-Za-z ,\']{{1,60}}/\n'


def _long(question: str, results: Sequence[str]) -> str:
    found = [*dict.fromkeys(one for text in (*results, question) for one in literals(text))][:MAX_LITERALS]
    any_of = " | ".join(json.dumps(one) for one in found) or '"."'
    return (
        f'%llguidance {{}}\nstart: (TEXT | LITERAL)+ "."\nTEXT: /[A-Za-z ,\']{{1,40}}/\nLITERAL: {any_of}\n'
    )


def literals(text: str) -> list[str]:
    """Return the words of a text that are more than letters, in order, each once.

    Example:
        >>> literals("What is 15% of 340?")
        ['15%', '340']
    """
    words = (word.strip(".,;:!?()[]{}\"'") for word in text.split())
    return [*dict.fromkeys(word for word in words if word and not PLAIN.fullmatch(word))]


def readable(result: str) -> str:
    """Return a JSON result as lines of ``key: value``, any other text as it is.

    Example:
        >>> readable('{"order_id": "ORD-5", "status": "shipped"}').splitlines()
        ['order_id: ORD-5', 'status: shipped']
    """
    try:
        value = json.loads(result)
    except ValueError:
        return result.strip()
    return "\n".join(_lines(value, "")) if isinstance(value, dict | list) else result.strip()


def _lines(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lines(inner, f"{key} {name}".strip())
    elif isinstance(value, list):
        for inner in value:
            yield from _lines(inner, key)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"{key}: {text}" if key else text
