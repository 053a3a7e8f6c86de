"""The steps of one embedded call: pick a tool, fill its arguments, tell a result, or chat.

Each returns a completion whose ``provenance`` says who did what: ``router``, ``model``, ``copy``, or ``tool
choice`` where the caller left nothing to pick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.types import Message, Repair, Role, ToolDefinition, dumps
from jarvis_nb.engines import copying, filling, router, spans, telling
from jarvis_nb.engines.base import Completion, Request
from jarvis_nb.engines.generation import ContextOverflow, Generated, OnText, Order
from jarvis_nb.engines.llama import Progress, Runtime

ANSWER_TOKENS = 256


class Steps:
    """One call on one runtime.

    Args:
        runtime: The model.
        request: What was asked of the engine.
        on_text: Called with pieces of an answer as they are written, on the model's thread.
        on_load: Called while the model loads.
        system: The system message of a chat that has none; empty for none.
        small: Whether the model is one that can only word a short value (see :mod:`.telling`).
    """

    def __init__(
        self,
        runtime: Runtime,
        request: Request,
        *,
        on_text: OnText | None,
        on_load: Progress,
        system: str,
        small: bool,
    ) -> None:
        self.runtime = runtime
        self.request = request
        self.on_text = on_text
        self.on_load = on_load
        self.system = system
        self.small = small

    async def run(self) -> Completion:
        """Make the call."""
        messages = self.request.messages
        question, results = asked(messages), results_since(messages)
        tool, picked_by = picked(self.request, question, answered=bool(results))
        if tool is not None:
            return await self.call(question, tool, picked_by)
        if results:
            return await self.tell(question, results)
        return await self.chat()

    async def call(self, question: str, tool: ToolDefinition, picked_by: str) -> Completion:
        """Fill the arguments of a tool and call it; in words, why not, if no arguments satisfy its schema."""
        examples = self.request.examples.get(tool.name, ())
        fixed = copying.copied(question, tool, examples)
        near = router.nearest(question, examples, filling.NEAREST)

        def narrow(closed: dict[str, Any]) -> dict[str, Any]:
            return spans.narrowed(closed, question, examples)

        filled = await filling.fill(
            question, tool, near, self._silently, fixed=fixed, narrow=narrow if self.small else None
        )
        if filled.arguments is None:
            message = {"role": "assistant", "content": f"I could not call {tool.name}: {filled.problem}."}
            return Completion(message, "stop", filled.usage, provenance={"tool": picked_by, "answer": "copy"})
        number = 1 + sum(len(m.tool_calls or ()) for m in self.request.messages)
        function = {"name": tool.name, "arguments": dumps(filled.arguments)}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": calls}
        provenance = {"tool": picked_by, "arguments": filled.provenance}
        return Completion(message, "tool_calls", filled.usage, provenance=provenance)

    async def tell(self, question: str, results: Sequence[str]) -> Completion:
        """Answer from the results of tools."""
        value = telling.short_value(results)
        if value is not None and self.small:
            written = await self._aloud(telling.worded(question, value))
            if value in written.text:  # else the grammar was not taken
                return _said(written)
        elif not self.small:
            written = await self._aloud(telling.free(question, results))
            if telling.faithful(written.text, question, results):
                return _said(written)
        message = {"role": "assistant", "content": telling.quoted(question, results)}
        return Completion(message, "stop", provenance={"answer": "copy"})

    async def chat(self) -> Completion:
        """Answer in words. Of a conversation that is too long, the oldest turns are left out, and said so."""
        messages = [
            {"role": str(m.role), "content": m.text}
            for m in self.request.messages
            if m.text and m.role is not Role.TOOL
        ]
        if self.system and not any(m["role"] == Role.SYSTEM for m in messages):
            messages.insert(0, {"role": "system", "content": self.system})
        left_out = 0
        while True:
            order = Order(
                messages,
                max_tokens=self.request.max_tokens or ANSWER_TOKENS,
                temperature=self.request.temperature or 0.0,
                no_loops=True,
            )
            try:
                completion = _said(await self._aloud(order))
            except ContextOverflow:
                oldest = next((i for i, m in enumerate(messages[:-1]) if m["role"] != Role.SYSTEM), None)
                if oldest is None:
                    raise
                del messages[oldest]
                left_out += 1
            else:
                if left_out:
                    completion.repairs.append(_cut(left_out, self.runtime.settings.context))
                return completion

    async def _silently(self, order: Order) -> Generated:
        return await self.runtime.generate(order, on_load=self.on_load)

    async def _aloud(self, order: Order) -> Generated:
        return await self.runtime.generate(order, on_text=self.on_text, on_load=self.on_load)


def _cut(left_out: int, context: int) -> Repair:
    what = f"{left_out} of the oldest messages were left out: the model reads {context:,} tokens"
    return Repair("history_cut", what)


def _said(written: Generated) -> Completion:
    message = {"role": "assistant", "content": written.text.strip()}
    return Completion(message, written.finish_reason, written.usage, provenance={"answer": "model"})


def picked(request: Request, question: str, *, answered: bool) -> tuple[ToolDefinition | None, str]:
    """Return the tool to call, if any, and who picked it.

    Args:
        request: Its tools, tool choice and examples decide.
        question: What was asked.
        answered: Whether tools have run for this question already; then an answer follows, unless a call is
            required.

    Raises:
        InvalidRequest: The tool choice names a tool that is not offered.
    """
    tools, choice = request.tools or (), request.tool_choice
    if isinstance(choice, dict):
        name = choice.get("function", {}).get("name")
        for tool in tools:
            if tool.name == name:
                return tool, "tool choice"
        raise InvalidRequest(
            f"the tool choice names {name!r}, which is not offered",
            code="required_tool_not_selected",
            value=choice,
            valid=[tool.name for tool in tools],
        )
    must = choice == "required"
    if not tools or choice == "none" or (answered and not must):
        return None, ""
    if must and len(tools) == 1:
        return tools[0], "tool choice"
    return router.route(question, tools, request.examples, may_answer=not must).tool, "router"


def asked(messages: Sequence[Message]) -> str:
    """Return the newest question."""
    return next((m.text for m in reversed(messages) if m.role is Role.USER), "")


def results_since(messages: Sequence[Message]) -> list[str]:
    """Return the tool results since the newest question."""
    results: list[str] = []
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is Role.TOOL:
            results.append(message.text)
    return results[::-1]
