"""Portable data and secrets."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidRequest, NotPortable
from jarvis_nb.core.portable import MAX_DEPTH, Secret, portable

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back_equal_and_shares_nothing(value):
    """toolsets.md 23."""
    got = portable(value)
    assert got == value
    assert json.loads(json.dumps(got)) == value
    if isinstance(value, list | dict):
        assert got is not value


def test_tuples_become_lists():
    """toolsets.md 23."""
    assert portable({"days": (1, (2, 3))}) == {"days": [1, [2, 3]]}


class Text(str):
    __slots__ = ()


LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [0, print]}, "config.a[1]"),
        ({"a": object()}, "config.a"),
        ({"a": {"b": float("nan")}}, "config.a.b"),
        (float("inf"), "config"),
        ({1: "x"}, "config"),
        ({"a": {1, 2}}, "config.a"),
        ({"a": b"x"}, "config.a"),
        ({"a": Text("x")}, "config.a"),
        ({"key": Secret("K")}, "config.key"),
        (LOOP, "config" + "[0]" * MAX_DEPTH),
    ],
)
def test_anything_else_fails_with_its_path(value, path):
    """toolsets.md 23: the error gives the path of the bad value."""
    with pytest.raises(NotPortable) as info:
        portable(value, "config")
    assert info.value.code == "not_portable"
    assert info.value.value == path
    assert path in str(info.value)


def test_a_secret_stays_a_reference_where_it_is_allowed():
    """toolsets.md 23."""
    config = {"token": Secret("RATES_TOKEN"), "all": (Secret("B"),)}
    assert portable(config, secrets=True) == {"token": Secret("RATES_TOKEN"), "all": [Secret("B")]}


def test_a_secret_shows_its_name_and_never_its_value(monkeypatch):
    """toolsets.md 23: secrets never appear in a repr."""
    monkeypatch.setenv("RATES_TOKEN", "s3cr3t")
    secret = Secret("RATES_TOKEN")
    secret.resolve()
    shown = f"{secret} {secret!r} {pickle.dumps(secret)!r} {copy.copy(secret)} {vars(type(secret))}"
    assert "s3cr3t" not in shown
    assert repr(secret) == "Secret('RATES_TOKEN')"


def test_a_secret_is_read_from_the_environment_then_from_the_config(monkeypatch):
    """design.md: read from the environment, then from the config's secrets table."""
    monkeypatch.setenv("RATES_TOKEN", "from-env")
    assert Secret("RATES_TOKEN").resolve({"RATES_TOKEN": "from-config"}) == "from-env"
    monkeypatch.delenv("RATES_TOKEN")
    assert Secret("RATES_TOKEN").resolve({"RATES_TOKEN": "from-config"}) == "from-config"
    with pytest.raises(InvalidRequest) as info:
        Secret("RATES_TOKEN").resolve()
    assert info.value.code == "missing_secret"
    assert "RATES_TOKEN" in str(info.value)
