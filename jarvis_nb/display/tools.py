"""Tools and toolsets: name, kind, source, description, parameters, and the exact definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jarvis_nb.core.errors import JarvisError
from jarvis_nb.core.types import Definitions
from jarvis_nb.display import blocks
from jarvis_nb.display.escape import brief, code, count, cut, json_text, one_line, pre, prose
from jarvis_nb.display.ledger import CHARACTERS_A_TOKEN, kind_text
from jarvis_nb.display.schema import Parameter, parameters
from jarvis_nb.tools.base import BaseTool

DEFINITIONS = 30
"""Tools shown with their definitions; of more, name, kind and description."""
MOST = 300
FOLD = 3000


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool."""

    name: str
    kind: str
    description: str
    parameters: tuple[Parameter, ...]
    notes: tuple[str, ...]
    """What the host should know: that it asks for confirmation, its time limit."""
    definition: str
    """What is sent for it, as JSON."""
    problem: str = ""
    """Why it has no definition."""


def tool(given: BaseTool) -> ToolView:
    """Return the view of a tool, whatever is wrong with it."""
    from jarvis_nb.core.schema import openai_tools

    spec = given.spec
    notes = [f"source {given.source}"] if given.source else []
    notes += ["asks a person before it runs"] if spec.requires_confirmation else []
    notes += [f"at most {spec.timeout_seconds:g} s"] if spec.timeout_seconds else []
    try:
        definition = given.definition
        sent, problem = json_text(openai_tools(Definitions([definition]))[0], 1), ""
        found = parameters(definition.parameters)
    except JarvisError as error:
        sent, problem, found = "", str(error), ()
    return ToolView(given.name, kind_text(given), spec.description, found, tuple(notes), sent, problem)


def tool_text(view: ToolView) -> str:
    """Return a tool as text: signature, description, parameters."""
    lines = [f"{_signature(view)} · {one_line(view.kind, 80)}", f"  {one_line(view.description)}"]
    for p in view.parameters:
        about = f": {p.description}" if p.description else ""
        lines.append(one_line(f"  {p.name} ({p.type}{_default(p)}){about}"))
    lines += [one_line(f"  {note}") for note in view.notes]
    return "\n".join([*lines, *([one_line(f"  problem: {view.problem}", 400)] if view.problem else [])])


def _signature(view: ToolView) -> str:
    inner = ", ".join(p.name if p.required else f"[{p.name}]" for p in view.parameters)
    return f"{one_line(view.name, 80)}({one_line(inner, 80)})"


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return ""
    return f", default {parameter.default}" if parameter.default else ", optional"


def tool_html(view: ToolView) -> str:
    """Return one tool as a card."""
    return blocks.frame([_head(view), _body(view)])


def _head(view: ToolView) -> str:
    return blocks.line(f"<b>{prose(one_line(view.name, 100))}</b> {prose(f'· {one_line(view.kind, 80)}')}")


def _body(view: ToolView) -> str:
    rows = [
        (code(one_line(p.name, 80)), prose(f"{one_line(p.type, 120)}{one_line(_default(p), 120)}"),
         prose(one_line(p.description, 400)))
        for p in view.parameters[:60]
    ]  # fmt: skip
    about = prose(cut(view.description, FOLD, "tool.spec.description")).replace("\n", "<br>")
    problem = f"✗ <b>{prose(cut(view.problem, FOLD))}</b>" if view.problem else ""
    return "".join(
        [
            blocks.line(about),
            blocks.line(problem) if problem else "",
            blocks.table(rows, head=("parameter", "type", "about")) if rows else blocks.dim("no parameters"),
            blocks.dim(" · ".join(one_line(n, 200) for n in view.notes)) if view.notes else "",
            blocks.details("The exact definition", pre(cut(view.definition, FOLD, "tool.definition")))
            if view.definition
            else "",
        ]
    )


def toolset_text(views: Sequence[ToolView]) -> str:
    """Return a toolset as text, one line a tool."""
    lines = [_title(views)]
    lines += [f"  {_signature(v)} · {one_line(v.kind, 60)}: {brief(v.description, 90)}" for v in views[:MOST]]
    return "\n".join(lines + ([f"  … {len(views) - MOST:,} more"] if len(views) > MOST else []))


def toolset_html(views: Sequence[ToolView]) -> str:
    """Return a toolset as a card: a fold a tool, and bare rows for those beyond the first."""
    folds = [blocks.details(_summary(v), _body(v)) for v in views[:DEFINITIONS]]
    rows = [
        (code(one_line(v.name, 80)), prose(one_line(v.kind, 80)), prose(brief(v.description)))
        for v in views[DEFINITIONS:MOST]
    ]
    more = len(views) - DEFINITIONS
    rest = blocks.dim(f"… {len(views) - MOST:,} more (toolset.names)") if len(views) > MOST else ""
    tail = blocks.details(prose(count(more, "more tool")), blocks.table(rows) + rest) if more > 0 else ""
    return blocks.frame([blocks.line(f"<b>{prose(_title(views))}</b>"), *folds, tail])


def _summary(view: ToolView) -> str:
    kind = "" if view.kind == "tool" else f" {prose(one_line(view.kind, 60))}"
    return f"<b>{prose(one_line(view.name, 80))}</b>{kind} · {prose(brief(view.description))}"


def _title(views: Sequence[ToolView]) -> str:
    # As JSON without its indents: what an engine sends for one tool is about this long.
    size = sum(len("".join(line.strip() for line in v.definition.splitlines())) for v in views)
    return f"Toolset · {count(len(views), 'tool')} · about {-(-size // CHARACTERS_A_TOKEN):,} tokens a model call"
