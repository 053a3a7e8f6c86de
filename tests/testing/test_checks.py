"""The strict check itself: each rule refuses what it names, and nothing else."""

from __future__ import annotations

from copy import deepcopy

import pytest

from jarvis_nb.testing import check_request

TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
GOOD = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "4"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "4"}]},
        {"role": "assistant", "content": "It is 4."},
        {"role": "assistant", "tool_calls": [{**CALL, "id": "c"}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": ""},
    ],
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "add"}},
    "parallel_tool_calls": True,
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0,
    "max_tokens": 5,
}


def set_in(path, value):
    body = deepcopy(GOOD)
    target = body
    for key in path[:-1]:
        target = target[key]
    if value is DROP:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return body


DROP = object()
CALLS = ("messages", 2, "tool_calls")


@pytest.mark.parametrize("choice", ["auto", "none", "required", GOOD["tool_choice"]])
def test_a_good_request_is_accepted(choice):
    assert check_request({**GOOD, "tool_choice": choice}) == []
    assert check_request({"model": "m", "messages": [{"role": "user", "content": "?"}]}) == []


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("model",), "", "model: a non-empty string"),
        (("modle",), "m", "modle: unknown argument"),
        (("stream",), 1, "stream: not true or false"),
        (("stream",), False, "stream_options: only with stream"),
        (("temperature",), 3, "temperature: 3"),
        (("temperature",), True, "temperature: True"),
        (("max_tokens",), 0, "max_tokens: 0"),
        (("messages",), [], "messages: a non-empty list"),
        (("messages",), {}, "messages: a non-empty list"),
        (("messages", 0), "x", "messages[0]: not a message"),
        (("messages", 1, "role"), "system", "messages[1]: a system message stands at the start"),
        (("messages", 1, "role"), "robot", "messages[1]: not a message with the role"),
        (("messages", 1, "role"), ["user"], "messages[1]: not a message with the role"),
        (("messages", 0, "content"), None, "messages[0].content: a string or a list"),
        (("messages", 1, "content"), [], "messages[1].content: neither a string"),
        (("messages", 1, "content"), 7, "messages[1].content: neither a string"),
        (("messages", 1, "content", 0), "x", "messages[1].content[0]: a part of the user"),
        (("messages", 1, "content", 0), {"type": "text"}, "messages[1].content[0].text: not text"),
        (
            ("messages", 1, "content", 1),
            {"type": "image_url", "image_url": ""},
            "messages[1].content[1].image_url: not an object",
        ),
        (
            ("messages", 4, "content", 0),
            {"type": "image_url", "image_url": {}},
            "messages[4].content[0]: a part of the tool",
        ),
        (("messages", 5, "content"), "", "messages[5]: an empty assistant turn"),
        (("messages", 5, "content"), " ", "messages[5]: an empty assistant turn"),
        (("messages", 5, "content"), DROP, "messages[5]: an empty assistant turn"),
        (("messages", 5, "reasoning_content"), "hm", "messages[5].reasoning_content: unknown key"),
        (CALLS, [], "messages[2].tool_calls: a non-empty list"),
        (CALLS, None, "messages[2].tool_calls: a non-empty list"),
        ((*CALLS, 0), "x", "messages[2].tool_calls[0]: not an object"),
        ((*CALLS, 0, "id"), "", "messages[2].tool_calls[0].id: a non-empty string"),
        ((*CALLS, 1, "id"), "a", "messages[2].tool_calls[1].id: 'a' is used before"),
        (("messages", 6, "tool_calls", 0, "id"), "a", "messages[6].tool_calls[0].id: 'a' is used before"),
        ((*CALLS, 0, "type"), "", "messages[2].tool_calls[0].type: not 'function'"),
        ((*CALLS, 0, "function"), None, "messages[2].tool_calls[0].function: not an object"),
        (
            (*CALLS, 0, "function", "name"),
            "functions.add",
            "messages[2].tool_calls[0].function.name: 'functions.add' does not match",
        ),
        ((*CALLS, 0, "function", "name"), "x" * 65, "messages[2].tool_calls[0].function.name"),
        (
            (*CALLS, 0, "function", "arguments"),
            {},
            "messages[2].tool_calls[0].function.arguments: not a string",
        ),
        (
            (*CALLS, 0, "function", "arguments"),
            "",
            "messages[2].tool_calls[0].function.arguments: not the JSON",
        ),
        (
            (*CALLS, 0, "function", "arguments"),
            "[]",
            "messages[2].tool_calls[0].function.arguments: not the JSON",
        ),
        (
            (*CALLS, 0, "function", "arguments"),
            '{"a":NaN}',
            "messages[2].tool_calls[0].function.arguments: not the JSON",
        ),
        (("messages", 3), DROP, "messages[4]: calls are not answered yet: a"),
        (("messages", 4), {"role": "user", "content": "?"}, "messages[4]: calls are not answered yet: b"),
        (("messages", 3, "tool_call_id"), "b", "messages[3].tool_call_id: out of order: 'a'"),
        (("messages", 4, "tool_call_id"), "a", "messages[4].tool_call_id: no call 'a' right before it"),
        (("messages", 3, "tool_call_id"), None, "messages[3].tool_call_id: a non-empty string"),
        (
            ("messages", 8),
            {"role": "tool", "tool_call_id": "c", "content": ""},
            "messages[8].tool_call_id: no call 'c'",
        ),
        (("messages", 7), DROP, "messages[7]: calls are not answered yet: c"),
        (("tools",), [], "tools: an empty list"),
        (("tools",), None, "tools: not a list"),
        (("tools",), DROP, "tool_choice: only with tools"),
        (("tools", 0), {"type": "function"}, "tools[0]: not {'type'"),
        (("tools", 0, "function", "name"), "a b", "tools[0].function.name: 'a b' does not match"),
        (("tools", 0, "function", "description"), None, "tools[0].function.description: not a string"),
        (("tools", 0, "function", "strict"), "yes", "tools[0].function.strict"),
        (
            ("tools", 0, "function", "parameters"),
            {},
            "tools[0].function.parameters: not a schema of an object",
        ),
        (
            ("tools", 0, "function", "parameters", "properties"),
            [],
            "tools[0].function.parameters.properties: not an object",
        ),
        (("tools",), [TOOL, TOOL], "tools[1].function.name: 'add' is used before"),
        (("tool_choice",), "any", "tool_choice: not none"),
        (("tool_choice", "function", "name"), "sub", "tool_choice: 'sub' is not among the tools"),
    ],
)
def test_a_bad_request_is_refused(path, value, problem):
    problems = check_request(set_in(path, value))
    assert any(found.startswith(problem) for found in problems), problems


def test_calls_at_the_end_need_their_answers():
    body = {**GOOD, "messages": GOOD["messages"][:4]}
    assert check_request(body) == ["messages: calls are not answered: b"]


def test_a_body_that_is_no_object():
    assert check_request([]) == ["the body is not an object"]
