"""The run card as text, useful alone in a terminal."""

from __future__ import annotations

from jarvis_nb.display.card import CallView, CardView, RoundView
from jarvis_nb.display.escape import cut, one_line, plain
from jarvis_nb.display.ledger import ledger_lines
from jarvis_nb.display.timeline import timeline_lines

MOST = 200
"""Lines of calls."""
ANSWER = 4000
"""Characters of the answer."""


def card_text(view: CardView, *, times: bool = False) -> str:
    """Return the card, one line a call."""
    lines = [one_line(view.question), *ledger_lines(view.ledger)]
    told = [line for round_ in view.rounds for line in _round(round_)]
    lines += told[:MOST]
    lines += [f"  … {len(told) - MOST:,} more lines (reply.tool_attempts)"] if len(told) > MOST else []
    lines += [one_line(f"  from memory: {i}") for i in view.injected[:20]]
    lines += [one_line(f"  warning: {w}") for w in view.warnings[:20]]
    if times and view.timeline:
        lines += timeline_lines(view.timeline)
    if view.answer:
        lines.append(plain(cut(view.answer, ANSWER, "reply.output")))
    if view.problem:
        lines.append(one_line(f"{view.mark} {view.problem}", 400))
    lines.append(one_line(f"{view.mark} {' · '.join(view.facts)}", 400))
    return "\n".join(lines)


def _round(view: RoundView) -> list[str]:
    lines = [line for call in view.calls for line in _call(view.number, call)]
    lines += [one_line(f"  {view.number} repaired: {r}") for r in view.repairs]
    return lines


def _call(number: int, view: CallView) -> list[str]:
    word = f"{view.word}: " if view.word else ""
    made = f"{one_line(view.name, 80)}({one_line(view.arguments, 80)})"
    lines = [f"  {number} {view.mark} {made} → {word}{one_line(view.result, 100)}"]
    if view.steps:
        lines.append(one_line(f"      {' → '.join(f'{s.name} {s.mark}' for s in view.steps)}"))
    lines += [one_line(f"      repaired: {f.text}") for f in view.facts if f.name == "repaired"]
    return lines
