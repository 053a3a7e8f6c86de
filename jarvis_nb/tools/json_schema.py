"""The jsonschema library made safe for schemas and arguments that nobody vouches for."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from jarvis_nb.core.subschemas import Schema, walk
from jarvis_nb.core.types import dumps

log = logging.getLogger("jarvis_nb.tools")

MAX_STEPS = 60_000
"""Keywords looked at for one call, all branches together; those that lead on to other schemas count more."""
_COSTLY = frozenset({"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "unevaluatedProperties"})
MAX_ERRORS = 100
MAX_MESSAGE = 200
MAX_SHOWN = 80

_steps: ContextVar[list[int]] = ContextVar("jarvis_nb_validation_steps")


class TooMuch(Exception):  # noqa: N818 - a limit, not a fault
    """A schema that multiplies itself: checking it would take for ever."""


def make_validator(schema: Schema) -> Any:
    """Return a validator for a schema: 2020-12, without remote references, hangs and format checks."""
    from referencing import Registry

    has_patterns = any("patternProperties" in part for part in walk(schema))
    # Without a registry of its own, jsonschema fetches remote references from the network.
    return _validator_class(has_patterns)(schema, registry=Registry())


def find_errors(validator: Any, value: Any) -> list[Any]:
    """Return the validation errors, at most :data:`MAX_ERRORS`.

    Raises:
        TooMuch: More steps were needed than :data:`MAX_STEPS`.
    """
    token = _steps.set([MAX_STEPS])
    try:
        return list(islice(validator.iter_errors(value), MAX_ERRORS))
    finally:
        _steps.reset(token)


def problems(errors: Sequence[Any], most: int) -> list[dict[str, str]]:
    """Return what is wrong, a field and a sentence each."""
    found: list[dict[str, str]] = []
    for error in errors:
        for field, message in _explain(error):
            if len(message) > MAX_MESSAGE:
                message = message[: MAX_MESSAGE - 1] + "…"  # noqa: PLW2901 - the same message, shorter
            problem = {"field": field[:MAX_MESSAGE], "message": message}
            if problem not in found:
                found.append(problem)
    if len(found) > most:
        found[most:] = [{"field": "", "message": f"and {len(found) - most} more"}]
    return found


def _explain(error: Any) -> Iterator[tuple[str, str]]:
    from jsonschema.exceptions import best_match

    if error.context:
        error = best_match([error])
    path = field_path(error.absolute_path)
    if error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                yield field_path([*error.absolute_path, name]), "is missing"
    elif error.validator == "additionalProperties" and error.validator_value is False:
        known = list(error.schema.get("properties") or ())
        valid = f"; valid: {', '.join(map(str, known[:20]))}" if known else ""
        for name in error.instance:
            if name not in known and not any(
                matches(p, name) for p in error.schema.get("patternProperties") or ()
            ):
                yield field_path([*error.absolute_path, name]), f"is not expected{valid}"
    elif error.validator == "type":
        types = error.validator_value
        wanted = types if isinstance(types, str) else " or ".join(map(str, types))
        yield path, f"expected {wanted}, got {_shown(error.instance)}"
    elif error.validator in ("enum", "const"):
        values = error.validator_value if error.validator == "enum" else [error.validator_value]
        yield path, f"expected one of {_shown(values)}, got {_shown(error.instance)}"
    else:
        yield path, error.message


def _shown(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def field_path(parts: Sequence[Any]) -> str:
    """Return a path as people write it.

    Example:
        >>> field_path(["orders", 0, "id"])
        'orders[0].id'
    """
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@lru_cache(maxsize=512)
def _search(pattern: str) -> Callable[[str], bool] | None:
    """Return a linear-time search for a pattern, or None where there is none.

    Python's ``re`` backtracks: ``(a+)+$`` on thirty letters takes minutes. The Rust engine inside pydantic
    does not, and so knows neither look-around nor back-references.
    """
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        validator = SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
        )
    except SchemaError:
        log.debug("the pattern %.200r cannot be checked in linear time: it is not checked", pattern)
        return None
    return validator.isinstance_python


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; True for a pattern that cannot be checked."""
    search = _search(pattern)
    return True if search is None else search(text)


def _pattern(_: Any, pattern: str, value: Any, __: Schema) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], value: Any, _: Schema) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name, item in value.items():
                if matches(pattern, name):
                    yield from validator.descend(item, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, rest: Any, value: Any, schema: Schema) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    patterns = schema.get("patternProperties") or ()
    known = schema.get("properties") or ()
    extra = [name for name in value if name not in known and not any(matches(p, name) for p in patterns)]
    if rest is False and extra:
        yield ValidationError(f"{', '.join(map(repr, extra))} not expected")
    elif isinstance(rest, dict):
        for name in extra:
            yield from validator.descend(value[name], rest, path=name)


def _unique_items(_: Any, wanted: Any, value: Any, __: Schema) -> Iterator[Any]:
    """As jsonschema has it, but never comparing each with each."""
    from jsonschema import ValidationError

    if wanted is True and isinstance(value, list):
        written = [json.dumps(_comparable(item), sort_keys=True) for item in value]
        if len(set(written)) < len(written):
            yield ValidationError(f"{value!r:.100} has non-unique elements")


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 1 and 1.0 are one number in JSON
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    return [_comparable(item) for item in value] if isinstance(value, list) else value


def _counted(keyword: str, check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    cost = 5 if keyword in _COSTLY else 1

    def counted(validator: Any, wanted: Any, value: Any, schema: Schema) -> Iterator[Any]:
        left = _steps.get()
        left[0] -= cost + (len(wanted) // 50 if isinstance(wanted, list) else 0)
        if left[0] < 0:
            raise TooMuch(f"more than {MAX_STEPS:,} steps would be needed")
        yield from check(validator, wanted, value, schema) or ()

    return counted


@cache
def _validator_class(has_patterns: bool) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    checks = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    if has_patterns:
        # jsonschema's own would run the patterns through `re`; without it an extra field gets through, no more.
        del checks["unevaluatedProperties"]
    return extend(Draft202012Validator, {name: _counted(name, check) for name, check in checks.items()})
