"""The arguments of a call: one JSON object, or the reason why the call is not run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.types import JSON, dumps

_KINDS = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments as read. ``text`` is always a JSON object, fit to be sent again."""

    text: str = "{}"
    value: JSON | None = None
    """The object; None where there is none, and ``error`` says why."""
    error: ErrorInfo | None = None
    oddity: str = ""
    """``empty``, ``null``, ``object`` (not text), ``not_object``, ``malformed``, ``doubled``, or nothing."""


def read_arguments(raw: Any) -> Arguments:
    """Read arguments as a model sent them.

    Nothing, blanks and null are ``{}``; an object is taken as it is; the rest must be the JSON of one object.

    Example:
        >>> read_arguments('{"city":"Paris"}').value
        {'city': 'Paris'}
        >>> read_arguments("").text, read_arguments('["Paris"]').error.message
        ('{}', 'the arguments are a list: expected an object')
    """
    if isinstance(raw, str):
        return _parsed(raw) if raw.strip() else Arguments(value={}, oddity="empty")
    if isinstance(raw, dict):
        return _object(raw)
    return Arguments(value={}, oddity="null") if raw is None else _not_object(raw)


def raw_text(raw: Any) -> str:
    """Return arguments as text for people, whatever they were.

    Example:
        >>> raw_text(None), raw_text(["Paris"])
        ('null', '["Paris"]')
    """
    if isinstance(raw, str):
        return raw
    try:
        return dumps(raw)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(raw).__name__}>"


def _parsed(raw: str) -> Arguments:
    try:
        value = _read(raw)
    except json.JSONDecodeError as error:
        return _malformed(raw, error)
    except (ValueError, RecursionError) as error:  # NaN, 5,000 digits, 100,000 brackets
        reason = ErrorInfo("invalid_json", f"the arguments cannot be read as JSON: {error}")
        return Arguments(error=reason, oddity="malformed")
    if isinstance(value, dict):
        return Arguments(raw, value)
    return Arguments(value={}, oddity="null") if value is None else _not_object(value)


def _object(raw: JSON) -> Arguments:
    try:
        text = json.dumps(raw, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        reason = ErrorInfo("invalid_json", f"the arguments cannot be written as JSON: {error}")
        return Arguments(error=reason, oddity="malformed")
    return Arguments(text, raw, oddity="object")


def _not_object(value: Any) -> Arguments:
    kind = _KINDS.get(type(value), "no JSON")
    reason = ErrorInfo("invalid_arguments", f"the arguments are {kind}: expected an object")
    return Arguments(error=reason, oddity="not_object")


def _malformed(raw: str, error: json.JSONDecodeError) -> Arguments:
    if error.msg == "Extra data" and _starts_value(raw, error.pos):
        why = f"the arguments hold a second JSON value at character {error.pos}: expected one object"
        reason = ErrorInfo("invalid_json", why, {"position": error.pos})
        return Arguments(error=reason, oddity="doubled")
    reason = ErrorInfo("invalid_json", f"the arguments are not valid JSON: {error}", {"position": error.pos})
    return Arguments(error=reason, oddity="malformed")


def _starts_value(raw: str, position: int) -> bool:
    try:
        json.JSONDecoder().raw_decode(raw, position)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_read = json.JSONDecoder(parse_constant=_no_constant).decode
