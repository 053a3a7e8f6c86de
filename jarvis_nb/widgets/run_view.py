"""The run view: what a run does, as it happens. One widget a run; a finished reply can be shown in it too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from jarvis_nb.core.events import Event, EventBus, EventType
from jarvis_nb.display import bundle
from jarvis_nb.display.card import CALL_MARKS, CALL_WORDS, MARKS, WORDS, facts
from jarvis_nb.display.escape import arguments_text, json_text, one_line, plain
from jarvis_nb.display.ledger import choice_text
from jarvis_nb.reply import Reply
from jarvis_nb.widgets.view import View

LINE = 400
"""Characters of arguments or a result in a live card; the static one has the whole."""
ITEMS = 200
"""Changes in one message at most, so that a message's size is bounded."""


class RunView(View):
    """A run as it happens: what is offered, each call, its progress, the answer as it streams.

    Args:
        bus: Whose events to show: ``j.bus``, or one run's.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> from jarvis_nb.engines import ScriptedEngine, call
        >>> j = Jarvis(engine=ScriptedEngine([call("calculator", expression="2+2"), "It is 4."]))
        >>> view = RunView(j.bus)
        >>> r = j.ask_full("2+2?", tools=["calculator"])
        >>> print(view.static()["text/plain"])
        2+2?
          1 ✓ calculator(expression="2+2") → 4
        ✓ completed
    """

    parts: ClassVar[tuple[str, ...]] = ("run_view",)

    def __init__(self, bus: EventBus | None = None) -> None:
        super().__init__()
        self.reply: Reply | None = None
        self._run: dict[str, Any] = {"question": "", "status": "running", "mark": "▶", "answer": "", "facts": ""}
        self._calls: dict[str, dict[str, Any]] = {}
        self._rounds: dict[int, dict[str, Any]] = {}
        self._stop = bus.subscribe(self._take) if bus is not None else None

    @classmethod
    def of(cls, reply: Reply) -> RunView:
        """Show a finished reply, of any size: ten thousand calls scroll."""
        view = cls()
        for number, offer in enumerate(reply.offers, 1):
            view.change([_round(number, offer.offered, offer.choice, offer.reason)])
        for attempt in reply.tool_attempts:
            call = _call(attempt.call_id, attempt.round, attempt.tool.name, attempt.arguments)
            content = attempt.error.message if attempt.error is not None else attempt.content
            view.change([call, _ended(attempt.call_id, attempt.status, content, attempt.seconds)])
        view.finish(reply)
        return view

    # The state.

    def state(self) -> dict[str, Any]:
        """Return the run with its rounds and calls, in order."""
        return {"run": self._run, "rounds": list(self._rounds.values()), "calls": list(self._calls.values())}

    def static(self) -> dict[str, str]:
        """Return the card of a finished run, or where it stands."""
        if self.reply is not None:
            return bundle(self.reply)
        from jarvis_nb.display import blocks
        from jarvis_nb.display.escape import code, prose

        run = self._run
        lines = [one_line(run["question"])]
        parts = [blocks.line(f"<b>{prose(one_line(run['question'], 400))}</b>")]
        for call in list(self._calls.values())[:ITEMS]:
            made = f"{call['name']}({call['arguments']})"
            lines.append(one_line(f"  {call['round']} {call['mark']} {made} → {call.get('result') or call['word']}"))
            said = code(one_line(call.get("result", ""), 120)) if call.get("result") else prose(call["word"])
            summary = f"{call['mark']} <b>{prose(call['name'])}</b> {code(call['arguments'][:120])} → {said}"
            parts.append(blocks.bar(summary, blocks.COLOURS.get(call["mark"], blocks.GREY)))
        lines.append(f"{run['mark']} {run['status']}")
        parts.append(blocks.line(prose(f"{run['mark']} {run['status']}"), blocks.DIM))
        return {"text/plain": "\n".join(lines), "text/html": blocks.frame(parts)}

    def change(self, changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Enter changes and return them: each is a whole new thing or the fields of a known one."""
        made = [dict(change) for change in changes]
        for one in made:
            fields = {key: value for key, value in one.items() if key != "is"}
            match one["is"]:
                case "call":
                    self._calls.setdefault(one["id"], {}).update(fields)
                case "round":
                    self._rounds.setdefault(one["number"], {}).update(fields)
                case "text":
                    self._run["answer"] = (self._run["answer"] + one["text"])[-100_000:]
                case _:
                    self._run.update(fields)
        return made

    # What happens.

    def _take(self, event: Event) -> None:
        with self._lock:
            changes = changes_of(event, self._number())
            if changes:
                self.send(self.change(changes))
        if event.event_type is EventType.RUN_END:
            self.commit()

    def _number(self) -> int:
        return max(self._rounds, default=0)

    def enter(self, event: Event) -> list[dict[str, Any]]:
        """Enter an event and return what it changed, without sending it."""
        with self._lock:
            return self.change(changes_of(event, self._number()))

    def finish(self, reply: Reply) -> None:
        """Show how the run ended, and write the snapshot."""
        with self._lock:
            self.reply = reply
            self.change([_run_of(reply)])
            self.commit()
        if self._stop is not None:
            self._stop()

    def __repr__(self) -> str:
        return f"RunView({self._run['status']}, calls={len(self._calls)})"


def _run_of(reply: Reply) -> dict[str, Any]:
    return {
        "is": "run",
        "question": plain(reply.question),
        "answer": plain(reply.output),
        "status": WORDS.get(reply.status, reply.status),
        "mark": MARKS[reply.status],
        "facts": " · ".join(facts(reply)[1:]),
        "problem": plain(reply.error.message) if reply.error else "",
    }


def changes_of(event: Event, number: int) -> list[dict[str, Any]]:
    """Return what an event changes in a run's state; ``number`` is the round that runs."""
    data = event.data
    match event.event_type:
        case EventType.RUN_START:
            about = " · ".join(str(data.get(k) or "") for k in ("model", "engine", "agent") if data.get(k))
            return [{"is": "run", "question": plain(data["question"]), "facts": plain(about)}]
        case EventType.ROUND_START:
            return [_round(data["round"], data.get("offered") or [], data.get("choice"), "")]
        case EventType.INFERENCE_START:
            return [{"is": "round", "number": data["round"], "thinking": True}, {"is": "run", "answer": ""}]
        case EventType.INFERENCE_END:
            usage = data.get("usage") or {}
            tokens = f"{usage.get('prompt_tokens', 0):,} + {usage.get('completion_tokens', 0):,} tokens"
            shown = tokens if usage.get("total_tokens") else ""
            return [{"is": "round", "number": data["round"], "thinking": False, "tokens": shown}]
        case EventType.TEXT:
            return [{"is": "text", "text": plain(data["text"])}]
        case EventType.TOOL_CALL_START:
            return [_call(data["call_id"], number, data["tool"], data.get("arguments"))]
        case EventType.TOOL_CALL_END:
            return [_ended(data["call_id"], data["status"], data.get("content", ""), data.get("latency_seconds"))]
        case EventType.TOOL_PROGRESS:
            return [_progress(data)]
        case EventType.FLOW_STEP_START | EventType.FLOW_STEP_END:
            return [{"is": "call", "id": data["call_id"], "step": f"{plain(data['step'])} {data.get('status', '…')}"}]
        case EventType.APPROVAL_REQUEST:
            return [{"is": "call", "id": data["call_id"], "mark": "‖", "word": "waits for your decision"}]
        case EventType.APPROVAL_DECISION:
            return [{"is": "call", "id": data["call_id"], "mark": "▶", "word": "running"}]
        case EventType.REPAIR:
            return [{"is": "round", "number": data["round"], "repair": plain(data["text"])}]
        case EventType.WARNING:
            return [{"is": "run", "warning": plain(data["text"])}]
        case EventType.RUN_END:
            status = str(data["status"])
            return [{"is": "run", "status": WORDS.get(status, status), "mark": MARKS.get(status, "✓")}]
        case _:
            return []


def _round(number: int, offered: list[str], choice: Any, reason: str) -> dict[str, Any]:
    names = one_line(", ".join(map(str, offered)), LINE)
    return {
        "is": "round",
        "number": number,
        "choice": one_line(choice_text(choice), 120),
        "reason": one_line(reason, 200),
        "offered": names,
    }


def _call(call_id: str, number: int, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments_text(arguments) if isinstance(arguments, dict) else arguments if arguments else ""
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


def _ended(call_id: str, status: str, content: str, seconds: float | None) -> dict[str, Any]:
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


def _progress(data: Mapping[str, Any]) -> dict[str, Any]:
    done, total = data.get("done"), data.get("total")
    share = done / total if isinstance(done, int | float) and isinstance(total, int | float) and total > 0 else None
    text = one_line(data.get("text") or (f"{done:g} of {total:g}" if share is not None else f"{done}"), 200)
    return {"is": "call", "id": data["call_id"], "progress": {"share": share, "text": text}}
