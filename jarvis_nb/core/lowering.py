"""Lowering: from the canonical schema to what a provider takes, one pure function per dialect.

The default dialect is for servers that constrain loosely. llama.cpp, Ollama and Gemini mishandle ``$ref``,
so references are inlined; a nullable ``anyOf`` becomes a list of types; ``enum`` stays. Only what is
recursive keeps a reference. Whatever the canonical schema accepts, the lowered one accepts too: lowering may
loosen (arguments are validated against the canonical form anyway) and never tightens.

The strict dialect is the subset OpenAI documents for structured outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.strict import strict_form
from jarvis_nb.core.subschemas import ANNOTATIONS, Schema, children, map_children, resolve_pointer
from jarvis_nb.core.types import Definitions, ToolDefinition, dumps

Dialect = Literal["default", "strict"]
DIALECTS = ("default", "strict")

MAX_INLINED = 5_000
"""Schemas an inlined form may have; beyond it references stay: nested reuse grows exponentially."""
DROPPED = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "title", "discriminator"})


def lower_schema(schema: Schema, dialect: str = "default") -> Schema:
    """Return a canonical schema in a provider's form. Pure; shares nothing mutable with the input.

    Args:
        schema: What :func:`~jarvis_nb.core.schema.canonical_schema` returned.
        dialect: ``default`` or ``strict``.

    Raises:
        ToolsetError: ``unknown_dialect``; ``not_strict``: strict cannot express the schema, the message says
            where (an open dictionary, a value of any type).

    Example:
        >>> lower_schema({"type": "object", "properties": {
        ...     "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": []})["properties"]
        {'n': {'type': ['integer', 'null']}}
    """
    if dialect not in DIALECTS:
        raise ToolsetError(f"no dialect {dialect!r}", code="unknown_dialect", value=dialect, valid=DIALECTS)
    lowered = _Inlining(schema).lowered()
    if dialect == "default":
        return lowered
    out, problems = strict_form(lowered)
    if problems:
        raise ToolsetError(
            f"strict mode cannot express the schema: {'; '.join(problems)}",
            code="not_strict",
            value=problems,
            hint="send this tool without strict, or give the field a fixed shape",
        )
    return out


def strict_problems(schema: Schema) -> list[str]:
    """Return what strict mode cannot express of a canonical schema, each with its place; empty if nothing."""
    return strict_form(_Inlining(schema).lowered())[1]


def openai_tools(definitions: Iterable[ToolDefinition], dialect: str = "default") -> list[dict[str, Any]]:
    """Return the definitions as OpenAI's ``tools``.

    In the strict dialect a tool that strict mode cannot express is sent in the default form with
    ``"strict": false``; :func:`strict_problems` says why.
    """
    return [_openai_tool(definition, dialect) for definition in definitions]


def _openai_tool(definition: ToolDefinition, dialect: str) -> dict[str, Any]:
    function: dict[str, Any] = {"name": definition.name, "description": definition.description}
    if dialect == "strict":
        lowered = _Inlining(definition.parameters).lowered()
        strict, problems = strict_form(lowered)
        function["parameters"] = lowered if problems else strict
        function["strict"] = not problems
    else:
        function["parameters"] = lower_schema(definition.parameters, dialect)
    return {"type": "function", "function": function}


def encode_tools(definitions: Definitions, dialect: str = "default") -> bytes:
    """Return the UTF-8 JSON array of OpenAI's ``tools``; made once for these definitions and dialect."""
    encoded = definitions.encoded.get(dialect)
    if encoded is None:
        encoded = definitions.encoded[dialect] = dumps(openai_tools(definitions, dialect)).encode()
    return encoded


class _Inlining:
    """Lowers one schema to the default dialect."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.kept: dict[int, str] = {}
        """Definitions that stay referenced, by identity, with their new names."""
        self.names: set[str] = set()
        self.recursive = self._recursive()
        self.inline = self._size(root, {}) <= MAX_INLINED
        self.todo: list[tuple[str, Schema]] = []

    def lowered(self) -> Schema:
        out = self._lower(self.root, unfolding=False)
        definitions: Schema = {}
        while self.todo:
            name, target = self.todo.pop(0)
            definitions[name] = self._lower(target, unfolding=True)
        if definitions:
            out["$defs"] = definitions
        return out

    def _targets(self, node: Schema) -> list[Schema]:
        target = resolve_pointer(self.root, node.get("$ref"))
        inner = [child for keyword, child in children(node) if keyword not in ("$defs", "definitions")]
        return inner if target is None else [*inner, target]

    def _recursive(self) -> set[int]:
        """Find the schemas that can be reached from themselves (Tarjan's strongly connected components)."""
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        found: set[int] = set()

        def visit(node: Schema) -> None:
            key = id(node)
            index[key] = low[key] = len(index)
            stack.append(key)
            for target in self._targets(node):
                if id(target) not in index:
                    visit(target)
                    low[key] = min(low[key], low[id(target)])
                elif id(target) in stack:
                    low[key] = min(low[key], index[id(target)])
            if low[key] == index[key]:
                component = stack[stack.index(key) :]
                del stack[stack.index(key) :]
                if len(component) > 1 or any(id(t) == key for t in self._targets(node)):
                    found.update(component)

        visit(self.root)
        return found

    def _size(self, node: Schema, sizes: dict[int, int]) -> int:
        """Count the schemas of the inlined form."""
        key = id(node)
        if key not in sizes:
            sizes[key] = 1  # what is recursive counts once
            sizes[key] = 1 + sum(self._size(target, sizes) for target in self._targets(node))
        return sizes[key]

    def _lower(self, node: Schema, *, unfolding: bool) -> Schema:
        """Lower one schema; ``unfolding`` is set inside a recursive definition, whose references stay."""
        target = resolve_pointer(self.root, node.get("$ref"))
        if target is not None:
            rest = {k: v for k, v in node.items() if k != "$ref"}
            if not self.inline or target is self.root or (id(target) in self.recursive and unfolding):
                inlined: Schema = {"$ref": "#" if target is self.root else self._keep(node["$ref"], target)}
            else:
                inlined = self._lower(target, unfolding=unfolding or id(target) in self.recursive)
            return _join(inlined, self._lower(rest, unfolding=unfolding)) if rest else inlined
        out = map_children(
            {k: v for k, v in node.items() if k not in DROPPED},
            lambda _, child: self._lower(child, unfolding=unfolding),
        )
        return _simplify(out)

    def _keep(self, ref: str, target: Schema) -> str:
        if id(target) not in self.kept:
            base = ref.rsplit("/", 1)[-1] or "root"
            name, n = base, 1
            while name in self.names:
                n += 1
                name = f"{base}_{n}"
            self.names.add(name)
            self.kept[id(target)] = name
            self.todo.append((name, target))
        return f"#/$defs/{self.kept[id(target)]}"


def _join(inlined: Schema, rest: Schema) -> Schema:
    """Put what stands beside a reference (mostly a description and a default) onto what it refers to."""
    if all(key in ANNOTATIONS for key in rest):
        return {**inlined, **rest}
    if (
        rest.get("unevaluatedProperties") is False
        and len(rest.keys() - ANNOTATIONS) == 1
        and "$ref" not in inlined
    ):
        closable = "additionalProperties" not in inlined and not {"allOf", "anyOf", "$ref"} & inlined.keys()
        if closable:
            notes = {k: v for k, v in rest.items() if k in ANNOTATIONS}
            return {**inlined, **notes, "additionalProperties": False}
    return _simplify({**{k: v for k, v in rest.items() if k in ANNOTATIONS}, "allOf": [inlined, _bare(rest)]})


def _bare(schema: Schema) -> Schema:
    return {k: v for k, v in schema.items() if k not in ANNOTATIONS}


def _simplify(out: Schema) -> Schema:
    """Rewrite what has a plainer form with the same meaning (``oneOf`` becomes the looser ``anyOf``)."""
    for rewrite in REWRITES:
        out = rewrite(out)
    return out


def _const(out: Schema) -> Schema:
    if "const" in out and "enum" not in out:
        out["enum"] = [out.pop("const")]
    return out


def _one_of(out: Schema) -> Schema:
    if "oneOf" in out and "anyOf" not in out:
        return {("anyOf" if key == "oneOf" else key): value for key, value in out.items()}
    return out


def _all_of(out: Schema) -> Schema:
    """Merge ``allOf`` into the schema it stands in, where the parts do not contradict each other."""
    parts = out.get("allOf")
    if not isinstance(parts, list):
        return out
    merged: Schema | None = {k: v for k, v in out.items() if k not in ("allOf", "unevaluatedProperties")}
    for part in parts:
        merged = merged if merged is None or not isinstance(part, dict) else _merged(merged, part)
    if merged is None or any(not isinstance(part, dict) for part in parts):
        return out
    if out.get("unevaluatedProperties") is False:
        in_place = {"anyOf", "oneOf", "$ref", "if", "dependentSchemas"} & merged.keys()
        merged["unevaluatedProperties" if in_place else "additionalProperties"] = False
    return merged


def _merged(a: Schema, b: Schema) -> Schema | None:
    """Return one schema that means both, or None."""
    if (_is_closed(a) and b.get("properties")) or (_is_closed(b) and a.get("properties")):
        return None
    out = dict(a)
    for key, value in b.items():
        if key not in out or out[key] == value or key in ANNOTATIONS:
            out.setdefault(key, value)
        elif key == "properties":
            if any(out[key].get(name, schema) != schema for name, schema in value.items()):
                return None
            out[key] = {**out[key], **value}
        elif key == "required":
            out[key] = [*out[key], *(name for name in value if name not in out[key])]
        else:
            return None
    return out


def _is_closed(schema: Schema) -> bool:
    return schema.get("additionalProperties", True) is not True or "unevaluatedProperties" in schema


def _nullable(out: Schema) -> Schema:
    """Collapse ``anyOf`` of one schema and null."""
    branches = out.get("anyOf")
    if not isinstance(branches, list) or len(branches) != 2:  # noqa: PLR2004 - a schema and null
        return out
    others = [
        b for b in branches if not (isinstance(b, dict) and _bare(b) in ({"type": "null"}, {"enum": [None]}))
    ]
    if len(others) != 1 or not isinstance(others[0], dict):
        return out
    widened = with_null(others[0])
    rest = {k: v for k, v in out.items() if k != "anyOf"}
    if widened is None or _bare(rest):
        return out
    return {**widened, **rest}


def with_null(schema: Schema) -> Schema | None:
    """Return the schema that takes null too, if it has a ``type`` to add it to; None otherwise."""
    kind = schema.get("type")
    if kind is None or {"allOf", "anyOf", "oneOf", "not", "if", "$ref"} & schema.keys():
        return None
    kinds = kind if isinstance(kind, list) else [kind]
    out = {**schema, "type": kind if "null" in kinds else [*kinds, "null"]}
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out


REWRITES: tuple[Callable[[Schema], Schema], ...] = (_const, _one_of, _all_of, _nullable)
