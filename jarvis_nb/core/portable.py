"""Portable data: what a stored turn may hold, and the secrets it must not."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jarvis_nb.core.errors import InvalidRequest, NotPortable
from jarvis_nb.core.pictured import Pictured

MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Secret(Pictured):
    """A reference to a secret by name; its value never enters a repr, an event or a saved turn.

    Args:
        name: Looked up in the environment, then in the config's ``secrets`` table, when a source runs.

    Example:
        >>> Secret("RATES_TOKEN")
        Secret('RATES_TOKEN')
    """

    name: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def resolve(self, secrets: Mapping[str, str] | None = None) -> str:
        """Return the value.

        Raises:
            InvalidRequest: ``missing_secret``: neither the environment nor the config has it.
        """
        value = os.environ.get(self.name) or (secrets or {}).get(self.name)
        if not value:
            raise InvalidRequest(
                f"the secret {self.name!r} is not set",
                code="missing_secret",
                value=self.name,
                hint=f"set the environment variable {self.name}, or [secrets] {self.name} in the config file",
            )
        return value


def portable(value: Any, path: str = "value", *, secrets: bool = False) -> Any:
    """Return ``value`` as portable data: None, bool, int, finite float, str, list, dict with str keys.

    Tuples become lists. The result shares nothing mutable with the input.

    Args:
        value: What to check.
        path: How errors name the value, such as ``config``.
        secrets: Whether a :class:`Secret` may stand in it (it stays a reference).

    Raises:
        NotPortable: Names the path of the first value that is not plain data.

    Example:
        >>> portable({"base": "USD", "days": (1, 2)})
        {'base': 'USD', 'days': [1, 2]}
    """
    return _portable(value, path, 0, secrets)


def _portable(value: Any, path: str, depth: int, secrets: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # Exact types: a subclass may carry live state, and json would lose it.
    kind = cast("type[Any]", type(value))
    if kind is int or kind is str:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise NotPortable(f"{path} is {value!r}: not a finite number", value=path)
    if depth >= MAX_DEPTH:
        raise NotPortable(f"{path} is nested more than {MAX_DEPTH} deep", value=path)
    if kind is dict:
        return _portable_dict(value, path, depth, secrets)
    if kind is list or kind is tuple:
        return [_portable(v, f"{path}[{i}]", depth + 1, secrets) for i, v in enumerate(value)]
    if secrets and kind is Secret:
        return value
    raise NotPortable(
        f"{path} is a {kind.__name__}: not plain data",
        value=path,
        valid=["None", "bool", "int", "finite float", "str", "list", "dict with str keys"],
    )


def _portable_dict(value: dict[Any, Any], path: str, depth: int, secrets: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise NotPortable(f"{path} has the key {key!r}: keys are strings", value=path)
        out[key] = _portable(item, f"{path}.{key}", depth + 1, secrets)
    return out
