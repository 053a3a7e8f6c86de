"""What a strict chat-completions server refuses, as one pure function.

The rules are OpenAI's, and where others are stricter, theirs: one system message, at the start (chat
templates of Qwen and Mistral), no keys beside the documented ones in a message (Groq, Mistral), arguments
that are a JSON object (vLLM's templates load them), never an empty assistant turn (Mistral, Anthropic).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

TOP_KEYS = frozenset(
    (
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options"),
        *("temperature", "top_p", "seed", "stop", "n", "max_tokens", "max_completion_tokens", "logit_bias"),
        *("frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "response_format", "user"),
        *("reasoning_effort", "verbosity", "modalities", "metadata", "store", "service_tier"),
        *("safety_identifier", "prompt_cache_key"),
    )
)
"""The keys of a request that OpenAI documents."""

_MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_PART_KINDS = {
    "system": {"text": str},
    "user": {"text": str, "image_url": dict, "input_audio": dict, "file": dict},
    "assistant": {"text": str, "refusal": str},
    "tool": {"text": str},
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_request(body: Any) -> list[str]:
    """Return what is wrong with a chat-completions request, a sentence each; an empty list accepts it.

    Example:
        >>> check_request({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": []})
        ['tools: an empty list: leave the key out']
    """
    if not isinstance(body, Mapping):
        return ["the body is not an object"]
    return [*_top(body), *_messages(body.get("messages")), *_tools(body)]


def _top(body: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: a non-empty string is required"
    for key in body:
        if key not in TOP_KEYS:
            yield f"{key}: unknown argument"
    if not isinstance(body.get("stream", False), bool):
        yield "stream: not true or false"
    if "stream_options" in body and body.get("stream") is not True:
        yield "stream_options: only with stream"
    temperature = body.get("temperature")
    if temperature is not None and (not _number(temperature) or not 0 <= temperature <= 2):  # noqa: PLR2004 - OpenAI's range
        yield f"temperature: {temperature!r} is not between 0 and 2"
    for key in ("max_tokens", "max_completion_tokens"):
        if key in body and (not isinstance(body[key], int) or isinstance(body[key], bool) or body[key] < 1):
            yield f"{key}: {body[key]!r} is not a positive integer"


def _messages(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages: a non-empty list is required"
        return
    known: list[tuple[str, str, Mapping[str, Any]]] = []
    for place, message in enumerate(messages):
        at = f"messages[{place}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or role not in _MESSAGE_KEYS:
            yield f"{at}: not a message with the role system, user, assistant or tool"
            continue
        known.append((at, role, message))
        yield from _message(message, role, at)
        if role == "system" and place:
            yield f"{at}: a system message stands at the start, and there is one"
    yield from _order(known)


def _order(messages: list[tuple[str, str, Mapping[str, Any]]]) -> Iterator[str]:
    """Check that each call is answered once, in order, before anything else comes."""
    seen: set[str] = set()
    waiting: list[str] = []
    for at, role, message in messages:
        if role == "tool":
            yield from _answers(message.get("tool_call_id"), waiting, at)
            continue
        if waiting:
            yield f"{at}: calls are not answered yet: {', '.join(waiting)}"
        waiting = []
        if role == "assistant" and "tool_calls" in message:
            yield from _calls(message["tool_calls"], seen, waiting, at)
    if waiting:
        yield f"messages: calls are not answered: {', '.join(waiting)}"


def _answers(call_id: Any, waiting: list[str], at: str) -> Iterator[str]:
    """Check a tool message against the calls that wait for one, and take its call off the list."""
    if not isinstance(call_id, str) or not call_id:
        yield f"{at}.tool_call_id: a non-empty string is required"
    elif call_id not in waiting:
        yield f"{at}.tool_call_id: no call {call_id!r} right before it waits for an answer"
    else:
        if call_id != waiting[0]:
            yield f"{at}.tool_call_id: out of order: {waiting[0]!r} is to be answered first"
        waiting.remove(call_id)


def _message(message: Mapping[str, Any], role: str, at: str) -> Iterator[str]:
    for key in message:
        if key not in _MESSAGE_KEYS[role]:
            yield f"{at}.{key}: unknown key in a message of the {role}"
    content = message.get("content")
    calls = role == "assistant" and "tool_calls" in message
    if content is None:
        if role != "assistant":
            yield f"{at}.content: a string or a list of parts is required"
        elif not calls:
            yield f"{at}: an empty assistant turn"
    elif isinstance(content, str):
        if role == "assistant" and not calls and not content.strip():
            yield f"{at}: an empty assistant turn"
    elif isinstance(content, list) and content:
        yield from _parts(content, role, at)
    else:
        yield f"{at}.content: neither a string nor a non-empty list of parts"


def _parts(content: list[Any], role: str, at: str) -> Iterator[str]:
    kinds = _PART_KINDS[role]
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            yield f"{at}.content[{place}]: a part of the {role} has one of the types {', '.join(kinds)}"
        elif not isinstance(part.get(kind), kinds[kind]):
            yield f"{at}.content[{place}].{kind}: not {'text' if kinds[kind] is str else 'an object'}"


def _calls(calls: Any, seen: set[str], waiting: list[str], at: str) -> Iterator[str]:
    """Check calls; their ids join those seen and those that wait for an answer."""
    if not isinstance(calls, list) or not calls:
        yield f"{at}.tool_calls: a non-empty list, or no key"
        return
    for place, call in enumerate(calls):
        here = f"{at}.tool_calls[{place}]"
        if not isinstance(call, Mapping):
            yield f"{here}: not an object"
            continue
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id:
            yield f"{here}.id: a non-empty string is required"
        elif call_id in seen:
            yield f"{here}.id: {call_id!r} is used before"
        else:
            seen.add(call_id)
            waiting.append(call_id)
        yield from _function(call, here)


def _function(call: Mapping[str, Any], here: str) -> Iterator[str]:
    if call.get("type") != "function":
        yield f"{here}.type: not 'function'"
    function = call.get("function")
    if not isinstance(function, Mapping):
        yield f"{here}.function: not an object"
        return
    if not _legal(function.get("name")):
        yield f"{here}.function.name: {function.get('name')!r} does not match {_NAME.pattern}"
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield f"{here}.function.arguments: not a string"
    elif not _is_object(arguments):
        yield f"{here}.function.arguments: not the JSON of an object"


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in body:
                yield f"{key}: only with tools"
        return
    tools = body["tools"]
    if not isinstance(tools, list):
        yield "tools: not a list"
        return
    if not tools:
        yield "tools: an empty list: leave the key out"
    names: list[Any] = []
    for place, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or tool.get("type") != "function":
            yield f"tools[{place}]: not {{'type': 'function', 'function': …}}"
            continue
        yield from _definition(function, f"tools[{place}].function")
        if function.get("name") in names:
            yield f"tools[{place}].function.name: {function.get('name')!r} is used before"
        names.append(function.get("name"))
    yield from _choice(body.get("tool_choice", "auto"), names)


def _definition(function: Mapping[str, Any], at: str) -> Iterator[str]:
    if not _legal(function.get("name")):
        yield f"{at}.name: {function.get('name')!r} does not match {_NAME.pattern}"
    if not isinstance(function.get("description", ""), str):
        yield f"{at}.description: not a string"
    if not isinstance(function.get("strict", False), bool | None):
        yield f"{at}.strict: not true or false"
    parameters = function.get("parameters", {"type": "object"})
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        yield f"{at}.parameters: not a schema of an object"
    elif not isinstance(parameters.get("properties", {}), Mapping):
        yield f"{at}.parameters.properties: not an object"


def _choice(choice: Any, names: list[Any]) -> Iterator[str]:
    if choice in ("none", "auto", "required"):
        return
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or choice.get("type") != "function":
        yield "tool_choice: not none, auto, required or {'type': 'function', 'function': {'name': …}}"
    elif function.get("name") not in names:
        yield f"tool_choice: {function.get('name')!r} is not among the tools"


def _legal(name: Any) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_object(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False
