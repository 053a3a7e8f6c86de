"""Schemas as data: the canonical form of a tool's parameters.

Three steps, each a pure function: :func:`check_schema` judges what came from outside,
:func:`canonical_schema` makes the one form a definition holds, and :func:`lower_schema` turns that into
what a provider takes.
"""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.lowering import encode_tools, lower_schema, openai_tools, strict_problems
from jarvis_nb.core.portable import portable
from jarvis_nb.core.schema_check import check_schema, schema_problem
from jarvis_nb.core.subschemas import IN_PLACE, Schema, children, is_object, map_children, resolve_pointer

__all__ = [
    "canonical_schema",
    "check_schema",
    "encode_tools",
    "lower_schema",
    "openai_tools",
    "schema_problem",
    "strict_problems",
]

UNTOUCHED = frozenset({"not", "if", "contains"})
"""Keywords under which a closed object would change what matches, not what is refused."""
NAMES_PROPERTIES = ("properties", "patternProperties", "additionalProperties")


def canonical_schema(schema: Any) -> Schema:
    """Return the canonical, strict form of a tool's parameters. Pure, deterministic, idempotent.

    * The root is an object with ``properties`` and ``required``; an empty schema is an object without fields.
    * Objects are closed (``additionalProperties: false``) at every depth, unless the schema says otherwise:
      a ``dict[str, int]`` keeps its ``additionalProperties``, and an object below the root that names no
      property at all stays free. Where several schemas describe one object together (``allOf``, or ``anyOf``
      beside ``properties``), ``unevaluatedProperties: false`` closes the whole.
    * A field with a default is not in ``required``.
    * ``title`` and ``$schema`` are dropped. References stay as they are, so that recursion stays expressible.

    Args:
        schema: JSON Schema as Python data; None counts as empty.

    Raises:
        NotPortable: Something in it is not plain data; the error has its path.
        ToolsetError: ``invalid_schema``: the root is not an object schema.

    Example:
        >>> canonical_schema({"properties": {"n": {"type": "integer", "title": "N", "default": 1}}})["required"]
        []
        >>> canonical_schema(None)
        {'type': 'object', 'properties': {}, 'required': [], 'additionalProperties': False}
    """
    root = _object_root(portable({} if schema is None else schema, "parameters"))
    return _Closing(root).close(root, composed=False, is_root=True)


def _object_root(root: Any) -> Schema:
    """Return the root with its own reference followed, and with ``type``, ``properties``, ``required``."""
    seen: list[Any] = []
    while isinstance(root, dict) and "$ref" in root:
        target = resolve_pointer(root, root["$ref"])
        if target is None or root["$ref"] in seen:
            break
        seen.append(root["$ref"])
        root = {**target, **{k: v for k, v in root.items() if k != "$ref"}}
    if (
        not isinstance(root, dict)
        or "$ref" in root
        or root.get("type", "object") not in ("object", ["object"])
    ):
        raise ToolsetError(
            f"a tool's parameters are an object schema, got {root!r:.200}",
            code="invalid_schema",
            value=root,
            hint='its root is {"type": "object", "properties": {…}}',
        )
    head: Schema = {"type": "object", "properties": {}, "required": []}
    return head | {k: v for k, v in root.items() if k != "type"}


class _Closing:
    """Closes the objects of one schema.

    A schema is *composed* when others describe the same instance beside it: closing it alone would refuse
    what the others declare. A definition that a composed place refers to stays open itself (``shared``), and
    each plain reference to it closes it instead.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.shared = self._find_shared()

    def _find_shared(self) -> set[int]:
        shared: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        todo = [(self.root, False)]
        while todo:
            node, composed = todo.pop()
            if (id(node), composed) in seen:
                continue
            seen.add((id(node), composed))
            mixed = composed or _is_mixed(node)
            target = resolve_pointer(self.root, node.get("$ref"))
            if target is not None:
                todo.append((target, mixed))
                if mixed:
                    shared.add(id(target))
            todo.extend(
                (c, mixed and keyword in IN_PLACE)
                for keyword, c in children(node)
                if keyword not in UNTOUCHED
            )
        return shared

    def _adds_properties(self, node: Schema) -> bool:
        """Return whether schemas that apply in place name properties beside those of ``node`` itself."""
        seen = {id(node)}
        todo = [node]
        while todo:
            part = todo.pop()
            if part is not node and any(key in part for key in NAMES_PROPERTIES):
                return True
            inner = [child for keyword, child in children(part) if keyword in IN_PLACE]
            target = resolve_pointer(self.root, part.get("$ref"))
            inner.extend([] if target is None else [target])
            todo.extend(child for child in inner if id(child) not in seen)
            seen.update(map(id, inner))
        return False

    def close(self, node: Schema, *, composed: bool, is_root: bool = False) -> Schema:
        """Return ``node`` closed, with every schema inside it."""
        composed = composed or id(node) in self.shared
        mixed = composed or _is_mixed(node)

        def inside(keyword: str, child: Schema) -> Schema:
            if keyword in UNTOUCHED:
                return _untitled(child)
            return self.close(child, composed=mixed and keyword in IN_PLACE)

        out = map_children({k: v for k, v in node.items() if k not in ("title", "$schema")}, inside)
        _arrange_items(out)
        if isinstance(out.get("properties"), dict):
            _arrange_required(out, keep_empty=is_root, declare=not composed)
        if not composed and "additionalProperties" not in out and "unevaluatedProperties" not in out:
            self._close_object(node, out, is_root=is_root)
        return out

    def _close_object(self, node: Schema, out: Schema, *, is_root: bool) -> None:
        adds = self._adds_properties(node)
        if adds and _is_mixed(node):
            out["unevaluatedProperties"] = False
        elif is_object(out) and not adds:
            out["additionalProperties"] = not is_root and not {"properties", "patternProperties"} & out.keys()
        else:  # what applies here describes the object alone and is closed there, unless it is shared
            target = resolve_pointer(self.root, node.get("$ref"))
            if target is not None and id(target) in self.shared:
                out["unevaluatedProperties"] = False


def _is_mixed(node: Schema) -> bool:
    """Return whether more than one part of ``node`` describes the instance at hand."""
    parts = sum(key in IN_PLACE for key in node)
    own = "properties" in node or "patternProperties" in node
    all_of = node.get("allOf")
    return parts + own > 1 or (isinstance(all_of, list) and len(all_of) > 1)


def _arrange_required(out: Schema, *, keep_empty: bool, declare: bool) -> None:
    """Leave defaulted fields out of ``required``, drop repetitions, and declare what is required."""
    properties = out["properties"]
    given = out.get("required")
    names = dict.fromkeys(
        name for name in (given if isinstance(given, list) else ()) if isinstance(name, str)
    )
    required = [name for name in names if not _has_default(properties.get(name))]
    if declare and not any(key in out for key in IN_PLACE):
        for name in required:  # a closed object could never hold it otherwise
            properties.setdefault(name, {})
    if required or keep_empty:
        out["required"] = required
    else:
        out.pop("required", None)


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _arrange_items(out: Schema) -> None:
    """Write a tuple of the drafts before 2020-12 (``items`` as a list) the present way."""
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")


def _untitled(node: Schema) -> Schema:
    out = map_children(node, lambda _, child: _untitled(child))
    out.pop("title", None)
    return out
