"""Arguments of a call against a JSON Schema: what is lossless is mended, the rest is named field by field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any

from jarvis_nb.core.errors import InvalidArguments
from jarvis_nb.core.subschemas import Schema, resolve_pointer

MOST_PROBLEMS = 20
"""Problems that are told; a model mends a few at a time."""
MAX_DEPTH = 64
_KEPT = 1024

_TYPES: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}
_NUMBER = re.compile(r"[+-]?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?", re.ASCII)


def validate_arguments(parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that fit the schema: coerced where that loses nothing, defaults filled in.

    Text that writes a number is taken for one where the schema wants a number, and the words true and false
    for a boolean. A null for a field that may be left out and takes no null means "use the default": models
    send it where a provider's strict mode wants every field. Extra fields are refused where the schema is
    closed, as canonical ones are.

    A schema is never worth a hang: patterns run in linear time (one that needs look-around or
    back-references is not checked), the work is bounded, and remote references are not followed.

    Args:
        parameters: JSON Schema of an object. It is remembered by identity: do not change it later.
        arguments: What the model sent. Not changed.

    Raises:
        InvalidArguments: Lists every problem with the path of its field.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"default": 1}}}
        >>> validate_arguments(schema, {"a": "2"})
        {'a': 2, 'b': 1}
    """
    checker = _checkers.get(id(parameters))
    if checker is None or checker.schema is not parameters:
        if len(_checkers) >= _KEPT:
            _checkers.clear()
        checker = _checkers[id(parameters)] = _Checker(parameters)
    return checker.check(arguments)


class _Checker:
    """One schema, prepared."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator: Any = None
        self._null: dict[int, bool] = {}
        """Whether a schema takes null, by identity: each is judged once, however often it is referred to."""
        self._flat = _flat_rules(schema)
        self._required: frozenset[str] = frozenset()
        self._defaults: dict[str, Any] = {}
        if self._flat is not None:
            self._required = frozenset(schema.get("required") or ())
            fields = _properties(schema).items()
            self._defaults = {name: part["default"] for name, part in fields if "default" in part}

    def check(self, arguments: Any) -> dict[str, Any]:
        if self._flat is not None and type(arguments) is dict and self._fits(self._flat, arguments):
            missing = {name: value for name, value in self._defaults.items() if name not in arguments}
            return {**arguments, **deepcopy(missing)} if missing else arguments
        if not isinstance(arguments, dict):
            raise InvalidArguments([{"field": "", "message": f"expected an object, got {arguments!r:.100}"}])
        return self._check_fully(arguments)

    def _fits(self, rules: dict[str, tuple[frozenset[type], Any]], arguments: dict[str, Any]) -> bool:
        """Whether plain values stand in plain fields, as they nearly always do: no validator is needed."""
        for name, value in arguments.items():
            rule = rules.get(name)
            if rule is None or type(value) not in rule[0] or (rule[1] is not None and value not in rule[1]):
                return False
        return self._required <= arguments.keys()

    def _check_fully(self, arguments: dict[str, Any]) -> dict[str, Any]:
        from jarvis_nb.tools.json_schema import find_errors, make_validator, problems

        cause: Exception | None = None
        try:
            if self._validator is None:
                self._validator = make_validator(self.schema)
            value = self._settle(self.schema, arguments, 0)
            errors = find_errors(self._validator, value)
            if errors and _coerce(value, errors):
                errors = find_errors(self._validator, value)
            if not errors:
                return self._fill(self.schema, value, 0)
            found = problems(errors, MOST_PROBLEMS)
        except RecursionError as error:
            found, cause = [{"field": "", "message": "nested too deeply to be checked"}], error
        except Exception as error:  # whatever an unusable schema makes the validator raise
            message = f"cannot be checked against the tool's schema: {error!s:.200}"
            found, cause = [{"field": "", "message": message}], error
        raise InvalidArguments(found) from cause

    def _settle(self, schema: Any, value: Any, depth: int) -> Any:
        """Return a copy without the nulls that stand for a default, whole floats as integers."""
        schema = self._deref(schema)
        if depth > MAX_DEPTH:
            raise RecursionError
        if isinstance(value, dict):
            inner = _properties(schema)
            required: Sequence[str] = schema.get("required") or ()
            return {
                name: self._settle(inner.get(name), item, depth + 1)
                for name, item in value.items()
                if not (
                    item is None
                    and name in inner
                    and name not in required
                    and not self._takes_null(inner[name])
                )
            }
        if isinstance(value, list):
            return [self._settle(schema.get("items"), item, depth + 1) for item in value]
        if type(value) is float and _wants(schema, "integer") and value.is_integer():
            return int(value)
        return value

    def _fill(self, schema: Any, value: Any, depth: int) -> Any:
        """Return the value with the defaults of absent fields."""
        schema = self._deref(schema)
        if isinstance(value, dict):
            inner = _properties(schema)
            out = {name: self._fill(inner.get(name), item, depth + 1) for name, item in value.items()}
            for name, part in inner.items():
                if name not in out and isinstance(part, dict) and "default" in part:
                    out[name] = deepcopy(part["default"])
            return out
        if isinstance(value, list):
            return [self._fill(schema.get("items"), item, depth + 1) for item in value]
        return value

    def _deref(self, schema: Any) -> Schema:
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return {}
            target = resolve_pointer(self.schema, schema.get("$ref"))
            if target is None:
                return schema
            schema = target
        return {}

    def _takes_null(self, schema: Any) -> bool:
        schema = self._deref(schema)
        known = self._null.get(id(schema))
        if known is None:
            self._null[id(schema)] = True  # a schema that leads back to itself adds nothing
            known = self._null[id(schema)] = self._judge_null(schema)
        return known

    def _judge_null(self, schema: Schema) -> bool:
        if ("const" in schema and schema["const"] is not None) or None not in schema.get("enum", [None]):
            return False
        if "type" in schema and not _wants(schema, "null"):
            return False
        either = [schema[keyword] for keyword in ("anyOf", "oneOf") if schema.get(keyword)]
        return all(any(self._takes_null(part) for part in parts) for parts in either) and all(
            self._takes_null(part) for part in schema.get("allOf") or ()
        )


_checkers: dict[int, _Checker] = {}


def _properties(schema: Schema) -> dict[str, Any]:
    inner = schema.get("properties")
    return inner if isinstance(inner, dict) else {}


def _wants(schema: Schema, kind: str) -> bool:
    types = schema.get("type")
    return types == kind or (isinstance(types, list) and kind in types)


def _flat_rules(schema: Schema) -> dict[str, tuple[frozenset[type], Any]] | None:
    """Return name to (types, allowed words) where every field is plain, else None."""
    head = {"type", "properties", "required", "additionalProperties", "description", "title", "$schema"}
    required = schema.get("required", ())
    if schema.get("type") != "object" or schema.keys() - head or not isinstance(required, list | tuple):
        return None
    rules: dict[str, tuple[frozenset[type], Any]] = {}
    for name, part in _properties(schema).items():
        if not isinstance(part, dict) or part.keys() - {
            "type",
            "description",
            "title",
            "default",
            "examples",
            "enum",
        }:
            return None
        words: Any = part.get("enum")
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            return None
        if words is not None and (kind != "string" or not all(isinstance(word, str) for word in words)):
            return None
        rules[name] = (_TYPES[kind], None if words is None else frozenset(words))
    return rules


def _coerce(value: Any, errors: Iterable[Any]) -> bool:
    """Mend in place what only has the wrong type and can change it without loss; return whether any was."""
    mended = False
    for error in errors:
        for leaf in _type_errors(error):
            path = list(leaf.absolute_path)
            if path:
                _put(value, path, _lossless(leaf.instance, leaf.validator_value))
                mended = True
    return mended


def _type_errors(error: Any) -> list[Any]:
    """Return the type errors to mend so that ``error`` goes away, or none."""
    if error.validator == "type":
        return [error] if _lossless(error.instance, error.validator_value) is not None else []
    branches: dict[Any, list[Any]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    for branch in branches.values():
        found = [_type_errors(inner) for inner in branch]
        if all(found):
            return [leaf for leaves in found for leaf in leaves]
    return []


def _put(value: Any, path: list[Any], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def _lossless(value: Any, types: Any) -> Any:
    """Return the value as one of the JSON types, or None where that would lose or guess something."""
    if not isinstance(value, str):
        return None
    types = [types] if isinstance(types, str) else types
    text = value.strip()
    if "boolean" in types and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if not ({"integer", "number"} & set(types)) or not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text)
    number = float(text)
    if not isfinite(number):
        return None
    if number.is_integer():
        return int(number)
    return number if "number" in types else None
