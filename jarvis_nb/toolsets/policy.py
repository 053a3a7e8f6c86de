"""The policy of one request: it narrows a toolset, never widens it, and says what the model has to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.core.errors import InvalidRequest, close_names
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import Definitions
from jarvis_nb.record import LedgerEntry
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.toolsets.offer import Offer
from jarvis_nb.toolsets.toolset import Toolset

__all__ = ["LedgerEntry", "Offer", "ToolPolicy", "resolve"]

REQUIREMENTS = ("auto", "required", "disabled")
DEFAULTS: dict[str, Any] = {"visible": None, "hidden": (), "requirement": "auto"}
KEYS = tuple(DEFAULTS)


@dataclass(frozen=True, repr=False)
class ToolPolicy(Pictured):
    """What one request may use of its tools, of every kind, by name.

    Args:
        visible: The tools to keep; None keeps all, an empty list none.
        hidden: The tools to drop; a name in both is dropped.
        requirement: ``auto``; ``required``: a tool has to run; ``disabled``: none is offered;
            ``{"tool": name}``: this one has to run.

    Raises:
        InvalidRequest: ``invalid_policy``: a wrong type or an unknown requirement.

    Example:
        >>> ToolPolicy(visible=["calculator"], requirement="required")
        ToolPolicy(visible=('calculator',), requirement='required')
    """

    visible: Sequence[str] | None = None
    hidden: Sequence[str] = ()
    requirement: str | dict[str, str] = "auto"
    forced: str | None = field(init=False, compare=False)
    """The tool that has to run, where the requirement names one."""
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "visible", None if self.visible is None else _names(self.visible, "visible"))
        put(self, "hidden", () if self.hidden is None else _names(self.hidden, "hidden"))  # pyright: ignore[reportUnnecessaryComparison] - JSON's null
        put(self, "requirement", _requirement(self.requirement))
        put(self, "forced", self.requirement["tool"] if isinstance(self.requirement, dict) else None)
        # Made once: it is asked for on every request, and the names may be a thousand.
        put(self, "_hash", hash((self.visible, self.hidden, self.forced or self.requirement)))

    @classmethod
    def of(cls, data: ToolPolicy | Mapping[str, Any] | None) -> ToolPolicy:
        """Read a policy from request data; None is the policy that narrows nothing.

        Raises:
            InvalidRequest: ``invalid_policy``: an unknown key, a wrong type, an unknown requirement.

        Example:
            >>> ToolPolicy.of({"hidden": ["think"]})
            ToolPolicy(hidden=('think',))
        """
        if isinstance(data, ToolPolicy):
            return data
        if data is None:
            return EVERYTHING
        if not isinstance(data, dict | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - request data
            raise _invalid(f"a tool policy is a mapping, got {data!r:.100}", data, KEYS)
        unknown = [key for key in data if key not in KEYS]
        if unknown:
            raise _invalid(
                f"a tool policy has no {', '.join(f'{key!r:.60}' for key in unknown)}", unknown, KEYS
            )
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as request data: :meth:`of` reads an equal one from it."""
        requirement = dict(self.requirement) if isinstance(self.requirement, dict) else self.requirement
        visible = None if self.visible is None else list(self.visible)
        return {"visible": visible, "hidden": list(self.hidden), "requirement": requirement}

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.visible, self.hidden, self.requirement)  # a hash holds in one process only

    def __repr__(self) -> str:
        given = [f"{key}={getattr(self, key)!r}" for key in KEYS if getattr(self, key) != DEFAULTS[key]]
        return f"ToolPolicy({', '.join(given)})"


def resolve(toolset: Toolset, policy: ToolPolicy | Mapping[str, Any] | None = None) -> Offer:
    """Return what a request with this policy offers. Pure: equal policies on one toolset give one offer.

    =================== ======== ======= ======== =========== ==================================
    requirement         selected sent    choice   after a run the model answers without a tool
    =================== ======== ======= ======== =========== ==================================
    auto                some     them    auto     auto        fine
    auto                none     nothing no key   no key      fine
    required            some     them    required auto        failed, required_tool_not_called
    required            none                                  raises ``required_without_tools``
    disabled            any      nothing no key   no key      fine; a stray call is refused
    {tool: x}, x in     some     them    force x  auto        failed, required_tool_not_called
    {tool: x}, x not in any                                   raises ``required_tool_not_selected``
    any, unknown name   any                                   raises ``unknown_tools``
    =================== ======== ======= ======== =========== ==================================

    Selected: ``visible`` absent selects all, else those it names; ``hidden`` then drops those it names. The
    order is the toolset's. A policy can only remove.

    Raises:
        InvalidRequest: ``invalid_policy``, and the errors of the table; all before any model call.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> from jarvis_nb.tools.think import ThinkTool
        >>> resolve(Toolset([CalculatorTool(), ThinkTool()]), {"hidden": ["think"]})
        Offer(offered=['calculator'], hidden=['think'], requirement='auto')
    """
    asked = ToolPolicy.of(policy)
    return toolset.remember(asked, lambda: _resolve(toolset, asked))


def _resolve(toolset: Toolset, policy: ToolPolicy) -> Offer:
    _check_known(toolset, policy)
    visible = None if policy.visible is None else frozenset(policy.visible)
    hidden = frozenset(policy.hidden)
    reasons = [_why_hidden(tool.name, visible, hidden, policy) for tool in toolset.tools]
    tools = tuple(tool for tool, reason in zip(toolset.tools, reasons, strict=True) if not reason)
    _check_requirement(toolset, policy, tools)
    names = tuple(tool.name for tool in tools)
    # Policies that select the same tools share their definitions, and so their encoded forms.
    definitions = toolset.remember(names, lambda: Definitions([tool.definition for tool in tools]))
    entries = tuple(
        LedgerEntry(tool.name, tool.kind, tool.source, not reason, reason)
        for tool, reason in zip(toolset.tools, reasons, strict=True)
    )
    return Offer(tools, names, definitions, entries, policy.requirement, policy.forced)


def _why_hidden(
    name: str, visible: AbstractSet[str] | None, hidden: AbstractSet[str], policy: ToolPolicy
) -> str:
    """Say why a tool is not offered; empty where it is."""
    if policy.requirement == "disabled":
        return "requirement is disabled"
    if name in hidden:
        return "hidden by you (`hidden`)"
    return "" if visible is None or name in visible else "not in `visible`"


def _check_known(toolset: Toolset, policy: ToolPolicy) -> None:
    known = frozenset(toolset.names)
    forced = [] if policy.forced is None else [policy.forced]
    asked = [("visible", policy.visible or ()), ("hidden", policy.hidden), ("requirement", forced)]
    unknown = [(name, key) for key, names in asked for name in names if name not in known]
    if not unknown:
        return
    close = {name: close_names(name, toolset.names) for name, _ in unknown}
    named = [f"{name!r:.80} in `{key}`{_did_you_mean(close[name])}" for name, key in unknown]
    raise InvalidRequest(
        f"the policy names tools that are not there: {', '.join(named)}",
        code="unknown_tools",
        value=list(close),
        valid=toolset.names,
    )


def _did_you_mean(close: list[str]) -> str:
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def _check_requirement(toolset: Toolset, policy: ToolPolicy, tools: Collection[BaseTool]) -> None:
    if policy.forced is not None and all(tool.name != policy.forced for tool in tools):
        raise InvalidRequest(
            f"the tool {policy.forced!r} has to run and is not selected",
            code="required_tool_not_selected",
            value=policy.forced,
            valid=[tool.name for tool in tools],
            hint="select it in `visible` and leave it out of `hidden`",
        )
    if policy.requirement == "required" and not tools:
        raise InvalidRequest(
            "a tool has to run and none is selected",
            code="required_without_tools",
            value=policy.to_dict(),
            valid=toolset.names,
            hint="give tools, widen `visible`, or take another requirement",
        )


def _invalid(message: str, value: Any, valid: Iterable[str] | None = None) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_policy", value=value, valid=valid)


def _names(value: Any, key: str) -> tuple[str, ...]:
    plain = isinstance(value, list | tuple)  # first, since asking an ABC costs more than all the rest
    if not plain and (isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)):
        raise _invalid(f"`{key}` is a list of tool names, got {value!r:.100}", value)
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise _invalid(f"`{key}` holds {name!r:.100}: tools are named by strings", name)
    return tuple(dict.fromkeys(sorted(names) if not plain and isinstance(value, AbstractSet) else names))


def _requirement(value: Any) -> str | dict[str, str]:
    if isinstance(value, str) and value in REQUIREMENTS:
        return str(value)
    if isinstance(value, Mapping) and set(value) == {"tool"} and isinstance(value["tool"], str):
        return {"tool": str(value["tool"])}
    raise _invalid(f"no requirement {value!r:.100}", value, [*REQUIREMENTS, '{"tool": name}'])


EVERYTHING = ToolPolicy()
"""The policy that narrows nothing and requires nothing."""
