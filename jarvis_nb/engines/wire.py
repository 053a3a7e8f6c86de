"""From what a model really sent to what may be run and sent again, with every repair told.

Servers that speak chat completions differ in small ways: ids that are missing or shared, arguments that are
empty, an object or cut off, names with a namespace, thinking inside the text. :func:`normalise` takes one raw
assistant message to the normal form, and says what it changed:

========================  ==============================================================================
repair                    what came
========================  ==============================================================================
``not_a_message``         no object where the message should be
``content_parts``         parts of the content that hold no text
``thinking_in_text``      a leading ``<think>`` block in the answer
``refusal``               no content, but a ``refusal``
``function_call``         the form of calls before ``tool_calls``
``tool_calls_shape``      ``tool_calls`` that is no list, or entries that are no calls
``missing_id``            no id, null, or an empty one
``duplicate_id``          an id used before, in the turn or in an earlier one
``namespaced_name``       ``functions.get_weather``, where ``get_weather`` is the one tool that fits
``illegal_name``          a name no server takes back
``empty_arguments``       ``""``, blanks, null
``object_arguments``      an object instead of its JSON text
``invalid_arguments``     JSON, but no object: not run
``invalid_json``          malformed: not run
``doubled_arguments``     ``{}{}``: not run
``cut_off``               the token limit ended the message: no call is run
``finish_reason``         a finish reason that does not fit what came
========================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.types import Message, Repair, Role, ToolCall
from jarvis_nb.engines.arguments import Arguments, raw_text, read_arguments
from jarvis_nb.engines.content import read_content, read_reasoning
from jarvis_nb.engines.encode import Dialect, encode_message, encode_messages
from jarvis_nb.engines.names import find_name, fresh_ids, wire_name
from jarvis_nb.engines.reasoning import split_reasoning
from jarvis_nb.engines.stream import Assembler, StreamBroken, assemble

__all__ = [
    "Assembler",
    "Dialect",
    "Normalised",
    "StreamBroken",
    "assemble",
    "encode_message",
    "encode_messages",
    "normalise",
]

CUT_OFF = frozenset({"length", "max_tokens", "model_length", "content_filter"})
"""Finish reasons of a message that did not come to its end: OpenAI's two, Anthropic's, Mistral's."""

_ORDINALS = {1: ("two", "second"), 2: ("three", "third"), 3: ("four", "fourth")}


@dataclass(slots=True)
class Normalised:
    """One assistant message in normal form."""

    message: Message
    """For the history: ids unique, arguments JSON objects, names legal; ``content`` None if it only calls."""
    text: str = ""
    """The answer, without thinking."""
    reasoning: str = ""
    refused: dict[str, ErrorInfo] = field(default_factory=dict)
    """Call id to why the call must not be run: ``cut_off``, ``invalid_json``, ``invalid_arguments``, …"""
    repairs: list[Repair] = field(default_factory=list)
    cut_off: bool = False
    """Whether the token limit ended the message."""

    @property
    def calls(self) -> list[ToolCall]:
        """All calls in the model's order, those in :attr:`refused` too: each needs its tool message."""
        return self.message.tool_calls or []


class _RawCall(NamedTuple):
    id: Any
    name: Any
    arguments: Any


def normalise(
    message: Any,
    *,
    finish_reason: str | None = None,
    taken_ids: Collection[str] = frozenset(),
    known_names: Collection[str] = (),
    round: int = 0,  # noqa: A002 - the word of events, attempts and repairs
    repairs: Iterable[Repair] = (),
    broken: bool = False,
) -> Normalised:
    """Return one raw assistant message in normal form. Pure: nothing given is changed.

    Args:
        message: As the server sent it or :func:`assemble` joined it; odd shapes are repaired, never raised.
        finish_reason: As the server sent it.
        taken_ids: Every call id of the transcript so far, best as a set; add those of ``.calls`` afterwards.
        known_names: The tools a call can mean, offered or not.
        round: Stamped on the repairs.
        repairs: What joining a stream had to mend; it comes first.
        broken: The stream broke off while a call was open: no call of the message is run.

    Example:
        >>> call = {"id": "call_1", "function": {"name": "add", "arguments": "{}"}}
        >>> n = normalise({"tool_calls": [call, call]}, known_names=["add"])
        >>> [c.id for c in n.calls], str(n.repairs[0])
        (['call_1', 'call_2'], 'two calls shared id call_1: the second was renamed call_2')
    """
    notes = _Notes(round, [replace(r, round=round) for r in repairs])
    body = _body(message, notes)
    text, reasoning = _words(body, notes)
    raws = _raw_calls(body, notes)
    calls, refused = _read_calls(raws, taken_ids, known_names, notes)
    cut_off = finish_reason in CUT_OFF
    if calls and (cut_off or broken):
        refused = dict.fromkeys((call.id for call in calls), _stopped(finish_reason, broken=broken))
        notes.add(
            "stream_broken" if broken else "cut_off",
            f"{_cut_words(finish_reason, broken)}: no call of it was run",
        )
    elif calls and finish_reason == "stop":
        notes.add(
            "finish_reason", "finish_reason was 'stop' although the message calls tools: the calls count"
        )
    elif not calls and finish_reason in ("tool_calls", "function_call"):
        notes.add(
            "finish_reason", f"finish_reason was {finish_reason!r} but no call came: the text is the answer"
        )
    content = text if not calls or text.strip() else None
    return Normalised(
        Message(Role.ASSISTANT, content, calls or None, reasoning=reasoning or None),
        text,
        reasoning,
        refused,
        notes.repairs,
        cut_off,
    )


@dataclass(slots=True)
class _Notes:
    round: int
    repairs: list[Repair]

    def add(self, code: str, message: str) -> None:
        self.repairs.append(Repair(code, message, self.round))


def _body(message: Any, notes: _Notes) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        return message
    notes.add(
        "not_a_message",
        f"the message was {type(message).__name__}, not an object: it was read as the content",
    )
    return {"content": message}


def _words(body: Mapping[str, Any], notes: _Notes) -> tuple[str, str]:
    content = read_content(body.get("content"))
    if content.ignored:
        notes.add("content_parts", f"content held parts without text: {', '.join(content.ignored)}")
    inside, text = split_reasoning(content.text)
    if text != content.text:
        notes.add("thinking_in_text", "the answer began with a thinking block: it was set apart")
    refusal = body.get("refusal")
    if not text and isinstance(refusal, str) and refusal:
        text = refusal
        notes.add("refusal", "the model refused: its refusal is the answer")
    beside = read_reasoning(body) or content.reasoning
    return text, "\n".join(r for r in (beside, inside) if r)


def _raw_calls(body: Mapping[str, Any], notes: _Notes) -> list[_RawCall]:
    entries = body.get("tool_calls")
    legacy = body.get("function_call")
    if not entries and isinstance(legacy, Mapping):
        notes.add("function_call", "the call came as function_call, the form before tool_calls")
        return [_RawCall(None, legacy.get("name"), legacy.get("arguments"))]
    if isinstance(entries, Mapping) and entries:
        notes.add("tool_calls_shape", "tool_calls was one object, not a list: it was read as one call")
        entries = [entries]
    if entries and not isinstance(entries, list):
        notes.add("tool_calls_shape", f"tool_calls was {type(entries).__name__}, not a list: it was ignored")
        return []
    calls: list[_RawCall] = []
    for entry in entries or ():
        if isinstance(entry, Mapping):
            function = entry.get("function")
            inner = function if isinstance(function, Mapping) else entry
            calls.append(_RawCall(entry.get("id"), inner.get("name"), inner.get("arguments")))
        else:
            notes.add(
                "tool_calls_shape", f"an entry of tool_calls was {type(entry).__name__}: it was ignored"
            )
    return calls


def _read_calls(
    raws: list[_RawCall], taken_ids: Collection[str], known_names: Collection[str], notes: _Notes
) -> tuple[list[ToolCall], dict[str, ErrorInfo]]:
    ids = _ids(raws, taken_ids, notes)
    calls: list[ToolCall] = []
    refused: dict[str, ErrorInfo] = {}
    for raw, call_id in zip(raws, ids, strict=True):
        name, raw_name = _name(raw.name, known_names, notes)
        arguments = read_arguments(raw.arguments)
        keep_raw = arguments.oddity not in ("", "object")
        calls.append(
            ToolCall(
                call_id,
                name,
                arguments.text,
                provider_id=None if raw.id is None or raw.id == call_id else raw_text(raw.id),
                raw_name=raw_name,
                raw_arguments=raw_text(raw.arguments) if keep_raw else None,
            )
        )
        if arguments.error is not None:
            refused[call_id] = arguments.error
        if arguments.oddity:
            notes.add(*_about_arguments(arguments, f"{raw_name or name} ({call_id})"))
    return calls, refused


def _ids(raws: list[_RawCall], taken_ids: Collection[str], notes: _Notes) -> list[str]:
    """Give each call its own id. The ids the provider did send are never given to another call."""
    fresh: Iterator[str] | None = None  # made when needed: a long transcript has many ids
    shared: dict[str, int] = {}
    ids: list[str] = []
    for raw in raws:
        sent = raw.id if isinstance(raw.id, str) and raw.id.strip() else None
        if sent is not None and sent not in shared and sent not in taken_ids:
            shared[sent] = 1
            ids.append(sent)
            continue
        if fresh is None:
            fresh = fresh_ids({*taken_ids, *(raw.id for raw in raws if isinstance(raw.id, str))})
        new = next(fresh)
        ids.append(new)
        if sent is None:
            named = isinstance(raw.name, str) and raw.name
            whose = f"the call to {raw.name}" if named else "a call without a name"
            notes.add("missing_id", f"{whose} had no id: it was given {new}")
        elif sent in taken_ids:
            notes.add("duplicate_id", f"id {sent} was used in an earlier turn: the call was renamed {new}")
        else:
            many, nth = _ORDINALS.get(shared[sent], ("several", "next"))
            shared[sent] += 1
            notes.add("duplicate_id", f"{many} calls shared id {sent}: the {nth} was renamed {new}")
    return ids


def _name(raw: Any, known_names: Collection[str], notes: _Notes) -> tuple[str, str | None]:
    """Return the name for the wire, and the model's own where that is another."""
    sent = raw if isinstance(raw, str) else "" if raw is None else raw_text(raw)
    found = find_name(sent, known_names)
    if found == sent:
        return sent, None
    if found is not None:
        notes.add("namespaced_name", f"{sent!r} was read as {found}, the one tool that fits")
        return found, sent
    legal = wire_name(sent, known_names)
    if legal == sent:
        return sent, None
    notes.add(
        "illegal_name", f"{sent!r:.100} is no tool's name and no legal one: it is sent again as {legal}"
    )
    return legal, sent


def _about_arguments(arguments: Arguments, call: str) -> tuple[str, str]:
    why = "" if arguments.error is None else arguments.error.message
    match arguments.oddity:
        case "empty" | "null":
            return "empty_arguments", f"{call}: {arguments.oddity} arguments were read as {{}}"
        case "object":
            return "object_arguments", f"{call}: the arguments came as an object, not as its JSON text"
        case "not_object":
            return "invalid_arguments", f"{call}: {why}; the call was not run"
        case "doubled":
            return "doubled_arguments", f"{call}: {why}; the call was not run"
        case _:
            return "invalid_json", f"{call}: {why}; the call was not run and is sent again with {{}}"


def _cut_words(finish_reason: str | None, broken: bool) -> str:
    return "the stream broke off" if broken else f"the message was cut off (finish_reason {finish_reason!r})"


def _stopped(finish_reason: str | None, *, broken: bool) -> ErrorInfo:
    words = _cut_words(finish_reason, broken)
    if broken:
        return ErrorInfo("stream_broken", f"not run: {words} before the call was complete")
    return ErrorInfo("cut_off", f"not run: {words}; ask again with shorter arguments or fewer calls")
