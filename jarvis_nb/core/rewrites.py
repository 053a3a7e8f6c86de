"""Plainer words for the same schema: each function takes a schema whose insides are done, and may loosen it.

Loosening is safe, since arguments are validated against the canonical form; tightening never is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from jarvis_nb.core.subschemas import ANNOTATIONS, IN_PLACE, Schema
from jarvis_nb.core.types import dumps

LOOKAROUND = re.compile(r"\(\?<?[=!]")
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
"""The formats that OpenAI's guide and llguidance (llama.cpp, vLLM) both know."""
PAIRED = frozenset({"if", "then", "else", "contains", "minContains", "maxContains"})
"""Keywords that mean something together only: from two schemas they must not meet in one."""
KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def simplify(schema: Schema) -> Schema:
    """Apply every rewrite, in order.

    Example:
        >>> simplify({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None})
        {'type': ['string', 'null'], 'default': None}
    """
    for rewrite in REWRITES:
        schema = rewrite(schema)
    return schema


def const_to_enum(schema: Schema) -> Schema:
    """Write a constant as the enum of one value: Ollama and Gemini know only that."""
    if "const" not in schema or "enum" in schema:
        return schema
    return {("enum" if key == "const" else key): [v] if key == "const" else v for key, v in schema.items()}


def type_of_enum(schema: Schema) -> Schema:
    """Give an enum without a type the types of its values."""
    values = schema.get("enum")
    if "type" in schema or not isinstance(values, list) or not values:
        return schema
    kinds = list(dict.fromkeys("null" if value is None else KINDS[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **schema}


def one_of_to_any_of(schema: Schema) -> Schema:
    """Write ``oneOf`` as ``anyOf``: no provider counts matches, and strict mode knows only ``anyOf``."""
    if "oneOf" not in schema or "anyOf" in schema:
        return schema
    return {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}


def without_lookaround(schema: Schema) -> Schema:
    """Move a pattern with lookaround (pydantic's Decimal has one) into the description.

    OpenAI refuses the whole request for one, strict or not ("regex lookaround is not supported", see
    pydantic-ai issue 5508), and llama.cpp's grammars have none.
    """
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not LOOKAROUND.search(pattern):
        return schema
    return noted({k: v for k, v in schema.items() if k != "pattern"}, {"pattern": pattern})


def without_odd_format(schema: Schema) -> Schema:
    """Move a format that not everybody knows into the description.

    JSON Schema lets a reader ignore one; strict mode and llguidance refuse the schema instead.
    """
    form = schema.get("format")
    if not isinstance(form, str) or form in FORMATS:
        return schema
    return noted({k: v for k, v in schema.items() if k != "format"}, {"format": form})


def merge_all_of(schema: Schema) -> Schema:
    """Merge ``allOf`` into the schema it stands in, where the parts do not contradict each other."""
    parts = schema.get("allOf")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return schema
    merged = {k: v for k, v in schema.items() if k not in ("allOf", "unevaluatedProperties")}
    for part in parts:
        together = both(merged, part)
        if together is None:
            return schema
        merged = together
    if "unevaluatedProperties" in schema:
        still_open = bool(IN_PLACE & merged.keys()) or schema["unevaluatedProperties"] is not False
        key = "unevaluatedProperties" if still_open else "additionalProperties"
        merged.setdefault(key, schema["unevaluatedProperties"])
    return merged


def both(a: Schema, b: Schema) -> Schema | None:
    """Return one schema that means both, or None where there is no plain one."""
    if (_is_closed(a) and b.get("properties")) or (_is_closed(b) and a.get("properties")):
        return None
    if PAIRED & a.keys() and PAIRED & b.keys():
        return None
    out = dict(a)
    for key, value in b.items():
        if key not in out or key in ANNOTATIONS:
            out.setdefault(key, value)
        elif key == "properties" and all(same(out[key].get(n, s), s) for n, s in value.items()):
            out[key] = {**out[key], **value}
        elif key == "required":
            out[key] = list(dict.fromkeys([*out[key], *value]))
        elif not same(out[key], value):
            return None
    return out


def _is_closed(schema: Schema) -> bool:
    return schema.get("additionalProperties", True) is not True or "unevaluatedProperties" in schema


def same(a: Any, b: Any) -> bool:
    """Compare as JSON does: True is not 1."""
    return dumps(a) == dumps(b)


def collapse_nullable(schema: Schema) -> Schema:
    """Write ``anyOf`` of one schema and null as that schema with null among its types."""
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or not all(isinstance(branch, dict) for branch in branches):
        return schema
    others = [branch for branch in branches if not is_null(branch)]
    if len(branches) - len(others) != 1 or len(others) != 1:
        return schema
    widened = with_null(others[0])
    rest = {k: v for k, v in schema.items() if k != "anyOf"}
    if widened is None or rest.keys() - ANNOTATIONS:
        return schema
    return {**widened, **rest}


def is_null(schema: Schema) -> bool:
    """Return whether the schema takes null and nothing else."""
    return schema.get("type") == "null"


def with_null(schema: Schema) -> Schema | None:
    """Return the schema that takes null too, if it has a ``type`` to add null to; else None."""
    kind = schema.get("type")
    if kind is None or IN_PLACE & schema.keys():
        return None
    kinds = kind if isinstance(kind, list) else [kind]
    out = {**schema, "type": kind if "null" in kinds else [*kinds, "null"]}
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out


def noted(schema: Schema, words: dict[str, Any]) -> Schema:
    """Say in the description what the schema cannot say any more.

    Example:
        >>> noted({"type": "string", "description": "A code."}, {"maxLength": 8})
        {'type': 'string', 'description': 'A code. (maxLength: 8)'}
    """
    if not words:
        return schema
    note = "; ".join(f"{keyword}: {dumps(value)}" for keyword, value in words.items())
    return {**schema, "description": f"{schema.get('description') or ''} ({note})".strip()}


def unsaid(source: Schema, kept: Iterable[str], silent: Iterable[str]) -> dict[str, Any]:
    """Return the keywords of ``source`` that a form loses and that a reader needs."""
    lost = [keyword for keyword in source if keyword not in kept and keyword not in silent]
    return {keyword: source[keyword] for keyword in lost}


def tuple_to_list(schema: Schema) -> Schema:
    """Write a tuple as a list of any of its items, for forms without ``prefixItems``."""
    prefix = schema.get("prefixItems")
    if not isinstance(prefix, list) or not prefix:
        return schema
    rest = schema.get("items", True)
    cases = [item for i, item in enumerate(prefix) if item not in prefix[:i]]
    if rest is True and schema.get("maxItems", len(prefix) + 1) > len(prefix):
        cases = [{}]  # an open end takes anything
    elif isinstance(rest, dict) and rest not in cases:
        cases.append(rest)
    items = cases[0] if len(cases) == 1 else {"anyOf": cases}
    return {**{k: v for k, v in schema.items() if k != "prefixItems"}, "items": items}


REWRITES: tuple[Callable[[Schema], Schema], ...] = (
    const_to_enum,
    type_of_enum,
    one_of_to_any_of,
    without_lookaround,
    without_odd_format,
    merge_all_of,
    collapse_nullable,
)
