"""The run card as static HTML."""

from __future__ import annotations

from collections.abc import Sequence

from jarvis_nb.display import blocks
from jarvis_nb.display.card import CallView, CardView, RoundView
from jarvis_nb.display.card_text import kind_text
from jarvis_nb.display.escape import arguments_text, code, cut, pre, prose
from jarvis_nb.record import LedgerEntry

LINE = 160
"""Characters of arguments or result in a call's line."""
FOLD = 2000
"""Characters of a value inside a fold."""

COLOURS = {
    "✓": blocks.GREEN,
    "✗": blocks.RED,
    "⊘": blocks.AMBER,
    "‖": blocks.AMBER,
    "■": blocks.GREY,
    "⚠": blocks.AMBER,
}


def card_html(view: CardView, *, times: bool = False) -> str:
    """Return the card; times and the timeline only where asked for, so that stored outputs repeat."""
    parts = [
        blocks.line(f"<b>{prose(cut(view.question, FOLD, 'reply.question'))}</b>"),
        _answer(view),
        blocks.line(f"{prose(view.mark)} {prose(' · '.join(view.facts))}", blocks.DIM),
        *(blocks.line(f"⚠ {prose(w)}", blocks.DIM) for w in view.warnings),
        ledger_html(view.ledger),
        *(_round(r, times=times) for r in view.rounds if r.calls),
        _list("Repaired", view.repairs),
        _list("From memory", view.injected),
        _timeline(view) if times else "",
        blocks.details(prose("Thinking"), pre(cut(view.reasoning, FOLD, "reply.reasoning")))
        if view.reasoning
        else "",
        _exchange(view),
    ]
    return blocks.frame(parts)


def _answer(view: CardView) -> str:
    parts: list[str] = []
    if view.answer:
        text = prose(cut(view.answer, 4 * FOLD, "reply.output")).replace("\n", "<br>")
        parts.append(blocks.line(text))
    if view.problem:
        parts.append(blocks.line(f"{prose(view.mark)} <b>{prose(view.problem)}</b>"))
    return "".join(parts)


def ledger_html(entries: Sequence[LedgerEntry], caption: str = "What the model was offered") -> str:
    """Return the ledger: each tool offered, or hidden and why."""
    rows = [
        (code(e.name), prose(kind_text(e)), "● offered" if e.offered else f"○ {_reason(e.reason)}")
        for e in entries[:200]
    ]
    more = len(entries) - len(rows)
    table = blocks.table(rows, caption=caption)
    return table + (blocks.dim(f"… {more:,} more tools (reply.offers[0].entries)") if more > 0 else "")


def _reason(reason: str) -> str:
    """Text whose backquoted words are code."""
    return "".join(code(p) if n % 2 else prose(p) for n, p in enumerate(reason.split("`")))


def _round(view: RoundView, *, times: bool) -> str:
    together = f" · {len(view.calls)} calls together" if len(view.calls) > 1 else " · 1 call"
    reason = f" ({prose(view.reason)})" if view.reason else ""
    head = blocks.line(
        f"Round {view.number} · choice <b>{prose(view.choice)}</b>{reason}{together}", blocks.DIM
    )
    return head + "".join(_call(c, times=times) for c in view.calls)


def _call(view: CallView, *, times: bool) -> str:
    arguments = code(cut(arguments_text(view.arguments), LINE)) if view.arguments else ""
    result = code(cut(view.result, LINE)) if view.status == "ok" else prose(cut(view.result, LINE))
    status = "" if view.status in {"ok", "failed"} else f"{prose(view.status)} · "
    took = f" · {view.seconds * 1000:,.0f} ms" if times and view.seconds else ""
    summary = f"{view.mark} <b>{prose(view.name)}</b> {arguments} → {status}{result}{took}"
    rows = [(name, code(cut(text, FOLD, f"{view.where}"))) for name, text in view.facts]
    if len(arguments_text(view.arguments)) > LINE:
        rows.insert(
            0, ("arguments", pre(cut(arguments_text(view.arguments), FOLD, f"{view.where}.arguments")))
        )
    if len(view.result) > LINE:
        rows.append(("result", pre(cut(view.result, FOLD, f"{view.where}.output"))))
    colour = COLOURS.get(view.mark, blocks.GREY)
    if not rows:
        return f'<div style="border-left:3px solid {colour};padding:2px 0 2px 8px;margin:0 0 4px">{summary}</div>'
    return blocks.details(summary, blocks.pairs(rows), colour=colour)


def _list(heading: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    lines = "".join(f"<li>{prose(item)}</li>" for item in items[:50])
    return blocks.dim(heading) + f'<ul style="margin:0 0 8px">{lines}</ul>'


def _timeline(view: CardView) -> str:
    spans = [("model", r.started, r.seconds) for r in view.rounds]
    spans += [
        (f"{c.name} {'' if c.mark == '✓' else c.mark}", c.started, c.seconds)
        for r in view.rounds
        for c in r.calls
    ]
    total = max((start + took for _, start, took in spans), default=0.0)
    if total <= 0:
        return ""
    rows: list[Sequence[str]] = []
    for name, start, took in sorted(spans, key=lambda s: s[1])[:100]:
        left, width = 100 * start / total, max(100 * took / total, 0.5)
        colour = "rgba(128,128,128,.45)" if name == "model" else blocks.GREEN
        bar = f'<div style="margin-left:{left:.1f}%;width:{width:.1f}%;height:9px;background-color:{colour}"></div>'
        rows.append(
            (prose(name), f"{start:.2f} to {start + took:.2f} s", f'<div style="min-width:300px">{bar}</div>')
        )
    return blocks.table(rows, caption=f"When it ran ({total:.2f} s)")


def _exchange(view: CardView) -> str:
    """What was sent and received, round by round: each message once, where it was new."""
    parts = (
        [blocks.dim("tools"), pre(cut(view.tools, FOLD, "reply.definitions"))] if view.tools != "[]" else []
    )
    for r in view.rounds:
        parts.append(blocks.dim(f"round {r.number} · sent, new in this round"))
        parts.append(pre(cut(r.sent, FOLD, f"reply.request({r.number})")))
        parts.append(blocks.dim(f"round {r.number} · received"))
        parts.append(pre(cut(r.received, FOLD, f"reply.model_calls[{r.number - 1}].response")))
    return blocks.details(prose("Exactly what was sent and received"), "".join(parts)) if view.rounds else ""
