"""The event bus: everything that happens is an event, and pictures, traces and progress subscribe."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, overload

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.pictured import Pictured

log = logging.getLogger("jarvis_nb.events")

MAX_TEXT = 4096
"""Characters of one string in a payload; more is cut, with a count."""
MAX_ITEMS = 100
"""Items of one list or mapping in a payload."""
MAX_DEPTH = 6
MAX_VALUES = 1000
"""Values in one payload, however they are nested."""
SMALL = 10**15
"""An integer below it needs no look at its length."""
MAX_INT = 10**300
"""A longer integer is shown as hexadecimal text, since Python refuses to write a very long one in decimal."""


class EventType(Pictured, StrEnum):
    """What can happen. The value is the name in lower case."""

    RUN_START = "run_start"
    RUN_END = "run_end"
    ROUND_START = "round_start"
    ROUND_END = "round_end"
    INFERENCE_START = "inference_start"
    INFERENCE_END = "inference_end"
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_END = "tool_call_end"
    TOOL_PROGRESS = "tool_progress"
    FLOW_STEP_START = "flow_step_start"
    FLOW_STEP_END = "flow_step_end"
    APPROVAL_REQUEST = "approval_request"
    APPROVAL_DECISION = "approval_decision"
    REPAIR = "repair"
    WARNING = "warning"
    MODEL_LOAD = "model_load"
    MEMORY_STORE = "memory_store"
    MEMORY_RETRIEVE = "memory_retrieve"
    MEMORY_INDEX = "memory_index"


@dataclass(slots=True)  # a frozen one takes twice as long to make
class Event(Pictured):
    """One thing that happened: a value. ``data`` is plain, bounded data."""

    event_type: EventType
    data: dict[str, Any]
    seq: int
    """Strictly increasing on one bus."""
    timestamp: float = field(compare=False, repr=False)
    """Seconds since the epoch; not in the repr."""
    reply: Any = field(default=None, compare=False, repr=False)
    """The finished reply, on the last event of a stream only."""

    @property
    def text(self) -> str | None:
        """A piece of the answer for a TEXT event, else None."""
        return self.data["text"] if self.event_type is EventType.TEXT else None


Subscriber = Callable[[Event], object]


class EventBus(Pictured):
    """Publishes events to subscribers, in order, on the publishing thread.

    Args:
        record_history: Keep every event in :attr:`history` (for tests and lessons).
        parent: A bus that sees every event first and numbers it: one run's bus has the ``Jarvis``'s.

    Example:
        >>> bus = EventBus(record_history=True)
        >>> bus.publish(EventType.WARNING, text="low on tokens")
        >>> bus.history[0].event_type
        <EventType.WARNING: 'warning'>
    """

    def __init__(self, *, record_history: bool = False, parent: EventBus | None = None) -> None:
        self.record_history = record_history
        self._parent = parent
        self._history: list[Event] = []
        self._subscribers: tuple[tuple[EventType | None, Subscriber], ...] = ()
        self._lock = threading.Lock()
        self._seq = itertools.count(1)

    @property
    def history(self) -> list[Event]:
        """The recorded events, oldest first; empty unless ``record_history``."""
        return list(self._history)

    @property
    def active(self) -> bool:
        """Whether anybody would see an event: publishers may skip costly payloads."""
        return (
            self.record_history
            or bool(self._subscribers)
            or (self._parent is not None and self._parent.active)
        )

    @overload
    def subscribe(
        self, subscriber: Subscriber, event_type: EventType | str | None = None
    ) -> Callable[[], None]: ...
    @overload
    def subscribe(self, subscriber: EventType | str, event_type: Subscriber) -> Callable[[], None]: ...
    def subscribe(self, subscriber: Any, event_type: Any = None) -> Callable[[], None]:
        """Call ``subscriber`` with every event (of one type, if given); return what ends it.

        The two may stand in either order.

        Raises:
            InvalidRequest: The subscriber cannot be called, or there is no such type of event.

        Example:
            >>> bus, seen = EventBus(), []
            >>> end = bus.subscribe(EventType.WARNING, seen.append)
            >>> bus.publish(EventType.WARNING, text="low on tokens")
            >>> seen[0].data
            {'text': 'low on tokens'}
        """
        if isinstance(subscriber, str):
            subscriber, event_type = event_type, subscriber
        if not callable(subscriber):
            raise InvalidRequest(
                f"the subscriber is {subscriber!r:.100}",
                value=subscriber,
                hint="give a function of one event",
            )
        entry = (_known_type(event_type), subscriber)
        with self._lock:
            self._subscribers = (*self._subscribers, entry)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers = tuple(e for e in self._subscribers if e is not entry)

        return unsubscribe

    def publish(self, event_type: EventType, /, **data: Any) -> None:
        """Publish one event. A subscriber that raises is logged and the others still run.

        A long piece of an answer goes out as several events: a stream loses nothing to the bounds.
        """
        if not self.active:
            return
        if (event_type is _TEXT or event_type is _REASONING) and len(data["text"]) > MAX_TEXT:
            text = data["text"]
            for start in range(0, len(text), MAX_TEXT):
                self.publish(event_type, **{**data, "text": text[start : start + MAX_TEXT]})
            return
        room = [MAX_VALUES]
        for key, value in data.items():
            kind = type(value)
            if not (kind is str and len(value) <= MAX_TEXT) and kind not in _ATOMS:
                data[key] = _bounded(value, 0, room)
        self._deliver(self._record(event_type, data))

    def _record(self, event_type: EventType, payload: dict[str, Any]) -> Event:
        if self._parent is not None and not self.record_history:
            return self._parent._record(event_type, payload)  # noqa: SLF001 - a bus like this one
        # The locks are held one inside the other: what a bus records is in the order of its numbers,
        # although the outermost bus gives them out.
        with self._lock:
            if self._parent is not None:
                event = self._parent._record(event_type, payload)  # noqa: SLF001 - a bus like this one
            else:
                event = Event(event_type, payload, next(self._seq), time.time())
            if self.record_history:
                self._history.append(event)
        return event

    def _deliver(self, event: Event) -> None:
        if self._parent is not None:
            self._parent._deliver(event)  # noqa: SLF001 - a bus like this one
        for wanted, subscriber in self._subscribers:
            if wanted is None or wanted is event.event_type:
                try:
                    subscriber(event)
                except Exception:
                    log.exception("a subscriber failed on %s", event.event_type.value)

    def __repr__(self) -> str:
        return f"EventBus({len(self._subscribers)} subscribers, record_history={self.record_history})"


def _known_type(event_type: Any) -> EventType | None:
    if event_type is None:
        return None
    try:
        return EventType(event_type)
    except ValueError:
        raise InvalidRequest(
            f"there is no event of the type {event_type!r:.100}",
            value=event_type,
            valid=[known.value for known in EventType],
        ) from None


def bounded(value: Any) -> Any:
    """Return ``value`` as plain data of bounded size: cut text, cut lists, names for objects.

    Example:
        >>> bounded({"a": (1, 2), "b": object})
        {'a': [1, 2], 'b': '<type>'}
    """
    return _bounded(value, 0, [MAX_VALUES])


def _bounded(value: Any, depth: int, room: list[int]) -> Any:
    room[0] -= 1
    kind = type(value)
    if kind in _ATOMS or (kind is str and len(value) <= MAX_TEXT):
        return value
    if (kind is int and -SMALL < value < SMALL) or (kind is float and isfinite(value)):
        return value
    if isinstance(value, _SCALARS):
        return _scalar(value)
    if depth < MAX_DEPTH and room[0] > 0:
        if isinstance(value, dict):
            items = value.items() if len(value) <= MAX_ITEMS else itertools.islice(value.items(), MAX_ITEMS)
            return {_key(k): _bounded(v, depth + 1, room) for k, v in items if room[0] > 0}
        if isinstance(value, _LISTS):
            return [_bounded(v, depth + 1, room) for v in itertools.islice(value, MAX_ITEMS) if room[0] > 0]
    return f"<{kind.__name__}>"


_TEXT, _REASONING = EventType.TEXT, EventType.REASONING
_ATOMS = frozenset({bool, type(None)})
_SCALARS = (str, int, float)
_LISTS = (list, tuple)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(str.__str__(value))
    if isinstance(value, float):
        # JSON has no word for NaN and the infinities, and a trace is JSON.
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if abs(value) <= MAX_INT else _cut(hex(value))
    return value


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… {len(text) - MAX_TEXT:,} more characters"


def _key(key: Any) -> str:
    if type(key) is str and len(key) <= MAX_TEXT:
        return key
    if key is None or isinstance(key, _SCALARS):
        return str(_scalar(key))
    return f"<{type(key).__name__}>"
