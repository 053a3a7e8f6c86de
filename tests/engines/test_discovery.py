"""Which engine is used, and why."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from jarvis_nb.config import Config
from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.events import EventBus
from jarvis_nb.core.registry import EngineRegistry
from jarvis_nb.engines import discovery
from jarvis_nb.engines.discovery import find_engine, survey
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.engines.presets import KEY_NAMES, PRESETS
from jarvis_nb.engines.probe import probe
from jarvis_nb.engines.scripted import ScriptedEngine
from jarvis_nb.testing import CLOSE, HANG, StrictServer, raw
from tests.engines.loopback import ask, free_port, generate


@pytest.fixture(autouse=True)
def nothing_is_there(monkeypatch, tmp_path):
    """No local server answers and no model is fetched, whatever runs on this machine."""
    for key, preset in list(PRESETS.items()):
        if preset.local:
            monkeypatch.setitem(PRESETS, key, replace(preset, base_url=f"http://127.0.0.1:{free_port()}/v1"))
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path))


@pytest.fixture
def serve(monkeypatch):
    """Let a server answer at a local preset's address."""
    running = []

    def start(key, *models, **options):
        server = StrictServer(lambda _: "Hello.", models=models, **options).start()
        running.append(server)
        monkeypatch.setitem(PRESETS, key, replace(PRESETS[key], base_url=server.url))
        return server

    yield start
    for server in running:
        server.close()


@pytest.fixture
def embedded(monkeypatch, tmp_path):
    """Let the embedded model be there (its file is only looked for, not read)."""
    monkeypatch.setattr(discovery, "find_spec", lambda name: object())
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setenv("JARVIS_NB_GGUF", str(path))
    return path


# Named


def test_a_named_engine_is_used_though_others_answer(serve):
    """Issue 2: asked for by name it is used or an error."""
    serve("ollama", "m")
    choice = find_engine("vllm")
    assert choice.engine.name == "vllm"
    assert choice.reason == "it was asked for by name"
    with pytest.raises(EngineError, match="vllm serve") as caught:
        generate(choice.engine, ask())
    assert caught.value.code == "connection"


def test_an_unknown_name():
    with pytest.raises(InvalidRequest, match="did you mean 'ollama'") as caught:
        find_engine("olama")
    assert caught.value.code == "unknown_engine"
    assert {"openai", "ollama", "local"} <= set(caught.value.valid)


def test_a_registered_engine(monkeypatch):
    monkeypatch.setitem(EngineRegistry._entries, "mine", lambda: ScriptedEngine(["hi"]))
    assert isinstance(find_engine("mine").engine, ScriptedEngine)


def test_the_embedded_engine_by_name(embedded):
    assert find_engine("local").engine.engine_id == "local"


# Configured


def test_the_configured_engine(monkeypatch, serve):
    serve("ollama", "m")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    choice = find_engine(None, Config(engine="vllm"))
    assert (choice.engine.name, choice.reason) == ("vllm", "the configuration names it")


def test_the_configured_address_and_key(serve):
    server = serve("vllm", "m", api_key="sk-configured")
    choice = find_engine(None, Config(base_url=server.url, api_key="sk-configured"))
    assert choice.reason == "the configuration gives base_url"
    assert generate(choice.engine).message["content"] == "Hello."


def test_the_configured_address_belongs_to_the_configured_engine():
    config = Config(engine="vllm", base_url="http://10.0.0.7:8000/v1", api_key="sk-vllm-only")
    assert find_engine(None, config).engine.base_url == "http://10.0.0.7:8000/v1"
    other = find_engine("lmstudio", config).engine
    assert other.base_url == PRESETS["lmstudio"].base_url
    assert other.secrets == ()


def test_the_configured_address_of_a_named_engine():
    assert find_engine("vllm", Config(base_url="http://10.0.0.7:8000/v1")).engine.name == "vllm"


def test_the_configured_timeout(strict_server):
    server = strict_server([raw(HANG)])
    engine = find_engine(None, Config(base_url=server.url, timeout=0.2)).engine
    with pytest.raises(EngineError, match=r"0\.2 s") as caught:
        generate(engine, ask())
    assert caught.value.code == "timeout"


# A key


def test_a_key_in_the_environment(monkeypatch, serve):
    serve("ollama", "m")
    monkeypatch.setenv("GROQ_API_KEY", "k")
    choice = find_engine()
    assert (choice.engine.name, choice.reason) == ("groq", "GROQ_API_KEY is set")
    assert choice.engine.default_model == PRESETS["groq"].model


def test_of_several_keys_the_first_preset_counts(monkeypatch):
    for name in KEY_NAMES:
        monkeypatch.setenv(name, "k")
    assert find_engine().engine.name == next(iter(PRESETS))


def test_an_empty_key_is_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(EngineError):
        find_engine()


# A server


def test_a_local_server_that_answers(serve):
    server = serve("llamacpp", "some-model")
    bus = EventBus(record_history=True)
    choice = find_engine(bus=bus)
    assert choice.engine.name == "llamacpp"
    assert choice.engine.default_model == "some-model"
    assert choice.reason == f"llama.cpp answers at {server.url.split('/')[2]}"
    assert "llamacpp is used" in bus.history[0].data["text"]
    assert generate(choice.engine, ask(model="")).message["content"] == "Hello."


def test_a_server_with_several_models_names_none(serve):
    serve("ollama", "a", "b")
    choice = find_engine()
    assert choice.engine.default_model == ""
    assert choice.found.models == ("a", "b")


def test_a_server_says_who_it_is(serve, monkeypatch):
    """vLLM on the port that llama.cpp has by default."""
    server = serve("llamacpp", "m")
    listing = server.listing
    monkeypatch.setattr(
        server, "listing", lambda: replace(listing(), parts=(b'{"data": [{"id": "m", "owned_by": "vllm"}]}',))
    )
    engine = find_engine().engine
    assert (engine.name, engine.base_url) == ("vllm", server.url)


def test_ollama_host(serve, monkeypatch):
    server = serve("vllm", "m")
    monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1").removeprefix("http://"))
    assert find_engine().engine.base_url == server.url


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b'{"data": []}', "has no model"),
        (b"<html>Jupyter</html>", "not as a model server"),
        (b'{"data": {"id": "m"}}', "not as a model server"),
        (b'{"data": ["m"]}', "not as a model server"),
        (b'[{"id": "m"}]', "not as a model server"),
    ],
)
def test_what_is_no_model_server(serve, monkeypatch, reply, problem):
    server = serve("llamacpp", "m")
    listing = server.listing
    monkeypatch.setattr(server, "listing", lambda: replace(listing(), parts=(reply,)))
    assert problem in probe(server.url).problem
    with pytest.raises(EngineError):
        find_engine()


def test_servers_that_hang_or_close_cost_little_time(serve, monkeypatch):
    for key, reply in (("ollama", raw(HANG)), ("llamacpp", raw(HANG)), ("vllm", raw(CLOSE))):
        monkeypatch.setattr(serve(key, "m"), "listing", lambda reply=reply: reply)
    monkeypatch.setattr("jarvis_nb.engines.probe.ANSWER_SECONDS", 0.3)
    serve("sglang", "m")
    began = time.monotonic()
    assert find_engine().engine.name == "sglang"
    assert time.monotonic() - began < 2


# The embedded model, and nothing


def test_the_embedded_model_comes_last(embedded, serve):
    choice = find_engine()
    assert (choice.engine.engine_id, choice.found.model) == ("local", "own")
    serve("sglang", "m")
    assert find_engine().engine.name == "sglang"


def test_nothing():
    with pytest.raises(EngineError) as caught:
        find_engine()
    said = str(caught.value)
    assert caught.value.code == "no_engine"
    for word in (
        "OPENAI_API_KEY",
        "Ollama",
        "nothing listens there",
        "jarvis-nb[local]",
        "jarvis models fetch",
    ):
        assert word in said


@pytest.mark.parametrize(
    ("spec", "gguf", "reason"),
    [
        (None, None, "pip install 'jarvis-nb[local]'"),
        (object(), None, "jarvis models fetch"),
        (object(), "/no/such/file.gguf", "JARVIS_NB_GGUF names no file"),
    ],
)
def test_why_the_embedded_model_is_not_there(monkeypatch, spec, gguf, reason):
    monkeypatch.setattr(discovery, "find_spec", lambda name: spec)
    if gguf:
        monkeypatch.setenv("JARVIS_NB_GGUF", gguf)
    (found,) = [f for f in survey() if f.source == "embedded"]
    assert (found.status, found.usable) == ("missing", False)
    assert reason in found.reason


# The survey


def test_the_survey_lists_everything_and_marks_what_is_used(serve, monkeypatch, embedded):
    """Issue 2: ``jarvis engines`` shows what was found and why."""
    serve("vllm", "a", "b")
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-secret-value")
    rows = survey(Config())
    assert [row.status for row in rows[:3]] == ["used", "usable", "usable"]
    assert [row.key for row in rows[:3]] == ["mistral", "vllm", "local"]
    assert {row.key for row in rows} == {*PRESETS, "local"}
    assert all(row.reason for row in rows)
    assert "sk-secret-value" not in repr(rows)
    first = rows[1].to_dict()
    assert (first["models"], first["status"], first["base_url"]) == (
        ["a", "b"],
        "usable",
        PRESETS["vllm"].base_url,
    )


def test_the_survey_agrees_with_what_is_used(serve):
    serve("lmstudio", "m")
    (used,) = [row for row in survey() if row.used]
    assert used.key == find_engine().engine.name


def test_the_survey_with_a_configured_engine(serve):
    serve("ollama", "m")
    (used,) = [row for row in survey(Config(engine="vllm", model="m")) if row.used]
    assert (used.key, used.source, used.model) == ("vllm", "config", "m")


def test_two_choices_share_nothing():
    """tools.md 23: two ``Jarvis`` never share mutable state."""
    one, two = find_engine("ollama").engine, find_engine("ollama").engine
    assert isinstance(one, OpenAIEngine)
    assert one is not two
