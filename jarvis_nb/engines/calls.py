"""Pieces of streamed calls joined: by index, by id, or to the call that is open."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.core.types import JSON, Repair, dumps

_REPAIRS = {
    "missing_index": "pieces of calls had no index: they were joined by id, or to the open call",
    "stray_index": "a new index brought neither id nor name: its pieces belong to the open call",
    "split_name": "a call's name came in pieces: they were joined",
    "split_id": "a call's id came in pieces: they were joined",
    "object_arguments": "arguments came as an object in a stream, not as pieces of JSON text",
    "tool_calls_shape": "a piece of tool_calls was no object: it was ignored",
}


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    kind: str = ""
    arguments: list[str] = field(default_factory=list)
    has_arguments: bool = False

    def joined(self) -> JSON:
        function: JSON = {"name": self.name}
        if self.has_arguments:
            function["arguments"] = "".join(self.arguments)
        out: JSON = {"type": self.kind or "function", "function": function}
        return {"id": self.id, **out} if self.id else out


class CallJoiner:
    """Joins the ``tool_calls`` entries of a stream's deltas.

    Example:
        >>> calls = CallJoiner()
        >>> calls.add({"index": 0, "id": "a", "function": {"name": "add", "arguments": '{"a":'}})
        >>> calls.add({"index": 0, "function": {"arguments": "1}"}})
        >>> calls.joined()[0]["function"]
        {'name': 'add', 'arguments': '{"a":1}'}
    """

    __slots__ = ("_by_index", "_calls", "_oddities", "_open")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._open: _Call | None = None
        self._oddities: dict[str, None] = {}  # an ordered set

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def repairs(self) -> list[Repair]:
        """What had to be mended, each kind once."""
        return [Repair(code, _REPAIRS[code]) for code in self._oddities]

    def joined(self) -> list[JSON]:
        """Return the calls so far: by index where all have one, else in the order they came."""
        calls = self._calls
        if all(call.index is not None for call in calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        return [call.joined() for call in calls]

    def add(self, entry: Any) -> None:
        """Take one entry. Empty ids, names and types never overwrite what came before."""
        if not isinstance(entry, dict):
            self._oddities["tool_calls_shape"] = None
            return
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry
        call_id, name, arguments = (
            _text(entry.get("id")),
            _text(function.get("name")),
            function.get("arguments"),
        )
        index = _index(entry.get("index"))
        if index is None:
            self._oddities["missing_index"] = None
            call = self._unindexed(call_id, name, arguments)
        else:
            call = self._by_index.get(index) or self._indexed(index, call_id, name)
        self._open = call
        call.id = self._extended(call.id, call_id, "split_id")
        call.name = self._extended(call.name, name, "split_name")
        call.kind = call.kind or _text(entry.get("type"))
        if arguments is not None:
            call.has_arguments = True
            call.arguments.append(self._argument_text(arguments))

    def _indexed(self, index: int, call_id: str, name: str) -> _Call:
        """Return the call of an index that is new."""
        if self._open is not None and not call_id and not name:
            self._oddities["stray_index"] = None
            return self._open  # not remembered: with an id or a name the index may yet open a call
        call = self._by_index[index] = self._opened(index)
        return call

    def _unindexed(self, call_id: str, name: str, arguments: Any) -> _Call:
        """Return the call of a piece without index: by id, else the open one, unless it opens another."""
        if call_id:
            for call in self._calls:
                if call.id == call_id:
                    return call
        current = self._open
        if current is None:
            return self._opened(None)
        new_id = call_id and (current.id or name)  # an id alone completes a call that has none
        new_name = name and current.name and (name != current.name or (arguments and _complete(current)))
        return self._opened(None) if new_id or new_name else current

    def _opened(self, index: int | None) -> _Call:
        call = _Call(index)
        self._calls.append(call)
        return call

    def _extended(self, so_far: str, piece: str, oddity: str) -> str:
        """Join a name or an id: one that equals what came so far is a repetition."""
        if not piece or piece == so_far:
            return so_far
        if so_far:
            self._oddities[oddity] = None
        return so_far + piece

    def _argument_text(self, arguments: Any) -> str:
        if isinstance(arguments, str):
            return arguments
        self._oddities["object_arguments"] = None
        return dumps(arguments)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _complete(call: _Call) -> bool:
    """Whether the call's arguments are a whole object, so that nothing more can belong to them.

    Two whole calls to one tool, without index and id, are told apart by this alone.
    """
    try:
        return isinstance(json.loads("".join(call.arguments)), dict)
    except (ValueError, RecursionError):
        return False
