"""When a call is made again, and after how long."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines.retry import PassingFailure, RetryPolicy, retry_after, with_retries

NOW = 1_792_567_670.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": formatdate(NOW + 20, usegmt=True)}, 20.0),
        ({"retry-after": formatdate(NOW - 20, usegmt=True)}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after(headers, seconds):
    """wire.md, Requests: Retry-After, as seconds and as an HTTP date (RFC 9110)."""
    assert retry_after(headers, now=NOW) == seconds


@given(st.text(max_size=40))
def test_retry_after_never_raises(text):
    seconds = retry_after({"retry-after": text})
    assert seconds is None or seconds >= 0


@given(st.integers(1, 20), st.none() | st.floats(0, 1e9), st.floats(0, 100))
def test_waits_are_bounded(retry, after, most):
    assert 0 <= RetryPolicy(max_wait=most).wait(retry, after) <= most


def test_waits_grow_and_differ():
    policy = RetryPolicy(max_wait=60)
    assert max(policy.wait(1) for _ in range(50)) <= 1 < min(policy.wait(3) for _ in range(50))
    assert len({policy.wait(2) for _ in range(50)}) > 40


def test_the_servers_word_is_a_lower_bound():
    waits = [RetryPolicy(max_wait=60).wait(1, 5.0) for _ in range(50)]
    assert 5 <= min(waits) < max(waits) <= 5.5


def attempts(*outcomes):
    left = list(outcomes)

    async def attempt():
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return attempt


def passing(words="busy"):
    return PassingFailure(EngineError(words), after=0.0)


def run(attempt, retries=2):
    told = []
    policy = RetryPolicy(retries, max_wait=0.001)
    try:
        return asyncio.run(with_retries(attempt, policy, lambda e, n, s: told.append((e.message, n)))), told
    except EngineError as error:
        return error, told


def test_it_is_told_each_time():
    assert run(attempts(passing("a"), passing("b"), "done")) == ("done", [("a", 1), ("b", 2)])


def test_the_last_error_says_how_often_it_was_tried():
    error, told = run(attempts(passing("a"), passing("b"), passing("c")))
    assert (error.message, len(told)) == ("c; tried 3 times", 2)
    assert str(error).startswith("c; tried 3 times")


def test_what_does_not_pass_is_not_tried_again():
    error, told = run(attempts(EngineError("no")))
    assert (error.message, told) == ("no", [])


def test_no_retries():
    error, told = run(attempts(passing("a")), retries=0)
    assert (error.message, told) == ("a", [])
