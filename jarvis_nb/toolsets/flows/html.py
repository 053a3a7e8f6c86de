"""A flow as static HTML: only what notebooks' sanitizers let through, no script, no colour of its own."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.explain import Explanation, Node

MOST_ROWS = 60
"""Steps shown at once; the rest is folded."""
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_HEAD = f"{_CELL};font-weight:normal;opacity:.75"
_TABLE = "border-collapse:collapse;margin:0 0 6px;font-size:13px"
_LINE = "border-top:1px solid rgba(128,128,128,.35)"


def text(value: str) -> str:
    r"""Return text escaped for HTML. Where it could be read as a formula it stands in ``code``.

    JupyterLab and nbviewer typeset ``$…$`` and ``\(…\)`` in HTML outputs, but not inside ``code``.
    """
    out = escape(value)
    if "$" in value or "\\" in value:
        return f'<code style="font-family:inherit;background:transparent;padding:0">{out}</code>'
    return out


def code(value: str) -> str:
    """Return text escaped for HTML, as code."""
    return f"<code>{escape(value)}</code>"


def draw(flow: Explanation) -> str:
    """Return the picture: a line that shows the order, and a row a step."""
    kind = "flow" if flow.status is None else f"run of a flow · {flow.status}"
    about = f" · {text(flow.description)}" if flow.description else ""
    parts = [f'<p style="margin:0 0 2px"><b>{text(flow.flow)}</b> · {text(kind)}{about}</p>']
    if flow.inputs:
        inputs = ", ".join(f"{code(name)} {text(type_)}" for name, type_ in flow.inputs)
        parts.append(f'<p style="margin:0 0 2px;opacity:.85">inputs: {inputs}</p>')
    if flow.nodes:
        parts.append(f'<p style="margin:0 0 4px">{_order(flow)}</p>')
        parts.append(_table(flow, flow.nodes[:MOST_ROWS]))
    if len(flow.nodes) > MOST_ROWS:
        rest = flow.nodes[MOST_ROWS:]
        parts.append(f"<details><summary>… {len(rest):,} more steps</summary>{_table(flow, rest)}</details>")
    if flow.output:
        parts.append(f'<p style="margin:0 0 2px">output: {code(flow.output)}</p>')
    parts += [_notes("warning", flow.warnings), _notes("problem", flow.problems)]
    return "".join(parts)


def _order(flow: Explanation) -> str:
    """Return the steps as a chain; those that can run together stand in one pair of brackets."""
    waves = [[text(node.name) for node in wave] for wave in flow.waves[:12]]
    chain = " → ".join("".join(names) if len(names) == 1 else f"[{' · '.join(names)}]" for names in waves)
    return chain + (" → …" if len(flow.waves) > len(waves) else "")


def _table(flow: Explanation, nodes: tuple[Node, ...]) -> str:
    ran = flow.status is not None
    heads = ["wave", "step", "calls", "gets"] + (["ended", "result"] if ran else ["waits for"])
    head = "".join(f'<th style="{_HEAD}">{name}</th>' for name in heads)
    rows = "".join(_row(node, ran=ran) for node in sorted(nodes, key=lambda node: node.wave))
    return f'<table style="{_TABLE}"><tr>{head}</tr>{rows}</table>'


def _row(node: Node, *, ran: bool) -> str:
    from jarvis_nb.toolsets.flows.explain import SIGNS

    gets = "".join(_line(f"{code(name)} = {code(given)}") for name, given in node.params)
    options = _line(f"<i>{text(', '.join(node.options))}</i>") if node.options else ""
    kind = "" if node.kind in ("action", "") else f" {text(node.kind)}"
    cells = [
        str(node.wave),
        f"<b>{text(node.name)}</b>{options}",
        f"{code(node.tool)}{kind}",
        gets or "nothing",
    ]
    if ran:
        status = node.status or ""
        cells += [f"{SIGNS.get(status, '')} {text(status)}", code(node.outcome) if node.outcome else ""]
    else:
        cells.append(", ".join(map(text, node.depends_on)) or "none")
    return "<tr>" + "".join(f'<td style="{_CELL};{_LINE}">{cell}</td>' for cell in cells) + "</tr>"


def _line(inner: str) -> str:
    return f'<p style="margin:0">{inner}</p>'


def _notes(word: str, notes: tuple[str, ...]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    return f'<p style="margin:0 0 2px"><b>{len(notes)} {word}{"s" if len(notes) > 1 else ""}</b></p><ul>{items}</ul>'
