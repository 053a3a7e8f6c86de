"""The playground: a question, tools, a policy and an engine; run; the card below."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from jarvis_nb.core.approval import ApprovalRequest, Decision, Deny
from jarvis_nb.core.bridge import run_sync
from jarvis_nb.core.errors import JarvisError
from jarvis_nb.core.events import EventBus
from jarvis_nb.display import bundle
from jarvis_nb.display.escape import plain
from jarvis_nb.jarvis import Jarvis
from jarvis_nb.reply import Reply
from jarvis_nb.run.live import unwatched
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.widgets.gate import ApprovalGate
from jarvis_nb.widgets.picker import PolicyPicker
from jarvis_nb.widgets.run_view import RunView

AGENTS = ("", "orchestrator", "simple")


class Playground(PolicyPicker):
    """Try questions on a Jarvis without writing code.

    Args:
        jarvis: Whose engine, tools and memory are used.
        tools: The tools to choose from; the Jarvis's own otherwise.
        engines: More engines by name, to choose from; each may be an engine or a key such as ``"ollama"``.
        question: What stands in the field.

    Example:
        >>> from jarvis_nb.engines import ScriptedEngine, call
        >>> engine = ScriptedEngine([call("calculator", expression="2+2"), "It is 4."])
        >>> playground = Playground(Jarvis(engine=engine), tools=["calculator"])
        >>> playground.run("2+2?").output
        'It is 4.'
    """

    parts: ClassVar[tuple[str, ...]] = ("picker", "run_view", "gate", "playground")

    def __init__(
        self,
        jarvis: Jarvis,
        *,
        tools: Sequence[Any] | None = None,
        engines: Mapping[str, Any] | None = None,
        question: str = "",
    ) -> None:
        super().__init__(run_sync(jarvis.toolsets.get(tools, ToolContext(jarvis.tool_context))))
        self.jarvis = jarvis
        self.reply: Reply | None = None
        """The newest reply."""
        self._engines = {"this Jarvis's": None, **(engines or {})}
        self._question = question
        self._run: RunView | None = None
        self._failure = ""
        self._gate: ApprovalGate | None = None

    def run(self, question: str, *, engine: str = "", agent: str = "") -> Reply | None:
        """Ask with the chosen tools and policy, and show the run; None where the request cannot be carried out."""
        self._question, self._failure, self.reply = question, "", None
        bus = EventBus()
        view = self._run = RunView(bus)
        view.change([{"is": "run", "question": plain(question)}])
        self.send([self._run_state()])
        chosen = self._jarvis(engine)
        stop = chosen.bus.subscribe(lambda event: self._step(view, event))
        try:
            with unwatched():
                self.reply = chosen.ask_full(
                    question,
                    tools=[] if agent == "simple" else self.toolset,
                    tool_policy=None if agent == "simple" else self.policy,
                    agent=agent or None,
                )
        except JarvisError as error:
            self._failure = str(error)
        finally:
            stop()
            if chosen is not self.jarvis:
                chosen.close()
        if self.reply is not None:
            view.finish(self.reply)
        self.send([self._run_state()])
        self.commit()
        return self.reply

    def _jarvis(self, engine: str) -> Jarvis:
        given = self._engines.get(engine)
        if given is None:
            return self.jarvis
        own = self.jarvis
        return Jarvis(engine=given, memory=own.memory if own.memory.configured else None,
                      approve=own.approve, tool_context=own.tool_context, system=own.system)  # fmt: skip

    def _step(self, view: RunView, event: Any) -> None:
        changes = view.enter(event)
        if changes:
            self.send([{"is": "step", "changes": changes}])

    def receive(self, message: Mapping[str, Any]) -> None:
        """Do what a person asked for on the page."""
        if message.get("op") == "answer" and self._gate is not None:
            self._gate.receive(message)
        elif message.get("op") != "ask":
            super().receive(message)
        elif str(message.get("question") or "").strip():
            agent, engine = (str(message.get(key) or "") for key in ("agent", "engine"))
            with self._asking_here():
                self.run(str(message["question"]), engine=engine, agent=agent if agent in AGENTS else "")

    @contextmanager
    def _asking_here(self) -> Generator[None]:
        """Ask about calls in the playground itself: a run that a click began has no cell for a gate."""
        kept = self.jarvis.approve
        if kept == "ask":
            self.jarvis.approve = self._decide
        try:
            yield
        finally:
            self.jarvis.approve = kept

    async def _decide(self, request: ApprovalRequest) -> Decision:
        from jarvis_nb.widgets.asking import wait_for

        gate = self._gate = ApprovalGate(request)
        gate.woken = self._gate_changed
        self._gate_changed()
        try:
            decision = await wait_for(gate, heard=True)
        finally:
            self._gate = None
            self._gate_changed()
        return decision or Deny("nobody can be asked from a playground in this kernel")

    def _gate_changed(self) -> None:
        self.send([{"is": "gate", "gate": None if self._gate is None else self._gate.state()}])

    def _run_state(self) -> dict[str, Any]:
        return {
            "is": "playground",
            "question": self._question,
            "engines": list(self._engines),
            "agents": list(AGENTS),
            "failure": plain(self._failure),
            "run": None if self._run is None else self._run.state(),
            "gate": None if self._gate is None else self._gate.state(),
            "html": "" if self.reply is None else bundle(self.reply)["text/html"],
        }

    def state(self) -> dict[str, Any]:
        """Return the choice, the question, and the run that was made."""
        chosen = super().state()
        return {**chosen, **self._run_state()} if hasattr(self, "_engines") else chosen

    def static(self) -> dict[str, str]:
        """Return the newest card, or the ledger of the chosen policy."""
        return super().static() if self.reply is None else bundle(self.reply)

    def __repr__(self) -> str:
        return f"Playground({self.jarvis!r})"
