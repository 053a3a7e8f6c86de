"""When to ask again, and after how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar

from jarvis_nb.core.errors import EngineError

T = TypeVar("T")

STATUSES = frozenset({429, 502, 503, 529})
"""Answers that may be better in a moment: too many requests, a gateway, a restart, an overload."""


class PassingFailure(Exception):  # noqa: N818 - a failure that may pass, not an error that is shown
    """A failure that another try may mend.

    Args:
        error: What is raised if none does.
        after: Seconds the server asks to wait, if it said so.
    """

    def __init__(self, error: EngineError, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class RetryPolicy(NamedTuple):
    """How often and how patiently.

    Example:
        >>> RetryPolicy(max_wait=10).wait(1, after=3600.0)
        10
        >>> 0.5 <= RetryPolicy().wait(1) <= 1.0
        True
    """

    retries: int = 2
    """Tries after the first."""
    max_wait: float = 30.0
    """Seconds before one try at most, whatever the server asks for."""
    base: float = 1.0
    """Seconds before the first repetition at most; each further one doubles it."""

    def wait(self, retry: int, after: float | None = None) -> float:
        """Return the seconds to wait before repetition ``retry`` (1, 2, …).

        A server's own word counts, plus up to a tenth so that many clients do not come back in one instant.
        """
        import random

        if after is not None:
            return min(after * random.uniform(1.0, 1.1), self.max_wait)  # noqa: S311 - no secret
        most = min(self.base * 2 ** (retry - 1), self.max_wait)
        return most * random.uniform(0.5, 1.0)  # noqa: S311


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    tell: Callable[[EngineError, int, float], None],
) -> T:
    """Run ``attempt`` until it succeeds, fails for good, or was repeated often enough.

    Args:
        attempt: Raises :class:`PassingFailure` for what may be tried again.
        policy: How often and how patiently.
        tell: Called before each wait with the error, the number of the repetition and the seconds.

    Raises:
        EngineError: The last one; its message says how often it was tried.
    """
    for retry in range(1, policy.retries + 2):
        try:
            return await attempt()
        except PassingFailure as failure:
            error, after = failure.error, failure.after
        if retry > policy.retries:
            if policy.retries:
                error.message = f"{error.message}; tried {retry} times"
                error.args = (error.message,)
            raise error
        seconds = policy.wait(retry, after)
        tell(error, retry, seconds)
        await asyncio.sleep(seconds)
    raise AssertionError("unreachable")  # pragma: no cover


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds a server asks to wait, or None.

    Reads ``retry-after-ms`` (OpenAI), then ``Retry-After`` as seconds or as an HTTP date (RFC 9110, 10.2.3).

    Example:
        >>> retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, now=1792567670.0)
        10.0
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(date.timestamp() - (time.time() if now is None else now), 0.0)


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
