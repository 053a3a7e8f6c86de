"""The approval gate: one call, its arguments to read and to edit, and a person's answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, ClassVar

from jarvis_nb.core.approval import ApprovalRequest, Approve, Decision, Deny
from jarvis_nb.core.errors import InvalidArguments
from jarvis_nb.display import blocks
from jarvis_nb.display.escape import arguments_text, code, cut, json_shown, one_line, plain, prose
from jarvis_nb.widgets.view import View

REASON = 1000


class ApprovalGate(View):
    """Asks a person about one call. The answer binds to this call and to the arguments that were shown.

    Args:
        request: The call.

    Example:
        >>> gate = ApprovalGate(ApprovalRequest("call_1", "refund", {"cents": 420}))
        >>> gate.answer({"decision": "deny", "reason": "too much"})
        >>> gate.decision
        Deny(reason='too much')
    """

    parts: ClassVar[tuple[str, ...]] = ("gate",)

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__()
        self.request = request
        self.decision: Decision | None = None
        self.done = Event()
        """Set with the decision."""
        self.woken: Callable[[], object] | None = None
        """Called, on whatever thread, after each message."""
        self._gate: dict[str, Any] = {
            "name": plain(request.name),
            "description": one_line(request.description, 300),
            "arguments": json_shown(request.arguments),
            "status": "waiting",
            "problem": "",
        }

    def state(self) -> dict[str, Any]:
        """Return what is asked, and the answer once there is one."""
        return self._gate

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take a person's answer from the page."""
        if message.get("op") == "answer" and not self.done.is_set():
            self.answer(message)
        if self.woken is not None:
            self.woken()

    def answer(self, message: Mapping[str, Any]) -> None:
        """Decide: ``decision`` is approve, always or deny, with edited ``arguments`` as JSON or a ``reason``."""
        decision = message.get("decision")
        if decision == "deny":
            reason = str(message.get("reason") or "").strip()[:REASON]
            self.settle(Deny(reason or "denied by the user"))
        elif decision in {"approve", "always"}:
            edited, problem = self._edited(message.get("arguments"))
            if problem:
                self.change(problem=problem)
            else:
                self.settle(Approve(edited, always=decision == "always"))

    def _edited(self, text: Any) -> tuple[dict[str, Any] | None, str]:
        """Return the edited arguments, None where they are as they were, or what is wrong with them."""
        if text is None:
            return None, ""
        try:
            given = json.loads(str(text))
        except ValueError as error:
            return None, f"the arguments are not JSON: {error}"
        if not isinstance(given, dict):
            return None, "the arguments are not a JSON object"
        if given == self.request.arguments:
            return None, ""
        if self.request.parameters is not None:
            from jarvis_nb.tools.validate import validate_arguments

            try:
                given = validate_arguments(self.request.parameters, given)
            except InvalidArguments as error:
                return None, error.message
        return given, ""

    def settle(self, decision: Decision) -> None:
        """Enter the decision."""
        self.decision = decision
        self.done.set()
        self.change(status=self.words(), problem="")

    def change(self, **fields: Any) -> None:
        """Change what the gate shows."""
        with self._lock:
            self._gate.update({key: plain(value) for key, value in fields.items()})
            self.send([{"is": "gate", **self._gate}])

    def words(self) -> str:
        """Return the answer in words."""
        match self.decision:
            case Approve(always=True):
                return "✓ approved, and always in this session"
            case Approve():
                return "✓ approved" if self.decision.arguments is None else "✓ approved with other arguments"
            case Deny():
                return f"⊘ denied: {one_line(self.decision.reason, 200)}"
            case _:
                return str(self._gate["status"])

    def static(self) -> dict[str, str]:
        """Return the question, or the answer, as text and static HTML."""
        arguments = self.request.arguments
        if isinstance(self.decision, Approve) and self.decision.arguments is not None:
            arguments = self.decision.arguments
        made = arguments_text(arguments)
        said = self.words()
        name = one_line(self.request.name, 100)
        html = f"{prose(said)} · <b>{prose(name)}</b> {code(cut(made, 400))}"
        colour = blocks.COLOURS.get(said[:1], blocks.AMBER)
        text = one_line(f"{said} · {name}({made})", 300)
        return {"text/plain": text, "text/html": blocks.frame([blocks.bar(html, colour)])}

    def __repr__(self) -> str:
        return f"ApprovalGate({self.request.name!r}, {self.words()!r})"
