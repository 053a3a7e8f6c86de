"""A flow as a tool: what a toolset offers, and what another flow has as a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jarvis_nb.core.subschemas import walk
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import BaseTool, Kind, ToolContext, ToolSpec
from jarvis_nb.toolsets.flows.check import output_schema
from jarvis_nb.toolsets.flows.declaration import Declaration
from jarvis_nb.toolsets.flows.fits import field_schema, type_name, types_of
from jarvis_nb.toolsets.flows.problems import FlowError
from jarvis_nb.toolsets.flows.refs import MISSING, Ref, StepRef
from jarvis_nb.toolsets.flows.run import REAP_SECONDS
from jarvis_nb.toolsets.flows.trace import FlowResult

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flow import Flow


class FlowTool(BaseTool):
    """A flow as a tool. It stays with its flow: steps that are declared again count from the next call on.

    Its inputs are the parameters, its output is a mapping, and it needs confirmation if a step's tool does.
    """

    kind: Kind = "flow"

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.tool_id = flow.name

    @property
    def name(self) -> str:
        """The name the model calls the flow by."""
        return self._name or self.flow.name

    @property
    def declaration(self) -> Declaration:
        """What was declared, for the checks of a flow that has this one as a step."""
        return self.flow.declaration

    @property
    def spec(self) -> ToolSpec:
        """The flow's name, description and inputs as a tool's."""
        flow = self.declaration
        return ToolSpec(
            flow.name,
            flow.description,
            flow.parameters,
            requires_confirmation=_needs_confirmation(flow, []),
            # The flow ends by itself and tells which step took its time: the caller's cut comes after.
            timeout_seconds=flow.timeout + 2 * REAP_SECONDS,
        )

    @property
    def output_schema(self) -> dict[str, Any]:
        """What is known of the output: its keys, and the types that steps declare."""
        return _output_schema(self.declaration)

    @property
    def is_async(self) -> bool:
        """A flow runs on the loop; its steps go to threads as they need."""
        return True

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> FlowResult:
        """Run with checked arguments.

        Raises:
            FlowFailed: Steps failed; it carries the trace in ``steps``.
            FlowError: The flow is not valid (any more).
        """
        return await self.invoke_within(arguments, context, None)

    async def invoke_within(
        self, arguments: dict[str, Any], context: ToolContext, seconds: float | None
    ) -> FlowResult:
        """Run within the time a caller has left."""
        trace = await self.flow.perform(arguments, context, seconds)
        return FlowResult(trace.result(), trace.to_dicts())

    async def execute(self, /, **params: Any) -> ToolResult:
        """Run by hand, as any tool: failures are results."""
        from jarvis_nb.core.errors import InvalidArguments
        from jarvis_nb.tools.content import render

        try:
            found = await self.invoke(self.check_arguments(params), ToolContext())
        except (FlowError, InvalidArguments) as error:
            return ToolResult(self.name, error.message, success=False)
        return ToolResult(self.name, render(found.output), metadata={"output": found.output})


def _needs_confirmation(flow: Declaration, seen: list[Declaration]) -> bool:
    if flow in seen:  # recursive, so not valid, and never run
        return False
    seen.append(flow)
    for step in flow.steps.values():
        inner = getattr(step.tool, "declaration", None)
        if isinstance(inner, Declaration):
            if _needs_confirmation(inner, seen):
                return True
        elif step.tool is not None and step.tool.spec.requires_confirmation:
            return True
    return False


def _output_schema(flow: Declaration, seen: tuple[Declaration, ...] = ()) -> dict[str, Any]:
    if flow.output is MISSING or flow in seen:
        return {}
    schema = _schema_of(flow, flow.output, (*seen, flow))
    types = types_of(schema, {})
    if types is not None and "object" not in types:
        return _object({"result": schema})
    return schema if types is not None and len(types) == 1 else {}


def _schema_of(flow: Declaration, template: Any, seen: tuple[Declaration, ...]) -> dict[str, Any]:
    if isinstance(template, StepRef) and template.name in flow.steps:
        tool = flow.steps[template.name].tool
        inner = getattr(tool, "declaration", None)
        schema = _output_schema(inner, seen) if isinstance(inner, Declaration) else output_schema(tool)
        reached = field_schema(schema, template.path, schema)
        # References lead into the other schema's definitions: what they name is not told.
        plain = isinstance(reached, dict) and not any("$ref" in node for node in walk(reached))
        return reached if isinstance(reached, dict) and plain else {}
    if isinstance(template, dict):
        return _object({key: _schema_of(flow, item, seen) for key, item in template.items()})
    return {} if isinstance(template, Ref) else {"type": type_name(template)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
