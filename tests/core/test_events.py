"""The event bus."""

from __future__ import annotations

import enum
import itertools
import json
import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.events import MAX_TEXT, Event, EventBus, EventType, bounded


def recorded(**data):
    bus = EventBus(record_history=True)
    bus.publish(EventType.WARNING, **data)
    return bus.history[0].data


def test_subscribers_see_events_in_order_and_can_leave():
    """tools.md 8."""
    bus, seen, warnings = EventBus(), [], []
    leave = bus.subscribe(seen.append)
    bus.subscribe(warnings.append, EventType.WARNING)
    bus.publish(EventType.TEXT, text="a")
    bus.publish(EventType.WARNING, text="b")
    leave()
    leave()
    bus.publish(EventType.WARNING, text="c")
    assert [e.data["text"] for e in seen] == ["a", "b"]
    assert [e.data["text"] for e in warnings] == ["b", "c"]


def test_a_subscription_is_read_in_either_order_and_a_wrong_one_raises():
    """tools.md 8: what cannot be called would otherwise be heard of in the log only, or never."""
    bus, seen = EventBus(), []
    bus.subscribe(EventType.WARNING, seen.append)
    bus.subscribe(seen.append, EventType.WARNING)
    bus.subscribe("warning", seen.append)
    bus.subscribe(seen.append, event_type="warning")
    bus.publish(EventType.TEXT, text="a")
    bus.publish(EventType.WARNING, text="b")
    assert [e.data["text"] for e in seen] == ["b"] * 4
    for wrong in ((EventType.WARNING,), (EventType.WARNING, None), (seen,), (seen.append, 5)):
        with pytest.raises(InvalidRequest):
            bus.subscribe(*wrong)
    with pytest.raises(InvalidRequest, match="tool_call_start"):
        bus.subscribe(seen.append, "tool_call_begin")


def test_a_subscriber_that_raises_is_logged_and_the_others_still_run(caplog):
    """tools.md 8."""
    bus, seen = EventBus(), []

    def broken(event):
        raise ValueError("no")

    bus.subscribe(broken)
    bus.subscribe(seen.append)
    with caplog.at_level(logging.ERROR, "jarvis_nb.events"):
        bus.publish(EventType.TEXT, text="a")
    assert [e.text for e in seen] == ["a"]
    assert "ValueError: no" in caplog.text


def test_an_interrupt_in_a_subscriber_passes_through():
    """tools.md 4: KeyboardInterrupt passes through."""
    bus = EventBus()

    def stop(event):
        raise KeyboardInterrupt

    bus.subscribe(stop)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(EventType.TEXT, text="a")


@pytest.mark.parametrize("with_child", [False, True])
def test_seq_increases_strictly_from_many_threads(with_child):
    """tools.md 8: strictly increasing seq, in the record of a run's own bus too."""
    top = EventBus(record_history=True)
    bus = EventBus(record_history=True, parent=top) if with_child else top

    def work():
        for _ in range(300):
            bus.publish(EventType.TEXT, text="x")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [e.seq for e in bus.history]
    assert len(numbers) == 1800
    assert all(a < b for a, b in itertools.pairwise(numbers))
    assert [e.seq for e in top.history] == numbers


def test_a_parent_sees_the_events_of_its_children_first_and_numbers_them():
    """tools.md 8: one bus per Jarvis sees everything."""
    top, order = EventBus(), []
    top.subscribe(lambda e: order.append(("top", e.seq)))
    first, second = EventBus(parent=top), EventBus(parent=top)
    first.subscribe(lambda e: order.append(("first", e.seq)))
    first.publish(EventType.TEXT, text="a")
    second.publish(EventType.TEXT, text="b")
    assert order == [("top", 1), ("first", 1), ("top", 2)]


def test_active_says_whether_anybody_looks():
    top = EventBus()
    child = EventBus(parent=top)
    assert not top.active
    assert not child.active
    leave = top.subscribe(lambda e: None)
    assert child.active
    leave()
    assert not child.active
    assert EventBus(record_history=True).active


def test_any_key_can_be_published():
    assert recorded(event_type="x", self="y") == {"event_type": "x", "self": "y"}


class Evil:
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


class Colour(enum.IntEnum):
    RED = 1


class Word(enum.StrEnum):
    A = "a"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ((1, [2]), [1, [2]]),
        ({1: "a", None: "b", Evil(): "c"}, {"1": "a", "None": "b", "<Evil>": "c"}),
        (object(), "<object>"),
        (Evil(), "<Evil>"),
        ({1, 2}, "<set>"),
        (b"x", "<bytes>"),
        (Colour.RED, 1),
        (Word.A, "a"),
    ],
)
def test_payloads_are_plain_data(value, plain):
    """tools.md 8: plain bounded data."""
    data = bounded(value)
    assert data == plain
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert type(data) in (type(None), bool, int, float, str, list, dict)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just(object()),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(anything)
def test_whatever_is_published_is_json(value):
    """tools.md 8."""
    assert json.dumps(recorded(value=value), allow_nan=False)


def test_payloads_are_bounded():
    """tools.md 8: bounded, whatever the shape."""
    loop: list = []
    loop.append(loop)
    wide = [[[["x"] * 100] * 100] * 100] * 100
    for value in ("x" * 10**6, list(range(10**6)), wide, loop, {"k" * 10**6: 1}, 10**5000, -(10**5000)):
        assert len(json.dumps(bounded(value))) < 3 * MAX_TEXT, str(type(value))
    assert bounded("x" * (MAX_TEXT + 5)).endswith("… 5 more characters")


@pytest.mark.parametrize("kind", [EventType.TEXT, EventType.REASONING])
def test_a_long_piece_of_an_answer_loses_nothing(kind):
    """design.md: event.text is a piece of the answer."""
    bus = EventBus(record_history=True)
    text = "0123456789" * 1000
    bus.publish(kind, text=text, round=1)
    assert "".join(e.data["text"] for e in bus.history) == text
    assert {e.data["round"] for e in bus.history} == {1}
    assert all(len(e.data["text"]) <= MAX_TEXT for e in bus.history)


def test_nothing_published_is_shared_with_the_publisher():
    given = {"a": [1]}
    data = recorded(value=given)
    given["a"].append(2)
    assert data == {"value": {"a": [1]}}


def test_text_and_reply_of_an_event():
    """design.md: event.text is a piece of the answer, else None."""
    assert Event(EventType.TEXT, {"text": "a"}, 1, 0.0).text == "a"
    assert Event(EventType.WARNING, {"text": "a"}, 1, 0.0).text is None
    assert Event(EventType.TEXT, {"text": "a"}, 1, 0.0).reply is None


def test_reprs_are_deterministic():
    """design.md rule 4."""
    bus = EventBus()
    bus.subscribe(print)
    assert repr(bus) == "EventBus(1 subscribers, record_history=False)"
