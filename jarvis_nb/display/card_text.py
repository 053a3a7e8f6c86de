"""The run card as text, useful alone in a terminal."""

from __future__ import annotations

from jarvis_nb.display.card import CardView
from jarvis_nb.display.escape import arguments_text, cut, plain
from jarvis_nb.record import LedgerEntry

WIDTH = 160


def card_text(view: CardView) -> str:
    """Return the card, one line a call."""
    lines = [_one(view.question)]
    lines += ledger_lines(view.ledger)
    for round_ in view.rounds:
        for call in round_.calls:
            made = f"{plain(call.name)}({arguments_text(call.arguments)})"
            lines.append(_one(f"  {round_.number} {call.mark} {made} → {call.result}"))
    lines += [_one(f"  repaired: {r}") for r in view.repairs]
    lines += [_one(f"  injected: {i}") for i in view.injected]
    lines += [_one(f"  warning: {w}") for w in view.warnings]
    if view.answer:
        lines.append(plain(view.answer))
    if view.problem:
        lines.append(_one(f"{view.mark} {view.problem}"))
    lines.append(_one(f"{view.mark} {' · '.join(view.facts)}"))
    return "\n".join(lines)


def ledger_lines(entries: tuple[LedgerEntry, ...]) -> list[str]:
    """Return what was offered and what was hidden and why."""
    offered = [f"{e.name} ({kind_text(e)})" for e in entries if e.offered]
    lines = [_one(f"  offered: {', '.join(offered)}")] if offered else []
    return lines + [
        _one(f"  hidden: {e.name} ({kind_text(e)}): {e.reason}") for e in entries if not e.offered
    ]


def kind_text(entry: LedgerEntry) -> str:
    """Return what kind of tool an entry is, with its source's short name."""
    return f"source {entry.source.rsplit('.', 1)[-1]}" if entry.source else entry.kind


def _one(text: str) -> str:
    return cut(plain(text).replace("\n", "\\n"), WIDTH)
