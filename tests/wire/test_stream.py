"""wire.md "Streams", sentence by sentence, on the pure joiner."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Usage
from jarvis_nb.engines.base import Piece
from jarvis_nb.engines.reasoning import ReasoningFilter, split_reasoning
from jarvis_nb.engines.wire import Assembler, StreamBroken, assemble, normalise


def chunk(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def piece(index=None, call_id=None, name=None, arguments=None, **more):
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    entry = {k: v for k, v in (("index", index), ("id", call_id)) if v is not None}
    return {**entry, "function": function, **more}


def calls_of(*chunks_of_pieces, finish="tool_calls"):
    """Join chunks, each a list of pieces, to ``[(id, name, arguments)]`` and the repairs' codes."""
    done = assemble([*(chunk({"tool_calls": pieces}) for pieces in chunks_of_pieces), chunk({}, finish)])
    joined = [
        (c.get("id"), c["function"]["name"], c["function"].get("arguments"))
        for c in done.message["tool_calls"]
    ]
    return joined, [r.code for r in done.repairs]


TWO = [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]

JOINED = [
    (
        "pieces are joined by index",
        [
            [piece(0, "a", "f", "")],
            [piece(1, "b", "g", "")],
            [piece(0, arguments='{"x"')],
            [piece(1, arguments='{"y":2}')],
            [piece(0, arguments=":1}")],
        ],
        TWO,
        [],
    ),
    ("indices decide the order", [[piece(1, "b", "g", '{"y":2}')], [piece(0, "a", "f", '{"x":1}')]], TWO, []),
    ("an index as text", [[piece("0", "a", "f", "{")], [piece("0", arguments="}")]], [("a", "f", "{}")], []),
    (
        "a name equal to the one so far is a repetition",
        [[piece(0, "a", "f", "{")], [piece(0, "a", "f", "}")]],
        [("a", "f", "{}")],
        [],
    ),
    (
        "another name within an index is appended",
        [[piece(0, "a", "get_", "")], [piece(0, name="weather", arguments="{}")]],
        [("a", "get_weather", "{}")],
        ["split_name"],
    ),
    (
        "ids come in pieces too",
        [[piece(0, "call", "f", "{")], [piece(0, "_1", arguments="}")]],
        [("call_1", "f", "{}")],
        ["split_id"],
    ),
    (
        "name, id and arguments in pieces at once",
        [[piece(0, "ca", "get_", '{"a"')], [piece(0, "ll", "weather", ":1}")]],
        [("call", "get_weather", '{"a":1}')],
        ["split_id", "split_name"],
    ),
    (
        "a new index with neither id nor name belongs to the open call",
        [[piece(0, "a", "f", '{"x"')], [piece(1, arguments=":1}")]],
        [("a", "f", '{"x":1}')],
        ["stray_index"],
    ),
    (
        "and with empty ones too",
        [[piece(0, "a", "f", '{"x"')], [piece(1, "", "", ":1")], [piece(2, "", "", "}")]],
        [("a", "f", '{"x":1}')],
        ["stray_index"],
    ),
    (
        "a stray index may still open a call later",
        [[piece(0, "a", "f", '{"x"')], [piece(1, arguments=":1}")], [piece(1, "b", "g", '{"y":2}')]],
        TWO,
        ["stray_index"],
    ),
    (
        "without index: by id",
        [
            [piece(None, "a", "f", '{"x"')],
            [piece(None, "b", "g", '{"y"')],
            [piece(None, "a", arguments=":1}")],
            [piece(None, "b", arguments=":2}")],
        ],
        TWO,
        ["missing_index"],
    ),
    (
        "index null is no index",
        [[{"index": None, **piece(None, "a", "f", '{"x"')}], [{"index": None, **piece(arguments=":1}")}]],
        [("a", "f", '{"x":1}')],
        ["missing_index"],
    ),
    (
        "without index and id: to the open call",
        [
            [piece(None, "a", "f", '{"x"')],
            [piece(arguments=":1}")],
            [piece(None, "b", "g", "")],
            [piece(arguments='{"y":2}')],
        ],
        TWO,
        ["missing_index"],
    ),
    (
        "without index: a new name opens a call",
        [[piece(name="f", arguments='{"x":1}')], [piece(name="g", arguments='{"y":2}')]],
        [(None, "f", '{"x":1}'), (None, "g", '{"y":2}')],
        ["missing_index"],
    ),
    (
        "without index: the same name again is a repetition while the arguments are open",
        [
            [piece(name="f", arguments='{"x"')],
            [piece(name="f", arguments=":1}")],
            [piece(name="f", arguments="")],
        ],
        [(None, "f", '{"x":1}')],
        ["missing_index"],
    ),
    (
        "without index and ids: two whole calls to one tool",
        [[piece(name="f", arguments='{"x":1}'), piece(name="f", arguments='{"x":2}')]],
        [(None, "f", '{"x":1}'), (None, "f", '{"x":2}')],
        ["missing_index"],
    ),
    (
        "without index: two ids with one name are two calls",
        [[piece(None, "a", "f", "{}")], [piece(None, "b", "f", "{}")]],
        [("a", "f", "{}"), ("b", "f", "{}")],
        ["missing_index"],
    ),
    (
        "without index: the id first, then the name, is one call",
        [[piece(None, "a")], [piece(name="f", arguments="{}")]],
        [("a", "f", "{}")],
        ["missing_index"],
    ),
    (
        "without index: the name first, then the id, is one call",
        [[piece(name="f")], [piece(None, "a", arguments="{}")]],
        [("a", "f", "{}")],
        ["missing_index"],
    ),
    (
        "an empty id, name or type never overwrites",
        [
            [piece(0, "a", "f", "{", type="function")],
            [piece(0, "", "", "}", type="")],
            [{"id": None, **piece(0, None, None, "")}],
        ],
        [("a", "f", "{}")],
        [],
    ),
    (
        "pieces of one call can come twice in one chunk",
        [[piece(0, "a", "f", '{"x"'), piece(0, arguments=":1}")]],
        [("a", "f", '{"x":1}')],
        [],
    ),
    ("no arguments key at all", [[piece(0, "a", "f")]], [("a", "f", None)], []),
    (
        "arguments null",
        [[{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]],
        [("a", "f", None)],
        [],
    ),
    ("empty arguments stay empty while joining", [[piece(0, "a", "f", "")]], [("a", "f", "")], []),
    (
        "arguments as an object",
        [[piece(0, "a", "f", {"x": 1})]],
        [("a", "f", '{"x":1}')],
        ["object_arguments"],
    ),
    (
        "name and arguments beside the id",
        [[{"index": 0, "id": "a", "name": "f", "arguments": "{}"}]],
        [("a", "f", "{}")],
        [],
    ),
    (
        "a piece that is no object",
        [["x", piece(0, "a", "f", "{}")]],
        [("a", "f", "{}")],
        ["tool_calls_shape"],
    ),
]


@pytest.mark.parametrize(
    ("pieces", "expected", "repairs"), [pytest.param(*row[1:], id=row[0]) for row in JOINED]
)
def test_joining(pieces, expected, repairs):
    """wire.md "Streams": each sentence on pieces of calls."""
    assert calls_of(*pieces) == (expected, repairs)


def test_within_one_index_nothing_opens_a_second_call():
    """wire.md "Streams": only without an index a new id or name opens a call; the doubled arguments do not run."""
    joined, _ = calls_of([piece(0, "a", "f", "{}")], [piece(0, "b", "g", "{}")])
    assert joined == [("ab", "fg", "{}{}")]


def test_empty_arguments_become_an_object_only_when_the_stream_has_ended():
    """wire.md "Streams"."""
    joining = Assembler()
    joining.add(chunk({"tool_calls": [piece(0, "a", "f", "")]}))
    joining.add(chunk({"tool_calls": [piece(0, arguments='{"x":1}')]}))
    joining.add(chunk({}, "tool_calls"))
    message = joining.finish().message
    assert normalise(message, known_names=["f"]).calls[0].arguments == '{"x":1}'
    done = assemble([chunk({"tool_calls": [piece(0, "a", "f", "")]}), chunk({}, "tool_calls")])
    assert normalise(done.message, known_names=["f"]).calls[0].arguments == "{}"


def test_the_usage_chunk_has_no_choices():
    """wire.md "Streams": `choices: []`."""
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}, "model": "m"}
    done = assemble([chunk({"content": "Hi"}), chunk({}, "stop"), usage])
    assert (done.usage, done.message["content"], done.model, done.repairs) == (Usage(7, 2), "Hi", "m", [])


def test_usage_on_the_last_chunk_and_on_every_chunk():
    on_each = [chunk({"content": "Hi"}, usage={"prompt_tokens": 7, "completion_tokens": n}) for n in (1, 2)]
    assert assemble(
        [*on_each, chunk({}, "stop", usage={"prompt_tokens": 7, "completion_tokens": 3})]
    ).usage == Usage(7, 3)
    assert assemble([chunk({}, "stop", usage=None)]).usage == Usage()


def test_text_that_ends_without_finish_reason_is_complete():
    """wire.md "Streams": a repair is recorded."""
    done = assemble([chunk({"content": "Hel"}), chunk({"content": "lo"})])
    assert (done.message, done.finish_reason) == ({"role": "assistant", "content": "Hello"}, None)
    assert [r.code for r in done.repairs] == ["no_finish_reason"]


@pytest.mark.parametrize("reason", ["", None])
def test_an_empty_finish_reason_is_none(reason):
    done = assemble([chunk({"content": "a"}, reason), chunk({"content": "b"}, reason), chunk({}, "stop")])
    assert (done.message["content"], done.finish_reason) == ("ab", "stop")


OPEN = [chunk({"content": "Let me see."}), chunk({"tool_calls": [piece(0, "a", "f", '{"x":1}')]})]


def test_a_stream_that_ends_while_a_call_is_open():
    """wire.md "Streams": what came is kept, no call of it runs, code stream_broken."""
    with pytest.raises(StreamBroken) as caught:
        assemble(OPEN)
    assert (caught.value.code, isinstance(caught.value, EngineError)) == ("stream_broken", True)
    partial = caught.value.partial
    assert partial.message["content"] == "Let me see."
    got = normalise(partial.message, known_names=["f"], broken=True)
    assert (got.text, [c.arguments for c in got.calls]) == ("Let me see.", ['{"x":1}'])
    assert got.refused.keys() == {"a"}


def broken(pieces):
    yield from pieces
    raise ConnectionResetError("connection reset by peer")


def test_a_stream_that_breaks_while_a_call_is_open():
    """wire.md "Streams": what broke it is the cause."""
    with pytest.raises(StreamBroken, match="connection reset by peer") as caught:
        assemble(broken(OPEN))
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert caught.value.partial.message["tool_calls"][0]["id"] == "a"


def test_text_that_breaks_off_is_kept_and_not_taken_for_complete():
    with pytest.raises(StreamBroken) as caught:
        assemble(broken([chunk({"content": "Once upon"})]))
    assert caught.value.partial.message["content"] == "Once upon"


def test_a_stream_that_breaks_before_anything_came_has_no_part_to_keep():
    with pytest.raises(EngineError, match="ConnectionResetError") as caught:
        assemble(map(fails, [1]))
    assert (caught.value.code, isinstance(caught.value, StreamBroken)) == ("stream_broken", False)


def fails(_):
    raise ConnectionResetError


def test_a_connection_that_breaks_after_the_end_has_broken_nothing():
    """wire.md "Streams": events after the end are ignored."""
    done = assemble(broken([*OPEN, chunk({}, "tool_calls")]))
    assert done.finish_reason == "tool_calls"


def test_events_after_the_end_are_ignored():
    """wire.md "Streams"; usage may still come."""
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    late = [
        chunk({"content": " more"}),
        chunk({"tool_calls": [piece(0, "a", "f", "{}")]}, "tool_calls"),
        chunk({}),
        usage,
    ]
    done = assemble([chunk({"content": "done"}), chunk({}, "stop"), *late, {"error": {"message": "late"}}])
    assert (done.message, done.finish_reason) == ({"role": "assistant", "content": "done"}, "stop")
    assert done.usage == Usage(1, 1)
    assert [str(r) for r in done.repairs] == ["2 events after the finish_reason: ignored"]


@pytest.mark.parametrize(
    "chunks",
    [[], [{"choices": []}], [{"object": "x"}], [{"choices": None}], ["x"], [None], [{"choices": ["x"]}]],
)
def test_a_stream_without_choices_is_a_clear_error(chunks):
    """wire.md "no choices": with what was received."""
    with pytest.raises(EngineError, match="received") as caught:
        assemble(chunks)
    assert caught.value.code == "bad_response"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "overloaded", "code": 529}, "overloaded"),
        ("overloaded", "overloaded"),
        ({"code": 529}, '{"code":529}'),
    ],
)
def test_an_error_in_the_stream(error, words):
    """wire.md "no choices": an error body with status 200; after a part of the answer the part is kept."""
    with pytest.raises(EngineError) as caught:
        assemble([{"error": error}])
    assert caught.value.code == "bad_response"
    assert words in caught.value.message
    with pytest.raises(StreamBroken) as caught:
        assemble([chunk({"content": "So"}), {"error": error}])
    assert words in caught.value.message
    assert caught.value.partial.message["content"] == "So"


def test_whether_a_stream_may_be_asked_for_again():
    joining = Assembler()
    joining.add({"choices": [], "model": "m"})
    assert not joining.started
    joining.add(chunk({"role": "assistant"}))
    assert joining.started


def test_function_call_and_refusal_stream_too():
    done = assemble(
        [
            chunk({"function_call": {"name": "f", "arguments": '{"x"'}}),
            chunk({"function_call": {"arguments": ":1}"}}),
            chunk({}, "function_call"),
        ]
    )
    assert done.message["function_call"] == {"name": "f", "arguments": '{"x":1}'}
    done = assemble([chunk({"refusal": "I "}), chunk({"refusal": "won't."}), chunk({}, "stop")])
    assert done.message["refusal"] == "I won't."


def test_a_server_that_streams_one_whole_message():
    whole = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    assert assemble([whole]).message["content"] == "Hi"
    assert assemble([chunk({"content": "Hi"}), whole]).message["content"] == "Hi"


# What people watch


def watched(*chunks):
    joining = Assembler()
    pieces = [p for c in chunks if (p := joining.add(c)) is not None]
    return "".join(p.text for p in pieces), "".join(p.reasoning for p in pieces)


def test_text_is_watched_as_it_comes():
    joining = Assembler()
    assert [joining.add(chunk({"content": t})) for t in ("Hi", "", " there")] == [
        Piece("Hi"),
        None,
        Piece(" there"),
    ]


def test_leading_thinking_is_never_shown_as_the_answer():
    """wire.md "thinking"."""
    text = ["", "\n<th", "ink>", "\nh", "mm <", "/thin", "k>", "\n\n", "do", "ne <think>", "x</think>"]
    assert watched(*(chunk({"content": t}) for t in text)) == ("done <think>x</think>", "hmm ")


def test_reasoning_beside_the_content_is_watched():
    got = watched(
        chunk({"reasoning_content": "hm", "content": None}),
        chunk({"reasoning": "m"}),
        chunk({"content": "done"}),
    )
    assert got == ("done", "hmm")


def test_what_was_held_back_is_shown_at_the_end():
    assert watched(chunk({"content": "<thi"}), chunk({}, "stop")) == ("<thi", "")
    assert watched(chunk({"content": "<think>a</th"}), chunk({}, "length")) == ("", "a</th")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hmm</think>done", ("hmm", "done")),
        ("  <think>\nhmm\n</think>\n\n done ", ("hmm", "done ")),
        ("<think></think>done", ("", "done")),
        ("hmm</think>done", ("hmm", "done")),
        ("</think>done", ("", "done")),
        ("<think>hmm", ("hmm", "")),
        ("<think>a</think>b</think>c", ("a", "b</think>c")),
        ("x <think>a</think>", ("", "x <think>a</think>")),
        ("a < b", ("", "a < b")),
        ("  done", ("", "  done")),
        ("<thinking>a</thinking>b", ("", "<thinking>a</thinking>b")),
        ("", ("", "")),
    ],
)
def test_split_reasoning(text, expected):
    """wire.md "thinking": only a leading block; a closing tag without an opener ends one too."""
    assert split_reasoning(text) == expected


def cut(text, places):
    edges = sorted({min(p, len(text)) for p in places} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


PLACES = st.lists(st.integers(0, 60), max_size=12)
TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "think>", "</", " ", "\n", "a", "b"]), max_size=12
).map("".join)


@settings(deadline=None)
@given(TAGGED, PLACES)
def test_the_filter_splits_pieces_as_the_whole_is_split(text, places):
    """However a text is cut, what is watched is what the whole comes to (but for an opener in the prompt)."""
    filter_ = ReasoningFilter()
    pieces = [p for t in cut(text, places) if (p := filter_.feed(t))]
    pieces += [p for p in [filter_.flush()] if p]
    seen = ("".join(p.reasoning for p in pieces).strip(), "".join(p.text for p in pieces))
    leading = text.lstrip().startswith("<think>")
    assert seen == (split_reasoning(text) if leading else ("", text))
    assert all(p.text or p.reasoning for p in pieces)


@settings(deadline=None)
@given(
    st.text(max_size=60),
    st.lists(
        st.tuples(
            st.sampled_from(["f", "get_weather"]),
            st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
        ),
        max_size=3,
    ),
    PLACES,
    st.booleans(),
)
def test_a_stream_comes_to_the_plain_message_however_it_is_cut(text, calls, places, ids_each_time):
    raw = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(calls)
    ]
    chunks = [chunk({"content": t}) for t in cut(text, places)]
    for index, call in enumerate(raw):
        more = {"call_id": call["id"], "name": call["function"]["name"]} if ids_each_time else {}
        chunks.append(chunk({"tool_calls": [piece(index, call["id"], call["function"]["name"], "")]}))
        chunks += [
            chunk({"tool_calls": [piece(index, arguments=t, **more)]})
            for t in cut(call["function"]["arguments"], places)
        ]
    done = assemble([*chunks, chunk({}, "tool_calls" if raw else "stop")])
    assert done.message == {
        "role": "assistant",
        "content": text or None,
        **({"tool_calls": raw} if raw else {}),
    }
    assert done.repairs == []


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda i: (
        st.lists(i, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "content",
                    "tool_calls",
                    "index",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "finish_reason",
                    "usage",
                    "message",
                    "function_call",
                ]
            ),
            i,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(JSONISH | st.builds(lambda d: {"choices": [{"delta": d}]}, JSONISH), max_size=4))
def test_no_chunk_crashes(chunks):
    """Whatever comes, the outcome is a completion or an engine error."""
    try:
        done = assemble(chunks)
    except EngineError as error:
        code = error.code
    else:
        code = "complete"
        normalise(done.message, finish_reason=done.finish_reason)
    assert code in ("bad_response", "stream_broken", "complete")


# Speed


def test_joining_costs_little_beside_reading_the_chunks():
    """A thousand content deltas take at most 1.3 times a hand-written loop; the margin here is for a busy machine."""
    lines = [
        json.dumps(
            chunk(
                {"content": f"tok{n} "}, id="chatcmpl-1", object="chat.completion.chunk", created=1, model="m"
            )
        )
        for n in range(1000)
    ]

    def by_hand():
        return "".join(json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines)

    def ours():
        joining = Assembler()
        for line in lines:
            joining.add(json.loads(line))
        return joining.finish().message["content"]

    def seconds(work):
        start = time.process_time()
        work()
        return time.process_time() - start

    assert ours() == by_hand()
    ratio = min(seconds(ours) / seconds(by_hand) for _ in range(15))
    assert ratio < 1.5
