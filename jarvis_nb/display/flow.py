"""A flow as static HTML, made of the same blocks as every picture: no script, no style sheet."""

from __future__ import annotations

from html import escape as escaped
from typing import TYPE_CHECKING

from jarvis_nb.display.blocks import COLOURS, details, frame, line, table
from jarvis_nb.display.escape import code, one_line, prose

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.explain import Explanation, Node

MOST_ROWS = 60
"""Steps shown at once; the rest is folded."""
MOST_WAVES = 12
MOST_BOXES = 12


def draw(flow: Explanation) -> str:
    """Return the picture: a line that shows the order, and a row a step."""
    about = flow.description if flow.status is None else flow.mark
    parts = [line(f"<b>{prose(flow.flow)}</b> {prose(about)}")]
    if flow.inputs:
        parts.append(
            line("inputs: " + ", ".join(f"{code(name)} {prose(kind)}" for name, kind in flow.inputs))
        )
    if flow.nodes:
        parts += [line(_order(flow)), _table(flow, flow.nodes[:MOST_ROWS])]
    if len(flow.nodes) > MOST_ROWS:
        rest = flow.nodes[MOST_ROWS:]
        parts.append(details(f"… {len(rest):,} more steps", _table(flow, rest)))
    if flow.output:
        parts.append(line(f"output: {code(flow.output)}"))
    return frame([*parts, _notes("warning", flow.warnings), _notes("problem", flow.problems)])


def _order(flow: Explanation) -> str:
    """Return the steps as a chain of boxes; those that can run together stand between one pair of arrows."""
    waves = flow.waves[:MOST_WAVES]
    groups = ["".join(_box(node) for node in wave[:MOST_BOXES]) + _beyond(wave) for wave in waves]
    return " → ".join(groups) + (" → …" if len(flow.waves) > len(waves) else "")


def _box(node: Node) -> str:
    mark = f"{node.mark.split()[0]} " if node.status is not None else ""
    edge = COLOURS.get(mark.strip(), "rgba(128,128,128,.5)")
    style = f"border:1px solid {edge};border-radius:4px;padding:2px 8px;display:inline-block;margin:2px 3px"
    return f'<code style="{style}">{escaped(mark + one_line(node.name, 60))}</code>'


def _beyond(wave: tuple[Node, ...]) -> str:
    return f" and {len(wave) - MOST_BOXES:,} more" if len(wave) > MOST_BOXES else ""


def _table(flow: Explanation, nodes: tuple[Node, ...]) -> str:
    heads = [
        "wave",
        "step",
        "calls",
        "gets",
        *(["waits for"] if flow.status is None else ["ended", "result"]),
    ]
    rows = [_row(node) for node in sorted(nodes, key=lambda node: node.wave)]
    return table(rows, head=heads)


def _row(node: Node) -> list[str]:
    gets = "".join(_row_line(f"{code(name)} = {code(given)}") for name, given in node.params)
    options = _row_line(f"<i>{prose(', '.join(node.options))}</i>") if node.options else ""
    kind = "" if node.kind in ("action", "") else f" {prose(node.kind)}"
    cells = [str(node.wave), f"<b>{prose(node.name)}</b>{options}", f"{code(node.tool)}{kind}", gets]
    if node.status is None:
        return [*cells, prose(", ".join(node.depends_on))]
    return [*cells, prose(node.mark), code(node.outcome) if node.outcome else ""]


def _row_line(html: str) -> str:
    return f'<p style="margin:0">{html}</p>'


def _notes(word: str, notes: tuple[str, ...]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{prose(note)}</li>" for note in notes)
    return line(f"<b>{len(notes)} {word}{'s' if len(notes) > 1 else ''}</b>") + f"<ul>{items}</ul>"
