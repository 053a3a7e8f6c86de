"""The run card as data: what a reply shows, in the order in which a person asks for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.core.types import ToolChoice
from jarvis_nb.display.escape import json_text
from jarvis_nb.record import Attempt, LedgerEntry, RoundOffer
from jarvis_nb.reply import Reply

MARKS = {"completed": "✓", "failed": "✗", "max_rounds": "⚠", "cancelled": "■", "paused": "‖"}
WORDS = {"max_rounds": "stopped at the limit", "cancelled": "interrupted", "paused": "waiting for a decision"}
CALL_MARKS = {"ok": "✓", "failed": "✗", "denied": "⊘", "cancelled": "■", "abandoned": "■", "pending": "‖"}


@dataclass(frozen=True, slots=True)
class CallView:
    """One call on the card."""

    mark: str
    name: str
    arguments: dict[str, Any] | None
    status: str
    result: str
    """The output as text, or what went wrong."""
    facts: tuple[tuple[str, str], ...]
    """Heading and text: source, steps, repairs, what the model saw, who chose."""
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
    calls: tuple[CallView, ...]
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
    repairs: tuple[str, ...]
    warnings: tuple[str, ...]
    injected: tuple[str, ...]
    reasoning: str
    seconds: float
    tools: str = field(default="")
    """The tool definitions that were sent, as JSON."""


def card(reply: Reply) -> CardView:
    """Return the view of a reply."""
    by_round: dict[int, list[Attempt]] = {}
    position = {id(a): n for n, a in enumerate(reply.tool_attempts)}
    for attempt in reply.tool_attempts:
        by_round.setdefault(attempt.round, []).append(attempt)
    rounds = tuple(
        _round(reply, number, [_call(a, position[id(a)], reply) for a in by_round.get(number, [])])
        for number in range(1, len(reply.model_calls) + 1)
    )
    return CardView(
        reply.question,
        reply.output,
        WORDS.get(reply.status, reply.status),
        MARKS[reply.status],
        tuple(facts(reply)),
        f"{reply.error.message} [{reply.error.code}]" if reply.error else "",
        reply.offers[0].entries if reply.offers else (),
        rounds,
        tuple(str(r) for r in reply.repairs),
        tuple(reply.warnings),
        tuple(f"{i.get('source', '')}: {i.get('reason', '')}".strip(": ") for i in reply.injected),
        reply.reasoning,
        max((c.started + c.seconds for c in reply.model_calls), default=0.0),
        json_text(
            [
                {"name": d.name, "description": d.description, "parameters": d.parameters}
                for d in reply.definitions
            ]
        ),
    )


def facts(reply: Reply) -> list[str]:
    """Return the one line of facts: status, rounds, calls, tokens, cost, model, agent."""
    found = [WORDS.get(reply.status, reply.status)]
    if reply.agent is not None:
        found.append(_count(reply.tool_rounds, "tool round"))
        found.append(_count(len(reply.tool_attempts), "call"))
    if reply.usage.total_tokens:
        found.append(f"{reply.usage.prompt_tokens:,} + {reply.usage.completion_tokens:,} tokens")
    if reply.cost_usd:
        found.append(f"${reply.cost_usd:.4f}")
    if reply.repairs:
        found.append(_count(len(reply.repairs), "repair"))
    found.append(f"{reply.model} on {reply.engine}" if reply.model != reply.engine else reply.engine)
    if reply.agent is not None:
        found.append(reply.agent)
    return [f for f in found if f]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def choice_text(choice: ToolChoice) -> str:
    """Return a tool choice in words."""
    if choice is None:
        return "none"
    return choice if isinstance(choice, str) else f"must call {choice['function']['name']}"


def _round(reply: Reply, number: int, calls: list[CallView]) -> RoundView:
    made = reply.model_calls[number - 1]
    offer = reply.offers[number - 1] if number <= len(reply.offers) else RoundOffer(number, (), None, "")
    before = reply.model_calls[number - 2].messages if number > 1 else 0
    new = reply.messages[before : made.messages]
    return RoundView(
        number,
        choice_text(offer.choice),
        offer.reason,
        tuple(calls),
        json_text([m.to_openai() for m in new]),
        json_text(made.response),
        made.started,
        made.seconds,
    )


def _call(attempt: Attempt, position: int, reply: Reply) -> CallView:
    where = f"reply.tool_attempts[{position}]"
    if attempt.error is not None:
        result = attempt.error.message
    else:
        result = attempt.output if isinstance(attempt.output, str) else json_text(attempt.output)
    return CallView(
        CALL_MARKS.get(attempt.status, "?"),
        attempt.tool.name,
        attempt.arguments,
        attempt.status,
        result,
        tuple(_call_facts(attempt, reply)),
        where,
        attempt.started,
        attempt.seconds,
    )


def _call_facts(attempt: Attempt, reply: Reply) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if attempt.tool.source:
        found.append(("source", attempt.tool.source))
    if attempt.steps:
        marks = {"ok": "✓", "error": "✗"}
        found.append(
            ("steps", " → ".join(f"{s['name']} {marks.get(s['status'], s['status'])}" for s in attempt.steps))
        )
    if attempt.raw_name is not None and attempt.raw_name != attempt.tool.name:
        found.append(("asked for", attempt.raw_name))
    if attempt.raw_arguments is not None:
        found.append(("sent as", attempt.raw_arguments))
    if attempt.provider_id is not None:
        found.append(("provider's id", attempt.provider_id))
    if attempt.by:
        who = Counter(attempt.by.values())
        found.append(
            ("chosen by", ", ".join(f"{step}: {by}" for step, by in attempt.by.items()) if who else "")
        )
    found += [
        ("repaired", r.message)
        for r in reply.repairs
        if r.round == attempt.round and attempt.call_id in r.message
    ]
    if attempt.error is not None or attempt.truncated:
        found.append(("the model saw", attempt.content))
    return found
