"""A flow as a Mermaid diagram. Every label is escaped: names and values cannot become Mermaid's own words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jarvis_nb.toolsets.flows.explain import Edge, Explanation, Node

# What ends a label, starts a directive (`%%{…}`), a formula (`$$`), Markdown (a backtick) or an entity (`#`)
# is written as Mermaid's own entity code.
_ESCAPES = {
    **{ord(c): f"#{ord(c)};" for c in "#\"'`<>&%${}|;\\[]()"},
    **dict.fromkeys((*range(32), 127, 0x2028, 0x2029), " "),
    # What changes direction, or is not seen although a model reads it.
    **dict.fromkeys((0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF), " "),
    **dict.fromkeys(range(0xE0000, 0xE0080), " "),
}


class Mermaid(str):
    """A Mermaid diagram: its text, which front ends draw that know ``text/vnd.mermaid``.

    JupyterLab prefers HTML where both are offered (its ranks are 50 and 61), so this bundle has none.
    """

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        return {"text/plain": str(self), "text/vnd.mermaid": str(self)}


def escape(text: str) -> str:
    """Return text that stands for itself in a quoted label.

    Example:
        >>> escape('say "hi" #1')
        'say #34;hi#34; #35;1'
    """
    return text.translate(_ESCAPES)


def draw(flow: Explanation) -> Mermaid:
    """Return the diagram: inputs and context values lead into steps, steps into steps and the output."""
    steps = {node.name: f"s{index}" for index, node in enumerate(flow.nodes)}
    inputs = {name: f"i{index}" for index, (name, _) in enumerate(flow.inputs)}
    every = [edge for node in flow.nodes for edge in node.reads] + list(flow.output_reads)
    contexts = {e.name: "" for e in every if e.source == "context"}
    contexts = {name: f"c{index}" for index, name in enumerate(contexts)}
    lines = ["flowchart TD"]
    lines += [f'    {inputs[name]}(["{escape(name)}"])' for name in inputs]
    lines += [f'    {contexts[name]}{{{{"context {escape(name)}"}}}}' for name in contexts]
    for node in flow.nodes:
        lines.append(f"    {steps[node.name]}{_box(node)}")
    ids = {"input": inputs, "context": contexts, "step": steps, "after": steps}
    for node in flow.nodes:
        lines += _arrows(node.reads, ids, steps[node.name])
    if flow.output and flow.output_reads:
        lines.append('    out(["output"])')
        lines += _arrows(flow.output_reads, ids, "out")
    return Mermaid("\n".join(lines))


def _box(node: Node) -> str:
    label = escape(node.name) if node.name == node.tool else f"{escape(node.name)}<br/>{escape(node.tool)}"
    if node.status is not None:
        label += f"<br/>{escape(node.mark)}"
    return f'[["{label}"]]' if node.kind == "flow" else f'["{label}"]'


def _arrows(reads: Iterable[Edge], ids: dict[str, dict[str, str]], target: str) -> list[str]:
    """Return one arrow a source, its label naming all that is read; a dotted one for mere waiting."""
    labels: dict[str, list[str]] = {}
    for edge in reads:
        source = ids[edge.source].get(edge.name)
        if source is not None:
            labels.setdefault(source, []).extend([edge.label] if edge.label else [])
            if edge.source == "after":
                labels[source].append("")
    lines: list[str] = []
    for source, parts in labels.items():
        named = [part for part in dict.fromkeys(parts) if part]
        arrow = "-->" if named or not parts else "-.->"
        label = f'|"{escape(", ".join(named))}"|' if named else ""
        lines.append(f"    {source} {arrow}{label} {target}")
    return lines
