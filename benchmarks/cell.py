"""What a run costs where it is shown: the live view's messages, the static card, and the hook between them."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from statistics import median
from types import SimpleNamespace
from typing import Any

from benchmarks.measure import Result, check, cpu

FEW, MANY = 10, 10_000
"""Calls of a run, between which an update's size is compared."""


class Page:
    """Stands for the widget of a view whose page has said hello: what would be sent is kept."""

    def __init__(self, view: Any) -> None:
        self.sent: list[Any] = []
        self.snapshot: Any = None
        view._model = self  # noqa: SLF001 - in place of the one that would be made when it is shown
        view.heard = True

    def send(self, message: Any) -> None:
        self.sent.append(message)


def updates(side: Any, url: str) -> Result:  # noqa: ARG001
    """The bytes of a call's two updates, its start and its end, late in a large run and late in a small one."""
    from jarvis_nb import EventBus, EventType
    from jarvis_nb.widgets import RunView

    def sent(calls: int) -> float:
        bus = EventBus()
        view = RunView(bus)
        page = Page(view)
        bus.publish(EventType.ROUND_START, round=1, offered=["add"], choice="auto")
        for number in range(calls):
            about = {"call_id": f"call_{number:05}", "tool": "add"}
            bus.publish(EventType.TOOL_CALL_START, **about, arguments={"a": 1, "b": 2})
            bus.publish(EventType.TOOL_CALL_END, **about, status="ok", content="3", latency_seconds=0.001)
        check(len(view.state()["calls"]) == calls and page.snapshot is None, view)
        last = page.sent[-2 * FEW :]
        check(all(message["op"] == "delta" for message in last) and len(last) == 2 * FEW, last)
        return sum(len(json.dumps(message).encode()) for message in last) / len(last)

    few, many = sent(FEW), sent(MANY)
    return {"size": many, "growth": many / few}


def card(side: Any, url: str, *, calls: int, times: int) -> Result:  # noqa: ARG001
    """The static card of a reply of several calls with long arguments and results: its bytes, and its drawing."""
    from jarvis_nb import Jarvis, action
    from jarvis_nb.engines import ScriptedEngine, call

    @action
    def search(query: str, limit: int = 5) -> dict[str, Any]:
        """Search the catalogue."""
        return {"hits": [{"title": f"{query} {n}", "text": "lorem ipsum " * 60} for n in range(limit)]}

    asked = [
        [call("search", query=f"query {r} {c} " + "x" * 300) for c in range(5)] for r in range(calls // 5)
    ]
    with Jarvis(engine=ScriptedEngine([*asked, "Done. " * 100]), config={}) as jarvis:
        reply = jarvis.ask_full("Find it.", tools=[search])
    check(len(reply.tool_attempts) == calls, reply)
    html = reply.to_html()
    used: list[float] = []
    for _ in range(times):
        before = cpu()
        again = reply.to_html()
        used.append(cpu() - before)
        check(again == html, "the same card")
    return {"size": len(html.encode()), "cpu": median(used)}


def hook(side: Any, url: str, *, rounds: int, times: int) -> Result:  # noqa: ARG001
    """Asks in a kernel without a front end, with the live hook and without it, in turns."""
    import jarvis_nb.jarvis as facade
    from jarvis_nb.run import live

    shell = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False))
    sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)  # pyright: ignore[reportArgumentType] - all that is asked of it

    def nothing(_: Any, *, wanted: bool = True) -> Any:  # noqa: ARG001 - as the hook is called
        return nullcontext(False)

    kinds = [live.watch, nothing]
    ask = f"bench rounds={rounds}"

    def used(watch: Any) -> float:
        facade.watch = watch
        before = cpu()
        answer = side.ask(ask, ("add",))
        taken = cpu() - before
        check(answer == f"done R={rounds} P=1", answer)
        return taken

    for watch in kinds * 3:
        used(watch)
    ratios: list[float] = []
    for number in range(times):
        order = kinds[:: -1 if number % 2 else 1]
        taken = {watch: used(watch) for watch in order}
        ratios.append(taken[kinds[0]] / taken[kinds[1]])
    return {"ratio": median(ratios)}
