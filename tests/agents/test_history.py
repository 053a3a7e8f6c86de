"""wire.md "Normal form": order on the wire, and a history that always closes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.agents.history import UNANSWERED, close_history
from jarvis_nb.core.types import Message, Role, ToolCall
from jarvis_nb.engines.encode import encode_messages
from jarvis_nb.testing import check_request


def system(text="Be brief."):
    return Message(Role.SYSTEM, text)


def user(text="?"):
    return Message(Role.USER, text)


def says(text="Well."):
    return Message(Role.ASSISTANT, text)


def asks(*ids, text=None, name="add", arguments="{}"):
    return Message(Role.ASSISTANT, text, [ToolCall(i, name, arguments) for i in ids])


def tool(call_id, text="4"):
    return Message(Role.TOOL, text, tool_call_id=call_id)


def shape(messages):
    """A history in short: u, s, a, the calls' ids after c, and tool messages as id=content."""
    short = {Role.USER: "u", Role.SYSTEM: "s", Role.ASSISTANT: "a"}
    out = []
    for m in messages:
        if m.role == Role.TOOL:
            error = json.loads(m.content)["error"]["code"] if m.content == UNANSWERED else m.content
            out.append(f"{m.tool_call_id}={error}")
        elif m.tool_calls:
            out.append("c:" + ",".join(c.id for c in m.tool_calls))
        else:
            out.append(short[m.role])
    return " ".join(out)


ROWS = [
    ("nothing", [], ""),
    ("a plain conversation stays", [system(), user(), says(), user()], "s u a u"),
    ("answered calls stay", [user(), asks("a", "b"), tool("a"), tool("b"), says()], "u c:a,b a=4 b=4 a"),
    ("a missing message is added", [user(), asks("a")], "u c:a a=cancelled"),
    ("one of two is missing", [asks("a", "b"), tool("b"), user()], "c:a,b a=cancelled b=4 u"),
    ("out of order", [asks("a", "b"), tool("b", "2"), tool("a", "1")], "c:a,b a=1 b=2"),
    ("user text waits", [asks("a"), user(), tool("a")], "c:a a=4 u"),
    ("an assistant's text waits too", [asks("a"), says(), tool("a")], "c:a a=4 a"),
    ("calls before the first are answered", [asks("a"), asks("b"), tool("a"), tool("b")], "c:a a=4 c:b b=4"),
    ("a second message of a call is dropped", [asks("a"), tool("a", "1"), tool("a", "2")], "c:a a=1"),
    ("a message without a call is dropped", [user(), tool("x"), says()], "u a"),
    ("a message before its call", [user(), tool("a"), asks("a")], "u c:a a=4"),
    (
        "a message without an id goes by its place",
        [asks("a", "b"), tool(None, "1"), tool("", "2")],
        "c:a,b a=1 b=2",
    ),
    ("shared ids in a turn", [asks("a", "a"), tool("a", "1"), tool("a", "2")], "c:a,call_1 a=1 call_1=2"),
    (
        "shared ids across turns",
        [asks("call_1"), tool("call_1", "1"), user(), asks("call_1"), tool("call_1", "2")],
        "c:call_1 call_1=1 u c:call_2 call_2=2",
    ),
    (
        "a second message does not answer a later call of the same id",
        [asks("a"), tool("a", "1"), tool("a", "2"), asks("a")],
        "c:a a=1 c:call_1 call_1=cancelled",
    ),
    (
        "the latest call of an id is answered first",
        [asks("a"), asks("a"), tool("a", "2")],
        "c:a a=cancelled c:call_1 call_1=2",
    ),
    ("empty ids", [asks("", ""), tool("", "1")], "c:call_1,call_2 call_1=1 call_2=cancelled"),
    (
        "a fresh id is nobody else's",
        [asks("", "call_1"), tool("call_1", "1")],
        "c:call_2,call_1 call_2=cancelled call_1=1",
    ),
    (
        "an empty assistant turn is dropped",
        [user(), says(""), says(None), says(" \n"), says([]), user()],
        "u u",
    ),
    ("calls without calls", [user(), Message(Role.ASSISTANT, "Well.", [])], "u a"),
    ("a late system message moves to the start", [user(), system()], "s u"),
    ("an empty system message is dropped", [system(""), user()], "u"),
]


@pytest.mark.parametrize(("messages", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_close(messages, expected):
    """wire.md "Normal form": one tool message per id in call order, and only then any user text."""
    closed = close_history(messages)
    assert shape(closed) == expected
    assert (
        check_request({"model": "m", "messages": [*(m.to_openai() for m in closed), user().to_openai()]})
        == []
    )


def test_outcomes_fill_what_is_missing_and_nothing_else():
    """wire.md "Normal form": ran, failed, denied, cancelled, abandoned."""
    closed = close_history([asks("a", "b", "c"), tool("b")], {"a": "denied", "b": "other", "x": "stray"})
    assert shape(closed) == "c:a,b,c a=denied b=4 c=cancelled"


def test_nothing_given_is_changed_and_what_stays_is_the_same_object():
    """Encoded bytes are kept on a message, so a message that need not change must not."""
    messages = [system(), user(), asks("a", text="Let me see."), tool("a"), says(), asks("a"), tool("a")]
    before = [m.to_openai() for m in messages]
    closed = close_history(messages)
    assert [m.to_openai() for m in messages] == before
    assert [x is y for x, y in zip(closed, messages, strict=True)] == [True] * 5 + [False] * 2
    assert closed[5].tool_calls[0].provider_id == "a"
    assert all(x is y for x, y in zip(close_history(closed), closed, strict=True))


def test_a_changed_message_does_not_keep_old_bytes():
    messages = [asks("a"), tool("a"), asks("a"), tool("a")]
    encode_messages(messages)
    sent = json.loads(encode_messages([user(), *close_history(messages)]))
    assert check_request({"model": "m", "messages": sent}) == []


def test_several_system_messages_become_one():
    closed = close_history([system("A"), user(), system([{"type": "text", "text": "B"}]), system(" ")])
    assert [(m.role, m.content) for m in closed] == [(Role.SYSTEM, "A\n\nB"), (Role.USER, "?")]


def test_names_and_arguments_are_put_right():
    """wire.md "Normal form": an illegal name and malformed arguments of a given history."""
    broken = asks("a", name="get weather", arguments='{"a"')
    (closed, _) = close_history([broken])
    call = closed.tool_calls[0]
    assert (call.name, call.raw_name, call.arguments, call.raw_arguments) == (
        "get_weather",
        "get weather",
        "{}",
        '{"a"',
    )
    assert broken.tool_calls[0].arguments == '{"a"'
    assert close_history([asks("a", arguments={"x": 1})])[0].tool_calls[0].arguments == {"x": 1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        ([], ""),
        (
            [{"type": "text", "text": "a"}, "b", {"text": "c"}, {"type": "video"}, 7],
            [{"type": "text", "text": t} for t in "abc"],
        ),
        (
            [{"type": "image_url", "image_url": {"url": "data:,"}}],
            [{"type": "image_url", "image_url": {"url": "data:,"}}],
        ),
        ([{"type": "text"}], ""),
    ],
)
def test_content_of_a_user(content, expected):
    assert close_history([Message(Role.USER, content)])[0].content == expected


def test_a_long_history_closes_in_one_pass():
    """No step looks at the whole history again for each message."""
    turns = [m for n in range(3000) for m in (user(), asks(f"c{n}"), tool(f"c{n}"))]
    same_ids = [m for _ in range(3000) for m in (asks("a"), tool("a"))]
    assert len(close_history(turns)) == 9000
    assert len({m.tool_call_id for m in close_history(same_ids)[1::2]}) == 3000


def said_by_users(messages):
    contents = [m.content for m in messages if m.role == Role.USER]
    parts = [[{"text": c or ""}] if c is None or isinstance(c, str) else c for c in contents]
    return ["".join(p.get("text", p.get("refusal", "")) for p in part) for part in parts]


IDS = st.sampled_from(["a", "b", "call_1", "call_2", "", "é"])
TEXTS = st.sampled_from(["", " ", "x", "日本語 🎉"]) | st.text(max_size=8)
PARTS = st.lists(
    st.sampled_from(
        [
            {},
            {"type": "text", "text": "p"},
            {"text": "q"},
            {"type": "image_url", "image_url": {"url": "data:,"}},
            {"type": "x"},
            {"type": "refusal", "refusal": "no"},
        ]
    ),
    max_size=3,
)
CONTENT = st.none() | TEXTS | PARTS
CALLS = st.builds(
    ToolCall,
    IDS,
    st.sampled_from(["add", "get weather", "", "x" * 80]),
    st.sampled_from(["{}", "", "null", "[1]", '{"a"', '{"a":NaN}', '{"a":1}']) | st.just({"a": 1}),
)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(list(Role)),
        CONTENT,
        st.none() | st.lists(CALLS, max_size=3),
        st.none() | IDS,
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(MESSAGES, st.dictionaries(IDS, TEXTS, max_size=2))
def test_any_history_is_taken(messages, outcomes):
    """wire.md "Normal form": history always closes, twice is once, and no user text is lost."""
    closed = close_history(messages, outcomes)
    plain = [m.to_openai() for m in closed]
    sent = json.loads(encode_messages(closed))
    assert check_request({"model": "m", "messages": plain or [user().to_openai()]}) == []
    assert check_request({"model": "m", "messages": sent or [user().to_openai()]}) == []
    assert close_history(closed) == closed
    assert said_by_users(closed) == said_by_users(messages)
