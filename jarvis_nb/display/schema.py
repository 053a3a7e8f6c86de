"""The parameters of a JSON Schema as rows a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jarvis_nb.display.escape import cut, json_text

DEPTH = 3
OPTIONS = 8


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter."""

    name: str
    type: str
    required: bool
    default: str
    """As JSON; empty where there is none."""
    description: str


def parameters(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Return the properties of an object schema.

    Example:
        >>> parameters({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}})
        (Parameter(name='n', type='integer', required=False, default='3', description=''),)
    """
    required = schema.get("required") or ()
    found: list[Parameter] = []
    for name, inner in (schema.get("properties") or {}).items():
        one = inner if isinstance(inner, Mapping) else {}
        default = cut(json_text(one["default"]), 80) if "default" in one else ""
        about = str(one.get("description") or _resolve(one, schema).get("description") or "")
        found.append(Parameter(str(name), type_text(one, schema), name in required, default, about))
    return tuple(found)


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a schema's type in words.

    Example:
        >>> type_text({"type": "array", "items": {"enum": ["a", "b"]}}, {})
        'list of "a" or "b"'
    """
    if not isinstance(schema, Mapping) or depth > DEPTH:
        return "any"
    one = _resolve(schema, root)
    if "const" in one:
        return cut(json_text(one["const"]), 40)
    if "enum" in one and isinstance(one["enum"], list):
        return _either([cut(json_text(v), 40) for v in one["enum"]])
    for key in ("anyOf", "oneOf"):
        if isinstance(one.get(key), list) and one[key]:
            return _either([type_text(v, root, depth + 1) for v in one[key]])
    kind = one.get("type", "any")
    if isinstance(kind, list):
        return _either([str(k) for k in kind])
    if kind == "array":
        return f"list of {type_text(one.get('items'), root, depth + 1)}"
    if kind == "object" and one.get("properties"):
        return f"object with {', '.join(map(str, list(one['properties'])[:OPTIONS]))}"
    return f"{kind} ({one['format']})" if "format" in one else str(kind)


def _either(words: list[str]) -> str:
    distinct = list(dict.fromkeys(words))
    more = f" or {len(distinct) - OPTIONS} more" if len(distinct) > OPTIONS else ""
    return " or ".join(distinct[:OPTIONS]) + more


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow local references, a few steps and no more."""
    one: Any = schema
    for _ in range(DEPTH):
        ref = one.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            break
        target: Any = root
        for part in ref[2:].split("/"):
            target = (
                target.get(part.replace("~1", "/").replace("~0", "~"))
                if isinstance(target, Mapping)
                else None
            )
        if not isinstance(target, Mapping):
            break
        one = target
    return one
