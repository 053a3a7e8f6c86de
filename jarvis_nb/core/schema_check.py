"""Judging a schema that came from outside: a source, an MCP server, a file."""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.portable import portable
from jarvis_nb.core.subschemas import IN_PLACE, Schema, children, resolve_pointer, walk

MAX_BYTES = 65_536
"""UTF-8 bytes of one tool's schema as compact JSON."""
MAX_NODES = 20_000
"""Values in it, of any kind."""
MAX_PROPERTIES = 1_000
"""Properties in it, all depths together."""
MAX_IN_PLACE = 1_000
"""Schemas that apply to one and the same instance, references followed."""
FORBIDDEN = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor", "$vocabulary")


def check_schema(schema: Any, owner: str) -> None:
    """Raise unless an untrusted schema can safely be a tool's parameters.

    It has to be an object schema in plain data, valid JSON Schema, within the bounds of this module, and
    its references have to be local JSON pointers to schemas in it that do not run in circles.

    Args:
        schema: What the outside sent.
        owner: Who sent it, for the error, such as ``source 'rates', tool 'exchange_rate'``.

    Raises:
        ToolsetError: ``invalid_schema``; the message starts with the owner.

    Example:
        >>> check_schema({"type": "object", "properties": {"x": {"$ref": "http://evil/x"}}}, "source 'rates'")
        Traceback (most recent call last):
        jarvis_nb.core.errors.ToolsetError: source 'rates': $ref 'http://evil/x' is not local ...
    """
    try:
        _check_size(schema)
        plain = portable(schema, "parameters")
        _check_root(plain)
        _check_bytes(plain)
        _check_references(plain)
        _check_keywords(plain)
    except _Refused as refused:
        raise ToolsetError(
            f"{owner}: {refused}",
            code="invalid_schema",
            value=owner,
            hint="the tool's provider has to mend its schema",
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        message = getattr(error, "message", None) or str(error)
        raise ToolsetError(f"{owner}: {message:.300}", code="invalid_schema", value=owner) from None


class _Refused(Exception):  # noqa: N818 - inside this module only
    pass


def _check_size(schema: Any) -> None:
    """Bound the walk itself: shared and cyclic containers unfold without end."""
    todo, count = [schema], 0
    while todo:
        count += 1
        if count > MAX_NODES:
            raise _Refused(f"the schema holds more than {MAX_NODES} values")
        value = todo.pop()
        if isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list | tuple):
            todo.extend(value)


def _check_root(plain: Any) -> None:
    if not isinstance(plain, dict):
        raise _Refused(f"the schema is {plain!r:.100}, not an object")
    root: Schema | None = plain
    for _ in range(10):
        if root is None or "$ref" not in root:
            break
        root = resolve_pointer(plain, root["$ref"])
    if root is None or root.get("type") != "object":
        raise _Refused('the root of the schema is not {"type": "object", …}')


def _check_bytes(plain: Schema) -> None:
    from jarvis_nb.core.types import dumps

    size = len(dumps(plain).encode())
    if size > MAX_BYTES:
        raise _Refused(f"the schema has {size:,} bytes, at most {MAX_BYTES:,} are taken")
    properties = sum(
        len(node["properties"]) for node in walk(plain) if isinstance(node.get("properties"), dict)
    )
    if properties > MAX_PROPERTIES:
        raise _Refused(f"the schema has {properties:,} properties, at most {MAX_PROPERTIES:,} are taken")


def _check_references(plain: Schema) -> None:
    nodes = {id(node) for node in walk(plain)}
    for node in walk(plain):
        for keyword in FORBIDDEN:
            if keyword in node:
                raise _Refused(f"the keyword {keyword} is not taken")
        if "$id" in node and node is not plain:
            raise _Refused("an $id inside the schema would change what its references mean")
        if "$ref" not in node:
            continue
        ref = node["$ref"]
        target = resolve_pointer(plain, ref)
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise _Refused(f"$ref {ref!r:.100} is not local")
        if target is None or id(target) not in nodes:
            raise _Refused(f"$ref {ref!r:.100} points at no schema in it")
    sizes: dict[int, int] = {}
    for node in walk(plain):
        _in_place_size(plain, node, sizes, set())


def _in_place_size(plain: Schema, node: Schema, sizes: dict[int, int], path: set[int]) -> int:
    """Count the schemas that judge one instance of ``node``: a validator visits each."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in path:
        raise _Refused("a $ref leads back to itself without going into the value")
    path.add(id(node))
    inner = [child for keyword, child in children(node) if keyword in IN_PLACE]
    target = resolve_pointer(plain, node.get("$ref"))
    inner.extend([] if target is None else [target])
    size = 1 + sum(_in_place_size(plain, child, sizes, path) for child in inner)
    path.discard(id(node))
    if size > MAX_IN_PLACE:
        raise _Refused(f"more than {MAX_IN_PLACE:,} schemas apply to one value")
    sizes[id(node)] = size
    return size


def _check_keywords(plain: Schema) -> None:
    from jsonschema import Draft202012Validator, SchemaError, validators

    validator = validators.validator_for(plain, default=Draft202012Validator)
    try:
        validator.check_schema(plain)
    except SchemaError as error:
        raise _Refused(f"not valid JSON Schema at {error.json_path}: {error.message:.200}") from None
