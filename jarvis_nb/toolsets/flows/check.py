"""Every mistake in a flow's definition, found where it is defined and all of them at once."""

from __future__ import annotations

from typing import Any

from jarvis_nb.tools.base import NAME, BaseTool
from jarvis_nb.toolsets.flows import fits
from jarvis_nb.toolsets.flows.declaration import Declaration
from jarvis_nb.toolsets.flows.plan import after_name, edges, is_idempotent, needed
from jarvis_nb.toolsets.flows.problems import Problem, did_you_mean
from jarvis_nb.toolsets.flows.refs import MISSING, InputRef, Ref, StepRef, refs_in
from jarvis_nb.toolsets.flows.steps import Step


def problems_of(flow: Declaration, within: tuple[Declaration, ...] = ()) -> list[Problem]:
    """Return the mistakes of a flow, in declaration order; none if it is valid.

    Args:
        flow: What was declared.
        within: The flows this one is being checked as a step of, outermost first.
    """
    found: list[Problem] = []
    if not flow.steps:
        return [Problem("empty_flow", "it has no steps", hint="add one with flow.step(…)")]
    for step in flow.steps.values():
        found += _step_problems(flow, step, within)
    found += [_duplicate(flow, step) for step in flow.duplicates]
    found += _cycles(edges(flow.steps))
    if flow.output is MISSING:
        found.append(Problem("missing_output", "it has no output", hint="declare one with flow.output(…)"))
    else:
        found += flow.output_problems
        for place, ref in refs_in(flow.output):
            found += _ref_problems(flow, None, f"output{place}", ref)
    return found


def warnings_of(flow: Declaration) -> list[Problem]:
    """Return what is allowed but odd: steps nobody needs, inputs nobody reads, retries that never happen."""
    outputs = [] if flow.output is MISSING else [ref for _, ref in refs_in(flow.output)]
    roots = [ref.name for ref in outputs if isinstance(ref, StepRef)]
    roots += [step.name for step in flow.steps.values() if step.effect]
    used = needed(roots, edges(flow.steps))
    found = [
        Problem(
            "unused_step",
            "the output does not need it; it runs",
            name,
            hint="say .options(effect=True) if it should",
        )
        for name in flow.steps
        if name not in used and flow.output is not MISSING
    ]
    for name, step in flow.steps.items():
        if step.retries and step.tool is not None and not is_idempotent(step.tool):
            hint = "say @action(idempotent=True) if running it twice is the same as once"
            text = f"it is not tried again: {step.tool.name!r} is not idempotent"
            found.append(Problem("retries_ignored", text, name, "retries", hint))
    read = [*outputs, *(ref for step in flow.steps.values() for _, ref in refs_in(step.params))]
    names = {ref.name for ref in read if isinstance(ref, InputRef)}
    found += [
        Problem("unread_input", "no step reads it", path=f"input {n!r}")
        for n in flow.inputs
        if n not in names
    ]
    return found


def _step_problems(flow: Declaration, step: Step, within: tuple[Declaration, ...]) -> list[Problem]:
    found: list[Problem] = []
    if not NAME.fullmatch(step.name):
        hint = "a lower-case letter, then letters, digits or _, at most 63"
        found.append(
            Problem("invalid_step_name", f"{step.name!r:.100} is no step name", step.name, hint=hint)
        )
    found += step.problems
    for param, template in step.params.items():
        for place, ref in refs_in(template):
            found += _ref_problems(flow, step, param + place, ref)
    found += _after_problems(flow, step)
    found += _option_problems(step)
    if step.tool is not None:
        found += _param_problems(flow, step, step.tool)
        found += _nested_problems(flow, step, step.tool, within)
    return found


def _ref_problems(flow: Declaration, step: Step | None, path: str, ref: Ref) -> list[Problem]:
    at = None if step is None else step.name
    if ref.flow != flow.name:
        return []  # found when it was declared
    if isinstance(ref, InputRef) and ref.name not in flow.inputs:
        hint = did_you_mean(ref.name, flow.inputs, "declared input")
        return [Problem("unknown_input_field", f"no input is called {ref.name!r}", at, path, hint)]
    if isinstance(ref, InputRef):
        return _field_problems(flow.parameters, flow.inputs[ref.name], ref, at, path)
    if isinstance(ref, StepRef):
        found = _name_problems(flow, step, path, ref.name)
        tool = None if found else flow.steps[ref.name].tool
        schema = output_schema(tool)
        return found or _field_problems(schema, schema, ref, at, path)
    return []


def _field_problems(
    root: dict[str, Any], schema: dict[str, Any], ref: Ref, at: str | None, path: str
) -> list[Problem]:
    reached = fits.field_schema(schema, ref.path, root)
    if isinstance(reached, dict):
        return []
    code = "unknown_input_field" if isinstance(ref, InputRef) else "unknown_output_field"
    return [Problem(code, f"{ref!r} does not exist", at, path, reached)]


def _name_problems(flow: Declaration, step: Step | None, path: str, name: str) -> list[Problem]:
    at = None if step is None else step.name
    if name == at:
        return [
            Problem("self_reference", "it refers to its own result", at, path, "refer to an earlier step")
        ]
    if name not in flow.steps:
        hint = did_you_mean(name, (n for n in flow.steps if n != at), "other step")
        return [Problem("unknown_step", f"no step is called {name!r}", at, path, hint)]
    return []


def _after_problems(flow: Declaration, step: Step) -> list[Problem]:
    found: list[Problem] = []
    for item in step.after:
        name = after_name(item)
        if name is None:
            hint = "name steps, or give what flow.step(…) returned"
            found.append(Problem("invalid_ref", f"{item!r:.100} is no step", step.name, "after", hint))
        elif isinstance(item, StepRef) and item.flow != flow.name:
            text = f"{item!r} belongs to the flow {item.flow!r}"
            found.append(Problem("invalid_ref", text, step.name, "after", f"name a step of {flow.name!r}"))
        else:
            found += _name_problems(flow, step, "after", name)
    return found


def _option_problems(step: Step) -> list[Problem]:
    found: list[Problem] = []
    if step.timeout is not None and not (isinstance(step.timeout, int | float) and step.timeout > 0):
        found.append(
            Problem(
                "invalid_option", f"timeout is {step.timeout!r:.100}", step.name, "timeout", "seconds above 0"
            )
        )
    if not isinstance(step.retries, int) or step.retries < 0:
        found.append(
            Problem(
                "invalid_option", f"retries is {step.retries!r:.100}", step.name, "retries", "an int from 0"
            )
        )
    return found


def _param_problems(flow: Declaration, step: Step, tool: BaseTool) -> list[Problem]:
    schema = tool.definition.parameters
    properties: dict[str, Any] = schema["properties"]
    found: list[Problem] = []
    for param, template in step.params.items():
        if param in properties:
            misfit = _misfit(flow, template, properties[param], schema)
            if misfit and not any(_is_about(problem, param) for problem in step.problems):
                found.append(Problem("type_mismatch", misfit, step.name, param))
        elif schema.get("additionalProperties", False) is False:
            hint = did_you_mean(param, properties, "parameter")
            found.append(
                Problem("unknown_param", f"{tool.name!r} takes no {param!r}", step.name, param, hint)
            )
    missing = [param for param in schema.get("required", ()) if param not in step.params]
    return found + [
        Problem("missing_param", f"{tool.name!r} needs {param!r}", step.name, param) for param in missing
    ]


def _is_about(problem: Problem, param: str) -> bool:
    return problem.path.startswith(param) and problem.path[len(param) : len(param) + 1] in ("", ".", "[")


def _misfit(flow: Declaration, template: Any, schema: Any, root: dict[str, Any]) -> str | None:
    """Return why what a parameter is given can never be what its schema wants, or None."""
    wanted = fits.types_of(schema, root)
    if isinstance(template, InputRef):
        return _input_misfit(flow, template, wanted)
    if isinstance(template, StepRef):
        return _result_misfit(flow, template, wanted)
    if isinstance(template, Ref):
        return None
    if not any(True for _ in refs_in(template)):
        return fits.constant_problem(template, schema, root)
    if wanted is not None and fits.type_name(template) not in wanted:
        return f"a {fits.type_name(template)} is given, {_words(wanted)} wanted"
    return None


def _input_misfit(flow: Declaration, ref: InputRef, wanted: frozenset[str] | None) -> str | None:
    if ref.name not in flow.inputs:
        return None
    reached = fits.field_schema(flow.inputs[ref.name], ref.path, flow.parameters)
    given = fits.types_of(reached, flow.parameters) if isinstance(reached, dict) else None
    if fits.input_fits(given, wanted):
        return None
    return f"{ref!r} is {_words(given)}, {_words(wanted)} wanted"


def _result_misfit(flow: Declaration, ref: StepRef, wanted: frozenset[str] | None) -> str | None:
    schema = output_schema(flow.steps[ref.name].tool if ref.name in flow.steps else None)
    reached = fits.field_schema(schema, ref.path, schema)
    given = fits.types_of(reached, schema) if isinstance(reached, dict) else None
    if fits.result_fits(given, wanted):
        return None
    return f"{ref!r} is {_words(given)}, {_words(wanted)} wanted"


def _words(types: frozenset[str] | None) -> str:
    return " or ".join(sorted(types or ()))


def _duplicate(flow: Declaration, step: Step) -> Problem:
    held = flow.steps[step.name].tool
    tools = [repr(tool.name) for tool in (held, step.tool) if tool is not None]
    hint = "name one of them otherwise; in a notebook, run the cell that makes the flow again"
    return Problem(
        "duplicate_step", f"two steps are called {step.name!r} ({', '.join(tools)})", step.name, hint=hint
    )


def _cycles(waits: dict[str, tuple[str, ...]]) -> list[Problem]:
    """Return one problem a cycle, each with one concrete path."""
    found: list[Problem] = []
    open_, closed = list[str](), set[str]()

    def visit(name: str) -> None:
        # Depth first with an own stack: a chain of thousands of steps must not hit the recursion limit.
        todo = [(name, iter(waits[name]))]
        open_.append(name)
        while todo:
            here, rest = todo[-1]
            step = next(rest, None)
            if step is None:
                todo.pop()
                closed.add(open_.pop())
            elif step in open_:
                loop = open_[open_.index(step) :]
                # Edges point at what a step waits for: read backwards, the path goes the way data goes.
                path = " → ".join([loop[0], *reversed(loop)])
                found.append(
                    Problem(
                        "cycle",
                        f"steps wait for each other: {path}",
                        here,
                        hint="drop one of these references",
                    )
                )
            elif step not in closed:
                open_.append(step)
                todo.append((step, iter(waits[step])))

    for name in waits:
        if name not in closed:
            visit(name)
    return found


def _nested_problems(
    flow: Declaration, step: Step, tool: BaseTool, within: tuple[Declaration, ...]
) -> list[Problem]:
    inner = getattr(tool, "declaration", None)
    if not isinstance(inner, Declaration):
        return []
    path = (*within, flow)
    if inner in path:
        names = " → ".join([*(f.name for f in path[path.index(inner) :]), inner.name])
        return [
            Problem(
                "recursive_flow",
                f"the flow runs itself: {names}",
                step.name,
                hint="a flow cannot be its own step",
            )
        ]
    return [
        Problem(
            p.code,
            f"in the flow {inner.name!r}: {p.message}",
            step.name,
            ", ".join(filter(None, [p.step, p.path])),
            p.hint,
        )
        for p in problems_of(inner, path)
    ]


def output_schema(tool: BaseTool | None) -> dict[str, Any]:
    """Return the schema a tool declares for its output; {} where it declares none."""
    schema = getattr(tool, "output_schema", None)
    return schema if isinstance(schema, dict) else {}


__all__ = ["output_schema", "problems_of", "warnings_of"]
