"""The run card as data: what a reply shows, in the order in which a person asks for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.types import Definitions, Role
from jarvis_nb.display.escape import arguments_text, count, json_text
from jarvis_nb.display.ledger import choice_text
from jarvis_nb.display.timeline import Span, spans
from jarvis_nb.record import Attempt, LedgerEntry, RoundOffer
from jarvis_nb.reply import Reply

MARKS = {"completed": "✓", "failed": "✗", "max_rounds": "⚠", "cancelled": "■", "paused": "‖"}
WORDS = {"max_rounds": "stopped at the limit", "cancelled": "interrupted", "paused": "waiting for a decision"}
CALL_MARKS = {"ok": "✓", "failed": "✗", "denied": "⊘", "cancelled": "■", "abandoned": "■", "pending": "‖"}
CALL_WORDS = {
    "ok": "",
    "failed": "",
    "cancelled": "interrupted",
    "abandoned": "left behind",
    "pending": "waiting for a decision",
}
MOST_TOOLS = 20
STEP_MARKS = {"ok": "✓", "error": "✗", "skipped": "○", "cancelled": "⊘", "abandoned": "■"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A heading, a text, and the expression that holds the whole of it."""

    name: str
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a flow that a call ran."""

    mark: str
    name: str
    tool: str
    status: str
    result: str


@dataclass(frozen=True, slots=True)
class CallView:
    """One call on the card."""

    mark: str
    name: str
    arguments: str
    """As they would stand in a call."""
    status: str
    word: str
    """The status in words, where the sign alone leaves it open."""
    result: str
    """The output as text, or what went wrong."""
    facts: tuple[Fact, ...]
    """What is worth knowing beside it: source, repairs, what the model saw, who chose."""
    steps: tuple[StepView, ...]
    where: str
    """The expression that holds the whole of it."""
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundView:
    """One model call on the card, and the tool calls it asked for."""

    number: int
    choice: str
    reason: str
    change: str
    """What the offer lost or gained since the round before, in words."""
    calls: tuple[CallView, ...]
    tokens: str
    repairs: tuple[str, ...]
    """What was mended in this round and belongs to no call."""
    sent: str
    """The messages that were new in this round's request, as JSON."""
    received: str
    """The raw response, as JSON."""
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class CardView:
    """A whole run."""

    question: str
    answer: str
    status: str
    mark: str
    facts: tuple[str, ...]
    problem: str
    """The error's message, where the run did not complete."""
    ledger: tuple[LedgerEntry, ...]
    rounds: tuple[RoundView, ...]
    warnings: tuple[str, ...]
    injected: tuple[str, ...]
    reasoning: str
    tools: str
    """The tool definitions that were sent, as JSON."""
    timeline: tuple[Span, ...]


def card(reply: Reply) -> CardView:
    """Return the view of a reply."""
    by_round: dict[int, list[CallView]] = {}
    asks = _asks(reply)
    for position, attempt in enumerate(reply.tool_attempts):
        by_round.setdefault(attempt.round, []).append(_call(attempt, position, reply, asks))
    rounds = tuple(_round(reply, n, by_round.get(n, [])) for n in range(1, len(reply.model_calls) + 1))
    works = [("model", r.started, r.seconds, "") for r in rounds]
    works += [(c.name, c.started, c.seconds, c.mark) for calls in by_round.values() for c in calls]
    return CardView(
        reply.question,
        reply.output,
        WORDS.get(reply.status, reply.status),
        MARKS[reply.status],
        tuple(facts(reply)),
        f"{reply.error.message} [{reply.error.code}]" if reply.error else "",
        reply.offers[0].entries if reply.offers else (),
        rounds,
        tuple(reply.warnings),
        tuple(_injected(record) for record in reply.injected),
        reply.reasoning,
        _tools(reply),
        spans(works),
    )


def facts(reply: Reply) -> list[str]:
    """Return the one line of facts: status, rounds, calls, tokens, cost, model, agent."""
    found = [WORDS.get(reply.status, reply.status)]
    if reply.agent is not None:
        found.append(count(reply.tool_rounds, "tool round"))
        found.append(count(len(reply.tool_attempts), "call"))
        failed = sum(a.status != "ok" for a in reply.tool_attempts)
        found.append(f"{failed:,} not ok" if failed else "")
    if reply.usage.total_tokens:
        found.append(f"{reply.usage.prompt_tokens:,} + {reply.usage.completion_tokens:,} tokens")
    if reply.cost_usd:
        found.append(f"${reply.cost_usd:.4f}")
    if reply.repairs:
        found.append(count(len(reply.repairs), "repair"))
    found.append(f"{reply.model} on {reply.engine}" if reply.model != reply.engine else reply.engine)
    found.append(reply.agent or "")
    return [f for f in found if f]


def _tools(reply: Reply) -> str:
    """Return the definitions as they were sent, in the default form; of very many only the first."""
    if not reply.definitions:
        return ""
    from jarvis_nb.core.schema import openai_tools

    sent = json_text(openai_tools(Definitions(reply.definitions[:MOST_TOOLS])))
    more = len(reply.definitions) - MOST_TOOLS
    return f"{sent} … {more:,} more tools" if more > 0 else sent


def _injected(record: dict[str, Any]) -> str:
    tokens = f" ({count(record['tokens'], 'token')})" if isinstance(record.get("tokens"), int) else ""
    return f"{record.get('source') or 'no source'}{tokens}: {record.get('reason', '')}"


def _round(reply: Reply, number: int, calls: list[CallView]) -> RoundView:
    made = reply.model_calls[number - 1]
    offer = reply.offers[number - 1] if number <= len(reply.offers) else RoundOffer(number, (), None, "")
    before = reply.model_calls[number - 2].messages if number > 1 else 0
    new = reply.messages[before : made.messages]
    if (
        number > 1
        and new
        and new[0].role is Role.ASSISTANT
        and not any(r.round == number - 1 for r in reply.repairs)
    ):
        new = new[1:]  # what was received just before, as it came
    used = f"{made.usage.prompt_tokens:,} + {made.usage.completion_tokens:,} tokens"
    mine = [r.message for r in reply.repairs if r.round == number]
    told = {f.text for c in calls for f in c.facts if f.name == "repaired"}
    return RoundView(
        number,
        choice_text(offer.choice),
        offer.reason,
        _change(reply, number),
        tuple(calls),
        used if made.usage.total_tokens else "",
        tuple(m for m in mine if m not in told),
        json_text([m.to_openai() for m in new]),
        json_text(made.response),
        made.started,
        made.seconds,
    )


def _change(reply: Reply, number: int) -> str:
    """Say how the offer of a round differs from the one before."""
    if number < 2 or number > len(reply.offers):  # noqa: PLR2004 - the first has none before it
        return ""
    before, now = reply.offers[number - 2].offered, reply.offers[number - 1].offered
    if before == now:
        return ""
    lost, gained = [n for n in before if n not in now], [n for n in now if n not in before]
    if not now:
        return "no tool offered any more"
    parts = [f"no longer offered: {', '.join(lost)}"] if lost else []
    return "; ".join(parts + ([f"now offered: {', '.join(gained)}"] if gained else []))


def _call(attempt: Attempt, position: int, reply: Reply, asks: dict[str, dict[str, Any]]) -> CallView:
    where = f"reply.tool_attempts[{position}]"
    if attempt.error is not None:
        result = attempt.error.message
    else:
        result = attempt.output if isinstance(attempt.output, str) else json_text(attempt.output)
    return CallView(
        CALL_MARKS.get(attempt.status, "?"),
        attempt.tool.name,
        arguments_text(attempt.arguments),
        attempt.status,
        CALL_WORDS.get(attempt.status, attempt.status),
        result,
        tuple(_call_facts(attempt, where, reply, asks)),
        tuple(map(_step, attempt.steps or ())),
        where,
        attempt.started,
        attempt.seconds,
    )


def _asks(reply: Reply) -> dict[str, dict[str, Any]]:
    """Return the arguments of each call as the transcript has them: a person may have run it with others."""
    found: dict[str, dict[str, Any]] = {}
    for call in (call for message in reply.messages for call in message.tool_calls or ()):
        try:
            given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
        except ValueError:
            continue  # the attempt says what was sent
        if isinstance(given, dict):
            found[call.id] = given
    return found


def _differs(asked: dict[str, Any], ran: dict[str, Any]) -> bool:
    """Whether a call ran with other values than it was asked with; a lossless reading of one is no other."""
    return any(
        key not in ran or (value is not None and str(value).casefold() != str(ran[key]).casefold())
        for key, value in asked.items()
        if not isinstance(value, dict | list | float)
    )


def _step(step: dict[str, Any]) -> StepView:
    error, status = step.get("error"), str(step.get("status", ""))
    result = (
        (error or {}).get("message", "") if error else json_text(step.get("output")) if status == "ok" else ""
    )
    return StepView(
        STEP_MARKS.get(status, "?"), str(step.get("name")), str(step.get("tool", "")), status, result
    )


def _call_facts(attempt: Attempt, where: str, reply: Reply, asks: dict[str, dict[str, Any]]) -> list[Fact]:
    found: list[tuple[str, str, str]] = []
    if attempt.tool.source:
        found.append(("source", attempt.tool.source, "tool.source"))
    if attempt.raw_name is not None and attempt.raw_name != attempt.tool.name:
        found.append(("asked for", attempt.raw_name, "raw_name"))
    if attempt.raw_arguments is not None:
        found.append(("sent as", attempt.raw_arguments, "raw_arguments"))
    asked = asks.get(attempt.call_id)
    if asked is not None and attempt.ran and _differs(asked, attempt.arguments or {}):
        found.append(("the model asked for", arguments_text(asked), "arguments"))
    if attempt.provider_id is not None:
        found.append(("provider's id", attempt.provider_id, "provider_id"))
    if attempt.by:
        found.append(("chosen by", ", ".join(f"{step}: {by}" for step, by in attempt.by.items()), "by"))
    found += [
        ("repaired", r.message, "")
        for r in reply.repairs
        if r.round == attempt.round and attempt.call_id in r.message
    ]
    if attempt.error is not None:
        found.append(("error", attempt.error.code, "error"))
    if attempt.truncated or (attempt.error is not None and attempt.content != attempt.error.message):
        found.append(("the model saw", attempt.content, "content"))
    return [Fact(name, text, f"{where}.{field}" if field else "reply.repairs") for name, text, field in found]
