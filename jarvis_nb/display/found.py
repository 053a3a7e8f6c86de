"""What was found: memory hits, and skills with their problems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jarvis_nb.display import blocks
from jarvis_nb.display.escape import brief, code, count, cut, one_line, pre, prose

if TYPE_CHECKING:
    from jarvis_nb.memory.handle import Hits
    from jarvis_nb.toolsets.skills import Skills

SHOWN = 50
LINE = 200
PASSAGE = 2000
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class HitView:
    """One passage."""

    place: str
    score: str
    passage: str


@dataclass(frozen=True, slots=True)
class HitsView:
    """What a search found."""

    query: str
    hits: tuple[HitView, ...]

    @property
    def title(self) -> str:
        """How many for what."""
        number = count(len(self.hits), "passage") if self.hits else "no passage"
        return f"{number} for {one_line(self.query, 100)!r}"


def hits(given: Hits) -> HitsView:
    """Return the view of a search's hits."""
    return HitsView(
        given.query, tuple(HitView(describe_place(h), f"{h['score']:.3g}", str(h["content"])) for h in given)
    )


def describe_place(hit: Mapping[str, Any]) -> str:
    """Return source, heading and place of a hit in one line.

    Example:
        >>> describe_place({"source": "a.md", "metadata": {"heading": "Guide > Install", "lines": [3, 9]}})
        'a.md, Guide > Install, lines 3-9'
    """
    metadata = hit["metadata"]
    parts = [hit["source"] or "no source"]
    if metadata.get("heading"):
        parts.append(str(metadata["heading"]))
    for place in ("lines", "cells", "pages"):
        match metadata.get(place):
            case [first, last] if first == last:
                parts.append(f"{place[:-1]} {first}")
            case [first, last]:
                parts.append(f"{place} {first}-{last}")
            case _:
                pass
    return ", ".join(parts)


def hits_text(view: HitsView) -> str:
    """Return hits as text, two lines each."""
    lines = [view.title]
    for number, hit in enumerate(view.hits[:SHOWN], 1):
        lines += [f"{number}. {one_line(hit.place)} ({hit.score})", f"   {_short(hit.passage)}"]
    return "\n".join(lines + ([f"… {len(view.hits) - SHOWN:,} more"] if len(view.hits) > SHOWN else []))


def _short(passage: str) -> str:
    text = " ".join(passage[: 8 * LINE].split())
    return one_line(f"{text[:LINE]}…" if len(text) > LINE else text, LINE + 1)


def hits_html(view: HitsView) -> str:
    """Return hits as a card: a fold a passage, the words of the query marked."""
    words = {w.casefold() for w in _WORD.findall(view.query)}
    folds: list[str] = []
    for number, hit in enumerate(view.hits[:SHOWN]):
        whole = " ".join(hit.passage.split()) if len(hit.passage) <= LINE else ""
        place = f"<b>{number + 1}.</b> {prose(one_line(hit.place, 160))} · score {prose(hit.score)}"
        text = f"<br>{_marked(one_line(whole, LINE) if whole else _short(hit.passage), words)}"
        body = pre(cut(hit.passage, PASSAGE, f"hits[{number}]['content']")) if not whole else ""
        folds.append(blocks.details(place + text, body) if body else blocks.bar(place + text, blocks.FAINT))
    more = blocks.dim(f"… {len(view.hits) - SHOWN:,} more") if len(view.hits) > SHOWN else ""
    return blocks.frame([blocks.line(f"<b>{prose(view.title)}</b>"), *folds, more])


def _marked(text: str, words: set[str]) -> str:
    """Escape text, the words of a query marked."""
    parts: list[str] = []
    last = 0
    for match in _WORD.finditer(text):
        if match[0].casefold() in words:
            parts += [prose(text[last : match.start()]), f"<mark>{prose(match[0])}</mark>"]
            last = match.end()
    return "".join(parts) + prose(text[last:])


@dataclass(frozen=True, slots=True)
class SkillsView:
    """The skills under some roots, and why others are not offered."""

    skills: tuple[tuple[str, str], ...]
    """Name and description."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def title(self) -> str:
        """How many, and how many problems."""
        counts = [count(len(self.skills), "skill")]
        counts += [count(len(self.problems), "problem")] if self.problems else []
        counts += [count(len(self.warnings), "warning")] if self.warnings else []
        return f"Skills: {', '.join(counts)}"


def skills(given: Skills) -> SkillsView:
    """Return the view of discovered skills."""
    return SkillsView(
        tuple((s.name, s.description) for s in given),
        tuple(map(str, given.problems)),
        tuple(map(str, given.warnings)),
    )


def skills_text(view: SkillsView) -> str:
    """Return skills as text, a line each."""
    lines = [view.title]
    lines += _some([f"  {one_line(name, 80)}: {brief(about, 100)}" for name, about in view.skills])
    lines += _some([f"  problem: {one_line(p, 300)}" for p in view.problems])
    return "\n".join(lines + _some([f"  warning: {one_line(w, 300)}" for w in view.warnings]))


def _some(lines: Sequence[str]) -> list[str]:
    more = [f"  … {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def skills_html(view: SkillsView) -> str:
    """Return skills as a card: names and descriptions, then problems and warnings."""
    rows = [(code(one_line(n, 80)), prose(brief(about, 160))) for n, about in view.skills[:SHOWN]]
    more = blocks.dim(f"… {len(view.skills) - SHOWN:,} more") if len(view.skills) > SHOWN else ""
    return blocks.frame(
        [
            blocks.line(f"<b>{prose(view.title)}</b>"),
            blocks.table(rows) + more,
            *_notes("✗", "not offered", view.problems, blocks.RED),
            *_notes("⚠", "offered, and to be looked at", view.warnings, blocks.AMBER),
        ]
    )


def _notes(mark: str, word: str, notes: Sequence[str], colour: str) -> list[str]:
    if not notes:
        return []
    shown = [blocks.bar(f"{mark} {prose(one_line(note, 400))}", colour) for note in notes[:SHOWN]]
    more = [blocks.dim(f"… {len(notes) - SHOWN:,} more")] if len(notes) > SHOWN else []
    return [blocks.heading(prose(word)), *shown, *more]
