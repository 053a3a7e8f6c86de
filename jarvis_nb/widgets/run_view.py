"""The run view: what a run does, as it happens. One widget a run; a finished reply can be shown in it too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from jarvis_nb.core.events import Event, EventBus, EventType
from jarvis_nb.display import bundle
from jarvis_nb.display.card import MARKS, WORDS, facts
from jarvis_nb.display.escape import one_line, plain
from jarvis_nb.reply import Reply
from jarvis_nb.widgets.changes import call_ended, call_made, changes_of, round_made
from jarvis_nb.widgets.view import View

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
        self._run: dict[str, Any] = {
            "question": "",
            "status": "running",
            "mark": "▶",
            "answer": "",
            "facts": "",
        }
        self._calls: dict[str, dict[str, Any]] = {}
        self._rounds: dict[int, dict[str, Any]] = {}
        self._stop = bus.subscribe(self._take) if bus is not None else None

    @classmethod
    def of(cls, reply: Reply) -> RunView:
        """Show a finished reply, of any size: ten thousand calls scroll."""
        view = cls()
        for number, offer in enumerate(reply.offers, 1):
            view.change([round_made(number, offer.offered, offer.choice, offer.reason)])
        for attempt in reply.tool_attempts:
            call = call_made(attempt.call_id, attempt.round, attempt.tool.name, attempt.arguments)
            content = attempt.error.message if attempt.error is not None else attempt.content
            view.change([call, call_ended(attempt.call_id, attempt.status, content, attempt.seconds)])
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
            lines.append(
                one_line(f"  {call['round']} {call['mark']} {made} → {call.get('result') or call['word']}")
            )
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
        "facts": plain(" · ".join(facts(reply)[1:])),
        "problem": plain(reply.error.message) if reply.error else "",
    }
