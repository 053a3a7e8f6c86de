"""The policy of one request: it narrows a toolset, never widens it, and says what the model has to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.core.errors import ErrorInfo, InvalidRequest, close_names
from jarvis_nb.core.types import Definitions, ToolChoice
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.toolsets.toolset import Toolset

REQUIREMENTS = ("auto", "required", "disabled")
MAX_OFFERS = 32
"""Offers a toolset remembers."""


@dataclass(frozen=True)
class ToolPolicy:
    """What one request may use of its tools. Names work for every kind of tool.

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

    visible: Iterable[str] | None = None
    hidden: Iterable[str] = ()
    requirement: str | dict[str, str] = "auto"
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.visible is not None:
            put(self, "visible", _names(self.visible, "visible"))
        put(self, "hidden", () if self.hidden is None else _names(self.hidden, "hidden"))  # pyright: ignore[reportUnnecessaryComparison] - JSON null
        put(self, "requirement", _requirement(self.requirement))
        put(self, "_hash", hash((self.visible, self.hidden, str(self.requirement))))

    @classmethod
    def of(cls, data: ToolPolicy | Mapping[str, Any] | None) -> ToolPolicy:
        """Read a policy from request data.

        Raises:
            InvalidRequest: ``invalid_policy``: an unknown key, a wrong type, an unknown requirement.

        Example:
            >>> ToolPolicy.of({"hidden": ["think"]})
            ToolPolicy(hidden=('think',))
        """
        if isinstance(data, ToolPolicy):
            return data
        if data is None:
            return cls()
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - request data
            raise _invalid(f"a tool policy is a mapping, got {data!r:.100}", data, KEYS)
        unknown = [key for key in data if key not in KEYS]
        if unknown:
            raise _invalid(
                f"a tool policy has no {', '.join(f'{key!r:.60}' for key in unknown)}", unknown, KEYS
            )
        return cls(**data)

    @property
    def forced(self) -> str | None:
        """The tool that has to run, where the requirement names one."""
        return self.requirement["tool"] if isinstance(self.requirement, dict) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as request data."""
        out: dict[str, Any] = {} if self.visible is None else {"visible": list(self.visible)}
        requirement = dict(self.requirement) if isinstance(self.requirement, dict) else self.requirement
        return {**out, "hidden": list(self.hidden), "requirement": requirement}

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        given = [f"{key}={getattr(self, key)!r}" for key in KEYS if getattr(self, key) != DEFAULTS[key]]
        return f"ToolPolicy({', '.join(given)})"


DEFAULTS: dict[str, Any] = {"visible": None, "hidden": (), "requirement": "auto"}
KEYS = tuple(DEFAULTS)


def _invalid(message: str, value: Any, valid: Iterable[str] | None = None) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_policy", value=value, valid=valid)


def _names(value: Any, key: str) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _invalid(f"{key} is a list of tool names, got {value!r:.100}", value)
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise _invalid(f"{key} holds {name!r:.100}: tools are named by strings", name)
    return names


def _requirement(value: Any) -> str | dict[str, str]:
    if isinstance(value, str) and value in REQUIREMENTS:
        return str(value)
    if isinstance(value, Mapping) and set(value) == {"tool"} and isinstance(value["tool"], str):
        return {"tool": value["tool"]}
    raise _invalid(f"no requirement {value!r:.100}", value, [*REQUIREMENTS, '{"tool": name}'])


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What became of one tool of the toolset in one request."""

    name: str
    kind: str
    source: str | None
    """The id of the source that brought the tool, else None."""
    offered: bool
    reason: str
    """Why it was offered or hidden, in a few words."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "source": self.source,
            "offered": self.offered,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Offer:
    """What the model is offered in one request, what is hidden and why, and what it has to do."""

    tools: tuple[BaseTool, ...]
    """The tools offered, in toolset order."""
    names: tuple[str, ...]
    definitions: Definitions
    entries: tuple[LedgerEntry, ...]
    """One for every tool of the toolset, in its order."""
    policy: ToolPolicy

    @property
    def requirement(self) -> str | dict[str, str]:
        """``auto``, ``required``, ``disabled`` or ``{"tool": name}``."""
        return self.policy.requirement

    def choice(self, ran: bool) -> ToolChoice:
        """Return the tool choice of the next model call.

        Args:
            ran: Whether a tool was entered already; a call refused before that does not count.
        """
        if not self.tools:
            return None
        if ran or self.requirement == "auto":
            return "auto"
        if self.policy.forced is not None:
            return {"type": "function", "function": {"name": self.policy.forced}}
        return "required"

    def unmet(self, ran: Collection[str]) -> ErrorInfo | None:
        """Return what is missing if the model answers now, or None.

        Args:
            ran: Names of the tools that were entered, whatever their result.
        """
        forced = self.policy.forced
        if forced is not None:
            missing = forced not in ran
            message = f"the tool {forced!r} had to run and did not"
        else:
            missing = self.requirement == "required" and not ran
            message = "a tool had to run and none did"
        if not missing:
            return None
        wanted = [forced] if forced is not None else list(self.names)
        return ErrorInfo("required_tool_not_called", message, {"valid": wanted})

    def reason_for_choice(self, ran: bool) -> str:
        """Say in one sentence why :meth:`choice` is what it is, for the ledger."""
        if self.requirement == "disabled":
            return "no tool is sent: the requirement is `disabled`"
        if not self.tools:
            return "no tool is sent: none is selected"
        if self.requirement == "auto":
            return "the model may call a tool or answer"
        if ran:
            return "the model may answer: a tool has run"
        if self.policy.forced is not None:
            return f"the model has to call {self.policy.forced!r}: the requirement names it"
        return "the model has to call a tool: the requirement is `required`"

    def __repr__(self) -> str:
        hidden = [entry.name for entry in self.entries if not entry.offered]
        return f"Offer(offered={list(self.names)}, hidden={hidden}, requirement={self.requirement!r})"


def resolve(toolset: Toolset, policy: ToolPolicy | Mapping[str, Any] | None = None) -> Offer:
    """Return what a request with this policy offers. A pure function; the same two give the same offer.

    ==================== ======== ========= ============== ============ ==================================
    requirement          selected sent      choice, call 1 after a run  the model answers without a tool
    ==================== ======== ========= ============== ============ ==================================
    auto                 some     them      ``auto``       ``auto``     fine
    auto                 none     nothing   (no key)       –            fine
    required             some     them      ``required``   ``auto``     ``required_tool_not_called``
    required             none     –         error ``required_without_tools``
    disabled             any      nothing   (no key)       –            fine; a stray call is refused
    {tool: x}, x in      some     them      x forced       ``auto``     ``required_tool_not_called``
    {tool: x}, x not in  any      –         error ``required_tool_not_selected``
    any, a name unknown  –        –         error ``unknown_tools``
    ==================== ======== ========= ============== ============ ==================================

    Selected: ``visible`` absent selects all, else those it names; then ``hidden`` drops those it names.
    Order is the toolset's. A policy can only remove.

    Raises:
        InvalidRequest: ``invalid_policy`` and the codes of the table, before any model call.

    Example:
        >>> from jarvis_nb.tools.calculator import CalculatorTool
        >>> from jarvis_nb.tools.think import ThinkTool
        >>> resolve(Toolset([CalculatorTool(), ThinkTool()]), {"hidden": ["think"]})
        Offer(offered=['calculator'], hidden=['think'], requirement='auto')
    """
    key = ToolPolicy.of(policy)
    offer = toolset.offers.get(key)
    if offer is None:
        offer = toolset.offers[key] = _resolve(toolset, key)
        while len(toolset.offers) > MAX_OFFERS:
            toolset.offers.popitem(last=False)
    return offer


def _resolve(toolset: Toolset, policy: ToolPolicy) -> Offer:
    _check_known(toolset, policy)
    visible = None if policy.visible is None else frozenset(policy.visible)
    hidden = frozenset(policy.hidden)
    entries = [_entry(tool, visible, hidden, policy) for tool in toolset.tools]
    tools = tuple(tool for tool, entry in zip(toolset.tools, entries, strict=True) if entry.offered)
    names = tuple(tool.name for tool in tools)
    if policy.requirement == "required" and not tools:
        raise InvalidRequest(
            "a tool is required and none is selected",
            code="required_without_tools",
            value=policy,
            valid=toolset.names,
            hint="give tools, or widen `visible`",
        )
    if policy.forced is not None and policy.forced not in names:
        raise InvalidRequest(
            f"the tool {policy.forced!r} is required and not selected",
            code="required_tool_not_selected",
            value=policy.forced,
            valid=names,
            hint="select it in `visible` and leave it out of `hidden`",
        )
    return Offer(tools, names, Definitions([tool.definition for tool in tools]), tuple(entries), policy)


def _entry(
    tool: BaseTool, visible: frozenset[str] | None, hidden: frozenset[str], policy: ToolPolicy
) -> LedgerEntry:
    name = tool.name
    if policy.requirement == "disabled":
        offered, reason = False, "requirement is disabled"
    elif name in hidden:
        offered, reason = False, "hidden by you (`hidden`)"
    elif visible is not None and name not in visible:
        offered, reason = False, "not in `visible`"
    elif visible is not None:
        offered, reason = True, "in `visible`"
    else:
        offered, reason = True, "not narrowed"
    return LedgerEntry(name, tool.kind, tool.source, offered, reason)


def _check_known(toolset: Toolset, policy: ToolPolicy) -> None:
    named = {"visible": policy.visible or (), "hidden": policy.hidden}
    named["requirement"] = () if policy.forced is None else (policy.forced,)
    known = frozenset(toolset.names)
    unknown = {name: key for key, names in named.items() for name in names if name not in known}
    if not unknown:
        return
    parts: list[str] = []
    for name, key in unknown.items():
        close = close_names(name, toolset.names)
        parts.append(
            f"{name!r:.80} in `{key}`"
            + (f" (did you mean {' or '.join(map(repr, close))}?)" if close else "")
        )
    raise InvalidRequest(
        f"the policy names tools that are not in the toolset: {', '.join(parts)}",
        code="unknown_tools",
        value=list(unknown),
        valid=toolset.names,
    )
