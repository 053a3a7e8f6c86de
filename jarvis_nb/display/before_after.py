"""Two pictures about a run: what it would send, and how two runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jarvis_nb.display import blocks
from jarvis_nb.display.escape import code, count, cut, json_text, one_line, pre, prose, ticked
from jarvis_nb.display.ledger import choice_text, entries_html, ledger_lines
from jarvis_nb.record import LedgerEntry

if TYPE_CHECKING:
    from jarvis_nb.run.diff import ReplyDiff
    from jarvis_nb.run.preview import Preview

VALUE = 300
FOLD = 6000
MOST = 100


@dataclass(frozen=True, slots=True)
class PreviewView:
    """What an ask would send."""

    question: str
    facts: tuple[str, ...]
    ledger: tuple[LedgerEntry, ...]
    choice: str
    reason: str
    injected: tuple[str, ...]
    payload: str


def preview(given: Preview) -> PreviewView:
    """Return the view of a preview."""
    about = "" if given.exact else "about "
    named = f"{given.model} on {given.engine}" if given.model != given.engine else given.engine
    facts = (f"{about}{count(given.tokens, 'token')}", named, given.agent or "")
    return PreviewView(
        given.question,
        tuple(f for f in facts if f),
        given.entries,
        choice_text(given.choice),
        given.reason,
        tuple(f"{i.get('source') or 'no source'}: {i.get('reason', '')}" for i in given.injected),
        json_text(given.payload, 1),
    )


def preview_text(view: PreviewView) -> str:
    """Return a preview as text."""
    lines = [f"not sent: {one_line(view.question)}", *ledger_lines(view.ledger)]
    lines += [one_line(f"  from memory: {i}") for i in view.injected[:20]]
    lines.append(one_line(f"  choice {view.choice}: {view.reason}"))
    return "\n".join([*lines, one_line(f"  {' · '.join(view.facts)}")])


def preview_html(view: PreviewView) -> str:
    """Return a preview as a card."""
    question = prose(cut(view.question, 2000, "preview.question")).replace("\n", "<br>")
    memory = blocks.heading("Would be put in from memory") if view.injected else ""
    return blocks.frame(
        [
            blocks.line(f"<b>{question}</b>"),
            blocks.line(prose(f"○ not sent · {' · '.join(view.facts)}"), blocks.DIM),
            entries_html(view.ledger, "preview.entries", caption="What the model would be offered"),
            blocks.line(
                f"choice <b>{prose(one_line(view.choice, 100))}</b>: {ticked(one_line(view.reason, 300))}"
            ),
            memory + blocks.bullets(prose(one_line(i, 200)) for i in view.injected),
            blocks.details("Exactly what would be sent", pre(cut(view.payload, FOLD, "preview.payload"))),
        ]
    )


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One place where two runs differ, both sides as text."""

    where: str
    a: str
    b: str


def diff(given: ReplyDiff) -> tuple[DiffRow, ...]:
    """Return the view of a run diff."""
    return tuple(DiffRow(d.where, _side(d.a), _side(d.b)) for d in given)


def _side(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json_text(value)


def diff_text(rows: Sequence[DiffRow]) -> str:
    """Return a diff as text: a line a side."""
    if not rows:
        return "no difference"
    lines = [count(len(rows), "difference")]
    for row in rows[:MOST]:
        lines += [f"  {one_line(row.where)}", f"    - {one_line(row.a)}", f"    + {one_line(row.b)}"]
    return "\n".join(lines + ([f"  … {len(rows) - MOST:,} more"] if len(rows) > MOST else []))


def diff_html(rows: Sequence[DiffRow]) -> str:
    """Return a diff as a table with a column a run."""
    if not rows:
        return blocks.frame([blocks.line("✓ no difference")])
    cells = [
        (
            prose(one_line(row.where, 100)),
            code(cut(row.a, VALUE, f"diff[{n}].a")),
            code(cut(row.b, VALUE, f"diff[{n}].b")),
        )
        for n, row in enumerate(rows[:MOST])
    ]
    more = blocks.dim(f"… {len(rows) - MOST:,} more") if len(rows) > MOST else ""
    title = blocks.line(f"<b>{count(len(rows), 'difference')}</b>")
    return blocks.frame([title, blocks.table(cells, head=("where", "first run", "second run")), more])
