"""What each event changes in a live run's state: a table of small pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jarvis_nb.core.events import Event, EventType
from jarvis_nb.display.card import CALL_MARKS, CALL_WORDS, MARKS, WORDS
from jarvis_nb.display.escape import arguments_text, json_text, one_line, plain
from jarvis_nb.display.ledger import choice_text

Change = dict[str, Any]
"""A whole new thing or new fields of a known one; ``is`` says what it is: run, round, call or text."""
Data = Mapping[str, Any]

LINE = 400
"""Characters of arguments or a result in a live card; the static one has the whole."""


def changes_of(event: Event, number: int) -> list[Change]:
    """Return what an event changes; ``number`` is the round that runs."""
    change = _CHANGES.get(event.event_type)
    return [] if change is None else change(event.data, number)


def round_made(number: int, offered: list[str], choice: Any, reason: str) -> Change:
    """Return a round, as it begins."""
    names = one_line(", ".join(map(str, offered)), LINE)
    return {
        "is": "round",
        "number": number,
        "choice": one_line(choice_text(choice), 120),
        "reason": one_line(reason, 200),
        "offered": names,
    }


def call_made(call_id: str, number: int, name: str, arguments: Any) -> Change:
    """Return a call, as it begins."""
    text = arguments_text(arguments) if isinstance(arguments, dict) else arguments or ""
    shown = text if isinstance(text, str) else json_text(text)
    return {
        "is": "call",
        "id": call_id,
        "round": number,
        "name": one_line(name, 100),
        "arguments": one_line(shown, LINE),
        "mark": "▶",
        "word": "running",
        "status": "running",
    }


def call_ended(call_id: str, status: str, content: str, seconds: float | None) -> Change:
    """Return how a call ended."""
    return {
        "is": "call",
        "id": call_id,
        "mark": CALL_MARKS.get(status, "?"),
        "status": status,
        "word": CALL_WORDS.get(status, status),
        "result": one_line(content, LINE),
        "seconds": seconds or 0,
        "progress": None,
    }


def _progress(data: Mapping[str, Any]) -> Change:
    done, total = data.get("done"), data.get("total")
    share = (
        done / total
        if isinstance(done, int | float) and isinstance(total, int | float) and total > 0
        else None
    )
    text = one_line(data.get("text") or (f"{done:g} of {total:g}" if share is not None else f"{done}"), 200)
    return {"is": "call", "id": data["call_id"], "progress": {"share": share, "text": text}}


def _begun(data: Data, _: int) -> list[Change]:
    about = " · ".join(dict.fromkeys(str(data[key]) for key in ("model", "engine", "agent") if data.get(key)))
    return [{"is": "run", "question": plain(data["question"]), "facts": plain(about)}]


def _ended(data: Data, _: int) -> list[Change]:
    status = str(data["status"])
    return [{"is": "run", "status": WORDS.get(status, status), "mark": MARKS.get(status, "✓")}]


def _round_begun(data: Data, _: int) -> list[Change]:
    return [round_made(data["round"], data.get("offered") or [], data.get("choice"), "")]


def _thinking(data: Data, _: int) -> list[Change]:
    return [{"is": "round", "number": data["round"], "thinking": True}, {"is": "run", "answer": ""}]


def _thought(data: Data, _: int) -> list[Change]:
    usage = data.get("usage") or {}
    tokens = f"{usage.get('prompt_tokens', 0):,} + {usage.get('completion_tokens', 0):,} tokens"
    shown = tokens if usage.get("total_tokens") else ""
    return [{"is": "round", "number": data["round"], "thinking": False, "tokens": shown}]


def _text(data: Data, _: int) -> list[Change]:
    return [{"is": "text", "text": plain(data["text"])}]


def _call_begun(data: Data, number: int) -> list[Change]:
    return [call_made(data["call_id"], number, data["tool"], data.get("arguments"))]


def _call_over(data: Data, _: int) -> list[Change]:
    return [call_ended(data["call_id"], data["status"], data.get("content", ""), data.get("latency_seconds"))]


def _progressed(data: Data, _: int) -> list[Change]:
    return [_progress(data)]


def _step(data: Data, _: int) -> list[Change]:
    return [{"is": "call", "id": data["call_id"], "step": plain(f"{data['step']} {data.get('status', '…')}")}]


def _asked(data: Data, _: int) -> list[Change]:
    return [{"is": "call", "id": data["call_id"], "mark": "‖", "word": "waits for your decision"}]


def _decided(data: Data, _: int) -> list[Change]:
    return [{"is": "call", "id": data["call_id"], "mark": "▶", "word": "running"}]


def _mended(data: Data, _: int) -> list[Change]:
    return [{"is": "round", "number": data["round"], "repair": plain(data["text"])}]


def _warned(data: Data, _: int) -> list[Change]:
    return [{"is": "run", "warning": plain(data["text"])}]


_CHANGES: dict[EventType, Callable[[Data, int], list[Change]]] = {
    EventType.RUN_START: _begun,
    EventType.RUN_END: _ended,
    EventType.ROUND_START: _round_begun,
    EventType.INFERENCE_START: _thinking,
    EventType.INFERENCE_END: _thought,
    EventType.TEXT: _text,
    EventType.TOOL_CALL_START: _call_begun,
    EventType.TOOL_CALL_END: _call_over,
    EventType.TOOL_PROGRESS: _progressed,
    EventType.FLOW_STEP_START: _step,
    EventType.FLOW_STEP_END: _step,
    EventType.APPROVAL_REQUEST: _asked,
    EventType.APPROVAL_DECISION: _decided,
    EventType.REPAIR: _mended,
    EventType.WARNING: _warned,
}
