"""The run card as static HTML."""

from __future__ import annotations

import json

from jarvis_nb.display import blocks
from jarvis_nb.display.blocks import COLOURS
from jarvis_nb.display.card import CallView, CardView, RoundView, StepView
from jarvis_nb.display.escape import code, count, cut, json_text, one_line, pre, prose, ticked, took
from jarvis_nb.display.ledger import entries_html
from jarvis_nb.display.timeline import timeline_html

LINE = 120
"""Characters of arguments or of a result in a call's line."""
FOLD = 2000
"""Characters of a value inside a fold; of many calls less is shown of each."""
CALLS_BUDGET = 9_000
"""Characters of one value of every call, together."""
EXCHANGES_BUDGET = 10_000
"""Characters of what was sent and received, together."""
STEPS = 40
MOST_CALLS = 300
MOST_ROUNDS = 60
OPEN_ROUNDS = 6
"""Rounds that stand open; those between are folded when there are more."""


def card_html(view: CardView, *, times: bool = False) -> str:
    """Return the card; times and the timeline only where asked for, so that stored outputs repeat."""
    return blocks.frame(
        [
            blocks.line(f"<b>{_text(view.question, FOLD, 'reply.question')}</b>"),
            _answer(view),
            blocks.line(prose(f"{view.mark} {' · '.join(view.facts)}"), blocks.DIM),
            *(blocks.line(prose(f"⚠ {one_line(w, 400)}")) for w in view.warnings[:20]),
            entries_html(view.ledger, "reply.offers[0].entries"),
            _rounds(view, times=times),
            _injected(view),
            timeline_html(view.timeline) if times and view.timeline else "",
            _thinking(view),
            _exchange(view),
        ]
    )


def _text(text: str, limit: int, where: str) -> str:
    return prose(cut(text, limit, where)).replace("\n", "<br>")


def _answer(view: CardView) -> str:
    answer = blocks.line(_text(view.answer, 4 * FOLD, "reply.output")) if view.answer else ""
    problem = prose(cut(view.problem, FOLD, "reply.error.message"))
    return answer + (blocks.line(f"{prose(view.mark)} <b>{problem}</b>") if view.problem else "")


def _rounds(view: CardView, *, times: bool) -> str:
    if not view.ledger and not any(r.calls or r.repairs for r in view.rounds):
        return ""  # a question and its answer: one round, nothing to tell
    calls = sum(len(r.calls) for r in view.rounds)
    fold = max(200, min(FOLD, CALLS_BUDGET // max(1, calls)))
    most = calls if calls <= MOST_CALLS else max(3, MOST_CALLS // len(view.rounds))
    shown = (
        view.rounds if len(view.rounds) <= MOST_ROUNDS else (*view.rounds[: MOST_ROUNDS - 1], view.rounds[-1])
    )
    drawn = [_round(r, fold, most, times=times) for r in shown]
    if len(drawn) <= OPEN_ROUNDS:
        return "".join(drawn)
    middle = drawn[OPEN_ROUNDS - 2 : -1]
    if len(view.rounds) > len(shown):
        middle.append(
            blocks.dim(f"… {len(view.rounds) - len(shown):,} more rounds (reply.offers, reply.tool_attempts)")
        )
    rounds = view.rounds[OPEN_ROUNDS - 2 : -1]
    inside = sum(len(r.calls) for r in rounds)
    title = prose(f"{count(len(rounds), 'round')} more, {count(inside, 'call')}")
    return "".join(drawn[: OPEN_ROUNDS - 2]) + blocks.details(title, "".join(middle)) + drawn[-1]


def _round(view: RoundView, fold: int, most: int, *, times: bool) -> str:
    asked = count(len(view.calls), "call") if view.calls else "answered"
    together = " together" if len(view.calls) > 1 else ""
    why = f" ({ticked(one_line(view.reason, 200))})" if view.reason else ""
    tail = [f"{asked}{together}", view.tokens, took(view.seconds) if times and view.seconds else ""]
    choice = f"choice <b>{prose(one_line(view.choice, 100))}</b>{why}"
    head = f"Round {view.number} · {choice} · {prose(' · '.join(t for t in tail if t))}"
    change = f" · {prose(one_line(view.change, 200))}" if view.change else ""
    repairs = "".join(blocks.line(prose(f"mended: {one_line(r, 400)}")) for r in view.repairs[:20])
    calls = "".join(_call(c, fold, times=times) for c in view.calls[:most])
    left = len(view.calls) - most
    more = blocks.dim(f"… {count(left, 'more call')}, from {view.calls[most].where} on") if left > 0 else ""
    return blocks.heading(head + change) + repairs + calls + more


def _call(view: CallView, fold: int, *, times: bool) -> str:
    name = one_line(view.name, 100)
    arguments = code(one_line(view.arguments, LINE)) if view.arguments else ""
    shown = one_line(view.result, LINE)
    result = code(shown) if view.status == "ok" else prose(shown)
    word = prose(f"{view.word}: ") if view.word and view.result else prose(view.word)
    time = f" · {took(view.seconds)}" if times and view.seconds else ""
    summary = f"{view.mark} <b>{prose(name)}</b> {arguments} → {word}{result}{time}"
    body = _call_body(view, fold)
    colour = COLOURS.get(view.mark, blocks.GREY)
    return blocks.details(summary, body, colour=colour) if body else blocks.bar(summary, colour)


def _call_body(view: CallView, fold: int) -> str:
    rows: list[tuple[str, str]] = []
    if len(view.arguments) > LINE or "\n" in view.arguments:
        rows.append(("arguments", pre(cut(view.arguments, fold, f"{view.where}.arguments"))))
    if view.steps:
        rows.append(("steps", _steps(view.steps, view.where)))
    if len(view.result) > LINE or "\n" in view.result:
        where = f"{view.where}.{'output' if view.status == 'ok' else 'error.message'}"
        rows.append(("result", pre(cut(_readable(view.result, fold), fold, where))))
    rows += [(f.name, code(cut(f.text, fold, f.where))) for f in view.facts[:20]]
    return blocks.pairs(rows)


def _readable(text: str, limit: int) -> str:
    """Indent JSON that is short enough to be read."""
    if len(text) > limit or text[:1] not in "{[":
        return text
    try:
        return json_text(json.loads(text), 1)
    except ValueError:
        return text


def _steps(steps: tuple[StepView, ...], where: str) -> str:
    rows = [
        (
            prose(f"{s.mark} {s.status}"),
            f"<b>{prose(one_line(s.name, 80))}</b>",
            code(one_line(s.tool, 80)),
            code(one_line(s.result, LINE, f"{where}.steps")) if s.result else "",
        )
        for s in steps[:STEPS]
    ]
    return blocks.table(rows) + (
        blocks.dim(f"… {len(steps) - STEPS:,} more ({where}.steps)") if len(steps) > STEPS else ""
    )


def _injected(view: CardView) -> str:
    if not view.injected:
        return ""
    return blocks.heading("Put in from memory") + blocks.bullets(
        prose(one_line(i, 200)) for i in view.injected
    )


def _thinking(view: CardView) -> str:
    return (
        blocks.details("Thinking", pre(cut(view.reasoning, FOLD, "reply.reasoning")))
        if view.reasoning
        else ""
    )


def _exchange(view: CardView) -> str:
    """What was sent and received, round by round: each message once, where it was new."""
    if not view.rounds:
        return ""
    left = EXCHANGES_BUDGET
    parts: list[str] = []
    if view.tools:
        shown = cut(view.tools, min(FOLD, left), "reply.definitions")
        parts.append(blocks.details("Tools, with every request that offers them", pre(shown)))
        left -= len(shown)
    for r in view.rounds[:MOST_ROUNDS]:
        limit = max(100, min(FOLD, left // 3))
        sent = cut(r.sent, limit, f"reply.request({r.number})")
        received = cut(r.received, limit, f"reply.model_calls[{r.number - 1}].response")
        new = "sent" if r.number == 1 else "sent, after all of the above: what was new"
        body = blocks.dim(new) + pre(sent) + blocks.dim("received") + pre(received)
        parts.append(blocks.details(f"Round {r.number}", body))
        left -= len(sent) + len(received)
    if len(view.rounds) > MOST_ROUNDS:
        parts.append(
            blocks.dim(
                f"… {len(view.rounds) - MOST_ROUNDS:,} more rounds (reply.request(n), reply.model_calls)"
            )
        )
    inner = f'<div style="padding-left:12px">{"".join(parts)}</div>'
    return blocks.details("Exactly what was sent and received", inner)
