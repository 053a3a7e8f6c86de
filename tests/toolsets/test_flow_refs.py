"""References: data without a value, and what they lead to when the flow runs."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb import Flow
from jarvis_nb.toolsets.flows.refs import MISSING, MissingValue, StepRef, fill, follow, refs_in

FLOW = Flow("orders", "Look up orders.", inputs={"order_id": str})
REF = FLOW.result("order")


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (REF, 'result("order")'),
        (REF["a"]["b"][0], 'result("order").a.b[0]'),
        (REF["a", "b", 0], 'result("order").a.b[0]'),
        (REF.get("a", "b c"), "result(\"order\").a['b c']"),
        (FLOW.result("order", "a", 1), 'result("order").a[1]'),
        (FLOW.input("order_id"), 'input("order_id")'),
        (FLOW.context("tenant")["id"], 'context("tenant").id'),
    ],
)
def test_a_reference_says_what_it_is(ref, text):
    assert repr(ref) == str(ref) == text


def test_equal_references_are_equal_and_survive_copy_and_pickle():
    assert REF["a"] == FLOW.result("order", "a")
    assert copy.deepcopy(REF["a"]) == REF["a"]
    assert pickle.loads(pickle.dumps(REF["a"])) == REF["a"]


@pytest.mark.parametrize(
    "use",
    [bool, list, lambda r: f"{r}", lambda r: "a" in r, lambda r: dict(**r), lambda r: r + 1, lambda r: r > 1],
)
def test_using_a_reference_as_a_value_is_an_error_at_once(use):
    with pytest.raises(TypeError):
        use(REF)


def test_an_attribute_is_told_how_a_path_is_written():
    with pytest.raises(AttributeError, match=r"\['total_cents'\]"):
        _ = REF.total_cents
    assert not hasattr(REF, "_repr_html_")


@pytest.mark.parametrize("part", [1.5, None, True, ["a"], b"a"])
def test_a_path_is_made_of_keys_and_indexes(part):
    with pytest.raises(TypeError):
        REF.get(part)


VALUE = {"a": {"b": [1, None, {"c": 3}]}, "none": None, "text": "abc", "a.b": 5}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), VALUE),
        (("a", "b", 0), 1),
        (("a", "b", 1), None),
        (("a", "b", -1, "c"), 3),
        (("none",), None),
        (("a.b",), 5),
    ],
)
def test_04_follow(path, value):
    """flows.md 4: a present None is a value."""
    assert follow(VALUE, StepRef("f", "s", path=path)) == value
    assert follow(VALUE, StepRef("f", "s", path=path, default="unused")) == value


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (("x",), 's").x: result("s") has a, none, text, a.b'),
        (("a", "x", "y"), 's").a.x: result("s").a has b'),
        (("a", "b", 3), 's").a.b[3]: result("s").a.b has 3 items'),
        (("none", "x"), 's").none.x: result("s").none is None'),
        (("text", "x"), 's").text.x: result("s").text is a str'),
        (("text", 0), 's").text[0]'),
        ((0,), 's")[0]'),
        (("a", "b", "c"), 's").a.b.c'),
    ],
)
def test_04_a_missing_path_is_named(path, named):
    """flows.md 4."""
    ref = StepRef("f", "s", path=path)
    with pytest.raises(MissingValue) as caught:
        follow(VALUE, ref)
    assert named in caught.value.message
    assert caught.value.code == "missing_path"
    assert follow(VALUE, StepRef("f", "s", path=path, default=None)) is None
    assert follow(VALUE, StepRef("f", "s", path=path, default=7)) == 7


def test_a_path_into_a_reference_with_a_default_starts_without_one():
    assert REF.get("a", default=1)["b"].default is MISSING


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def _containers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [id(value), *(i for item in value.values() for i in _containers(item))]
    if isinstance(value, list):
        return [id(value), *(i for item in value for i in _containers(item))]
    return []


@given(json_values)
def test_03_filling_copies_every_container(value):
    """flows.md 3: constants are copied."""
    filled = fill(value, lambda ref: ref)
    assert filled == value
    assert not set(_containers(filled)) & set(_containers(value))
    assert list(refs_in(value)) == []


@given(json_values, st.integers())
def test_filling_puts_values_where_references_stand(value, number):
    template = {"first": [REF["a"], value], "second": {"x": REF["b"]}}
    assert [(place, str(ref)) for place, ref in refs_in(template)] == [
        (".first[0]", 'result("order").a'),
        (".second.x", 'result("order").b'),
    ]
    assert fill(template, lambda ref: number) == {"first": [number, value], "second": {"x": number}}
