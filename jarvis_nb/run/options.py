"""What one ask may say, checked before anything happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from jarvis_nb.core.errors import InvalidRequest, close_names
from jarvis_nb.core.types import JSON, Message

if TYPE_CHECKING:
    from jarvis_nb.toolsets.policy import ToolPolicy
    from jarvis_nb.toolsets.toolset import Toolset


OF_JARVIS = frozenset({"engine", "tool_sources", "memory", "approve", "config"})
"""Settings of :class:`~jarvis_nb.jarvis.Jarvis` that an ask does not take."""


class AskOptions(TypedDict, total=False):
    """The keyword arguments of ``ask``, ``ask_full``, ``aask_full``, ``astream``, ``preview`` and ``map``."""

    agent: str | None
    tools: Sequence[Any] | Toolset | None
    model: str | None
    temperature: float | None
    max_tokens: int | None
    context: bool | None
    tool_policy: ToolPolicy | Mapping[str, Any] | None
    limits: Mapping[str, Any] | None
    history: Sequence[Message | JSON] | None
    tool_context: Mapping[str, Any] | None
    system: str | None


@dataclass(frozen=True, slots=True)
class Ask:
    """One question with its options."""

    query: str
    agent: str | None = None
    tools: Any = None
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    context: bool | None = None
    tool_policy: Any = None
    limits: Mapping[str, Any] | None = None
    history: Any = None
    tool_context: Mapping[str, Any] | None = None
    system: str | None = None

    @classmethod
    def of(cls, query: object, options: Mapping[str, Any]) -> Ask:
        """Check a question and its options.

        Raises:
            InvalidRequest: Names the first thing that is wrong, with what would be right.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidRequest(
                f"the question is {query!r:.100}", value=query, hint="ask with a text that is not blank"
            )
        for key in options:
            if key not in _NAMES:
                close = close_names(key, _NAMES)
                hint = f"did you mean {close[0]!r}?" if close else None
                raise InvalidRequest(
                    f"ask takes no option {key!r}",
                    value=key,
                    valid=_NAMES,
                    hint=f"give it once, to Jarvis({key}=…)" if key in OF_JARVIS else hint,
                )
        ask = cls(query, **listed(options))
        ask.check()
        return ask

    def check(self) -> None:
        """Raise for an option of the wrong type or size."""
        for key in ("agent", "model", "system"):
            _need(key, getattr(self, key), str, "a text")
        _need("context", self.context, bool, "True, False or None")
        _need("tool_context", self.tool_context, Mapping, "a mapping")
        temperature, most = self.temperature, self.max_tokens
        if temperature is not None and (isinstance(temperature, bool) or not 0 <= temperature <= 2):  # noqa: PLR2004
            raise InvalidRequest(f"temperature is {temperature!r}", value=temperature, hint="give 0 to 2")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's word
            raise InvalidRequest(f"max_tokens is {most!r}", value=most, hint="give 1 or more")
        if self.tools is not None:
            check_list(self.tools)


def listed(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options whose ``tools`` can be read more than once, also where an iterator was given."""
    tools = options.get("tools")
    once = hasattr(tools, "__iter__") and not hasattr(tools, "__len__")
    return {**options, "tools": list(tools)} if once else options  # pyright: ignore[reportArgumentType] - it has __iter__


def check_list(tools: object) -> None:
    """Raise unless these can be a list of tools.

    Raises:
        InvalidRequest: A string, a mapping, one tool: names the tools there are.
    """
    if not isinstance(tools, str | Mapping) and hasattr(tools, "__iter__"):
        return
    from jarvis_nb.core.registry import ToolRegistry

    word = repr(tools) if isinstance(tools, str) else "…"
    raise InvalidRequest(
        f"tools is {tools!r:.100}",
        value=tools,
        valid=ToolRegistry.keys(),
        hint=f"give a list of names, tools, functions, actions or flows: tools=[{word}]",
    )


_NAMES = tuple(f.name for f in fields(Ask))[1:]


def _need(key: str, value: object, kind: type, words: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidRequest(f"{key} is {value!r:.100}", value=value, hint=f"give {words}")


def history_messages(history: Any) -> list[Message]:
    """Return a history, given as ``reply.messages`` or OpenAI dicts, closed and as messages of its own.

    Raises:
        InvalidRequest: It is no list of messages.
    """
    from jarvis_nb.agents.history import close_history

    if history is None:
        return []
    if isinstance(history, str | Mapping) or not isinstance(history, Sequence):
        raise InvalidRequest(
            f"history is {history!r:.100}",
            value=history,
            hint="give reply.messages or a list of OpenAI messages",
        )
    messages: list[Message] = []
    for item in history:
        if isinstance(item, Message):
            messages.append(item)
        elif isinstance(item, Mapping):
            messages.append(Message.from_openai(item))
        else:
            raise InvalidRequest(
                f"history holds {item!r:.100}",
                value=item,
                hint="give reply.messages or a list of OpenAI messages",
            )
    return close_history(messages)
