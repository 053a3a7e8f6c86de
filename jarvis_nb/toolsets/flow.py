"""The flow: a tool made of named steps whose parameters are data."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.bridge import heartbeat, run_sync
from jarvis_nb.core.errors import JarvisError, ToolsetError
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolLike, check_name
from jarvis_nb.toolsets.flows.cells import cell_run
from jarvis_nb.toolsets.flows.check import problems_of, warnings_of
from jarvis_nb.toolsets.flows.declaration import Declaration
from jarvis_nb.toolsets.flows.inputs import parameters_of
from jarvis_nb.toolsets.flows.plan import Plan, make_plan
from jarvis_nb.toolsets.flows.problems import FlowError, FlowFailed, Problem
from jarvis_nb.toolsets.flows.refs import ContextRef, InputRef, StepRef
from jarvis_nb.toolsets.flows.steps import DataReader, Step, StepHandle
from jarvis_nb.toolsets.flows.tool import FlowTool
from jarvis_nb.toolsets.flows.trace import FlowResult, FlowTrace, StepTrace

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.explain import Explanation
    from jarvis_nb.toolsets.flows.mermaid import Mermaid

__all__ = ["Flow", "FlowError", "FlowFailed", "FlowResult", "FlowTrace", "Problem", "StepTrace"]


class Flow:
    """A tool made of named steps, run as soon as what they read is there.

    A step's parameters are data only: an input of the flow, the result of a step (whole or a path into it),
    a value of the host's context, or a constant. What a step waits for follows from these references and
    from ``after=``, never from the order of the source.

    Args:
        name: As for every tool: ``[a-z][a-z0-9_]{0,62}``.
        description: What the model is told.
        inputs: Name to a type annotation, ``(annotation, default)``, or a JSON Schema.
        max_concurrency: How many steps run at once, at most.
        timeout: Seconds for the whole flow.

    Raises:
        ToolsetError: ``invalid_name``, ``blank_description``.
        FlowError: ``invalid_input``, ``invalid_option``.

    Example:
        >>> from jarvis_nb import Flow, action
        >>> @action
        ... def lookup_order(order_id: str) -> dict:
        ...     "Look up one order by ID."
        ...     return {"order_id": order_id, "total_cents": 4200}
        >>> @action
        ... def apply_discount(total_cents: int, percent: int) -> dict:
        ...     "Compute a discounted total."
        ...     return {"total_cents": total_cents * (100 - percent) // 100}
        >>> flow = Flow("discount_order", "Compute the discount of an order.", inputs={"order_id": str})
        >>> order = flow.step("order", lookup_order, order_id=flow.input("order_id"))
        >>> price = flow.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)
        >>> flow.output(price)
        >>> flow.run(order_id="ORD-5")
        {'total_cents': 3780}
    """

    def __init__(
        self,
        name: str,
        description: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        max_concurrency: int = 4,
        timeout: float = 30.0,
    ) -> None:
        check_name(name)
        if not str(description or "").strip():
            raise ToolsetError(
                f"the flow {name!r} has no description",
                code="blank_description",
                value=name,
                hint="the model chooses by it: say what the flow does",
            )
        _check_limits(name, max_concurrency, timeout)
        parameters = parameters_of(name, inputs or {})
        self.declaration = Declaration(name, description, parameters, max_concurrency, timeout)
        self.last: FlowTrace | None = None
        """The trace of the newest run that ended, as a tool or by hand."""
        self.tool = FlowTool(self)
        """The flow as a tool, checked when it runs; :meth:`as_tool` checks it now."""
        self._plan: tuple[int, Plan] | None = None

    @property
    def name(self) -> str:
        """The name the model calls the flow by."""
        return self.declaration.name

    @property
    def description(self) -> str:
        """What the model is told."""
        return self.declaration.description

    # Declaring.

    def input(self, name: str) -> InputRef:
        """Return a reference to a declared input."""
        return InputRef(self.name, name)

    def context(self, key: str) -> ContextRef:
        """Return a reference to a value of the host's run context (``tool_context=``)."""
        return ContextRef(self.name, key)

    def result(self, step: str, *path: str | int) -> StepRef:
        """Return a reference to a step's result by name; the step may be declared later."""
        return StepRef(self.name, step, path=path)

    def step(self, name: str, tool: ToolLike | Flow, /, **params: Any) -> StepHandle:
        """Declare a step and return a reference to its result; :meth:`StepHandle.options` sets its options.

        In a notebook a cell that runs again declares its steps again: a step of the same name and tool takes
        the place of the one an earlier run declared.

        Args:
            name: Unique in the flow; ``[a-z][a-z0-9_]{0,62}``.
            tool: An action, a plain function, any tool, or a flow.
            params: The tool's parameters: references and constants, in lists and dicts too.
        """
        problems: list[Problem] = []
        label = str(name)  # what is no str is no name either, and a problem says so
        reader = DataReader(self.name, label, problems)
        step = Step(
            label,
            _as_step_tool(tool, label, problems),
            {key: reader.read(value, key) for key, value in params.items()},
            problems=problems,
            cell=cell_run(),
        )
        self.declaration.add(step)
        return StepHandle(self.name, label, step=step, changed=self.declaration.changed)

    def output(self, output: Any) -> None:
        """Declare the output: a reference, or a dict of references and constants.

        As a tool a flow gives a mapping; a value that is none stands under the key ``result``.
        """
        declaration = self.declaration
        problems: list[Problem] = []
        declaration.output = DataReader(self.name, None, problems).read(output, "output")
        declaration.output_problems = problems
        declaration.changed()

    # Checking.

    def validate(self) -> None:
        """Check the whole definition.

        Raises:
            FlowError: All mistakes, each with code, step, path and hint.
        """
        problems = problems_of(self.declaration)
        if problems:
            raise FlowError(self.name, problems)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed but odd: a step the output does not need, an input no step reads."""
        return tuple(warnings_of(self.declaration))

    def plan(self) -> Plan:
        """Return the valid flow as an immutable plan.

        Raises:
            FlowError: As :meth:`validate`.
        """
        declaration = self.declaration
        if self._plan is None or self._plan[0] != declaration.revision:
            revision = declaration.revision
            self.validate()
            made = make_plan(
                self.name,
                declaration.steps,
                declaration.output,
                declaration.max_concurrency,
                declaration.timeout,
            )
            self._plan = (revision, made)
        return self._plan[1]

    # Running.

    def run(self, context: Mapping[str, Any] | None = None, /, **inputs: Any) -> dict[str, Any]:
        """Run and return the output; works under a running event loop too.

        Args:
            context: The run context, for ``flow.context(…)`` and actions that ask for it.
            inputs: The flow's inputs.

        Raises:
            FlowError: The flow is not valid.
            InvalidArguments: The inputs are not; names the fields.
            FlowFailed: Steps failed; all failures in declaration order, the trace in ``steps``.
        """
        arguments = self._arguments(inputs)
        return run_sync(self.perform(arguments, context)).result()

    async def arun(self, context: Mapping[str, Any] | None = None, /, **inputs: Any) -> dict[str, Any]:
        """Run and return the output, as :meth:`run` does."""
        arguments = self._arguments(inputs)
        async with heartbeat():
            trace = await self.perform(arguments, context)
        return trace.result()

    def _arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        from jarvis_nb.toolsets.flows.values import plain

        self.plan()
        return self.tool.check_arguments(plain(dict(inputs)))

    async def perform(
        self,
        arguments: dict[str, Any],
        context: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> FlowTrace:
        """Run with checked inputs and return the trace, whatever came of it; :attr:`last` has it too.

        Args:
            arguments: The inputs, as ``as_tool().check_arguments`` returns them.
            context: The run context.
            seconds: What the caller has left; the flow's own time may be less.

        Raises:
            FlowError: The flow is not valid.
        """
        from jarvis_nb.toolsets.flows.record import trace_of
        from jarvis_nb.toolsets.flows.run import FlowRun

        context = context if isinstance(context, ToolContext) else ToolContext(context)
        run = FlowRun(self.plan(), arguments, context, seconds)
        try:
            await run.finish()
        except asyncio.CancelledError:
            context.steps = trace_of(run).to_dicts()
            raise
        finally:
            self.last = trace_of(run)
        return self.last

    # As a tool.

    def as_tool(self) -> FlowTool:
        """Return the flow as a tool: always the same object.

        Raises:
            FlowError: The flow is not valid.
        """
        self.plan()
        return self.tool

    # Pictures.

    def explain(self) -> Explanation:
        """Return the plan as data that prints as text: waves of steps, what each reads, problems."""
        from jarvis_nb.toolsets.flows.explain import explain

        return explain(self.declaration)

    def mermaid(self) -> Mermaid:
        """Return the flow as a Mermaid diagram: a text that front ends draw which can (JupyterLab from 4.1)."""
        return self.explain().mermaid()

    def to_html(self) -> str:
        """Return the flow as a static picture: HTML without script, style sheet or colour of its own."""
        return self.explain().to_html()

    def __repr__(self) -> str:
        steps = ", ".join(self.declaration.steps) or "no steps"
        return f"Flow({self.name!r}: {steps})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        return self.explain().bundle()


def _check_limits(name: str, max_concurrency: Any, timeout: Any) -> None:
    problems: list[Problem] = []
    if not isinstance(max_concurrency, int) or max_concurrency < 1:
        problems.append(
            Problem("invalid_option", f"max_concurrency is {max_concurrency!r:.100}", hint="an int from 1")
        )
    if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        problems.append(Problem("invalid_option", f"timeout is {timeout!r:.100}", hint="seconds above 0"))
    if problems:
        raise FlowError(name, problems)


def _as_step_tool(given: Any, step: str, problems: list[Problem]) -> BaseTool | None:
    """Return what a step runs; what is no tool is a problem of the step."""
    if isinstance(given, Flow):
        return given.tool  # as_tool() would refuse a flow that is not finished yet
    try:
        if not isinstance(given, BaseTool):
            from jarvis_nb.tools.action import as_tool

            given = as_tool(given)
        _ = given.definition  # a schema that is no schema shows here
    except JarvisError as error:
        problems.append(Problem(error.code, error.message, step, hint=error.hint or ""))
        return None
    return given
