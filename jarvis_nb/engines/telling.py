"""Answering from a tool's result, so that its numbers arrive unchanged.

A model of 135 million parameters that is told a result writes another one, or forgets which of two facts was
asked for. So it only words what it can word: one short value, in a sentence whose words come from the question
and whose value is the result, bound by a grammar. Any other result is quoted: the fields of a structure, or
the sentences of a text that are nearest to the question. A larger model of the user's own writes freely, and
its answer is taken if every number in it stands in the question or the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jarvis_nb.engines.generation import Order

SHORT = 60
"""Characters up to which a result is one value that can stand in a sentence."""
MAX_QUOTED = 400
"""Characters of a text up to which it is quoted whole; of a longer one, the nearest sentences."""
MAX_LINES = 20
MAX_SHOWN = 2000
"""Characters of a result shown to a model that writes freely."""
MAX_WORDS = 60
"""Words of a question that the grammar takes up."""
MAX_TOKENS = 96
SYSTEM = "Answer the question from the result, in one short sentence."
EXAMPLES = (
    ("What is 7 plus 8?", "15", "7 plus 8 is 15."),
    (
        "A ticket costs 12 dollars. How much are 4 tickets?",
        "48",
        "The price of 4 tickets at 12 dollars is 48.",
    ),
)
JOINING = ("is", "are", "the", "The", "of", "it", "It", "costs", "has", "in", "to", "was")
WORDS_OF_ASKING = (
    "what how who whom which when where why does do did much many please compute calculate tell me "
    "give find can you"
)
ASKING = frozenset(WORDS_OF_ASKING.split())
WORDLESS = frozenset({"true", "false", "yes", "no", "none", "null"})
"""Results that a sentence made of the question's words would contradict or leave open."""
PLAIN = re.compile(r"[A-Za-z][A-Za-z']*")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
PAIRS = ("()", "[]", "{}")


def short_value(results: Sequence[str]) -> str | None:
    """Return the one short value that a sentence can be built around, if the results are that."""
    value = results[0].strip() if len(results) == 1 else ""
    if not value or len(value) > SHORT or "\n" in value or value[0] in "[{" or value.lower() in WORDLESS:
        return None
    return value


def worded(question: str, value: str) -> Order:
    """Return the generation that puts one value into a sentence."""
    messages = [{"role": "system", "content": SYSTEM}]
    for asked, result, answer in EXAMPLES:
        messages += [_asked(asked, [result]), {"role": "assistant", "content": answer}]
    return Order(
        [*messages, _asked(question, [value])], grammar=_grammar(question, value), max_tokens=MAX_TOKENS
    )


def free(question: str, results: Sequence[str]) -> Order:
    """Return the generation that answers in the model's own words; check it with :func:`faithful`."""
    shown = [readable(result)[:MAX_SHOWN] for result in results]
    return Order([{"role": "system", "content": SYSTEM}, _asked(question, shown)])


def faithful(answer: str, question: str, results: Sequence[str]) -> bool:
    """Whether every number of an answer stands in the question or a result.

    Example:
        >>> faithful("15% of 340 is 51.0.", "What is 15% of 340?", ["51.0"])
        True
        >>> faithful("It is about 50.", "What is 15% of 340?", ["51.0"])
        False
    """
    known = {number for text in (question, *results) for number in NUMBER.findall(text)}
    return bool(answer.strip()) and all(number in known for number in NUMBER.findall(answer))


def quoted(question: str, results: Sequence[str]) -> str:
    """Return what the results say, in their own words: fields, or the sentences nearest to the question."""
    return (
        "\n".join(_quoted(question, readable(result)) for result in results if result.strip())
        or "(no result)"
    )


def _asked(question: str, results: Sequence[str]) -> dict[str, str]:
    return {"role": "user", "content": "\n".join([question, *(f"Result: {result}" for result in results)])}


def _quoted(question: str, text: str) -> str:
    if len(text) <= MAX_QUOTED:
        return text
    from jarvis_nb.engines.embedding import embed

    sentences = [one.strip() for one in SENTENCE.split(text) if one.strip()]
    likeness = embed(sentences) @ embed([question])[0]
    found: list[int] = []
    for i in sorted(range(len(sentences)), key=lambda i: (-float(likeness[i]), i)):
        if found and sum(len(sentences[k]) for k in (*found, i)) > MAX_QUOTED:
            break
        found.append(i)
    # In the text's own order, with a sign where something was left out.
    parts: list[str] = []
    for i in sorted(found):
        if parts and i - 1 not in found:
            parts.append("…")
        parts.append(sentences[i][:MAX_QUOTED])
    return " ".join(parts)


def _grammar(question: str, value: str) -> str:
    """A sentence of the question's words that holds all of its literals, in order, or none, then the value."""
    tokens = list(_tokens(question))[:MAX_WORDS]
    held = [*dict.fromkeys(t for t in tokens if not PLAIN.fullmatch(t) and t != value)]
    own = [t for t in tokens if PLAIN.fullmatch(t) and t.lower() not in ASKING]
    either = [form for word in own for form in (word, word[0].upper() + word[1:])]
    words = " | ".join(json.dumps(word) for word in dict.fromkeys([*either, *JOINING]))
    whole = "".join(f" {json.dumps(one)} GAP some" for one in held)
    start = f"some{whole} | words" if held else "words"
    return (
        f'%llguidance {{}}\nstart: ({start}) {json.dumps(value)} "."\n'
        f"some: (WORD GAP){{0,9}}\nwords: (WORD GAP){{2,9}}\nGAP: / |, /\nWORD: {words}\n"
    )  # fmt: skip


def _tokens(text: str) -> Iterator[str]:
    """The words of a text without the punctuation around them; brackets stay where they are a pair."""
    for raw in text.split():
        word = raw.strip(".,;:!?\"'")
        for first, last in PAIRS:
            if word.startswith(first) and last not in word:
                word = word[1:]
            if word.endswith(last) and first not in word:
                word = word[:-1]
        if word:
            yield word


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
    if not isinstance(value, dict | list):
        return result.strip()
    lines = list(_lines(value, ""))
    more = [f"… and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return "\n".join([*lines[:MAX_LINES], *more])


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
