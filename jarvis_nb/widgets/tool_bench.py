"""The tool bench: one tool, run by hand, as a model would run it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from jarvis_nb.core.errors import JarvisError
from jarvis_nb.core.types import ToolCall
from jarvis_nb.display.escape import cut, json_text, one_line, plain
from jarvis_nb.display.schema import parameters
from jarvis_nb.display.tools import tool, tool_html, tool_text
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.widgets.view import View

SHOWN = 20_000


class ToolBench(View):
    """A form made from a tool's schema: run it, read what the model would read, keep it as a test.

    Args:
        given: A tool, an action or a function.
        context: The host's run context, for tools that take one.

    Example:
        >>> from jarvis_nb import action
        >>> @action
        ... def double(n: int) -> int:
        ...     "Double a number."
        ...     return 2 * n
        >>> bench = ToolBench(double)
        >>> bench.run({"n": "21"})
        '42'
        >>> bench.run({})[:61]
        '{"error":{"code":"invalid_arguments","message":"n: is missing'
    """

    parts: ClassVar[tuple[str, ...]] = ("tool_bench",)

    def __init__(self, given: Any, *, context: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        from jarvis_nb.tools.action import as_tool

        self.tool: BaseTool = as_tool(given)
        self._context = context
        self._outcome: dict[str, Any] = {"status": "", "content": "", "problem": "", "test": ""}
        self._arguments: dict[str, Any] = {}

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Run the tool with these arguments, validated as a model's are, and return what the model would read."""
        from jarvis_nb.core.bridge import run_sync
        from jarvis_nb.tools.executor import ToolExecutor

        self._arguments = dict(arguments)
        executor = ToolExecutor([self.tool], approver=_allowed, context=self._context)
        outcome = run_sync(executor.run(ToolCall("call_1", self.tool.name, json_text(self._arguments))))
        result = outcome.result
        self._outcome = {
            "status": "ok" if result.success else outcome.status,
            "content": plain(cut(result.content, SHOWN)),
            "problem": ""
            if outcome.error is None
            else plain(f"{outcome.error.message} [{outcome.error.code}]"),
            "test": "",
        }
        self._result = result
        self._change()
        return result.content

    def as_test(self) -> str:
        """Return a pytest function that repeats the newest run.

        Raises:
            JarvisError: ``nothing_run``: nothing was run yet.
        """
        if not self._outcome["status"]:
            raise JarvisError("nothing was run yet", code="nothing_run", hint="run the tool first")
        name = self.tool.name
        stands = name.replace("-", "_")
        asks = self.tool.spec.requires_confirmation
        imported = "Approve, ToolCall, ToolExecutor" if asks else "ToolCall, ToolExecutor"
        approve = "async def approve(request):\n    return Approve()\n\n\n" if asks else ""
        return (
            f"from jarvis_nb import {imported}\n\n\n{approve}"
            f"def test_{stands}():\n"
            f"    call = ToolCall('call_1', {name!r}, {self._arguments!r})\n"
            f"    result = ToolExecutor([{stands}]{', approver=approve' if asks else ''}).execute(call)\n"
            f"    assert result.success is {self._result.success}\n"
            f"    assert result.content == {self._result.content!r}\n"
        )

    def receive(self, message: Mapping[str, Any]) -> None:
        """Do what a person asked for on the page: ``run`` with texts by field, or with raw JSON; or ``test``."""
        if message.get("op") == "run":
            try:
                arguments = self.read(message)
            except ValueError as error:
                self._outcome = {"status": "failed", "content": "", "problem": plain(error), "test": ""}
                self._change()
            else:
                self.run(arguments)
        elif message.get("op") == "test" and self._outcome["status"]:
            self._outcome["test"] = plain(self.as_test())
            self._change()

    def read(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a filled-in form. An empty field is left out.

        Raises:
            ValueError: A field that takes JSON holds none.
        """
        if message.get("json") is not None:
            given = json.loads(str(message["json"]))
            if not isinstance(given, dict):
                raise ValueError("the arguments are not a JSON object")
            return given
        fields = dict(message.get("fields") or {})
        found: dict[str, Any] = {}
        for field in self._fields():
            value = fields.get(field["name"])
            if value in (None, ""):
                continue
            if field["as"] == "json":
                try:
                    value = json.loads(str(value))
                except ValueError as error:
                    raise ValueError(f"{field['name']} is not JSON: {error}") from error
            found[field["name"]] = value
        return found

    def _fields(self) -> list[dict[str, Any]]:
        schema = self.tool.definition.parameters
        properties = schema.get("properties") or {}
        return [
            {
                "name": p.name,
                "label": one_line(p.name, 120),
                "type": one_line(p.type, 120),
                "about": one_line(p.description, 300),
                "required": p.required,
                "default": p.default,
                **_input(properties.get(p.name)),
            }
            for p in parameters(schema)
        ]

    def state(self) -> dict[str, Any]:
        """Return the form and what the newest run gave."""
        spec = self.tool.spec
        return {
            "name": self.tool.name,
            "about": one_line(spec.description, 400),
            "fields": self._fields(),
            "confirm": spec.requires_confirmation,
            **self._outcome,
        }

    def _change(self) -> None:
        self.send([self._outcome])

    def static(self) -> dict[str, str]:
        """Return the tool itself."""
        view = tool(self.tool)
        return {"text/plain": tool_text(view), "text/html": tool_html(view)}

    def __repr__(self) -> str:
        return f"ToolBench({self.tool.name!r})"


async def _allowed(_: Any) -> Any:
    """The person at the bench runs the tool by hand: that is the confirmation."""
    from jarvis_nb.core.approval import Approve

    return Approve()


def _input(schema: Any) -> dict[str, Any]:
    """Return how a field is entered: as text, a choice, or JSON."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    options = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(options, list) and all(isinstance(o, str) for o in options):
        return {"as": "choice", "options": options}
    if kind == "boolean":
        return {"as": "choice", "options": ["true", "false"]}
    return {"as": "text" if kind in {"string", "integer", "number"} else "json", "options": []}
