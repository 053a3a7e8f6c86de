"""What an assistant message says, whatever shape the server put it in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jarvis_nb.core.types import dumps

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""DeepSeek, vLLM, SGLang and llama.cpp; OpenRouter, Ollama and newer vLLM; native Ollama."""


class Content(NamedTuple):
    """The text of a message's content, thinking apart, and the kinds of parts that hold neither."""

    text: str
    reasoning: str = ""
    ignored: tuple[str, ...] = ()


def read_content(content: Any) -> Content:
    """Read the ``content`` of a message or of a delta: text, None, or a list of parts.

    Mistral sends thinking as a part of its own, ``{"type": "thinking", "thinking": [{"type": "text", …}]}``.

    Example:
        >>> read_content([{"type": "text", "text": "Hi"}, {"type": "thinking", "thinking": "hmm"}])
        Content(text='Hi', reasoning='hmm', ignored=())
    """
    if content is None:
        return Content("")
    if isinstance(content, str):
        return Content(content)
    parts: list[Any] = content if isinstance(content, list) else [content]
    text: list[str] = []
    reasoning: list[str] = []
    ignored: list[str] = []
    for part in parts:
        kind, words = _read_part(part)
        if words is None:
            ignored.append(kind)
        elif kind in ("thinking", "reasoning"):
            reasoning.append(words)
        else:
            text.append(words)
    return Content("".join(text), "".join(reasoning), tuple(ignored))


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Return the thinking beside the content; where a server sends it under two names, it counts once.

    Example:
        >>> read_reasoning({"content": "done", "reasoning_content": "hmm", "reasoning": "hmm"})
        'hmm'
    """
    for key in REASONING_KEYS:
        value = message.get(key)
        if value:
            return value if isinstance(value, str) else "".join(read_content(value)[:2])
    return ""


def _read_part(part: Any) -> tuple[str, str | None]:
    """Return a part's kind and its words, None where it has none to show."""
    if isinstance(part, str):
        return "text", part
    if not isinstance(part, Mapping):
        return "text", dumps(part) if isinstance(part, int | float) else None
    kind = str(part.get("type") or "text")
    return kind, next(_words(part, kind), None)


def _words(part: Mapping[Any, Any], kind: str) -> Iterator[str]:
    for key in ("text", kind, "refusal", "content"):
        value = part.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield "".join(read_content(value)[:2])
