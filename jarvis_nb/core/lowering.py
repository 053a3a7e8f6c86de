"""Lowering: from the canonical schema to what a provider takes, one pure function per dialect.

* ``default``: for servers that constrain loosely or not at all. References inlined, a nullable ``anyOf`` a
  list of types, ``enum`` kept, and what a server would refuse the whole request for moved into words.
* ``strict``: the subset OpenAI documents for structured outputs.
* ``gemini``: what Google's function declarations take, also behind its OpenAI-compatible address.

Whatever the canonical schema accepts, the lowered one accepts too (in strict, with null for what is left
out): a lowered schema may be looser, since arguments are validated against the canonical one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.gemini import gemini_form
from jarvis_nb.core.inlining import inlined
from jarvis_nb.core.strict import strict_form
from jarvis_nb.core.subschemas import Schema, map_children
from jarvis_nb.core.types import Definitions, ToolDefinition, dumps

DIALECTS = ("default", "strict", "gemini")


def lower_schema(schema: Schema, dialect: str = "default") -> Schema:
    """Return a canonical schema in a provider's form. Pure.

    Args:
        schema: What :func:`~jarvis_nb.core.schema.canonical_schema` returned.
        dialect: ``default``, ``strict`` or ``gemini``.

    Raises:
        ToolsetError: ``unknown_dialect``; ``not_strict``: strict mode cannot express the schema, and the
            message says where (an open dictionary, a value of any type).

    Example:
        >>> lower_schema({"type": "object", "properties": {
        ...     "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": []})["properties"]
        {'n': {'type': ['integer', 'null']}}
    """
    check_dialect(dialect)
    plain = inlined(schema)
    if dialect == "gemini":
        return gemini_form(plain)
    if dialect == "default":
        return default_form(plain)
    out, problems = strict_form(plain)
    if problems:
        raise ToolsetError(
            f"strict mode cannot express the schema: {'; '.join(problems)}",
            code="not_strict",
            value=problems,
            hint="send this tool without strict, or give the field a fixed shape",
        )
    return out


def default_form(schema: Schema) -> Schema:
    """Leave out ``unevaluatedProperties``: no provider reads it, and llguidance refuses the schema for it."""
    out = map_children(schema, lambda _, child: default_form(child))
    out.pop("unevaluatedProperties", None)
    return out


def strict_problems(schema: Schema) -> list[str]:
    """Return what strict mode cannot express of a canonical schema, each with its place; empty if nothing.

    Example:
        >>> strict_problems({"type": "object", "additionalProperties": False, "properties": {
        ...     "tags": {"type": "object", "additionalProperties": {"type": "string"}}}})
        ['parameters.tags is an open dictionary']
    """
    return strict_form(inlined(schema))[1]


def openai_tools(definitions: Iterable[ToolDefinition], dialect: str = "default") -> list[dict[str, Any]]:
    """Return the definitions as OpenAI's ``tools``, in order.

    In the strict dialect a tool that strict mode cannot express has the default form and ``"strict": false``;
    :func:`strict_problems` says why.

    Raises:
        ToolsetError: ``unknown_dialect``.
    """
    check_dialect(dialect)
    return [_openai_tool(definition, dialect) for definition in definitions]


def encode_tools(definitions: Definitions, dialect: str = "default") -> bytes:
    """Return OpenAI's ``tools`` as UTF-8 JSON; made once for these definitions and dialect.

    Raises:
        ToolsetError: ``unknown_dialect``.
    """
    encoded = definitions.encoded.get(dialect)
    if encoded is None:
        encoded = definitions.encoded[dialect] = dumps(openai_tools(definitions, dialect)).encode()
    return encoded


def check_dialect(dialect: str) -> None:
    """Raise unless there is such a dialect.

    Raises:
        ToolsetError: ``unknown_dialect``.
    """
    if dialect not in DIALECTS:
        raise ToolsetError(
            f"no dialect {dialect!r:.100}", code="unknown_dialect", value=dialect, valid=DIALECTS
        )


def _openai_tool(definition: ToolDefinition, dialect: str) -> dict[str, Any]:
    function: dict[str, Any] = {"name": definition.name, "description": definition.description}
    if dialect == "strict":
        plain = inlined(definition.parameters)
        strict, problems = strict_form(plain)
        function |= {"parameters": default_form(plain) if problems else strict, "strict": not problems}
    else:
        function["parameters"] = lower_schema(definition.parameters, dialect)
    return {"type": "function", "function": function}
