"""When the model and the tools of a run worked, and where they overlapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jarvis_nb.display import blocks
from jarvis_nb.display.escape import one_line, prose, took

MOST = 100
WIDTH = 40
"""Characters of the bars in the text form."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of work."""

    name: str
    start: float
    """Seconds from the start of the run."""
    seconds: float
    mark: str = ""
    """The sign of a call's outcome; empty for the model."""
    together: int = 0
    """With how many other tools it overlapped."""


def spans(works: Iterable[tuple[str, float, float, str]]) -> tuple[Span, ...]:
    """Return name, start, seconds and mark as spans in the order in which they began.

    Example:
        >>> [s.together for s in spans([("a", 0, 2, "✓"), ("b", 1, 2, "✓"), ("c", 3, 1, "✓"), ("model", 0, 9, "")])]
        [1, 0, 1, 0]
    """
    ordered = sorted((w for w in works if w[2] > 0), key=lambda w: (w[1], w[0]))[:MOST]
    tools = [w for w in ordered if w[3]]

    def others(one: tuple[str, float, float, str]) -> int:
        begin, end = one[1], one[1] + one[2]
        return sum(o is not one and o[1] < end and begin < o[1] + o[2] for o in tools) if one[3] else 0

    return tuple(Span(*w, others(w)) for w in ordered)


def timeline_html(found: Sequence[Span]) -> str:
    """Return one row a span: name, times and a bar, an outline for the model."""
    total = max((s.start + s.seconds for s in found), default=0.0)
    rows = [
        (
            prose(f"{one_line(s.name, 60)} {'' if s.mark == '✓' else s.mark}".strip()),
            blocks.span(
                100 * s.start / total,
                100 * s.seconds / total,
                blocks.COLOURS.get(s.mark, blocks.GREY),
                solid=bool(s.mark),
            ),
            f'<div style="white-space:nowrap">{prose(_times(s))}</div>',
        )
        for s in found
    ]
    return blocks.table(rows, caption=f"When it ran ({took(total)}; outlined: the model)")


def _times(span: Span) -> str:
    beside = f", beside {span.together} more" if span.together else ""
    return f"{took(span.seconds)} from {took(span.start)}{beside}"


def timeline_lines(found: Sequence[Span]) -> list[str]:
    """Return the same in characters: ``─`` the model, ``█`` a tool."""
    total = max((s.start + s.seconds for s in found), default=0.0)
    lines: list[str] = []
    for s in found:
        first = min(WIDTH - 1, int(WIDTH * s.start / total))
        length = max(1, min(WIDTH - first, round(WIDTH * s.seconds / total)))
        bar = (" " * first + ("█" if s.mark else "─") * length).ljust(WIDTH)
        lines.append(
            f"  {bar}  {one_line(s.name, 40)} {took(s.seconds)} from {took(s.start)} {s.mark}".rstrip()
        )
    return lines
