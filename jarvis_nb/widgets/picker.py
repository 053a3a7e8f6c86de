"""The policy picker: tick what a request may use, see the offer and its cost at once, take the code with you."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jarvis_nb.core.errors import JarvisError
from jarvis_nb.display.escape import brief, one_line, plain
from jarvis_nb.display.ledger import kind_text, ledger, ledger_html, ledger_text
from jarvis_nb.toolsets.policy import ToolPolicy, resolve
from jarvis_nb.toolsets.toolset import Toolset
from jarvis_nb.widgets.view import View


class PolicyPicker(View):
    """Choose a policy by hand; :attr:`policy` is what was chosen.

    Args:
        tools: A toolset, or the tools of one.
        policy: Where to begin.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> picker = PolicyPicker([CalculatorTool()])
        >>> picker.choose({"visible": ["calculator"], "requirement": "required"})
        >>> picker.policy
        ToolPolicy(visible=('calculator',), requirement='required')
        >>> picker.code
        "tool_policy=ToolPolicy(visible=['calculator'], requirement='required')"
    """

    parts: ClassVar[tuple[str, ...]] = ("picker",)

    def __init__(self, tools: Any, policy: ToolPolicy | Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.policy = ToolPolicy.of(policy)
        """The policy as it is chosen now."""
        self.problem = ""
        """Why the newest choice was not taken, if it was not."""
        resolve(self.toolset, self.policy)

    @property
    def code(self) -> str:
        """The code that does the same, to paste into an ask."""
        chosen = self.policy.to_dict()
        visible = self.policy.visible
        given = [] if visible is None else [f"visible={list(visible)!r}"]
        given += [f"hidden={list(self.policy.hidden)!r}"] if self.policy.hidden else []
        given += [f"requirement={chosen['requirement']!r}"] if chosen["requirement"] != "auto" else []
        return f"tool_policy=ToolPolicy({', '.join(given)})"

    def choose(self, policy: ToolPolicy | Mapping[str, Any]) -> None:
        """Take a policy, if it is one for these tools; else :attr:`problem` says why not, and nothing changes."""
        try:
            chosen = ToolPolicy.of(policy)
            resolve(self.toolset, chosen)
        except JarvisError as error:
            self.problem = f"{error.message}{f' ({error.hint})' if error.hint else ''}"
        else:
            self.policy, self.problem = chosen, ""
        self.send([self.state()])

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take what a person chose on the page."""
        if message.get("op") == "choose":
            self.choose({key: message.get(key) for key in ("visible", "hidden", "requirement")})

    def state(self) -> dict[str, Any]:
        """Return the tools, the choice, what it offers and the code for it."""
        view = ledger(resolve(self.toolset, self.policy))
        chosen = self.policy.to_dict()
        tools = [
            {
                "name": entry.name,
                "kind": one_line(kind_text(entry), 60),
                "about": brief(tool.spec.description),
                "offered": entry.offered,
                "why": plain(entry.reason).replace("`", ""),
            }
            for entry, tool in zip(view.entries, self.toolset.tools, strict=True)
        ]
        return {
            **chosen,
            "tools": tools,
            "tokens": view.tokens,
            "first": plain(view.first).replace("`", ""),
            "later": plain(view.later).replace("`", ""),
            "code": self.code,
            "problem": plain(self.problem),
        }

    def static(self) -> dict[str, str]:
        """Return the ledger of the chosen policy."""
        view = ledger(resolve(self.toolset, self.policy))
        return {"text/plain": f"{self.code}\n{ledger_text(view)}", "text/html": ledger_html(view)}

    def __repr__(self) -> str:
        return f"PolicyPicker({self.policy!r})"
