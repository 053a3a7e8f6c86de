"""Two runs side by side, as data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from jarvis_nb.core.pictured import Pictured
from jarvis_nb.record import Attempt
from jarvis_nb.reply import Reply


@dataclass(frozen=True, slots=True)
class Difference(Pictured):
    """One place where two runs differ."""

    where: str
    """Such as ``round 1 · offered`` or ``call 2 · output``."""
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.a!r} → {self.b!r}"


class ReplyDiff(tuple[Difference, ...]):
    """The differences between two runs, in the order in which they happened; empty for equal runs."""

    __slots__ = ()

    def __repr__(self) -> str:
        places = ", ".join(d.where for d in self[:10])
        more = f", {len(self) - 10:,} more" if len(self) > 10 else ""  # noqa: PLR2004 - as above
        return f"ReplyDiff({places or 'no difference'}{more})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from jarvis_nb.display import bundle

        return bundle(self)


def diff(a: Reply, b: Reply) -> ReplyDiff:
    """Return where two runs differ: what was offered, called and returned, and how they ended.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> from jarvis_nb.engines import ScriptedEngine
        >>> r = Jarvis(engine=ScriptedEngine(["Hi."])).ask_full("Hello")
        >>> diff(r, r)
        ReplyDiff(no difference)
    """
    found: list[Difference] = []

    def compare(where: str, left: Any, right: Any) -> None:
        if left != right:
            found.append(Difference(where, left, right))

    compare("question", a.question, b.question)
    compare("model", a.model, b.model)
    for one, two in zip_longest(a.offers, b.offers):
        where = f"round {(one or two).round}"
        compare(f"{where} · offered", one and one.offered, two and two.offered)
        compare(f"{where} · choice", one and one.choice, two and two.choice)
    for number, (one, two) in enumerate(zip_longest(a.tool_attempts, b.tool_attempts), 1):
        _compare_attempts(f"call {number}", one, two, compare)
    compare("status", a.status, b.status)
    compare("error", a.error and a.error.code, b.error and b.error.code)
    compare("output", a.output, b.output)
    return ReplyDiff(found)


def _compare_attempts(where: str, one: Attempt | None, two: Attempt | None, compare: Any) -> None:
    if one is None or two is None:
        compare(where, one and one.tool.name, two and two.tool.name)
        return
    compare(f"{where} · tool", one.tool.name, two.tool.name)
    compare(f"{where} · arguments", one.arguments, two.arguments)
    compare(f"{where} · status", one.status, two.status)
    compare(f"{where} · output", one.output, two.output)
