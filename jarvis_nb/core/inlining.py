"""Inlining references: llama.cpp, Ollama and Gemini mishandle ``$ref``, so only recursion keeps one."""

from __future__ import annotations

import re

from jarvis_nb.core.rewrites import simplify
from jarvis_nb.core.subschemas import ANNOTATIONS, Schema, map_children, resolve_pointer, walk

MAX_SCHEMAS = 5_000
"""Schemas an inlined form may have; then references stay: what is used twice doubles at every level."""
MAX_DEPTH = 32
"""Levels of schemas inside schemas below which references stay."""
DROPPED = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "title", "discriminator"})


def inlined(schema: Schema) -> Schema:
    """Return the schema with its references inlined and every part simplified.

    A recursive definition is inlined once; where it refers to itself the reference stays and its definition
    stands in ``$defs``. References that cannot be resolved stay as they are.

    Example:
        >>> inlined({"properties": {"c": {"$ref": "#/$defs/Colour", "default": "red"}},
        ...          "$defs": {"Colour": {"type": "string", "enum": ["red", "blue"]}}})
        {'properties': {'c': {'type': 'string', 'enum': ['red', 'blue'], 'default': 'red'}}}
    """
    return _Inlining(schema).run()


class _Inlining:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.left = MAX_SCHEMAS
        self.names: dict[int, str] = {}
        """Definitions that stay referred to, by identity, with their names in the result."""
        self.todo: list[tuple[str, Schema]] = []
        self.recursive = self._recursive()

    def run(self) -> Schema:
        # A root that is itself a definition (a recursive model) has been unfolded once already.
        unfolded = any(t.get("properties") == self.root.get("properties") for t in self.recursive.values())
        out = self.lower(self.root, 0, unfolding=unfolded)
        definitions: Schema = {}
        while self.todo:
            name, target = self.todo.pop(0)
            definitions[name] = self.lower(target, 0, unfolding=True)
        return {**out, "$defs": definitions} if definitions else out

    def _recursive(self) -> dict[int, Schema]:
        """Find the definitions that contain themselves, over any number of references."""
        targets = {id(self.root): self.root}
        edges: dict[int, set[int]] = {}
        todo = [self.root]
        while todo:
            node = todo.pop()
            edges[id(node)] = set()
            for part in walk({k: v for k, v in node.items() if k not in ("$defs", "definitions")}):
                target = resolve_pointer(self.root, part.get("$ref"))
                if target is not None:
                    edges[id(node)].add(id(target))
                    if id(target) not in targets:
                        targets[id(target)] = target
                        todo.append(target)
        return {key: target for key, target in targets.items() if _reaches(key, edges)}

    def lower(self, node: Schema, depth: int, *, unfolding: bool) -> Schema:
        """Lower one schema; ``unfolding`` says that it stands inside a recursive definition."""
        self.left -= 1
        target = resolve_pointer(self.root, node.get("$ref"))
        if target is None:
            kept = {k: v for k, v in node.items() if k not in DROPPED}
            return simplify(map_children(kept, lambda _, c: self.lower(c, depth + 1, unfolding=unfolding)))
        beside = {k: v for k, v in node.items() if k != "$ref"}
        rest = self.lower(beside, depth, unfolding=unfolding) if beside else {}
        recursive = id(target) in self.recursive
        if (recursive and unfolding) or self.left <= 0 or depth >= MAX_DEPTH:
            return {"$ref": self._keep(node["$ref"], target), **rest}
        return _beside(self.lower(target, depth, unfolding=unfolding or recursive), rest)

    def _keep(self, ref: str, target: Schema) -> str:
        if id(target) not in self.names:
            base = re.sub(r"\W+", "_", ref.rsplit("/", 1)[-1]).strip("_") or "schema"
            name, n = base, 1
            while name in self.names.values():
                n += 1
                name = f"{base}_{n}"
            self.names[id(target)] = name
            self.todo.append((name, target))
        return f"#/$defs/{self.names[id(target)]}"


def _reaches(start: int, edges: dict[int, set[int]]) -> bool:
    seen: set[int] = set()
    todo = [start]
    while todo:
        for target in edges[todo.pop()] - seen:
            if target == start:
                return True
            seen.add(target)
            todo.append(target)
    return False


def _beside(target: Schema, rest: Schema) -> Schema:
    """Put what stands beside a reference (mostly a description and a default) onto what it refers to."""
    if not rest.keys() - ANNOTATIONS:
        return {**target, **rest}
    return simplify({**rest, "allOf": [target, *rest.get("allOf", ())]})
