"""Requests from outside: untrusted JSON may ask and narrow, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from jarvis_nb.core.errors import InvalidRequest, JarvisError
from jarvis_nb.core.portable import portable
from jarvis_nb.core.types import dumps

KEYS = ("input", "tool_policy")
MAX_INPUT = 262_144
"""Characters of the input."""
MAX_POLICY = 262_144
"""Bytes of the policy as JSON."""
MAX_BYTES = 4 * (MAX_INPUT + MAX_POLICY)
"""Bytes of a request that comes as JSON text."""

HOST_WORDS = ("source", "tool", "skill", "mcp", "context", "secret", "config", "approv")
"""Keys with these words ask for what only the host gives."""


@dataclass(frozen=True, slots=True)
class Request:
    """What untrusted JSON may say.

    Example:
        >>> parse_request('{"input": "Show order ORD-5.", "tool_policy": {"visible": ["lookup_order"]}}')
        Request(input='Show order ORD-5.', tool_policy={'visible': ['lookup_order']})
    """

    input: str
    tool_policy: dict[str, Any] | None = None
    """A policy as data; it can only remove tools."""


def parse_request(data: Mapping[str, Any] | str | bytes) -> Request:
    """Read a request from untrusted JSON: text, bytes or the object it holds.

    Args:
        data: An object with ``input`` (text) and, optionally, ``tool_policy`` (an object).

    Raises:
        InvalidRequest: ``invalid_request``: it has another key (sources, tools and context are given by the
            host), lacks the input, or a value has the wrong type or size. ``invalid_policy``: the policy's
            own shape is wrong. Unknown tool names are found later, where the toolset is known.
    """
    if isinstance(data, str | bytes | bytearray):
        data = _parsed(data)
    if not isinstance(data, Mapping):
        _refuse(f"a request is a JSON object, not a {type(data).__name__}", valid=KEYS)
    for key in data:
        if key not in KEYS:
            _refuse_key(key)
    return Request(_checked_input(data), _checked_policy(data.get("tool_policy")))


def _parsed(text: str | bytes | bytearray) -> Any:
    if len(text) > MAX_BYTES:
        _refuse(f"the request has {len(text):,} bytes, at most {MAX_BYTES:,} are read")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):  # a reader that takes the first would see another request
            keys = [key for key, _ in items]
            _refuse(f"the key {next(key for key in keys if keys.count(key) > 1)!r:.100} stands twice")
        return found

    def constant(name: str) -> NoReturn:
        _refuse(f"{name} is no JSON")

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except InvalidRequest:
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(
            f"the request is no JSON: {reason}", hint="send a JSON object with an input"
        ) from None


def _refuse_key(key: object) -> NoReturn:
    hint = None
    if isinstance(key, str) and any(word in key.casefold() for word in HOST_WORDS):
        hint = "sources, tools and context are given by the host, never by a request"
    _refuse(f"a request may not hold {key!r:.100}", valid=KEYS, hint=hint, value=key)


def _checked_input(data: Mapping[str, Any]) -> str:
    if "input" not in data:
        _refuse("the request has no input", valid=KEYS)
    text = data["input"]
    if type(text) is not str:
        _refuse(f"the input is a {type(text).__name__}, not text")
    if not text.strip():
        _refuse("the input is blank")
    if len(text) > MAX_INPUT:
        _refuse(f"the input has {len(text):,} characters, at most {MAX_INPUT:,} are taken")
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse("the input holds half of a surrogate pair, which is no text")
    return text


def _checked_policy(policy: Any) -> dict[str, Any] | None:
    if policy is None:
        return None
    if not isinstance(policy, Mapping):
        _refuse(f"the tool_policy is a {type(policy).__name__}, not an object")
    try:
        plain = portable(dict(policy), "tool_policy")
    except JarvisError as error:
        _refuse(error.message)
    size = len(dumps(plain))
    if size > MAX_POLICY:
        _refuse(f"the tool_policy has {size:,} characters, at most {MAX_POLICY:,} are taken")
    from jarvis_nb.toolsets.policy import ToolPolicy

    ToolPolicy.of(plain)
    return plain


def _refuse(
    message: str, *, valid: tuple[str, ...] | None = None, hint: str | None = None, value: object = None
) -> NoReturn:
    raise InvalidRequest(message, valid=valid, hint=hint, value=value)
