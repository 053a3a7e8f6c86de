"""Settings: tools.md 23: file, then environment, then arguments, from weak to strong."""

from __future__ import annotations

import json
import os
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis_nb import Jarvis
from jarvis_nb.config import Config, config_path, load_config
from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.engines import ScriptedEngine, call


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    for name in [n for n in os.environ if n.startswith("JARVIS_NB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def user_file(tmp_path):
    """Write the user's own file."""

    def write(text):
        path = tmp_path / "jarvis_nb" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_23_nothing_is_needed():
    assert load_config() == Config()


def test_23_file_then_environment_then_arguments(user_file, monkeypatch):
    """tools.md 23."""
    user_file('model = "file"\nengine = "ollama"\ntemperature = 0.1')
    assert load_config().model == "file"
    monkeypatch.setenv("JARVIS_NB_MODEL", "environment")
    assert load_config().model == "environment"
    assert load_config({"model": "arguments"}).model == "arguments"
    assert load_config({"model": "arguments"}) == Config(engine="ollama", model="arguments", temperature=0.1)


def test_23_the_arguments_of_a_jarvis_and_of_an_ask_are_stronger_still(user_file):
    """tools.md 23."""
    user_file('model = "file"\ntemperature = 0.1\nmax_tokens = 5\n[limits]\nrounds = 1')
    engine = ScriptedEngine(["a", "b", "c"])
    j = Jarvis(engine=engine)
    j.ask("x")
    j.ask("x", model="ask", temperature=0.9, max_tokens=7)
    Jarvis(engine=engine, model="jarvis").ask("x")
    assert [(r.model, r.temperature, r.max_tokens) for r in engine.requests] == [
        ("file", 0.1, 5),
        ("ask", 0.9, 7),
        ("jarvis", 0.1, 5),
    ]
    assert j.limits.rounds == 1
    assert Jarvis(engine=engine, limits={"rounds": 2}).limits.rounds == 2


def test_23_the_configured_agent_runs(user_file):
    user_file('agent = "simple"')
    assert Jarvis(engine=ScriptedEngine(["a"])).ask_full("x").agent == "simple"


def test_23_another_file(user_file, tmp_path, monkeypatch):
    """A path replaces the user's file; JARVIS_NB_CONFIG names it too."""
    user_file('model = "user"')
    other = tmp_path / "other.toml"
    other.write_text('model = "other"')
    assert load_config(other).model == "other"
    assert load_config(str(other)).model == "other"
    monkeypatch.setenv("JARVIS_NB_CONFIG", str(other))
    assert config_path() == other
    assert load_config().model == "other"


@pytest.mark.parametrize("base", [None, "", "  ", "/srv/settings", "relative", "~/here", " /srv/settings "])
def test_23_the_users_folder_is_where_platformdirs_says(base, tmp_path, monkeypatch):
    from platformdirs import user_config_path

    monkeypatch.delenv("JARVIS_NB_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if base is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
    assert config_path() == user_config_path("jarvis_nb", appauthor=False) / "config.toml"


@pytest.mark.parametrize("text", ["[", 'model = "a"\nmodel = "b"', "\udcff"])
def test_23_a_broken_file_is_named(user_file, text):
    path = user_file("")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidRequest) as caught:
        load_config()
    assert caught.value.code == "invalid_config"
    assert str(path) in str(caught.value)


def test_23_a_missing_file_is_an_error_where_it_was_named(tmp_path, monkeypatch):
    for load in (lambda: load_config(tmp_path / "none.toml"), load_config):
        monkeypatch.setenv("JARVIS_NB_CONFIG", str(tmp_path / "none.toml"))
        with pytest.raises(InvalidRequest, match=r"none\.toml") as caught:
            load()
        assert caught.value.code == "invalid_config"


WRONG_KEYS = ["modle", "Model", "api-key", "x"]


@pytest.mark.parametrize("key", WRONG_KEYS)
@pytest.mark.parametrize("where", ["file", "arguments"])
def test_23_a_wrong_key_is_named(user_file, key, where):
    """tools.md 23: with where it stands and what there is."""
    data = {key: "v"}
    if where == "file":
        path = user_file(f'{key} = "v"')
        data = None
    with pytest.raises(InvalidRequest) as caught:
        load_config(data)
    assert (caught.value.code, caught.value.value) == ("invalid_config", key)
    assert repr(key) in str(caught.value)
    assert (str(path) if where == "file" else "config=") in str(caught.value)
    assert "model" in caught.value.valid
    if key == "modle":
        assert "did you mean 'model'?" in str(caught.value)


def test_23_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("JARVIS_NB_MODLE", "v")
    with pytest.raises(InvalidRequest, match="modle"):
        load_config()


def test_23_variables_that_are_no_settings(monkeypatch, tmp_path):
    """Folders and files of ours have the same prefix."""
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path))
    monkeypatch.setenv("JARVIS_NB_GGUF", str(tmp_path / "m.gguf"))
    assert load_config() == Config()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", "warm"),
        ("max_tokens", 1.5),
        ("max_tokens", []),
        ("model", 5),
        ("model", {"a": 1}),
        ("context_top_k", None),
        ("limits", 3),
        ("limits", {"rounds": "many"}),
        ("secrets", {"KEY": 5}),
        ("timeout", "soon"),
        ("temperature", 9),
        ("temperature", float("nan")),
        ("max_tokens", 0),
        ("timeout", -1),
        ("context_top_k", -1),
    ],
)
def test_23_a_wrong_type_or_size_is_named(key, value):
    """tools.md 23."""
    with pytest.raises(InvalidRequest) as caught:
        load_config({key: value})
    assert caught.value.code == "invalid_config"
    assert key in str(caught.value)


@pytest.mark.parametrize("value", [5, ["a"], object()])
def test_23_a_config_of_the_wrong_type(value):
    with pytest.raises(InvalidRequest, match="TOML"):
        load_config(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0.5", 0.5),
        ("max_tokens", "100", 100),
        ("limits", '{"rounds": 3}', {"rounds": 3}),
        ("secrets", '{"KEY": "v"}', {"KEY": "v"}),
    ],
)
def test_23_the_environment_is_text(monkeypatch, name, text, value):
    """A variable's text is read as what its setting is."""
    monkeypatch.setenv(f"JARVIS_NB_{name.upper()}", text)
    assert getattr(load_config(), name) == value
    monkeypatch.setenv(f"JARVIS_NB_{name.upper()}", "{odd")
    with pytest.raises(InvalidRequest, match=f"(?i){name}"):
        load_config()


def test_23_a_wrong_limit_in_the_file_is_named(user_file):
    user_file("[limits]\nround = 3")
    with pytest.raises(InvalidRequest, match="rounds"):
        Jarvis(engine=ScriptedEngine([]))


def test_23_two_jarvis_share_no_settings():
    """tools.md 23: two Jarvis never share mutable state."""
    given = {"limits": {"rounds": 1}, "secrets": {"A": "x"}}
    a, b = (Jarvis(engine=ScriptedEngine([]), config=given) for _ in range(2))
    a.config.limits["rounds"] = 9
    a.config.secrets["A"] = "y"
    assert b.config.limits == {"rounds": 1}
    assert b.config.secrets == {"A": "x"}
    assert given == {"limits": {"rounds": 1}, "secrets": {"A": "x"}}
    assert Config().limits == {}


def test_23_secrets_are_not_in_a_repr_or_an_error():
    """toolsets.md 23: nor in what is said about a wrong setting beside them."""
    config = load_config({"api_key": "sk-0123456789", "secrets": {"TOKEN": "tok-0123456789"}})
    assert "0123456789" not in repr(config)
    assert "0123456789" not in repr(Jarvis(engine=ScriptedEngine([]), config=config))
    for wrong in (
        {"api_key": ["sk-0123456789"]},
        {"secrets": {"TOKEN": ["tok-0123456789"]}},
        {"secrets": "tok-0123456789"},
        {"api_key": "sk-0123456789", "temperature": "warm"},
    ):
        with pytest.raises(InvalidRequest) as caught:
            load_config(wrong)
        assert "0123456789" not in f"{caught.value}{caught.value!r}{caught.value.__cause__}"


def test_23_every_setting_is_read():
    """A setting that nobody reads would be a promise broken."""
    from pathlib import Path

    import jarvis_nb

    package = Path(jarvis_nb.__file__).parent
    text = "".join(p.read_text() for p in package.rglob("*.py") if p.name != "config.py")
    unread = [f.name for f in fields(Config) if f"config.{f.name}" not in text]
    assert unread == []


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.text(min_size=1, max_size=10),
            "temperature": st.floats(0, 2),
            "max_tokens": st.integers(1, 10_000),
            "secrets": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
        },
    )
)
def test_23_what_is_given_is_what_is_there(given):
    config = load_config(given)
    assert {key: getattr(config, key) for key in given} == given
    assert load_config(config) is config
    assert load_config(json.loads(json.dumps(given))) == config


def test_23_the_context_settings_are_used():
    """tools.md 17: the budget of injection comes from the settings."""
    from jarvis_nb.memory.sqlite import SQLiteMemory

    memory = SQLiteMemory(":memory:")
    for n in range(5):
        memory.store(f"Refund rule {n} takes thirty days.", source=f"{n}.md")
    engine = ScriptedEngine(["a", call("think", thought="x")])
    reply = Jarvis(engine=engine, memory=memory, config={"context_top_k": 2}).ask_full("refund rule")
    memory.close()
    assert len(reply.injected) == 2
