"""Schemas as data: the canonical form of a tool's parameters.

Three steps, each a pure function: :func:`check_schema` judges what came from outside,
:func:`canonical_schema` makes the one form a definition holds, and
:func:`~jarvis_nb.core.lowering.lower_schema` turns that into what a provider takes.
"""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.lowering import (
    encode_tools as encode_tools,
    lower_schema as lower_schema,
    openai_tools as openai_tools,
    strict_problems as strict_problems,
)
from jarvis_nb.core.portable import portable
from jarvis_nb.core.schema_check import check_schema as check_schema
from jarvis_nb.core.subschemas import IN_PLACE, Schema, children, map_children, resolve_pointer

UNTOUCHED = frozenset({"not", "if", "contains"})
"""Keywords under which closing an object would change what matches instead of what is refused."""


def canonical_schema(schema: Any) -> Schema:
    """Return the canonical, strict form of a tool's parameters. Pure, deterministic, idempotent.

    * The root is an object with ``properties`` and ``required``; an empty schema is an object without fields.
    * Objects are closed (``additionalProperties: false``) at every depth, unless the schema says otherwise:
      a ``dict[str, int]`` keeps its ``additionalProperties``, and an object without any ``properties`` that
      is not the root holds what it likes. Where several schemas describe one object together (``allOf``, or
      ``anyOf`` beside ``properties``), the whole is closed by ``unevaluatedProperties: false``.
    * A field with a default is not in ``required``.
    * ``title`` and ``$schema`` are dropped. References stay as they are, so that recursion stays expressible.

    Args:
        schema: JSON Schema as Python data; None counts as empty.

    Raises:
        NotPortable: Something in it is not plain data; the error has its path.
        ToolsetError: ``invalid_schema``: the root is not an object schema.

    Example:
        >>> canonical_schema({"type": "object", "properties": {"n": {"type": "integer", "title": "N"}}})
        {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': [], 'additionalProperties': False}
    """
    root = _object_root(portable({} if schema is None else schema, "parameters"))
    return _Closing(root).close(root, composed=False, is_root=True)


def _object_root(root: Any) -> Schema:
    """Return the root with its own reference followed, ``type``, ``properties`` and ``required`` present."""
    if not isinstance(root, dict):
        raise _not_an_object(root)
    seen: list[Any] = []
    while "$ref" in root:
        target = resolve_pointer(root, root["$ref"])
        if target is None or root["$ref"] in seen:
            raise _not_an_object(root)
        seen.append(root["$ref"])
        root = {**target, **{k: v for k, v in root.items() if k != "$ref"}}
    if root.get("type", "object") not in ("object", ["object"]):
        raise _not_an_object(root)
    head = {"type": "object", "properties": {}, "required": []}
    return {**head, **root, "type": "object"}


def _not_an_object(root: Any) -> ToolsetError:
    return ToolsetError(
        f"a tool's parameters are an object schema, got {root!r:.200}",
        code="invalid_schema",
        value=root,
        hint='its root is {"type": "object", "properties": {…}}',
    )


class _Closing:
    """Closes the objects of one schema.

    A schema is *composed* when others describe the same instance beside it: closing it alone would refuse
    what the others declare.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.shared: set[int] = set()
        """Definitions that some composed place refers to: they stay open, each plain reference closes them."""
        self._find_shared(root, composed=False, seen=set())

    def _find_shared(self, node: Schema, *, composed: bool, seen: set[tuple[int, bool]]) -> None:
        if (id(node), composed) in seen:
            return
        seen.add((id(node), composed))
        mixed = composed or self._is_mixed(node)
        target = resolve_pointer(self.root, node.get("$ref"))
        if target is not None:
            if mixed:
                self.shared.add(id(target))
            self._find_shared(target, composed=mixed, seen=seen)
        for keyword, child in children(node):
            if keyword not in UNTOUCHED:
                self._find_shared(child, composed=mixed and keyword in IN_PLACE, seen=seen)

    def _is_mixed(self, node: Schema) -> bool:
        """Whether more than one part of ``node`` describes the object at hand."""
        parts = [key for key in node if key in IN_PLACE]
        own = any(key in node for key in ("properties", "patternProperties"))
        return len(parts) > 1 or len(node.get("allOf") or ()) > 1 or (own and bool(parts))

    def _adds_properties(self, node: Schema, seen: set[int]) -> bool:
        """Whether schemas that apply in place declare properties of their own."""
        if id(node) in seen:
            return False
        seen.add(id(node))
        inner = [child for keyword, child in children(node) if keyword in IN_PLACE]
        target = resolve_pointer(self.root, node.get("$ref"))
        inner.extend([] if target is None else [target])
        return any(
            any(key in part for key in ("properties", "patternProperties", "additionalProperties"))
            or self._adds_properties(part, seen)
            for part in inner
        )

    def close(self, node: Schema, *, composed: bool, is_root: bool = False) -> Schema:
        """Return ``node`` closed, with every schema inside it."""
        composed = composed or id(node) in self.shared
        mixed = composed or self._is_mixed(node)

        def inside(keyword: str, child: Schema) -> Schema:
            if keyword in UNTOUCHED:
                return _untitled(child)
            return self.close(child, composed=mixed and keyword in IN_PLACE)

        out = map_children({k: v for k, v in node.items() if k not in ("title", "$schema")}, inside)
        _arrange_items(out)
        if _is_object(out) or ("$ref" in out and not composed):
            self._close_object(node, out, composed=composed, is_root=is_root)
        return out

    def _close_object(self, node: Schema, out: Schema, *, composed: bool, is_root: bool) -> None:
        properties = out.get("properties")
        if isinstance(properties, dict):
            _arrange_required(out, properties, keep_empty=is_root, declare=not composed)
        if composed or "additionalProperties" in out or "unevaluatedProperties" in out:
            return
        if not _is_object(out):  # a plain reference: its target is closed already, unless it is shared
            target = resolve_pointer(self.root, node["$ref"])
            if target is not None and id(target) in self.shared:
                out["unevaluatedProperties"] = False
        elif self._adds_properties(node, set()):
            if self._is_mixed(node):  # else the branches describe the object alone and are closed one by one
                out["unevaluatedProperties"] = False
        else:
            bare = not is_root and not properties and "patternProperties" not in out
            out["additionalProperties"] = bare and "properties" not in out


def _is_object(schema: Schema) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def _arrange_required(out: Schema, properties: Schema, *, keep_empty: bool, declare: bool) -> None:
    """Leave defaulted fields out of ``required``, drop repetitions, and declare what is required."""
    required = [
        name
        for name in dict.fromkeys(n for n in out.get("required") or () if isinstance(n, str))
        if not (isinstance(properties.get(name), dict) and "default" in properties[name])
    ]
    if declare and not any(key in out for key in IN_PLACE):
        for name in required:  # a closed object could never hold it otherwise
            properties.setdefault(name, {})
    if required or keep_empty:
        out["required"] = required
    else:
        out.pop("required", None)


def _arrange_items(out: Schema) -> None:
    """Write an array of drafts before 2020-12 (``items`` as a list) the present way."""
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")


def _untitled(node: Schema) -> Schema:
    out = map_children(node, lambda _, child: _untitled(child))
    out.pop("title", None)
    return out


__all__ = [
    "canonical_schema",
    "check_schema",
    "encode_tools",
    "lower_schema",
    "openai_tools",
    "strict_problems",
]
