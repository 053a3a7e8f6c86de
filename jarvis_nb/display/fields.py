"""Small records - a call, a result, an attempt, a policy, an engine, a Jarvis - as a line and a table of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from jarvis_nb.core.events import bounded
from jarvis_nb.display import blocks
from jarvis_nb.display.escape import code, count, cut, json_text, one_line, plain, prose

VALUE = 1000
MOST = 50
"""Items of a list in a record."""
DEEP = 4
"""Records within records that are opened."""

Fields = list[tuple[str, Any]]


def record(thing: Any) -> tuple[tuple[str, str], ...]:
    """Return name and text of what an object says of itself: a dataclass its fields, others by their type.

    What a repr leaves out (a time, a secret, a private attribute) is left out here.
    """
    return tuple((name, _text(value)) for name, value in _fields(thing) if _says(value))


def _fields(thing: Any) -> Fields:
    for base in type(thing).__mro__:
        if base.__name__ in _OWN and base.__module__.startswith("jarvis_nb."):
            return _OWN[base.__name__](thing)
    if isinstance(thing, Enum):
        return [("value", thing.value)]
    return _of_dataclass(thing) if is_dataclass(thing) else []


def _of_dataclass(thing: Any) -> Fields:
    shown = [one.name for one in fields(thing) if one.repr and not one.name.startswith("_")]
    return [(name, getattr(thing, name)) for name in shown]


def _says(value: Any) -> bool:
    return value is not None and not (isinstance(value, str | list | tuple | dict) and not value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict | list | tuple | int | float | bool):
        return json_text(bounded(_opened(value, 0)))
    return str(value)


def _opened(value: Any, depth: int) -> Any:
    """Return a list of records as a list of plain data."""
    if depth < DEEP and isinstance(value, list | tuple):
        return [_opened(item, depth + 1) for item in value[:MOST]]
    if depth < DEEP and is_dataclass(value):
        return {name: _opened(item, depth + 1) for name, item in _fields(value) if _says(item)}
    return value


def _jarvis(given: Any) -> Fields:
    return [
        ("engine", given.engines.label),
        ("model", given.model or ""),
        ("tools", _names(tool.name for tool in given.tools)),
        ("sources", str(len(given.tool_sources) or "")),
    ]


def _engine(given: Any) -> Fields:
    able = [(one.name, getattr(given.supports, one.name)) for one in fields(given.supports)]
    return [
        ("engine", given.name),
        ("model", given.default_model),
        ("address", getattr(given, "base_url", None)),
        ("can", _names(name.replace("_", " ") for name, can in able if can)),
        ("cannot", _names(name.replace("_", " ") for name, can in able if not can)),
        ("asked", count(len(given.requests), "time") if hasattr(given, "requests") else ""),
    ]


def _memory(given: Any) -> Fields:
    # Nothing is counted: a picture opens no database and asks no server.
    return [("memory", repr(given)), ("passages", "memory.count()")]


def _bus(given: Any) -> Fields:
    history = given.history
    return [
        ("heard", "by somebody" if given.active else "by nobody"),
        ("recorded", count(len(history), "event") if given.record_history else "nothing"),
        ("events", _names(event.event_type.value for event in history)),
    ]


def _executor(given: Any) -> Fields:
    return [("tools", _names(spec.name for spec in given.available_tools()))]


def _attempt(given: Any) -> Fields:
    steps = [f"{step['name']} {step['status']}" for step in given.steps or ()]
    return [*_of_dataclass(given), ("steps", steps)]


def _context(given: Any) -> Fields:
    return [("keys", _names(map(str, given))), ("tool", given.tool_name), ("call", given.call_id)]


def _source(given: Any) -> Fields:
    kind = type(given)
    config: Any = given.config
    return [
        ("source", given.id or f"{kind.__module__}.{kind.__qualname__}"),
        ("config", _names(map(str, config)) if isinstance(config, dict) else ""),
        ("seconds a call", f"{given.timeout_seconds:g}"),
    ]


def _skill_roots(given: Any) -> Fields:
    links = "followed" if given[1]["allow_symlinks"] else "not followed"
    return [("tool", "load_skill"), ("roots", list(given[1]["roots"])), ("links", links)]


def _error(given: Any) -> Fields:
    return [("code", given.code), ("message", given.message), ("valid", given.valid), ("hint", given.hint)]


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f", {len(listed) - MOST:,} more" if len(listed) > MOST else ""
    return ", ".join(listed[:MOST]) + more


_OWN: dict[str, Callable[[Any], Fields]] = {
    "Jarvis": _jarvis,
    "InferenceEngine": _engine,
    "MemoryBackend": _memory,
    "EventBus": _bus,
    "ToolExecutor": _executor,
    "Attempt": _attempt,
    "ToolContext": _context,
    "ToolSource": _source,
    "SkillRoots": _skill_roots,
    "JarvisError": _error,
}


def record_html(thing: Any) -> str:
    """Return a record as a small card."""
    cells = [(name, code(cut(text, VALUE, name))) for name, text in record(thing)]
    title = prose(one_line(type(thing).__name__, 200))
    return blocks.frame([blocks.line(f"<b>{title}</b>"), blocks.pairs(cells)])


def record_text(thing: Any) -> str:
    """Return the repr of a record, bounded."""
    return cut(plain(repr(thing)), VALUE)
