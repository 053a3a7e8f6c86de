"""Messages as bytes for the wire: each is encoded once, so a long history costs a join, not a dump."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jarvis_nb.core.types import JSON, Message, Role, ToolCall
from jarvis_nb.engines.arguments import raw_text, read_arguments
from jarvis_nb.engines.names import wire_name


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one server wants its messages.

    Example:
        >>> Dialect(arguments="object").key
        'null/object'
    """

    call_content: Literal["null", "empty", "omit"] = "null"
    """The content of an assistant message that only calls: null, an empty string, or no key."""
    arguments: Literal["text", "object"] = "text"
    """A call's arguments: a JSON string as OpenAI has it, or an object (native Ollama)."""
    key: str = field(init=False, repr=False)
    """The key of :attr:`Message.encoded`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.call_content}/{self.arguments}")


OPENAI = Dialect()


def encode_message(message: Message, dialect: Dialect = OPENAI) -> bytes:
    """Return the message as the JSON that is sent; the bytes are kept on the message.

    An assistant turn that says and calls nothing gives ``b""``: it is never sent.

    Example:
        >>> encode_message(Message(Role.USER, "日本語 🎉")).decode()
        '{"role":"user","content":"日本語 🎉"}'
    """
    kept = message.encoded.get(dialect.key)
    if kept is None:
        body = _body(message, dialect)
        kept = message.encoded[dialect.key] = b"" if body is None else to_bytes(body)
    return kept


def encode_messages(messages: Sequence[Message], dialect: Dialect = OPENAI) -> bytes:
    """Return the JSON array of the messages, from the bytes kept on each.

    Example:
        >>> encode_messages([Message(Role.USER, "Hi"), Message(Role.ASSISTANT, None)])
        b'[{"role":"user","content":"Hi"}]'
    """
    key = dialect.key
    parts = [message.encoded.get(key) or encode_message(message, dialect) for message in messages]
    return b"[" + b",".join(filter(None, parts)) + b"]"


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def to_bytes(value: Any) -> bytes:
    r"""Return compact JSON in UTF-8. Halves of a surrogate pair are joined, a lone one becomes U+FFFD.

    Python reads ``"\\ud83c"`` from a server without complaint, but cannot encode it, and strict servers
    refuse it as an escape.

    Example:
        >>> to_bytes("\ud83c\udf89 \ud83c").decode()
        '"🎉 �"'
    """
    text = _write(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def wire_call(call: ToolCall) -> ToolCall:
    """Return the call fit to be sent: itself, or a copy with a legal name and an object as arguments."""
    name = wire_name(call.name)
    arguments = read_arguments(call.arguments)
    if name == call.name and arguments.oddity in ("", "object"):
        return call
    broken = arguments.oddity not in ("", "object")
    return ToolCall(
        call.id,
        name,
        arguments.text,
        provider_id=call.provider_id,
        raw_name=call.raw_name if name == call.name else call.name,
        raw_arguments=raw_text(call.arguments) if broken else call.raw_arguments,
    )


def _body(message: Message, dialect: Dialect) -> JSON | None:
    content = message.content
    if message.role == Role.ASSISTANT:
        return _assistant(message, dialect)
    body: JSON = {"role": str(message.role), "content": "" if content is None else content}
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _assistant(message: Message, dialect: Dialect) -> JSON | None:
    says = bool(message.text.strip())
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content} if says else None
    body: JSON = {"role": "assistant"}
    if says:
        body["content"] = message.content
    elif dialect.call_content != "omit":
        body["content"] = "" if dialect.call_content == "empty" else None
    body["tool_calls"] = [_call(wire_call(call), dialect) for call in message.tool_calls]
    return body


def _call(call: ToolCall, dialect: Dialect) -> JSON:
    out = call.to_openai()
    if dialect.arguments == "object":
        out["function"]["arguments"] = read_arguments(call.arguments).value or {}
    return out
