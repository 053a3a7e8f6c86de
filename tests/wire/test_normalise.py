"""wire.md: "Normal form" and every row of "Non-streamed cases", on the pure functions, whole and streamed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.core.types import Message, Repair, Role
from jarvis_nb.engines.wire import assemble, encode_message, normalise
from jarvis_nb.testing import check_request
from jarvis_nb.testing.oddities import ODDITIES, Oddity
from jarvis_nb.testing.replies import deltas

TOOLS = ["get_weather", "add"]
USER = {"role": "user", "content": "?"}


def whole(odd: Oddity):
    return normalise(odd.message, finish_reason=odd.finish_reason, known_names=TOOLS, round=1)


def streamed(odd: Oddity):
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas(odd.message)
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": odd.finish_reason}]})
    done = assemble(chunks)
    return normalise(
        done.message, finish_reason=done.finish_reason, known_names=TOOLS, round=1, repairs=done.repairs
    )


BOTH = [pytest.param(odd, whole, id=f"{odd}-whole") for odd in ODDITIES] + [
    pytest.param(odd, streamed, id=f"{odd}-streamed") for odd in ODDITIES if odd.streams
]


def test_the_table_names_each_row_once():
    assert len({odd.name for odd in ODDITIES}) == len(ODDITIES) >= 27


@pytest.mark.parametrize(("odd", "way"), BOTH)
def test_row(odd: Oddity, way):
    """wire.md "Non-streamed cases": what runs, with which arguments, and what is refused and told."""
    got = way(odd)
    assert [call.name for call in got.calls] == [expected.name for expected in odd.calls]
    assert (got.text, got.reasoning) == (odd.text, odd.reasoning)
    assert [repair.code for repair in got.repairs] == list(odd.repairs)
    assert {repair.round for repair in got.repairs} <= {1}
    for call, expected in zip(got.calls, odd.calls, strict=True):
        if expected.early:
            assert got.refused[call.id].code == expected.code
        else:
            assert call.id not in got.refused
        if (
            expected.arguments is not None and odd.name != "lossless text for a number"
        ):  # the tool's schema does that
            assert json.loads(call.arguments) == expected.arguments


@pytest.mark.parametrize(("odd", "way"), BOTH)
def test_row_is_sent_again_as_a_strict_server_takes_it(odd: Oddity, way):
    """wire.md "Normal form": ids unique, arguments a JSON object string, names legal, never an empty turn."""
    got = way(odd)
    assert len({call.id for call in got.calls}) == len(got.calls)
    again = encode_message(got.message)
    turns = [json.loads(again)] if again else []
    answers = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in got.calls]
    assert check_request({"model": "m", "messages": [USER, *turns, *answers]}) == []
    if got.calls and not got.text:
        assert turns[0]["content"] is None
    assert bool(turns) == bool(got.calls or got.text)


# Ids


def ids(*sent, taken=()):
    calls = [{"id": s, "type": "function", "function": {"name": "add", "arguments": "{}"}} for s in sent]
    got = normalise({"tool_calls": calls}, taken_ids=set(taken), known_names=TOOLS)
    return [c.id for c in got.calls], [c.provider_id for c in got.calls], [r.message for r in got.repairs]


@pytest.mark.parametrize(
    ("sent", "taken", "expected", "kept"),
    [
        (["a", "b"], [], ["a", "b"], [None, None]),
        (["call_1", "call_1"], [], ["call_1", "call_2"], [None, "call_1"]),
        (["call_1", "call_1", "call_2"], [], ["call_1", "call_3", "call_2"], [None, "call_1", None]),
        (["", "call_1"], [], ["call_2", "call_1"], ["", None]),
        ([None, None], [], ["call_1", "call_2"], [None, None]),
        ([" ", 7], [], ["call_1", "call_2"], [" ", "7"]),
        (["a"], ["a"], ["call_1"], ["a"]),
        (["call_1"], ["call_1", "call_2"], ["call_3"], ["call_1"]),
    ],
)
def test_fresh_ids_are_the_lowest_free_and_the_providers_is_kept(sent, taken, expected, kept):
    """wire.md "Normal form": missing, null, empty or repeated, in a turn or across turns."""
    assert ids(*sent, taken=taken)[:2] == (expected, kept)


def test_a_repair_says_what_happened_to_an_id():
    """wire.md: "two calls shared id call_1: the second was renamed"."""
    assert ids("call_1", "call_1", "call_1")[2] == [
        "two calls shared id call_1: the second was renamed call_2",
        "three calls shared id call_1: the third was renamed call_3",
    ]
    assert ids("x", taken=["x"])[2] == ["id x was used in an earlier turn: the call was renamed call_1"]
    assert ids(None)[2] == ["the call to add had no id: it was given call_1"]


def test_what_is_given_is_not_changed():
    taken = {"call_1"}
    message = {"tool_calls": [{"id": "call_1", "function": {"name": "add", "arguments": {"a": 1}}}]}
    before = json.dumps(message)
    normalise(message, taken_ids=taken, known_names=TOOLS)
    assert (taken, json.dumps(message)) == ({"call_1"}, before)


# Names


@pytest.mark.parametrize(
    ("sent", "known", "name"),
    [
        ("functions.get_weather", ["get_weather"], "get_weather"),
        ("tools.functions.get_weather", ["get_weather"], "get_weather"),
        ("default_api:get_weather", ["get_weather"], "get_weather"),
        ("functions/get_weather", ["get_weather"], "get_weather"),
        ("functions::get_weather", ["get_weather"], "get_weather"),
        (" get_weather\n", ["get_weather"], "get_weather"),
        ("functions.get-rate", ["get-rate"], "get-rate"),
        ("functions.get_weather", ["functions.get_weather", "get_weather"], "functions.get_weather"),
    ],
)
def test_an_unambiguous_last_segment_is_accepted(sent, known, name):
    """wire.md "name"."""
    call = normalise({"tool_calls": [{"id": "a", "function": {"name": sent}}]}, known_names=known).calls[0]
    assert (call.name, call.raw_name) == (name, None if sent == name else sent)


@pytest.mark.parametrize(
    ("sent", "known", "wire"),
    [
        ("get_weather.", ["get_weather"], "get_weather_"),
        ("x.get_weather", ["a.get_weather", "b.get_weather"], "x_get_weather"),
        ("get_wether", ["get_weather"], "get_wether"),
        ("Get_Weather", ["get_weather"], "Get_Weather"),
        ("get weather", ["get_weather"], "get_weather_2"),
        ("get weather", ["get_weather", "get_weather_2"], "get_weather_3"),
        ("x" * 70, ["get_weather"], "x" * 64),
        ("é" * 70, ["_" * 64], "_" * 57 + "2"),
        ("", ["get_weather"], "unnamed"),
        (None, ["unnamed"], "unnamed_2"),
        (["get_weather"], ["get_weather"], "__get_weather__"),
    ],
)
def test_any_other_name_is_kept_for_people_and_legal_on_the_wire(sent, known, wire):
    """wire.md "Normal form": a hallucinated name never becomes a tool's name."""
    call = normalise({"tool_calls": [{"id": "a", "function": {"name": sent}}]}, known_names=known).calls[0]
    assert call.name == wire
    assert call.name not in known
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call.name)
    if sent != wire:
        assert call.raw_name == (sent if isinstance(sent, str) else "" if sent is None else '["get_weather"]')


# Arguments


def one(arguments):
    got = normalise(
        {"tool_calls": [{"id": "a", "function": {"name": "add", "arguments": arguments}}]}, known_names=TOOLS
    )
    return got.calls[0], got.refused.get("a"), got.repairs


def test_malformed_arguments_give_the_position_and_keep_the_raw_text():
    """wire.md "malformed": the parse position to the model; replayed as valid JSON, raw text kept."""
    call, why, repairs = one('{"city": "Paris"')
    assert (call.arguments, call.raw_arguments) == ("{}", '{"city": "Paris"')
    assert (why.code, why.details) == ("invalid_json", {"position": 16})
    assert "char 16" in why.message
    assert "add (a)" in repairs[0].message


def test_doubled_arguments_say_where_the_second_value_starts():
    """wire.md "doubled"."""
    call, why, _ = one('{"a":1} {"a":1}')
    assert (call.arguments, call.raw_arguments, why.details) == ("{}", '{"a":1} {"a":1}', {"position": 8})
    assert "expected one object" in why.message


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ('["Paris"]', "a list"),
        (["Paris"], "a list"),
        ("7", "a number"),
        (7.5, "a number"),
        ('"x"', "text"),
        ("true", "true or false"),
        (False, "true or false"),
    ],
)
def test_arguments_that_are_no_object_say_so_to_the_model(arguments, kind):
    """wire.md "list, number, text": "expected an object"."""
    call, why, _ = one(arguments)
    assert why.message == f"the arguments are {kind}: expected an object"
    assert call.arguments == "{}"
    assert call.raw_arguments == (arguments if isinstance(arguments, str) else json.dumps(arguments))


@pytest.mark.parametrize("arguments", ["", "  ", "null", " null ", None])
def test_nothing_is_an_empty_object(arguments):
    """wire.md "empty" and "null": `{}`, replayed as `"{}"`."""
    call, why, repairs = one(arguments)
    assert (call.arguments, why, repairs[0].code) == ("{}", None, "empty_arguments")
    assert call.raw_arguments == ("null" if arguments is None else arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":NaN}',
        '{"a":-Infinity}',
        {"a": float("nan")},
        "[" * 200_000,
        '{"a":' * 50_000,
        '{"a":' + "9" * 5000 + "}",
        {"a": {1, 2}},
        "{'a': 1}",
        '{"a":1}}',
        "\ufeff{}",
        '{"a":"\n"}',
    ],
    ids=lambda a: str(a)[:12],
)
def test_what_python_alone_would_take_is_refused(arguments):
    """wire.md "malformed": nothing that another server could not read is sent again."""
    call, why, _ = one(arguments)
    assert (why.code, call.arguments) == ("invalid_json", "{}")


def test_valid_arguments_stay_byte_for_byte():
    """A prompt cache matches on what was generated: whitespace and key order are not ours to change."""
    call, why, repairs = one('{ "b": 2,\n"a": 1e3, "c": "\\u65e5" }')
    assert (call.arguments, call.raw_arguments, why, repairs) == (
        '{ "b": 2,\n"a": 1e3, "c": "\\u65e5" }',
        None,
        None,
        [],
    )


# Finish reasons


@pytest.mark.parametrize("reason", ["length", "max_tokens", "model_length", "content_filter"])
def test_no_call_of_a_message_that_was_cut_off_runs(reason):
    """wire.md "cut off": arguments parse or not."""
    calls = [{"id": i, "function": {"name": "add", "arguments": '{"a":1,"b":2}'}} for i in ("a", "b")]
    got = normalise({"content": "So", "tool_calls": calls}, finish_reason=reason, known_names=TOOLS)
    assert {i: e.code for i, e in got.refused.items()} == {"a": "cut_off", "b": "cut_off"}
    assert "cut off" in got.refused["a"].message
    assert got.cut_off
    assert [c.arguments for c in got.calls] == ['{"a":1,"b":2}'] * 2


def test_a_broken_stream_runs_no_call():
    """wire.md "Streams": one that breaks while a call is open."""
    calls = [{"id": "a", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}]
    got = normalise({"tool_calls": calls}, known_names=TOOLS, broken=True)
    assert (got.refused["a"].code, got.repairs[-1].code) == ("stream_broken", "stream_broken")


def test_repairs_of_the_stream_come_first_with_the_round():
    got = normalise(
        {"tool_calls": [{"function": {"name": "add"}}]}, round=3, repairs=[Repair("missing_index", "m")]
    )
    assert [(r.code, r.round) for r in got.repairs] == [
        ("missing_index", 3),
        ("missing_id", 3),
        ("empty_arguments", 3),
    ]


def test_thinking_is_on_the_message_and_never_sent_again():
    """wire.md "thinking"."""
    got = normalise({"content": "<think>a</think>done", "reasoning_content": "b"})
    assert got.message == Message(Role.ASSISTANT, "done")
    assert got.message.reasoning == "b\na"
    assert encode_message(got.message) == b'{"role":"assistant","content":"done"}'


# Properties

JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.sampled_from(["", "{}", '{"city":"Paris"}', "{}{}", "null", "[1]", '{"a"', "\ud800"]) | JSONISH
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["call_1", "call_2", "", None, 3]) | JSONISH,
        "type": st.sampled_from(["function", "", None]),
        "function": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["add", "x.add", "", "a b", None]) | JSONISH,
                "arguments": ARGUMENTS,
            },
        )
        | JSONISH,
    },
)
MESSAGES = (
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.just("assistant"),
            "content": JSONISH
            | st.lists(st.fixed_dictionaries({"type": JSONISH, "text": JSONISH}), max_size=3),
            "tool_calls": st.lists(CALLS | JSONISH, max_size=4) | JSONISH,
            "function_call": JSONISH,
            "reasoning_content": JSONISH,
            "refusal": JSONISH,
        },
    )
    | JSONISH
)


@settings(max_examples=200, deadline=None)
@given(
    MESSAGES,
    st.sampled_from([None, "stop", "length", "tool_calls", ""]),
    st.sets(st.sampled_from(["call_1", "call_3"])),
)
def test_any_message_is_taken_and_fit_to_be_sent_again(message, reason, taken):
    """wire.md "Normal form", for whatever a server may send."""
    got = normalise(message, finish_reason=reason, taken_ids=taken, known_names=["add"])
    assert not {call.id for call in got.calls} & taken
    assert got.refused.keys() <= {call.id for call in got.calls}
    again = encode_message(got.message)
    turns = [json.loads(again)] if again else []
    answers = [{"role": "tool", "tool_call_id": call.id, "content": ""} for call in got.calls]
    assert check_request({"model": "m", "messages": [USER, *turns, *answers]}) == []
    assert bool(turns) == bool(got.calls or got.text.strip())
