"""The policy ledger: each tool offered, or hidden and why, and what the model has to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.types import ToolChoice
from jarvis_nb.display import blocks
from jarvis_nb.display.escape import code, count, json_text, one_line, prose, ticked
from jarvis_nb.record import LedgerEntry

SHOWN = 12
"""Rows before the fold."""
MOST = 200
"""Rows altogether."""
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What one request offers."""

    entries: tuple[LedgerEntry, ...]
    first: str
    """The tool choice of the first model call, and why."""
    later: str
    """The same once a tool has run; empty where it stays."""
    tokens: int
    """About how many tokens the definitions cost a model call."""


def ledger(offer: Any) -> LedgerView:
    """Return the view of an :class:`~jarvis_nb.toolsets.offer.Offer`."""
    first, later = (
        f"{choice_text(offer.choice(ran))}: {offer.reason_for_choice(ran)}" for ran in (False, True)
    )
    sent = json_text(offer.openai_tools) if offer.tools else ""
    return LedgerView(
        offer.entries, first, later if later != first else "", -(-len(sent) // CHARACTERS_A_TOKEN)
    )


def choice_text(choice: ToolChoice) -> str:
    """Return a tool choice in words.

    Example:
        >>> choice_text({"type": "function", "function": {"name": "lookup"}}), choice_text(None)
        ('must call lookup', 'none')
    """
    if choice is None:
        return "none"
    return choice if isinstance(choice, str) else f"must call {choice['function']['name']}"


def kind_text(entry: Any) -> str:
    """Return what kind of tool an entry is, with its source's short name."""
    return f"source {entry.source.rsplit('.', 1)[-1]}" if entry.source else entry.kind


def ledger_text(view: LedgerView) -> str:
    """Return the ledger as text."""
    offered = sum(e.offered for e in view.entries)
    lines = [f"{offered} of {count(len(view.entries), 'tool')} offered, about {view.tokens:,} tokens"]
    lines += ledger_lines(view.entries)
    lines.append(one_line(f"  first: {view.first}"))
    lines += [one_line(f"  then: {view.later}")] if view.later else []
    return "\n".join(lines)


def ledger_lines(entries: Sequence[LedgerEntry]) -> list[str]:
    """Return what was offered on one line, and a line for each hidden tool and why."""
    offered = [f"{e.name} ({kind_text(e)})" for e in entries if e.offered]
    hidden = [e for e in entries if not e.offered]
    lines = [one_line(f"  offered: {', '.join(offered)}")] if offered else []
    lines += [one_line(f"  hidden: {e.name} ({kind_text(e)}): {e.reason}") for e in hidden[:SHOWN]]
    return lines + ([f"  … {len(hidden) - SHOWN:,} more hidden"] if len(hidden) > SHOWN else [])


def ledger_html(view: LedgerView) -> str:
    """Return the ledger as a card."""
    offered = sum(e.offered for e in view.entries)
    title = f"<b>{offered:,}</b> of {count(len(view.entries), 'tool')} offered"
    return blocks.frame(
        [
            blocks.line(f"{title}{prose(f' · about {view.tokens:,} tokens a model call')}"),
            entries_html(view.entries, "offer.entries", caption=""),
            blocks.pairs([("first", ticked(view.first)), ("then", ticked(view.later))]),
        ]
    )


def entries_html(
    entries: Sequence[LedgerEntry], where: str, *, caption: str = "What the model was offered"
) -> str:
    """Return each tool and whether it was offered, folded where they are many."""
    rows = [
        (
            code(one_line(e.name, 80)),
            prose(one_line(kind_text(e), 80)),
            "● offered" if e.offered else f"○ {ticked(one_line(e.reason, 200))}",
        )
        for e in entries[:MOST]
    ]
    shown = blocks.table(rows[:SHOWN], caption=caption)
    more = len(entries) - SHOWN
    if more <= 0:
        return shown
    beyond = blocks.dim(f"… {len(entries) - MOST:,} more tools ({where})") if len(entries) > MOST else ""
    offered = sum(e.offered for e in entries[SHOWN:])
    return shown + blocks.details(
        prose(f"{count(more, 'more tool')}, {offered:,} offered"), blocks.table(rows[SHOWN:]) + beyond
    )
