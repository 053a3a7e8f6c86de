"""Messages, tool calls, results and usage: what every room passes to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, Self

from jarvis_nb.core.pictured import Pictured

JSON = dict[str, Any]
"""A JSON object as Python holds it."""

ToolChoice = str | dict[str, Any] | None
"""None (the key is not sent), ``"auto"``, ``"required"``, or the OpenAI dict that names one tool."""


class Role(Pictured, StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(slots=True)
class ToolCall(Pictured):
    """One call a model asks for.

    Example:
        >>> ToolCall(id="call_1", name="calculator", arguments='{"expression": "2+2"}').name
        'calculator'
    """

    id: str
    """Unique in its transcript."""
    name: str
    arguments: str | JSON = "{}"
    """A JSON object, as the string that came or already parsed."""
    provider_id: str | None = field(default=None, compare=False)
    """The id as the provider sent it, where it had to be replaced."""
    raw_name: str | None = field(default=None, compare=False)
    """The name as the model sent it, where it had to be changed for the wire."""
    raw_arguments: str | None = field(default=None, compare=False)
    """The arguments as the model sent them, where they were not a JSON object."""

    def to_openai(self) -> JSON:
        """Return the call as an OpenAI message holds it: arguments as a JSON string."""
        arguments = self.arguments
        if not isinstance(arguments, str):
            arguments = dumps(arguments)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(slots=True)
class ToolResult(Pictured):
    """What a tool gives back.

    Example:
        >>> ToolResult("calculator", "4").success
        True
    """

    tool_name: str
    content: str
    """The output as text, for the model."""
    success: bool = True
    usage: dict[str, Any] = field(default_factory=dict)
    """Tokens spent by a tool that asks a model itself."""
    cost_usd: float = 0.0
    """US dollars."""
    latency_seconds: float = field(default=0.0, repr=False)
    """Not in the repr: another run takes another time."""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Message(Pictured):
    """One message of a conversation. Treat it as a value: its encoded form is kept once made.

    ``content`` is text, None (an assistant that only calls), or a list of OpenAI content parts.

    Example:
        >>> Message(Role.USER, "Hello").to_openai()
        {'role': 'user', 'content': 'Hello'}
    """

    role: Role
    content: str | list[JSON] | None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = field(default=None, compare=False)
    """Thinking that came beside the answer; shown to people, never sent again."""
    encoded: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    """The message as bytes, by wire dialect: a history is encoded once, not once a round."""

    @property
    def text(self) -> str:
        """The text of the message, joined where the content is a list of parts."""
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content or ())

    def to_openai(self) -> JSON:
        """Return the message as OpenAI's chat completions take it."""
        out: JSON = {"role": str(self.role), "content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [call.to_openai() for call in self.tool_calls]
        if self.tool_call_id is not None:
            out["tool_call_id"] = self.tool_call_id
        return out

    @classmethod
    def from_openai(cls, data: Mapping[str, Any]) -> Message:
        """Read an OpenAI message, or one that :meth:`to_openai` made.

        Raises:
            InvalidRequest: The role is unknown or the shape is wrong.
        """
        from jarvis_nb.core.errors import InvalidRequest

        try:
            role = Role(data["role"])
        except (KeyError, ValueError, TypeError):
            raise InvalidRequest(
                f"a message needs a role, got {data!r:.200}", value=data, valid=[str(r) for r in Role]
            ) from None
        try:
            calls = [
                ToolCall(c["id"], c["function"]["name"], c["function"].get("arguments") or "{}")
                for c in data.get("tool_calls") or ()
            ]
        except (KeyError, TypeError, AttributeError):
            raise InvalidRequest(
                f"tool_calls of a message are not in OpenAI's form: {data.get('tool_calls')!r:.200}",
                value=data.get("tool_calls"),
                hint="each is {'id': …, 'type': 'function', 'function': {'name': …, 'arguments': …}}",
            ) from None
        return cls(role, data.get("content"), calls or None, data.get("tool_call_id"))


@dataclass(frozen=True, slots=True)
class Usage(Pictured):
    """Tokens of one or several model calls, as the server counted them.

    Example:
        >>> Usage(10, 5) + Usage(1, 1)
        Usage(prompt_tokens=11, completion_tokens=6)
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens
        )

    def to_dict(self) -> dict[str, int]:
        """Return the three counts under OpenAI's names."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
        }

    @classmethod
    def from_openai(cls, data: object) -> Usage:
        """Read a server's usage object; whatever is missing or odd counts as 0."""
        if not isinstance(data, Mapping):
            return cls()

        def count(key: str) -> int:
            value = data.get(key)
            if isinstance(value, float) and not isfinite(value):
                return 0
            return int(value) if isinstance(value, int | float) and value >= 0 else 0

        return cls(count("prompt_tokens"), count("completion_tokens"))


@dataclass(frozen=True, slots=True)
class ToolDefinition(Pictured):
    """What a model is told of a tool. Plain data: nothing in it can call user code."""

    name: str
    description: str
    parameters: JSON
    """Canonical, strict JSON Schema: closed objects; a field with a default is not required."""


class Definitions(tuple[ToolDefinition, ...]):  # noqa: SLOT001 - see below
    """The definitions of one offer, in order, that remember their encoded forms.

    An offer of a thousand tools is lowered and encoded once, not once a request.
    """

    # A tuple with an attribute has a __dict__: Python allows it no __slots__.
    encoded: dict[str, bytes]

    def __new__(cls, items: Sequence[ToolDefinition] = ()) -> Self:
        """Make the tuple, with nothing encoded yet."""
        self = super().__new__(cls, items)
        self.encoded = {}
        return self


@dataclass(frozen=True, slots=True)
class Repair(Pictured):
    """One oddity of a model's message, and what was made of it.

    Example:
        >>> print(Repair("duplicate_id", "two calls shared id call_1: the second was renamed call_2", 1))
        round 1: two calls shared id call_1: the second was renamed call_2
    """

    code: str
    message: str
    round: int = 0

    def __str__(self) -> str:
        return f"round {self.round}: {self.message}" if self.round else self.message


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dumps(value: object) -> str:
    """Compact JSON with non-ASCII kept as it is; a lone surrogate is escaped so that it can be encoded.

    Example:
        >>> dumps({"order_id": "ORD-5", "note": "日本語"})
        '{"order_id":"ORD-5","note":"日本語"}'
    """
    text = _write(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text
