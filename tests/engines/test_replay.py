"""Record a run, replay it offline, and be told where a request differs."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.types import Definitions, Message, Role, ToolCall, Usage
from jarvis_nb.engines.base import Completion, Piece, Request, Support
from jarvis_nb.engines.recording import VERSION, Exchange, Recording
from jarvis_nb.engines.replay import ReplayEngine, differences
from jarvis_nb.engines.scripted import ScriptedEngine, call
from jarvis_nb.engines.scrub import Scrubber, environment_secrets
from jarvis_nb.engines.stream import StreamBroken
from jarvis_nb.testing import CLOSE, StrictServer, answer, chunks, error
from tests.engines.loopback import WEATHER, ask, engine_at, generate, stream


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lesson.json"


def turns(city="Paris"):
    """Return the two requests of a run with one tool call."""
    tools = Definitions([WEATHER])
    first = [Message(Role.USER, f"Weather in {city}?")]
    second = [
        *first,
        Message(Role.ASSISTANT, None, [ToolCall("call_1", "get_weather", f'{{"city":"{city}"}}')]),
        Message(Role.TOOL, "sunny", tool_call_id="call_1"),
    ]
    return [Request("m", first, tools, "auto"), Request("m", second, tools, "auto")]


def record(path, steps=None, requests=None):
    engine = ReplayEngine(path, ScriptedEngine(steps or [call("get_weather", city="Paris"), "It is sunny."]))
    for request in requests or turns():
        generate(engine, request)
    return engine


def test_record_and_replay(path):
    assert record(path).mode == "record"
    engine = ReplayEngine(path)
    assert engine.mode == "replay"
    first, second = (generate(engine, request) for request in turns())
    assert first.message["tool_calls"][0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city":"Paris"}',
    }
    assert (second.message["content"], second.finish_reason) == ("It is sunny.", "stop")
    assert engine.remaining == 0


def test_a_replay_is_the_recorded_engine_to_the_outside(path):
    record(path)
    engine = ReplayEngine(path)
    assert (engine.name, engine.default_model) == ("scripted", "scripted")
    assert engine.supports == Support(strict=True, images=True)
    assert repr(engine) == "ReplayEngine('lesson.json', replay, 2 requests)"
    assert asyncio.run(engine.list_models()) == ["scripted"]


def test_a_real_engine_usage_and_repairs(path):
    """Recorded from a server; replayed with the server gone."""
    with StrictServer([answer("Hello.", prompt_tokens=7, completion_tokens=2)]) as server:
        recorded = generate(ReplayEngine(path, engine_at(server)))
    replayed = generate(ReplayEngine(path))
    assert replayed == recorded
    assert replayed.usage == Usage(7, 2)


def test_streams_are_replayed(path):
    with StrictServer([chunks({"reasoning_content": "hmm"}, "It ", "is.", after=[CLOSE])]) as server:
        recorded = stream(ReplayEngine(path, engine_at(server)))
    assert recorded[0] == [Piece(reasoning="hmm"), Piece("It "), Piece("is.")]
    assert stream(ReplayEngine(path)) == recorded


def test_whole_and_streamed_answers_can_be_replayed_either_way(path):
    record(path)
    pieces, completion = stream(ReplayEngine(path), turns()[1])
    assert (pieces, completion.message["content"]) == ([Piece("It is sunny.")], "It is sunny.")


def test_errors_are_replayed(path):
    refusal = error(400, "maximum context length is 5 tokens")
    with StrictServer([refusal]) as server, pytest.raises(EngineError) as recorded:
        generate(ReplayEngine(path, engine_at(server)))
    with pytest.raises(EngineError) as replayed:
        generate(ReplayEngine(path))
    assert replayed.value.code == recorded.value.code == "context_overflow"
    assert "maximum context length is 5 tokens" in replayed.value.message


def test_a_broken_stream_is_replayed_with_what_came(path):
    delta = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": "{"}}]}
    broken = chunks("Let me see.", delta, CLOSE, finish=None, done=False)
    with StrictServer([broken]) as server, pytest.raises(StreamBroken):
        stream(ReplayEngine(path, engine_at(server)), ask(tools=True))
    seen = []
    with pytest.raises(StreamBroken) as caught:
        stream(ReplayEngine(path), ask(tools=True), seen)
    assert seen == [Piece("Let me see.")]
    assert caught.value.partial.message["tool_calls"][0]["id"] == "a"


# Where a request differs


def with_change(**changes):
    request = turns()[1]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def changed_message():
    request = turns()[1]
    request.messages[2] = Message(Role.TOOL, "rainy with wind", tool_call_id="call_1")
    return request


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (with_change(model="other"), "model: recorded 'm', got 'other'"),
        (with_change(temperature=0.5), "temperature: recorded None, got 0.5"),
        (with_change(max_tokens=9), "max_tokens: recorded None, got 9"),
        (with_change(tool_choice="required"), "tool_choice: recorded 'auto', got 'required'"),
        (with_change(tools=None), "tools: recorded [{'type': 'function'"),
        (changed_message(), "messages[2].content: recorded 'sunny', got 'rainy with wind'"),
        (turns("Rome")[0], "messages[0].content: recorded 'Paris?', got 'Rome?' (from character 11)"),
    ],
)
def test_a_mismatch_says_where(path, request_, says):
    record(path)
    with pytest.raises(EngineError) as caught:
        generate(ReplayEngine(path), request_)
    assert caught.value.code == "replay_mismatch"
    assert says in caught.value.message
    assert "lesson.json" in caught.value.message
    assert "record it again" in caught.value.hint


def test_a_mismatch_names_the_nearest_request(path):
    record(path)
    with pytest.raises(EngineError, match="request 2 of 2"):
        generate(ReplayEngine(path), changed_message())


def test_many_differences_are_counted(path):
    record(path)
    request = Request("x", [Message(Role.SYSTEM, "s")] * 4, None, None, 0.1, 1)
    with pytest.raises(EngineError, match=r"and \d+ more"):
        generate(ReplayEngine(path), request)


def test_a_cell_that_runs_twice(path):
    """toolsets.md 6: nothing fails because a cell ran twice."""
    record(path)
    engine = ReplayEngine(path)
    assert generate(engine, turns()[0]) == generate(engine, turns()[0])


def test_equal_requests_with_different_answers_come_in_order(path):
    record(path, ["one", "two"], [ask("?"), ask("?")])
    engine = ReplayEngine(path)
    got = [generate(engine, ask("?")).message["content"] for _ in range(3)]
    assert got == ["one", "two", "two"]


def test_another_order(path):
    """Asks that ran at the same time are recorded as they ended."""
    record(path, ["a", "b", "c"], [ask("1"), ask("2"), ask("3")])
    engine = ReplayEngine(path)
    assert [generate(engine, ask(n)).message["content"] for n in "312"] == ["c", "a", "b"]


# The file


def test_the_file_is_readable_and_repeats_nothing(path):
    record(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["format"], data["version"], data["engine"]) == ("jarvis_nb.recording", VERSION, "scripted")
    first, second = (exchange["request"] for exchange in data["exchanges"])
    assert (first["same_messages"], len(first["messages"])) == (0, 1)
    assert (second["same_messages"], [m["role"] for m in second["messages"]]) == (1, ["assistant", "tool"])
    assert (len(first["tools"]), second["tools"]) == (1, "same")
    assert len(path.read_text(encoding="utf-8").splitlines()) > 30


def test_text_beyond_ascii_is_readable_and_half_pairs_survive(path):
    record(path, ["日本語 🎉", "half"], [ask("日本語"), ask("half \ud83c")])
    engine = ReplayEngine(path)
    assert generate(engine, ask("日本語")).message["content"] == "日本語 🎉"
    assert generate(engine, ask("half \ud83c")).message["content"] == "half"
    plain = path.with_name("plain.json")
    record(plain, ["日本語 🎉"], [ask("日本語")])
    assert "日本語 🎉" in plain.read_text(encoding="utf-8")


def test_it_is_written_after_every_call(path):
    engine = ReplayEngine(path, ScriptedEngine(["a", RuntimeError("power cut")]))
    generate(engine, ask("1"))
    with pytest.raises(RuntimeError):
        generate(engine, ask("2"))
    assert len(Recording.load(path).exchanges) == 1
    assert [p.name for p in path.parent.iterdir()] == ["lesson.json"]


def test_record_mode_starts_anew_but_not_before_there_is_something(path):
    record(path)
    before = path.read_bytes()
    engine = ReplayEngine(path, ScriptedEngine(["new"]), mode="record")
    assert path.read_bytes() == before
    generate(engine, ask("x"))
    assert len(Recording.load(path).exchanges) == 1


def test_auto_replays_what_is_there(path):
    record(path)
    scripted = ScriptedEngine(["never asked"])
    engine = ReplayEngine(path, scripted)
    generate(engine, turns()[0])
    assert scripted.requests == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        ("", "cannot be read"),
        ("{}", "is no recording"),
        ("[]", "is no recording"),
        ('{"format": "jarvis_nb.recording", "version": 99}', "has version 99, this package reads 1"),
        ('{"format": "jarvis_nb.recording", "version": 1}', "lacks something"),
        (
            '{"format": "jarvis_nb.recording", "version": 1, "engine": "", "model": "", "supports": {}, "exchanges": [{"x": 1}]}',
            "lacks something",
        ),
    ],
)
def test_what_cannot_be_replayed(path, content, says):
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidRequest, match=says) as caught:
        ReplayEngine(path, mode="replay")
    assert caught.value.code == "invalid_recording"


def test_wrong_arguments(path):
    with pytest.raises(InvalidRequest, match="mode"):
        ReplayEngine(path, mode="play")
    with pytest.raises(InvalidRequest, match="no engine to record"):
        ReplayEngine(path, mode="record")


messages = st.lists(
    st.builds(
        Message, st.sampled_from([Role.USER, Role.SYSTEM]), st.text(st.characters(codec="utf-8"), max_size=5)
    ),
    max_size=4,
).map(lambda ms: [m.to_openai() for m in ms])
requests = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "messages": messages,
        "tools": st.none() | st.just([{"a": 1}]),
        "tool_choice": st.none(),
    }
)


@given(st.lists(requests, max_size=5))
def test_what_is_saved_is_what_is_loaded(tmp_path_factory, asked):
    path = tmp_path_factory.mktemp("r") / "r.json"
    exchanges = [Exchange(dict(request), {"message": {"content": "x"}}) for request in asked]
    Recording("e", "m", Support(), exchanges).save(path)
    assert Recording.load(path).exchanges == exchanges


# What must not stand in the file


def test_keys_are_scrubbed(path, monkeypatch):
    """Issue 2: keys scrubbed."""
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-environment-value")
    with StrictServer(["the key is sk-given-0123456789abcdef, the token tok-environment-value"]) as server:
        engine = ReplayEngine(path, engine_at(server, api_key="given-without-prefix"))
        question = "given-without-prefix tok-environment-value sk-abcdefghijklmnop Bearer abcdefghijkl"
        generate(engine, ask(question))
    text = path.read_text()
    for secret in ("given-without", "tok-environment", "sk-given", "sk-abc", "abcdefghijkl"):
        assert secret not in text
    assert text.count("<<key>>") >= 5


def test_ports_and_temporary_folders_may_differ(path, tmp_path):
    """Issue 2: addresses and temporary paths normalised; the replayed answer speaks of this run's."""

    def question(port, folder):
        return ask(f"Fetch http://127.0.0.1:{port}/a into {folder}/notes.txt")

    steps = [call("save", url="http://127.0.0.1:41111/a", path="/tmp/tmpabc123/notes.txt"), "done"]
    record(path, steps[:1], [question(41111, "/tmp/tmpabc123")])
    assert "41111" not in path.read_text()
    assert "tmpabc123" not in path.read_text()
    assert "/notes.txt" in path.read_text()
    replayed = generate(ReplayEngine(path), question(52222, "/tmp/tmpxyz789"))
    arguments = json.loads(replayed.message["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"url": "http://127.0.0.1:52222/a", "path": "/tmp/tmpxyz789/notes.txt"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("see http://localhost:8000/v1", "see http://localhost:<<port1>>/v1"),
        (
            "http://127.0.0.1:1/ http://127.0.0.1:2/ 127.0.0.1:1",
            "http://127.0.0.1:<<port1>>/ http://127.0.0.1:<<port2>>/ 127.0.0.1:<<port1>>",
        ),
        ("/tmp/pytest-of-root/pytest-3/test_x0/a/b.txt", "<<tmp1>>/a/b.txt"),
        ("in '/tmp/tmp1a2b' and /tmp/tmp1a2b/c", "in '<<tmp1>>' and <<tmp1>>/c"),
        ("/var/folders/ab/c1d2/T/tmpq/x", "<<tmp1>>/x"),
        ("http://example.com:8080 and 10:30", "http://example.com:8080 and 10:30"),
        ("/tmp", "/tmp"),
        ("/tmpfile", "/tmpfile"),
    ],
)
def test_scrubbing(text, clean):
    scrubber = Scrubber()
    assert scrubber.clean(text) == clean
    assert scrubber.restore(clean) == text


def test_unknown_placeholders_stay():
    assert Scrubber().restore({"a": ["<<tmp7>>", 1, None]}) == {"a": ["<<tmp7>>", 1, None]}


@given(st.text(max_size=80), st.text(max_size=20))
def test_scrubbing_can_be_undone(text, secret):
    """Whatever the text, only secrets are lost."""
    scrubber = Scrubber()
    if "<<" not in text:
        assert "sk-" in text or "Bearer " in text or scrubber.restore(scrubber.clean(text)) == text
    if secret:
        assert secret not in Scrubber([secret]).clean(f"a {secret} b").replace("<<key>>", "")


def test_environment_secrets():
    environ = {
        "A_KEY": "12345678",
        "KEYBOARD": "qwertyuiop",
        "TOKEN": "short",
        "DB_PASSWORD": "password1",
        "PATH": "/usr/bin",
    }
    assert environment_secrets(environ) == {"12345678", "password1"}


# The diff


@pytest.mark.parametrize(
    ("recorded", "got", "lines"),
    [
        ({}, {}, []),
        ([1, 2], [1, 3, 4], ["[1]: recorded 2, got 3", ": recorded 2, got 3"]),
        ({"a": 1}, {"b": 1}, ["a: recorded 1, got None", "b: recorded None, got 1"]),
        ("abc def", "abc deg", [": recorded 'def', got 'deg' (from character 4)"]),
        ("abc", "abcd", [": recorded 'abc', got 'abcd' (from character 0)"]),
        (1, "1", [": recorded 1, got '1'"]),
    ],
)
def test_differences(recorded, got, lines):
    assert list(differences(recorded, got)) == lines


def test_completions_survive(path):
    """What engines made of parts report about themselves is kept."""

    class Parts(ScriptedEngine):
        async def generate(self, request):
            done = await super().generate(request)
            return Completion(done.message, "stop", Usage(1, 2), "real-name", [], {"tool": "router"})

    generate(ReplayEngine(path, Parts(["a"])))
    replayed = generate(ReplayEngine(path))
    assert (replayed.provenance, replayed.model, replayed.usage) == (
        {"tool": "router"},
        "real-name",
        Usage(1, 2),
    )
