"""Our side of the measurements: the public API with its defaults, limits lifted, and every event taken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from benchmarks.samples import functions
from jarvis_nb import Jarvis, ToolCall, ToolExecutor, Toolset, action
from jarvis_nb.engines import OpenAIEngine

Tools = tuple[str, ...]
LIMITS = {"rounds": 10_000, "calls": 100_000}


class Side:
    """Our side of every measurement."""

    def __init__(self, url: str) -> None:
        self.engine = OpenAIEngine(url, "no-key")
        self.jarvis = Jarvis(engine=self.engine, model="bench")
        self.events = 0
        self.jarvis.bus.subscribe(self._count)  # nobody makes events that nobody hears
        self.tools: dict[Tools, Any] = {}

    def _count(self, _: object) -> None:
        self.events += 1

    def declare(self, names: Tools) -> None:
        if names not in self.tools:
            self.tools[names] = [action(fn) for fn in functions(names)]

    def _options(self, names: Tools) -> dict[str, Any]:
        if not names:
            return {}
        self.declare(names)
        return {"agent": "orchestrator", "tools": self.tools[names], "limits": LIMITS}

    def ask(self, question: str, names: Tools = ()) -> str:
        return self.jarvis.ask(question, **self._options(names))

    async def aask(self, question: str, names: Tools = ()) -> str:
        return (await self.jarvis.aask_full(question, **self._options(names))).output

    async def stream(self, question: str) -> AsyncGenerator[str]:
        async for event in self.jarvis.astream(question):
            if event.text:
                yield event.text

    def definitions(self, fns: Any) -> Any:
        return Toolset(map(action, fns)).definitions()

    def dispatcher(self, fn: Callable[..., Any], heard: bool) -> Callable[[str], Any]:
        executor = ToolExecutor([action(fn)], self.jarvis.bus if heard else None)
        name = fn.__name__
        run: Callable[[ToolCall], Any] = executor.aexecute if name.endswith("async") else executor.execute
        return lambda arguments: run(ToolCall(id="call_1", name=name, arguments=arguments))

    async def aclose(self) -> None:
        await self.jarvis.aclose()
        await self.engine.close()
