"""What a flow is, or how a run of it went, as data: text, HTML and Mermaid draw the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.text import cut, plain
from jarvis_nb.core.types import dumps
from jarvis_nb.toolsets.flows.check import problems_of, warnings_of
from jarvis_nb.toolsets.flows.declaration import Declaration
from jarvis_nb.toolsets.flows.fits import types_of
from jarvis_nb.toolsets.flows.plan import after_name, edges, waves
from jarvis_nb.toolsets.flows.refs import MISSING, ContextRef, InputRef, Ref, StepRef, path_text, refs_in
from jarvis_nb.toolsets.flows.steps import Step

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.mermaid import Mermaid
    from jarvis_nb.toolsets.flows.trace import FlowTrace, StepTrace

MOST_TEXT = 120
"""Characters of one value; more is cut, with a count and where the whole is."""

SIGNS = {"ok": "✓", "error": "✗", "skipped": "○", "cancelled": "⊘", "abandoned": "…"}


@dataclass(frozen=True, slots=True)
class Edge:
    """What a step, or the output, reads from where."""

    source: str
    """``input``, ``step`` or ``context``; ``after`` for a step waited for without reading from it."""
    name: str
    label: str
    """The parameter that reads."""


@dataclass(frozen=True, slots=True)
class Node:
    """One step."""

    name: str
    tool: str
    kind: str
    wave: int
    """From 1: steps of one wave can run together."""
    depends_on: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    """Parameter and what it is given, as text."""
    options: tuple[str, ...] = ()
    reads: tuple[Edge, ...] = ()
    status: str | None = None
    """How it ended, in a run's picture."""
    outcome: str = ""
    """Its output or error as text, in a run's picture."""

    @property
    def mark(self) -> str:
        """How it ended, by sign and word."""
        return "" if self.status is None else f"{SIGNS[self.status]} {self.status}"

    @property
    def call(self) -> str:
        """The step as one line of code."""
        return f"{self.tool}({', '.join(f'{name}={text}' for name, text in self.params)})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A flow, or a run of one, as data. ``str()`` of it is for people; notebooks show it as a table.

    Example:
        >>> from jarvis_nb import Flow, action
        >>> @action
        ... def double(n: int) -> dict:
        ...     "Double a number."
        ...     return {"n": 2 * n}
        >>> flow = Flow("twice", "Double a number.", inputs={"n": int})
        >>> flow.output(flow.step("double", double, n=flow.input("n")))
        >>> print(flow.explain())
        twice: Double a number.
        inputs: n (integer)
        1  double = double(n=input("n"))
        output: result("double")
    """

    flow: str
    description: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    """Name and type."""
    nodes: tuple[Node, ...] = ()
    """The steps, in declaration order."""
    output: str = ""
    output_reads: tuple[Edge, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    status: str | None = None
    """How the run ended, in a run's picture."""

    @property
    def mark(self) -> str:
        """How the run ended, by sign and word."""
        return "" if self.status is None else f"{SIGNS[self.status]} {self.status}"

    @property
    def waves(self) -> tuple[tuple[Node, ...], ...]:
        """The steps by wave: those of one can run together."""
        most = max((node.wave for node in self.nodes), default=0)
        return tuple(tuple(n for n in self.nodes if n.wave == wave) for wave in range(1, most + 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON-ready data."""
        return asdict(self)

    def mermaid(self) -> Mermaid:
        """Return it as a Mermaid diagram."""
        from jarvis_nb.toolsets.flows.mermaid import draw

        return draw(self)

    def to_html(self) -> str:
        """Return it as a static picture."""
        from jarvis_nb.display import bundle

        return bundle(self)["text/html"]

    def __str__(self) -> str:
        lines = [f"{self.flow}: {self.mark or self.description}"]
        if self.inputs:
            lines.append("inputs: " + ", ".join(f"{name} ({kind})" for name, kind in self.inputs))
        width = len(str(len(self.waves)))
        for number, wave in enumerate(self.waves, 1):
            for place, node in enumerate(wave):
                lead = str(number).rjust(width) if place == 0 else " " * width
                options = f"  [{', '.join(node.options)}]" if node.options else ""
                ended = f"  {node.mark}" if node.mark else ""
                outcome = f" → {node.outcome}" if node.outcome else ""
                lines.append(f"{lead}  {node.name} = {node.call}{options}{ended}{outcome}")
        if self.output:
            lines.append(f"output: {self.output}")
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"problem: {text}" for text in self.problems]
        return plain("\n".join(lines))

    def __repr__(self) -> str:
        status = "" if self.status is None else f"{self.status}, "
        return f"Explanation({self.flow!r}, {status}steps={len(self.nodes)}, waves={len(self.waves)})"

    def bundle(self) -> dict[str, str]:
        """Return the same as text, HTML and Mermaid, by MIME type."""
        return {"text/plain": str(self), "text/html": self.to_html(), "text/vnd.mermaid": str(self.mermaid())}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        return self.bundle()


def explain(flow: Declaration) -> Explanation:
    """Return a flow as it is declared, valid or not."""
    waits = edges(flow.steps)
    wave_of = {name: number for number, wave in enumerate(waves(waits), 1) for name in wave}
    return Explanation(
        flow=flow.name,
        description=flow.description,
        inputs=tuple((name, _type_text(flow, name)) for name in flow.inputs),
        nodes=tuple(_node(step, wave_of[name], waits[name]) for name, step in flow.steps.items()),
        output="" if flow.output is MISSING else text_of(flow.output),
        output_reads=() if flow.output is MISSING else tuple(_reads(_named(flow.output))),
        warnings=tuple(map(str, warnings_of(flow))),
        problems=tuple(map(str, problems_of(flow))),
    )


def _node(step: Step, wave: int, depends_on: tuple[str, ...]) -> Node:
    waited = [name for name in map(after_name, step.after) if name is not None]
    options = [f"after {', '.join(waited)}"] if waited else []
    options += [] if step.timeout is None else [f"timeout {step.timeout} s"]
    options += ["effect"] if step.effect else []
    options += [f"retries {step.retries}"] if step.retries else []
    reads = [*_reads(step.params), *(Edge("after", name, "") for name in waited)]
    return Node(
        name=step.name,
        tool="?" if step.tool is None else step.tool.name,
        kind="?" if step.tool is None else step.tool.kind,
        wave=wave,
        depends_on=depends_on,
        params=tuple((name, text_of(value)) for name, value in step.params.items()),
        options=tuple(options),
        reads=tuple(reads),
    )


def _reads(params: dict[str, Any]) -> list[Edge]:
    words: dict[type[Ref], str] = {InputRef: "input", ContextRef: "context"}
    return [
        Edge("step" if isinstance(ref, StepRef) else words[type(ref)], ref.name, _edge_label(name, ref))
        for name, value in params.items()
        for _, ref in refs_in(value)
    ]


def _named(output: Any) -> dict[str, Any]:
    return output if isinstance(output, dict) else {"": output}


def _edge_label(param: str, ref: Ref) -> str:
    path = path_text(ref.path).lstrip(".")
    return f"{path} as {param}" if path and param and path != param else path or param


def _type_text(flow: Declaration, name: str) -> str:
    schema = flow.inputs[name]
    kind = " or ".join(sorted(types_of(schema, flow.parameters) or {"any"}))
    return f"{kind} = {cut(dumps(schema['default']), MOST_TEXT)}" if "default" in schema else kind


def text_of(template: Any) -> str:
    """Return a parameter as it would be written, cut where it is long.

    Example:
        >>> text_of({"who": InputRef("f", "name"), "n": 3})
        '{"who": input("name"), "n": 3}'
    """
    return cut(_written(template), MOST_TEXT)


def _written(template: Any) -> str:
    if isinstance(template, Ref):
        if template.default is MISSING:
            return repr(template)
        return f"{template!r} or {dumps(template.default)}"
    if isinstance(template, dict):
        return "{" + ", ".join(f"{dumps(key)}: {_written(item)}" for key, item in template.items()) + "}"
    if isinstance(template, list):
        return "[" + ", ".join(map(_written, template)) + "]"
    return dumps(template)


def explain_trace(trace: FlowTrace, *, times: bool = False) -> Explanation:
    """Return a run as it went."""
    waits = {step.name: step.depends_on for step in trace.steps}
    wave_of = {name: number for number, wave in enumerate(waves(waits), 1) for name in wave}
    return Explanation(
        flow=trace.flow,
        status=trace.status,
        nodes=tuple(_ran(step, wave_of[step.name], times=times) for step in trace.steps),
        output="" if trace.output is None else cut(dumps(trace.output), MOST_TEXT, "flow.last.output"),
        problems=tuple(str(problem) for problem in trace.failures if problem.step is None),
    )


def _ran(step: StepTrace, wave: int, *, times: bool) -> Node:
    where = f"flow.last[{step.name!r}]"
    options = [f"{step.tries} tries"] if step.tries > 1 else []
    if times and step.start is not None and step.duration is not None:
        options.append(f"{step.start * 1000:.1f} ms + {step.duration * 1000:.1f} ms")
    if step.error is not None:
        outcome = f"{step.error.message} [{step.error.code}]"
    else:
        outcome = dumps(step.output) if step.status == "ok" else ""
    return Node(
        name=step.name,
        tool=step.tool,
        kind="flow" if step.steps is not None else "",
        wave=wave,
        depends_on=step.depends_on,
        params=tuple(
            (name, cut(dumps(value), MOST_TEXT, f"{where}.inputs")) for name, value in step.inputs.items()
        ),
        options=tuple(options),
        reads=tuple(Edge("after", name, "") for name in step.depends_on),
        status=step.status,
        outcome=cut(outcome, MOST_TEXT, f"{where}.output"),
    )
