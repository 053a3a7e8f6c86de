"""Judging a schema that came from outside: a source, an MCP server, a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urljoin

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.portable import portable
from jarvis_nb.core.subschemas import IN_PLACE, Schema, children, resolve_pointer, walk

MAX_BYTES = 65_536
"""UTF-8 bytes of one tool's schema as compact JSON."""
MAX_VALUES = 20_000
"""Values in it, of any kind."""
MAX_PROPERTIES = 1_000
"""Properties in it, all depths together."""
MAX_IN_PLACE = 1_000
"""Schemas that apply to one and the same value, references followed."""
MAX_CHAIN = 64
"""References that lead from one to the next without going into the value."""
FORBIDDEN = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor", "$vocabulary")


def check_schema(schema: Any, owner: str) -> None:
    """Raise unless an untrusted schema can safely be a tool's parameters.

    It has to be an object schema in plain data, valid JSON Schema (2020-12; the older form of tuples is
    taken), within the bounds of this module, and its references local JSON pointers to schemas in it that
    do not run in circles. The check takes time in proportion to those bounds, whatever it is given.

    Args:
        schema: What the outside sent.
        owner: Who sent it, for the error, such as ``the tool 'exchange_rate' of rates``.

    Raises:
        ToolsetError: ``invalid_schema``; the message starts with the owner.

    Example:
        >>> check_schema({"type": "object", "properties": {"x": {"$ref": "http://a/b"}}}, "the tool 'x'")
        Traceback (most recent call last):
        jarvis_nb.core.errors.ToolsetError: the tool 'x': $ref 'http://a/b' is not local [invalid_schema]
    """
    try:
        _check_size(schema)
        plain = portable(schema, "the schema")
        _check_root(plain)
        _check_bytes(plain)
        _check_references(plain)
        _check_keywords(plain)
    except (TypeError, ValueError, RecursionError) as error:
        message = getattr(error, "message", None) or str(error)
        raise ToolsetError(f"{owner}: {message:.300}", code="invalid_schema", value=owner) from None


def _check_size(schema: Any) -> None:
    """Bound the walk itself: containers that are shared or cyclic unfold without end."""
    todo, count, characters = [schema], 0, 0
    while todo:
        value = todo.pop()
        count += 1
        if isinstance(value, dict):
            todo.extend(value.values())
            characters += sum(len(key) for key in value if isinstance(key, str))
        elif isinstance(value, list | tuple):
            todo.extend(value)
        elif isinstance(value, str):
            characters += len(value)
        if count + len(todo) > MAX_VALUES:
            raise ValueError(f"the schema holds more than {MAX_VALUES:,} values")
        if characters > MAX_BYTES:
            raise ValueError(f"the schema has more than {MAX_BYTES:,} characters")


def _check_root(plain: Any) -> None:
    root: Any = plain
    for _ in range(MAX_CHAIN):
        if not isinstance(root, dict) or "$ref" not in root:
            break
        root = resolve_pointer(plain, root["$ref"])
    if not isinstance(root, dict) or root.get("type") != "object":
        raise ValueError('the root of the schema is not {"type": "object", …}')


def _check_bytes(plain: Schema) -> None:
    from jarvis_nb.core.types import dumps

    size = len(dumps(plain).encode())
    if size > MAX_BYTES:
        raise ValueError(f"the schema has {size:,} bytes, at most {MAX_BYTES:,} are taken")
    maps = [node["properties"] for node in walk(plain) if isinstance(node.get("properties"), dict)]
    properties = sum(map(len, maps))
    if properties > MAX_PROPERTIES:
        raise ValueError(f"the schema has {properties:,} properties, at most {MAX_PROPERTIES:,} are taken")


def _check_references(plain: Schema) -> None:
    nodes = {id(node): node for node in walk(plain)}
    for node in nodes.values():
        _check_keys(node, is_root=node is plain)
        if "$ref" in node:
            target = resolve_pointer(plain, node["$ref"])
            if target is None or id(target) not in nodes:
                raise ValueError(f"$ref {node['$ref']!r:.100} points at no schema in it")
    sizes: dict[int, int] = {}
    for node in nodes.values():
        _in_place_size(plain, node, sizes, [])


def _check_keys(node: Schema, *, is_root: bool) -> None:
    forbidden = [keyword for keyword in FORBIDDEN if keyword in node]
    if forbidden:
        raise ValueError(f"the keyword {forbidden[0]} is not taken")
    if "$id" in node and not is_root:
        raise ValueError("an $id inside the schema would change what its references mean")
    ref = node.get("$ref", "#")
    if not isinstance(ref, str) or not ref.startswith("#"):
        raise ValueError(f"$ref {ref!r:.100} is not local")


def _in_place_size(plain: Schema, node: Schema, sizes: dict[int, int], path: list[int]) -> int:
    """Count the schemas that judge one and the same value: a validator visits each."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in path:
        raise ValueError("a $ref leads back to itself without going into the value")
    if len(path) > MAX_CHAIN:
        raise ValueError(f"more than {MAX_CHAIN} references lead from one to the next")
    inner = [child for keyword, child in children(node) if keyword in IN_PLACE]
    target = resolve_pointer(plain, node.get("$ref"))
    inner.extend([] if target is None else [target])
    path.append(id(node))
    sizes[id(node)] = size = 1 + sum(_in_place_size(plain, child, sizes, path) for child in inner)
    path.pop()
    if size > MAX_IN_PLACE:
        raise ValueError(f"more than {MAX_IN_PLACE:,} schemas apply to one value")
    return size


def _check_keywords(plain: Schema) -> None:
    problem = schema_problem(plain)
    if problem:
        raise ValueError(problem)


def schema_problem(schema: Schema) -> str | None:
    """Return the first thing in a schema that is not JSON Schema, with its path, or None.

    Example:
        >>> schema_problem({"properties": {"n": {"minimum": "1"}}})
        "not valid JSON Schema at $.properties.n.minimum: '1' is not of type 'number'"
    """
    if _is_plain(schema):
        return None
    error = next(_metaschema().iter_errors(schema), None)
    return None if error is None else f"not valid JSON Schema at {error.json_path}: {error.message:.200}"


def _is_plain(schema: Any, depth: int = 0) -> bool:
    """Return whether the schema is what most tools have: valid at a glance, without importing jsonschema."""
    if type(schema) is not dict or depth > MAX_GLANCE:
        return False
    for keyword, value in schema.items():
        judge = _GLANCE.get(keyword)
        if judge is None or not judge(value, depth + 1):
            return False
    return True


def _are_plain(schemas: Any, depth: int) -> bool:
    return type(schemas) is list and schemas != [] and all(_is_plain(one, depth) for one in schemas)


def _is_map(schemas: Any, depth: int) -> bool:
    return type(schemas) is dict and all(_is_plain(one, depth) for one in schemas.values())


def _is_text(value: Any, _: int) -> bool:
    return type(value) is str


def _is_number(value: Any, _: int) -> bool:
    return type(value) in (int, float)


def _are_names(value: Any, _: int) -> bool:
    return type(value) is list and all(type(one) is str for one in value) and len(set(value)) == len(value)


MAX_GLANCE = 16
"""Schemas inside one another that are judged at a glance."""
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_GLANCE: dict[str, Callable[[Any, int], bool]] = {
    "type": lambda value, _: type(value) is str and value in _TYPES,
    "title": _is_text,
    "description": _is_text,
    "format": _is_text,
    "default": lambda _value, _depth: True,
    "const": lambda _value, _depth: True,
    "enum": lambda value, _: type(value) is list,
    "minimum": _is_number,
    "maximum": _is_number,
    "properties": _is_map,
    "required": _are_names,
    "additionalProperties": lambda value, depth: type(value) is bool or _is_plain(value, depth),
    "items": _is_plain,
    "anyOf": _are_plain,
}
"""Keywords that are judged at a glance, and when their value is right; any other is left to jsonschema."""


@cache
def _metaschema() -> Any:
    """Return a validator for schemas: the library's own metaschema without its dynamic references.

    ``Draft202012Validator.check_schema`` resolves a dynamic reference at every step: ten times slower, which
    is seconds for a big schema.
    """
    from jsonschema import Draft202012Validator
    from jsonschema_specifications import REGISTRY

    meta: Any = Draft202012Validator.META_SCHEMA
    flat: Schema = {"type": ["object", "boolean"], "properties": {}, "$defs": {}}
    for part in meta["allOf"]:
        vocabulary: Any = REGISTRY.contents(urljoin(meta["$id"], part["$ref"]))
        flat["properties"] |= vocabulary.get("properties", {})
        flat["$defs"] |= vocabulary.get("$defs", {})
    flat = _without_dynamic(flat)
    flat["properties"]["items"] = {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/schemaArray"}]}
    return Draft202012Validator(flat)


def _without_dynamic(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("$dynamicRef") == "#meta":
            return {"$ref": "#"}
        return {key: _without_dynamic(item) for key, item in value.items()}
    return [_without_dynamic(item) for item in value] if isinstance(value, list) else value
