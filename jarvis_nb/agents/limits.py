"""What ends a run: rounds, calls, tokens, seconds, dollars, and a model that repeats itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from jarvis_nb.core.errors import ErrorInfo, InvalidRequest, close_names
from jarvis_nb.core.types import ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one run; None is no bound.

    When ``rounds`` or ``calls`` are used up, or the model repeats itself too often, one last call without
    tools lets the run end in words (status ``max_rounds``). ``tokens``, ``seconds`` and ``usd`` end the run
    where it stands (status ``failed``, code ``limit_tokens``, ``limit_seconds`` or ``limit_usd``).

    Example:
        >>> Limits.of({"rounds": 3}).rounds
        3
    """

    rounds: int | None = 10
    """Rounds that run tools."""
    calls: int | None = 50
    """Tool calls."""
    tokens: int | None = None
    """Prompt and completion tokens of all model calls."""
    seconds: float | None = None
    usd: float | None = None
    """US dollars, where the price of the model is known."""
    repeats_told: int | None = 3
    """The same call in this many rounds in a row: the model is told."""
    repeats_stopped: int | None = 5
    """The same call in this many rounds in a row: it is not run, and the run ends in words."""

    @classmethod
    def of(cls, data: Mapping[str, Any] | Limits | None, base: Limits | None = None) -> Limits:
        """Return limits from any subset of them, the rest from ``base``.

        Raises:
            InvalidRequest: ``invalid_limits``: an unknown name, or not a number of 0 or more (a whole one for
                what is counted).
        """
        base = base or cls()
        if data is None:
            return base
        if isinstance(data, Limits):
            return data
        for key, value in data.items():
            if key not in _NAMES:
                close = close_names(str(key), _NAMES)
                raise InvalidRequest(
                    f"no limit is called {key!r}",
                    code="invalid_limits",
                    value=key,
                    valid=_NAMES,
                    hint=f"did you mean {close[0]!r}?" if close else None,
                )
            kinds = int | float if key in _MEASURED else int
            if value is not None and (
                isinstance(value, bool)
                or not isinstance(value, kinds)
                or not value >= 0  # NaN is not, either
            ):
                number = "number" if key in _MEASURED else "whole number"
                raise InvalidRequest(
                    f"the limit {key!r} is {value!r}",
                    code="invalid_limits",
                    value=value,
                    hint=f"give a {number} of 0 or more, or None for no limit",
                )
        return replace(base, **data)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain data."""
        return {name: getattr(self, name) for name in _NAMES}

    def spent(self, usage: Usage, cost_usd: float | None) -> ErrorInfo | None:
        """Return the error that ends the run now, if tokens or dollars are used up."""
        if self.tokens is not None and usage.total_tokens >= self.tokens:
            return ErrorInfo("limit_tokens", f"{usage.total_tokens:,} of {self.tokens:,} tokens are used")
        if self.usd is not None and cost_usd is not None and cost_usd >= self.usd:
            return ErrorInfo("limit_usd", f"${cost_usd:.4f} of ${self.usd:.4f} are spent")
        return None


_MEASURED = frozenset({"seconds", "usd"})
"""The limits that are not counts."""


_NAMES = tuple(f.name for f in fields(Limits))


class RepeatWatch:
    """Counts in how many rounds in a row the same call was made."""

    def __init__(self) -> None:
        self._streaks: dict[tuple[str, str], int] = {}

    def count(self, calls: Sequence[ToolCall]) -> list[int]:
        """Enter one round; return for each call the length of its streak, this round included."""
        keys = [(call.name, str(call.arguments)) for call in calls]
        self._streaks = {key: self._streaks.get(key, 0) + 1 for key in set(keys)}
        return [self._streaks[key] for key in keys]
