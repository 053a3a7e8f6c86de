"""A history that any server takes: every call answered once, in order, before anybody speaks again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jarvis_nb.core.types import JSON, Message, Role, ToolCall, dumps
from jarvis_nb.engines.encode import wire_call
from jarvis_nb.engines.names import fresh_ids

UNANSWERED = dumps({"error": {"code": "cancelled", "message": "this call was not carried out"}})
"""What a call's tool message says when nothing else is known of it."""

_PARTS: dict[Role, frozenset[str]] = {
    Role.SYSTEM: frozenset({"text"}),
    Role.USER: frozenset({"text", "image_url", "input_audio", "file"}),
    Role.ASSISTANT: frozenset({"text"}),
    Role.TOOL: frozenset({"text"}),
}
"""The kinds of content parts that OpenAI takes from each."""


@dataclass(slots=True)
class _Slot:
    """One call of the history, and the tool message that answers it."""

    call: ToolCall
    answer: Message | None = None


def close_history(messages: Sequence[Message], outcomes: Mapping[str, str] | None = None) -> list[Message]:
    """Return the messages as a history that a strict server accepts. Pure, and closing twice changes nothing.

    * After an assistant's calls comes one tool message a call, in call order, and only then anything else.
    * A call without a message gets its outcome, or a short error. A second message, and one that answers no
      call, is dropped.
    * Ids that are empty or used before are renamed, here and in their tool messages.
    * System messages become one, at the start; an assistant turn that says and calls nothing is dropped.
    * Names, arguments and content that no server takes back are put right. All user text is kept.

    Messages that need no change are the same objects, so that their encoded bytes serve again.

    Args:
        messages: Any messages, in any state an interrupt or another program left them in.
        outcomes: Call id, as the closed history has it, to the text of its tool message, for calls that
            have none.

    Example:
        >>> asked = Message(Role.ASSISTANT, None, [ToolCall("call_1", "add", "{}")])
        >>> close_history([asked], {"call_1": "denied"})[1].to_openai()
        {'role': 'tool', 'content': 'denied', 'tool_call_id': 'call_1'}
    """
    slots = {
        place: [_Slot(call) for call in message.tool_calls]
        for place, message in enumerate(messages)
        if message.role == Role.ASSISTANT and message.tool_calls
    }
    _match(messages, slots)
    _rename(slots.values())
    system: list[Message] = []
    rest: list[Message] = []
    for place, message in enumerate(messages):
        if message.role == Role.SYSTEM:
            system.append(message)
        elif place in slots:
            rest.append(_calling(message, [slot.call for slot in slots[place]]))
            rest.extend(_answer(slot, outcomes or {}) for slot in slots[place])
        elif message.role != Role.TOOL:
            spoken = _spoken(message)
            if message.role == Role.USER or spoken.text.strip():
                rest.append(spoken)
    return [*_one_system(system), *rest]


def _match(messages: Sequence[Message], slots: Mapping[int, list[_Slot]]) -> None:
    """Give each tool message to a call: the latest before it that has its id and no answer yet."""
    turns: dict[str, list[list[_Slot]]] = {}  # id -> for each turn so far, its unanswered calls of that id
    latest: list[_Slot] = []
    early: list[Message] = []
    for place, message in enumerate(messages):
        if place in slots:
            latest = slots[place]
            for call_id in dict.fromkeys(slot.call.id for slot in latest):
                turns.setdefault(call_id, []).append([slot for slot in latest if slot.call.id == call_id])
        elif message.role == Role.TOOL:
            if message.tool_call_id not in turns and message.tool_call_id:
                early.append(message)
            else:
                _give(message, _waiting(message, turns, latest))
    for message in early:  # it stands before its call, if it has one at all
        _give(message, _waiting(message, turns, ()))


def _waiting(
    message: Message, turns: Mapping[str, list[list[_Slot]]], latest: Iterable[_Slot]
) -> list[_Slot]:
    if not message.tool_call_id:  # without an id it can only go by its place
        return [slot for slot in latest if slot.answer is None]
    of_id = turns.get(message.tool_call_id, [])
    open_turns = ([slot for slot in turn if slot.answer is None] for turn in reversed(of_id))
    return next(filter(None, open_turns), [])


def _give(message: Message, waiting: list[_Slot]) -> None:
    if waiting:
        waiting[0].answer = message


def _rename(turns: Iterable[list[_Slot]]) -> None:
    """Make every id unique and every call fit for the wire."""
    slots = [slot for turn in turns for slot in turn]
    fresh = fresh_ids({slot.call.id for slot in slots})
    used: set[str] = set()
    for slot in slots:
        call = wire_call(slot.call)
        if not call.id or call.id in used:
            call = replace(call, id=next(fresh), provider_id=call.provider_id or call.id)
        used.add(call.id)
        slot.call = call


def _calling(message: Message, calls: list[ToolCall]) -> Message:
    spoken = _spoken(message, tool_calls=message.tool_calls)
    same = all(new is old for new, old in zip(calls, message.tool_calls or (), strict=True))
    return spoken if same else replace(spoken, tool_calls=calls, encoded={})


def _answer(slot: _Slot, outcomes: Mapping[str, str]) -> Message:
    call_id = slot.call.id
    if slot.answer is None:
        return Message(Role.TOOL, outcomes.get(call_id, UNANSWERED), tool_call_id=call_id)
    return _spoken(slot.answer, tool_call_id=call_id)


def _spoken(
    message: Message, *, tool_calls: list[ToolCall] | None = None, tool_call_id: str | None = None
) -> Message:
    """Return the message with content its role may have, and with calls and id only where they belong."""
    content = _content(message.content, _PARTS[message.role])
    if tool_calls and not (content if isinstance(content, list) else content.strip()):
        content = None
    kept = message.content if content == message.content else content
    if (
        kept is message.content
        and (message.tool_calls or None) == tool_calls
        and message.tool_call_id == tool_call_id
    ):
        return message
    return replace(message, content=kept, tool_calls=tool_calls, tool_call_id=tool_call_id, encoded={})


def _content(content: Any, kinds: frozenset[str]) -> str | list[JSON]:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return [fit for part in content if (fit := _part(part, kinds)) is not None] or ""


def _part(part: Any, kinds: frozenset[str]) -> JSON | None:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) and kind in kinds else None
    if isinstance(inner, str if kind == "text" else dict):
        return part
    text = part.get("text", part.get("refusal"))
    return {"type": "text", "text": text} if isinstance(text, str) else None


def _one_system(messages: list[Message]) -> list[Message]:
    """Return the system messages as one: chat templates (Qwen's, Mistral's) refuse a later one."""
    spoken = [kept for message in messages if (kept := _spoken(message)).text.strip()]
    if len(spoken) <= 1:
        return spoken
    return [Message(Role.SYSTEM, "\n\n".join(message.text for message in spoken))]
