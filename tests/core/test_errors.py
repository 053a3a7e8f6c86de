"""The error family: every error carries a code, what was wrong, what is valid and the next step."""

from __future__ import annotations

import copy
import pickle

import pytest

from jarvis_nb.core import errors
from jarvis_nb.core.errors import (
    ErrorInfo,
    FlowError,
    InvalidArguments,
    JarvisError,
    Problem,
    ToolError,
    close_names,
)
from jarvis_nb.toolsets.flow import FlowFailed

FAMILY = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, JarvisError)]


@pytest.mark.parametrize("cls", FAMILY)
def test_every_class_has_a_code_of_its_own_kind(cls):
    """tools.md 20: errors are told apart by their code."""
    assert cls.code == cls.code.lower()
    assert cls.code.isidentifier()


def test_a_code_can_be_given_and_does_not_change_the_class():
    error = ToolError("order 'X' does not exist", code="unknown_order")
    assert error.code == "unknown_order"
    assert ToolError.code == "tool_error"


def test_the_text_names_what_is_valid_and_the_next_step():
    """tools.md 20: an error that lists what exists."""
    error = JarvisError(
        "no tool 'calc'", code="unknown_tools", valid=["calculator", "think"], hint="mend the name"
    )
    assert str(error) == "no tool 'calc' (valid: calculator, think; mend the name) [unknown_tools]"
    assert str(JarvisError("no", valid=[])) == "no (valid: none) [error]"
    assert str(JarvisError("no")) == "no [error]"


def test_callers_errors_are_also_value_errors():
    for cls in (errors.InvalidRequest, errors.ToolsetError, errors.InvalidArguments, errors.SkillError):
        assert issubclass(cls, ValueError)
    assert issubclass(errors.NotPortable, TypeError)


def test_info_is_plain_data():
    """toolsets.md 31: code and message, and the valid names where a name was wrong."""
    error = JarvisError("no", code="unknown_tools", valid=("a", "b"))
    assert error.info().to_dict() == {"code": "unknown_tools", "message": "no", "valid": ["a", "b"]}
    assert JarvisError("no").info() == ErrorInfo("error", "no")


def test_details_never_hide_code_or_message():
    info = ErrorInfo("failed", "what went wrong", {"code": "other", "message": "other", "field": "a"})
    assert info.to_dict() == {"code": "failed", "message": "what went wrong", "field": "a"}


def test_invalid_arguments_names_the_fields():
    """wire.md extra / missing / wrong field: the field named."""
    error = InvalidArguments(
        [{"field": "order.id", "message": "is missing"}, {"field": "", "message": "odd"}]
    )
    assert error.message == "order.id: is missing; odd"
    assert error.info().details == {"fields": error.problems}


@pytest.mark.parametrize(
    "error",
    [
        JarvisError("no", code="x", value=1, valid=["a"], hint="h"),
        InvalidArguments([{"field": "a", "message": "is missing"}]),
        ToolError("no", code="unknown_order"),
        FlowError("f", [Problem("unknown_step", "no step is called 'ordr'", step="discount")]),
        FlowFailed("f", [Problem("tool_failed", "boom", step="a")], [{"name": "a"}], code="flow_timeout"),
    ],
)
@pytest.mark.parametrize("again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_errors_survive_copying_and_pickling(error, again):
    other = again(error)
    assert type(other) is type(error)
    assert (str(other), other.code, other.valid, other.hint) == (
        str(error),
        error.code,
        error.valid,
        error.hint,
    )
    assert getattr(other, "problems", None) == getattr(error, "problems", None)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("get_wether", ["get_weather", "get_time"]),
        ("GET_WEATHER", ["get_weather"]),
        ("", []),
        ("zzz", []),
        ("x" * 100_000, []),
    ],
)
def test_close_names(name, close):
    """wire.md name: the closest valid name."""
    found = close_names(name, ["get_weather", "get_time", "calculator"])
    assert found[: len(close)] == close
    assert bool(found) == bool(close)
