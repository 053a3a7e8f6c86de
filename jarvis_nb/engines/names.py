"""Ids and names of calls: unique, legal on the wire, and never guessed."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator
from itertools import count

WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI takes as a function's name; a server may refuse the whole conversation over another."""

_MOST = 64


def fresh_ids(taken: Container[str]) -> Iterator[str]:
    """Yield ``call_N`` with the lowest free N, then the next, and so on.

    Example:
        >>> fresh = fresh_ids({"call_2"})
        >>> next(fresh), next(fresh)
        ('call_1', 'call_3')
    """
    return (name for n in count(1) if (name := f"call_{n}") not in taken)


def wire_name(name: str, known: Collection[str] = ()) -> str:
    """Return a name that may be sent: ``name`` itself, or a legal one that is no tool's.

    Example:
        >>> wire_name("get weather!"), wire_name("get weather", ["get_weather"])
        ('get_weather_', 'get_weather_2')
    """
    if WIRE_NAME.fullmatch(name):
        return name
    legal = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_MOST] or "unnamed"
    if legal not in known:
        return legal
    return next(other for n in count(2) if (other := f"{legal[: _MOST - 8]}_{n}") not in known)


def find_name(name: str, known: Collection[str]) -> str | None:
    """Return the tool that a name means: itself, or its last segment where only one tool fits.

    Models put the namespace of their prompt before a name: ``functions.get_weather``,
    ``default_api:get_weather``.

    Example:
        >>> find_name("functions.get_weather", ["get_weather"]), find_name("get_wether", ["get_weather"])
        ('get_weather', None)
    """
    if name in known:
        return name
    segment = _last(name)
    fits = [k for k in known if segment and _last(k) == segment]
    return fits[0] if len(fits) == 1 else None


def _last(name: str) -> str:
    return re.split(r"[./:]", name.strip())[-1]
