"""`@action`: a typed function becomes a tool where it is defined, or fails there."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import inspect
import json
import math
import pathlib
import re
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Optional, Union

import pydantic
import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from jarvis_nb.core.errors import InvalidArguments, ToolsetError
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.types import ToolDefinition, ToolResult
from jarvis_nb.tools.action import Action, action, as_tool
from jarvis_nb.tools.base import BaseTool, ToolContext, ToolSpec
from jarvis_nb.tools.plain import plain_schema

if TYPE_CHECKING:
    from somewhere import Nowhere


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Line:
    sku: str
    qty: int = 1


class Order(pydantic.BaseModel):
    """An order."""

    order_id: str
    lines: list[Line] = []
    gift: bool = False


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int


class Node(pydantic.BaseModel):
    n: int
    next: Node | None = None


class Where(typing_extensions.TypedDict):
    city: str
    country: typing_extensions.NotRequired[str]


class Pair(NamedTuple):
    a: int
    b: int


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID"""
    return {"order_id": order_id, "total_cents": 4200}


def parameter(annotation, default=inspect.Parameter.empty, doc="Do it."):
    """Return an action with one parameter `v`."""

    def it(v):
        return v

    it.__doc__ = doc
    it.__annotations__ = {"v": annotation}
    if default is not inspect.Parameter.empty:
        it.__defaults__ = (default,)
    return action(it)


def schema_of(annotation, **options):
    return parameter(annotation, **options).definition.parameters["properties"]["v"]


def problems(tool, **arguments):
    with pytest.raises(InvalidArguments) as info:
        tool.check_arguments(arguments)
    return {p["field"]: p["message"] for p in info.value.problems}


# What it is.


def test_name_description_and_schema_come_from_the_function():
    """toolsets.md 2: name, description and input schema become the tool's."""
    assert lookup_order.definition == ToolDefinition(
        "lookup_order",
        "Look up one order by ID",
        {
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
            "additionalProperties": False,
        },
    )
    assert (lookup_order.kind, lookup_order.source, lookup_order.tool_id) == ("action", None, "lookup_order")
    assert isinstance(lookup_order, BaseTool)
    assert lookup_order.spec.timeout_seconds == 30


def test_it_stays_callable_like_the_function():
    """design.md: Action.fn, still callable like the function."""
    assert lookup_order("ORD-5") == {"order_id": "ORD-5", "total_cents": 4200}
    assert lookup_order(order_id="ORD-6")["order_id"] == "ORD-6"
    assert lookup_order.fn("ORD-7")["order_id"] == "ORD-7"
    assert lookup_order.__name__ == "lookup_order"
    assert lookup_order.__doc__ == "Look up one order by ID"
    assert str(inspect.signature(lookup_order)) == "(order_id: 'str') -> 'dict'"
    with pytest.raises(TypeError):
        lookup_order()


def test_the_repr_has_no_address():
    """design.md rule 4."""
    assert repr(lookup_order) == "Action('lookup_order')"


def test_an_action_without_fields():
    """toolsets.md 11: an object schema with empty properties and required."""

    @action
    def now() -> str:
        """Tell the time."""
        return "noon"

    assert now.definition.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert now.check_arguments({}) == {}
    assert problems(now, x=1) == {"x": "is not expected; valid: none"}


def test_options():
    """design.md: name=, description=, timeout=, requires_confirmation=, idempotent=, examples=, category=."""

    @action(
        name="erase",
        description="Erase a file.",
        timeout=2,
        requires_confirmation=True,
        idempotent=True,
        examples=[("Erase a.txt.", {"path": "a.txt"})],
        category="files",
    )
    def delete(path: str, *, force: bool = False) -> None:
        """Something else."""

    spec = delete.spec
    assert (spec.name, spec.description, spec.timeout_seconds, spec.requires_confirmation, spec.category) == (
        "erase",
        "Erase a file.",
        2.0,
        True,
        "files",
    )
    assert spec.metadata == {"examples": [("Erase a.txt.", {"path": "a.txt"})]}
    assert delete.idempotent is True
    assert lookup_order.idempotent is False
    assert action(lookup_order.fn).spec.metadata == {}


def test_options_beside_the_function():
    """design.md: `action(fn, name=…)` is `action(name=…)(fn)`: no option is dropped, a confirmation least of all."""
    erase = action(lookup_order.fn, name="erase", description="Erase.", requires_confirmation=True, timeout=2)
    assert (erase.name, erase.spec.description, erase.spec.timeout_seconds) == ("erase", "Erase.", 2.0)
    assert erase.spec.requires_confirmation
    assert action(erase, name="again").spec.requires_confirmation
    with pytest.raises(TypeError, match="confirm"):
        action(lookup_order.fn, confirm=True)


@pytest.mark.parametrize(("timeout", "seconds"), [(None, math.inf), (0.5, 0.5), (3, 3.0)])
def test_timeouts(timeout, seconds):
    assert action(timeout=timeout)(lookup_order.fn).spec.timeout_seconds == seconds


@pytest.mark.parametrize("timeout", [0, -1, math.nan, "30", True])
def test_a_timeout_is_a_number_above_0(timeout):
    with pytest.raises(ToolsetError, match="the tool 'lookup_order'") as info:
        action(timeout=timeout)(lookup_order.fn)
    assert info.value.code == "invalid_timeout"


@pytest.mark.parametrize(
    "example",
    [("q", {"order_id": 5}), ("q", {"id": "x"}), ("q",), ("q", "ORD-5"), (7, {"order_id": "x"}), "qa", None],
)
def test_examples_are_checked_where_they_are_written(example):
    with pytest.raises(ToolsetError, match="an example of the tool 'lookup_order'") as info:
        action(examples=[example])(lookup_order.fn)
    assert info.value.code == "invalid_example"


def test_running_the_cell_again_replaces_it():
    """toolsets.md 6."""
    cell = textwrap.dedent(
        """
        from jarvis_nb import action
        @action
        def ping(host: str, port: int = PORT) -> str:
            "Ping a host."
            return f"{host}:{port}"
        """
    )
    space: dict = {"__name__": "__main__", "PORT": 1}
    exec(cell, space)
    first = space["ping"]
    space["PORT"] = 2
    exec(cell, space)
    assert space["ping"] is not first
    assert space["ping"].definition.parameters["properties"]["port"]["default"] == 2
    assert space["ping"]("a") == "a:2"


def test_with_name_gives_a_renamed_copy():
    """toolsets.md 5."""
    renamed = lookup_order.with_name("find_order")
    assert (renamed.name, renamed.spec.name, renamed.definition.name) == ("find_order",) * 3
    assert renamed.to_openai_function()["function"]["name"] == "find_order"
    assert (lookup_order.name, lookup_order.spec.name, lookup_order.definition.name) == ("lookup_order",) * 3
    assert renamed("ORD-5") == lookup_order("ORD-5")
    with pytest.raises(ToolsetError, match="find_order"):
        lookup_order.with_name("Find order")


# What cannot be one.


@pytest.mark.parametrize("doc", [None, "", "   ", "\n    Args:\n        v: The value.\n    "])
def test_a_blank_description_is_an_error_that_names_the_tool(doc):
    """toolsets.md 2."""
    with pytest.raises(ToolsetError, match="the tool 'it' has a blank description") as info:
        parameter(int, doc=doc)
    assert info.value.code == "blank_description"


@pytest.mark.parametrize(
    ("name", "legal"),
    [("LookUp", "look_up"), ("_hidden", "hidden"), ("a" * 64, "a" * 63), ("été", "t"), ("2x", "tool_2x")],
)
def test_a_name_is_never_changed_silently(name, legal):
    """toolsets.md 5: reject, and suggest a legal one."""

    def it():
        """Do it."""

    it.__name__ = name
    with pytest.raises(ToolsetError) as info:
        action(it)
    assert info.value.code == "invalid_name"
    assert f"'{legal}'" in str(info.value)
    assert action(name=legal)(it).name == legal


class Unusable:
    pass


@pytest.mark.parametrize(
    "annotation",
    [Unusable, Callable[[], int], type[int], "Missing", "1 +", "Nowhere", 5, list[Unusable], re.Match],
)
def test_an_annotation_without_a_json_form_fails_at_the_definition(annotation):
    with pytest.raises(ToolsetError) as info:
        parameter(annotation)
    assert info.value.code == "unsupported_annotation"
    assert "'v' of the tool 'it'" in str(info.value)
    assert info.value.hint


def test_star_parameters_are_an_error():
    def stars(*args):
        """Do it."""

    def double_stars(**options):
        """Do it."""

    for fn, text in ((stars, r"\*args"), (double_stars, r"\*\*options")):
        with pytest.raises(ToolsetError, match=f"the tool '{fn.__name__}' takes {text}") as info:
            action(fn)
        assert info.value.code == "unsupported_signature"


def test_a_method_in_its_class_is_an_error_that_says_what_to_do():
    with pytest.raises(ToolsetError, match=r"action\(shop.find\)") as info:

        class Shop:
            @action
            def find(self, order_id: str) -> str:
                """Find an order."""
                return order_id

    assert info.value.code == "unsupported_signature"


@pytest.mark.parametrize("thing", [5, "lookup_order", None, Line, object()])
def test_what_is_no_function_is_no_action(thing):
    with pytest.raises(ToolsetError) as info:
        action(name="x")(thing)
    assert info.value.code == "not_a_tool"


# Annotations.


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - both forms are in use
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[int, Field(description="How many.")], {"type": "integer", "description": "How many."}),
        (Annotated[int, typing_extensions.Doc("How many.")], {"type": "integer", "description": "How many."}),
        (Annotated[str, Field(pattern="^a+$")], {"type": "string", "pattern": "^a+$"}),
        (
            Where,
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        ),
        (
            Line,
            {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
                "required": ["sku"],
                "additionalProperties": False,
            },
        ),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        (list["int"], {"type": "array", "items": {"type": "integer"}}),
        ("Line", None),
    ],
)
def test_annotations(annotation, schema):
    """design.md: Annotated, Literal, Enum, Optional, nested models, strings."""
    got = schema_of(annotation)
    assert got == (schema_of(Line) if schema is None else schema)
    json.dumps(got)


def test_typed_dicts_of_the_standard_library():
    from typing import NotRequired, TypedDict

    Place = TypedDict("Place", {"city": str, "n": NotRequired[int]})  # noqa: UP013 - made here
    assert schema_of(Place)["required"] == ["city"]
    assert parameter(Place).check_arguments({"v": {"city": "Paris", "n": "2"}}) == {
        "v": {"city": "Paris", "n": 2}
    }
    assert list(problems(parameter(Place), v={"city": "Paris", "x": 1})) == ["v.x"]


TOOLS = [
    parameter(annotation, **({} if default is None else {"default": default}))
    for annotation in (
        int,
        float,
        list[Order],
        Order,
        Open,
        Node,
        Pair,
        dict[str, Line],
        Where | None,
        Colour | int,
    )
    for default in (None, 3)
]


@pytest.mark.parametrize("tool", TOOLS, ids=[str(n) for n in range(len(TOOLS))])
def test_definitions_are_canonical_already(tool):
    """toolsets.md 9: objects closed recursively; a field with a default is not in required."""
    assert tool.definition.parameters == canonical_schema(tool.definition.parameters)
    assert tool.spec.parameters == tool.definition.parameters


def test_nested_objects_are_closed_in_what_is_told_and_in_what_is_taken():
    """toolsets.md 9, wire.md extra field: the model was told that there are no other fields."""

    @action
    def place(order: Order, where: Where | None = None) -> str:
        """Place an order."""
        return order.lines[0].sku

    got = place.check_arguments(
        {"order": {"order_id": "O", "lines": [{"sku": "s", "qty": "2"}], "gift": True}}
    )
    assert got == {"order": Order(order_id="O", lines=[Line("s", 2)], gift=True)}
    assert problems(
        place, order={"order_id": "O", "lines": [{"sku": "s", "color": "x"}, {}], "extra": 1}
    ) == {
        "order.lines[0].color": "is not expected",
        "order.lines[1].sku": "is missing",
        "order.extra": "is not expected",
    }
    assert problems(place, order={"order_id": "O"}, where={"city": "x", "zip": 1}) == {
        "where.zip": "is not expected"
    }


def test_a_model_that_takes_more_may_have_more():
    tool = parameter(Open)
    assert schema_of(Open)["additionalProperties"] is True
    assert tool.check_arguments({"v": {"a": 1, "b": 2}})["v"].b == 2


def test_recursive_models():
    """toolsets.md 12: references stay possible in the definition."""
    tool = parameter(Node)
    assert tool.definition.parameters["$defs"]["Node"]["additionalProperties"] is False
    assert tool.check_arguments({"v": {"n": 1, "next": {"n": 2}}})["v"].next.n == 2
    assert list(problems(tool, v={"n": 1, "next": {"n": 2, "x": 3}})) == ["v.next.x"]


def test_two_classes_of_one_name_stay_two():
    def make(fields):
        return pydantic.create_model("Item", **fields)

    one, other = make({"a": (int, ...)}), make({"b": (str, ...)})

    def both(first, second, third) -> None: ...

    both.__annotations__ = {"first": list[one], "second": list[other], "third": list[one]}
    both.__doc__ = "Take both.\n\nArgs:\n    second: The second."
    tool = action(both)
    schema = tool.definition.parameters
    assert schema == canonical_schema(schema)
    refs = {name: part["items"]["$ref"].rpartition("/")[2] for name, part in schema["properties"].items()}
    assert refs["first"] == refs["third"] != refs["second"]
    assert list(schema["$defs"][refs["first"]]["properties"]) == ["a"]
    assert list(schema["$defs"][refs["second"]]["properties"]) == ["b"]
    assert schema["properties"]["second"]["description"] == "The second."
    assert schema["required"] == ["first", "second", "third"]


def test_names_are_looked_up_where_the_function_is_defined():
    """Annotations as text, with classes of the function around."""

    @dataclasses.dataclass
    class Local:
        n: int

    @action
    def use(v: Local, w: list[Local] | None = None) -> Local:
        """Use it."""
        return v

    assert use.check_arguments({"v": {"n": "3"}}) == {"v": Local(3)}
    assert use.output_schema is not None


def test_a_result_that_cannot_be_resolved_is_no_obstacle():
    @action
    def use(v: int) -> Nowhere:
        """Use it."""
        return v

    assert use.output_schema is None
    assert use.check_arguments({"v": 1}) == {"v": 1}


def test_unannotated_parameters_take_anything():
    @action
    def use(v, n=3):
        """Use it."""
        return v

    assert use.definition.parameters["properties"] == {"v": {}, "n": {"default": 3}}
    assert use.check_arguments({"v": [1], "n": "x"}) == {"v": [1], "n": "x"}


# Defaults.


def test_a_field_with_a_default_is_not_required():
    """toolsets.md 9."""

    @action
    def search(query: str, limit: int = 5, *, tags: list[str] | None = None, exact: bool = False) -> list:
        """Search."""
        return [query, limit, tags, exact]

    assert search.definition.parameters["required"] == ["query"]
    assert search.definition.parameters["properties"]["limit"] == {"type": "integer", "default": 5}
    assert search.invoke(search.check_arguments({"query": "x", "exact": True}), ToolContext()) == [
        "x",
        5,
        None,
        True,
    ]


MARK = object()


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (Any, MARK, {}),
        (float, math.inf, {}),
        (float, 0.5, {"default": 0.5}),
        (Colour, Colour.RED, {"default": "red"}),
        (dt.date, dt.date(2026, 1, 2), {"default": "2026-01-02"}),
        (Line, Line("s"), {"default": {"sku": "s", "qty": 1}}),
        (list[int], [1], {"default": [1]}),
        (set[str], {"b", "a"}, {"default": ["a", "b"]}),
        (int, None, {"default": None}),
        (decimal.Decimal, decimal.Decimal("1.5"), {"default": "1.5"}),
    ],
)
def test_defaults_are_shown_where_json_can_hold_them(annotation, default, shown):
    tool = parameter(annotation, default=default)
    schema = tool.definition.parameters
    assert schema["required"] == []
    assert {k: v for k, v in schema["properties"]["v"].items() if k == "default"} == shown
    assert tool.invoke(tool.check_arguments({}), ToolContext()) is default


@pytest.mark.parametrize(
    ("annotation", "default", "got"),
    [
        (int, 5, 5),
        (str, "x", "x"),
        (list[int], (), ()),
        (int, None, None),
        (int | None, 5, None),
        (Any, 5, None),
    ],
)
def test_null_means_use_the_default_where_null_is_no_value(annotation, default, got):
    """toolsets.md 10."""
    tool = parameter(annotation, default=default)
    assert tool.invoke(tool.check_arguments({"v": None}), ToolContext()) == got


def test_null_for_a_required_field_is_a_mistake():
    assert list(problems(lookup_order, order_id=None)) == ["order_id"]


def test_fields_as_defaults():
    """pydantic's own ways to write a default."""

    def use(a, b, c, d, e=7):
        """Use it."""
        return [a, b, c, d, e]

    use.__annotations__ = {
        "a": int,
        "b": int,
        "c": Annotated[list[int], Field(default_factory=list)],
        "d": Annotated[int, Field(default=4)],
        "e": Annotated[int, Field(default=4)],
    }
    use.__defaults__ = (Field(description="The b.", ge=1), Field(default_factory=lambda: [9]), 4, 7)
    tool = action(use)
    assert tool.definition.parameters["required"] == ["a", "b"]
    assert tool.definition.parameters["properties"]["b"] == {
        "type": "integer",
        "minimum": 1,
        "description": "The b.",
    }
    assert tool.definition.parameters["properties"]["d"] == {"type": "integer", "default": 4}
    assert tool.invoke(tool.check_arguments({"a": 1, "b": 2}), ToolContext()) == [1, 2, [9], 4, 7]
    assert list(problems(tool, a=1, b=0)) == ["b"]

    def only_annotated(d):
        """Use it."""
        return d

    only_annotated.__annotations__ = {"d": Annotated[list[int], Field(default=[4])]}
    tool = action(only_annotated)
    first = tool.invoke(tool.check_arguments({}), ToolContext())
    first.append(5)
    assert tool.invoke(tool.check_arguments({}), ToolContext()) == [4]


# Arguments.


@pytest.mark.parametrize(
    ("annotation", "sent", "got"),
    [
        (int, "2", 2),
        (int, 2.0, 2),
        (float, 2, 2.0),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (bool, "False", False),
        (int | None, "2", 2),
        (str | int, "2", "2"),
        (int | str, "2", "2"),
        (list[int], ["1", 2], [1, 2]),
        (dict[str, bool], {"a": "true"}, {"a": True}),
        (tuple[int, ...], ["1", 2], (1, 2)),
        (set[str], ["a", "a"], {"a"}),
        (Colour, "red", Colour.RED),
        (Literal["a", 1], 1, 1),
        (dt.date, "2026-01-02", dt.date(2026, 1, 2)),
        (dt.datetime, "2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        (uuid.UUID, "00000000-0000-0000-0000-000000000005", uuid.UUID(int=5)),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (Line, {"sku": "s", "qty": "2"}, Line("s", 2)),
        (Where, {"city": "x"}, {"city": "x"}),
        (Pair, [1, "2"], Pair(1, 2)),
        (Annotated[int, Field(ge=1)], "1", 1),
        (Annotated[bool, "Whether."], True, True),
        (Any, {"x": [1]}, {"x": [1]}),
    ],
)
def test_arguments_arrive_as_python_has_them(annotation, sent, got):
    """wire.md wrong field: "2" -> 2 is lossless and accepted."""
    value = parameter(annotation).check_arguments({"v": sent})["v"]
    assert value == got
    assert type(value) is type(got)


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (int, "x"),
        (int, 2.5),
        (int, True),
        (int, None),
        (int, [1]),
        (float, "x"),
        (float, "nan"),
        (float, math.inf),
        (float, True),
        (bool, "yes"),
        (bool, 1),
        (bool, "1"),
        (bool | None, "on"),
        (list[bool], ["yes"]),
        (str, 5),
        (str, True),
        (list[int], "1"),
        (list[str], [1]),
        (Colour, "green"),
        (Literal["a"], "b"),
        (dt.date, "yesterday"),
        (Annotated[int, Field(ge=1)], 0),
        (Annotated[str, Field(pattern="^a+$")], "aab"),
        (Line, {"sku": "s", "qty": "x"}),
        (Line, "s"),
    ],
)
def test_nothing_is_guessed(annotation, sent):
    """wire.md wrong field: the field named; true never from "yes"."""
    found = problems(parameter(annotation), v=sent)
    assert all(field == "v" or field.startswith(("v.", "v[")) for field in found)
    assert all(0 < len(message) <= 400 for message in found.values())


def test_all_problems_are_named():
    """wire.md extra / missing / wrong field."""

    @action
    def add(a: int, b: int, c: int = 0) -> int:
        """Add."""
        return a + b + c

    assert problems(add, a="2", b="x", units="C") == {
        "b": "Input should be a valid integer, unable to parse string as an integer",
        "units": "is not expected; valid: a, b, c",
    }
    assert problems(add) == {"a": "is missing", "b": "is missing"}
    assert problems(parameter(dict[str, int | list[int]]), v={"k": [1, "x"]}).keys() == {"v.k", "v.k[1]"}


def test_the_arguments_are_left_alone():
    sent = {"v": [{"sku": "s", "qty": "2"}]}
    before = copy.deepcopy(sent)
    parameter(list[Line]).check_arguments(sent)
    assert sent == before


@given(
    st.dictionaries(
        st.sampled_from(["query", "limit", "x"]), st.none() | st.integers() | st.text() | st.booleans()
    )
)
def test_what_passes_can_be_called(arguments):
    def search(query: str, limit: int = 5) -> str:
        """Search."""
        return query * min(limit, 3)

    tool = action(search)
    try:
        checked = tool.check_arguments(arguments)
    except InvalidArguments:
        return
    assert isinstance(tool.invoke(checked, ToolContext()), str)


@pytest.mark.parametrize(
    "name", ["self", "cls", "function", "params", "name", "arguments", "context", "fn", "call", "kwargs"]
)
def test_a_parameter_may_have_any_name(name):
    """tools.md 4: a parameter called self, function or params."""
    space: dict = {}
    exec(f"def f({name}: int, other: int = 1):\n    'Do it.'\n    return [{name}, other]", space)
    tool = action(space["f"])
    assert tool.definition.parameters["required"] == [name]
    assert tool.invoke(tool.check_arguments({name: "4"}), ToolContext()) == [4, 1]
    assert tool.execute(**{name: 4}).content == "[4,1]"
    assert tool(**{name: 4}) == [4, 1]


def test_positional_only_parameters():
    def f(a: int, b: int = 2, /, c: int = 3) -> list:
        """Do it."""
        return [a, b, c]

    tool = action(f)
    for sent, got in (({"a": 1}, [1, 2, 3]), ({"a": 1, "c": 5}, [1, 2, 5]), ({"a": 1, "b": "7"}, [1, 7, 3])):
        assert tool.invoke(tool.check_arguments(sent), ToolContext()) == got


# The host's context.


def test_the_context_is_no_parameter_of_the_model():
    """design.md: a parameter annotated ToolContext is left out of the schema."""

    @action
    def whoami(ctx: ToolContext, greeting: str = "hi") -> str:
        """Say who asks."""
        return f"{greeting} {ctx['tenant']}"

    @action
    def maybe(greeting: str, ctx: ToolContext | None = None) -> str:
        """Say who asks."""
        return f"{greeting} {ctx['tenant']}"

    context = ToolContext({"tenant": "acme"})
    for tool in (whoami, maybe):
        assert list(tool.definition.parameters["properties"]) == ["greeting"]
        assert tool.invoke(tool.check_arguments({"greeting": "hi"}), context) == "hi acme"
        assert problems(tool, greeting="hi", ctx={"tenant": "evil"}).keys() == {"ctx"}
        assert tool.wants_context
    assert not lookup_order.wants_context


# Kinds of functions.


class Shop:
    """A shop."""

    def __init__(self):
        self.asked = []

    def find(self, order_id: str) -> str:
        """Find an order."""
        self.asked.append(order_id)
        return order_id

    @classmethod
    def open(cls, name: str) -> str:
        """Open a shop."""
        return name

    @staticmethod
    def close(name: str) -> str:
        """Close a shop."""
        return name

    async def __call__(self, name: str) -> str:
        """Call the shop."""
        return name


def test_bound_methods():
    shop = Shop()
    tool = action(shop.find)
    assert tool.name == "find"
    assert tool.invoke({"order_id": "O"}, ToolContext()) == "O"
    assert shop.asked == ["O"]
    assert action(Shop.open).definition.parameters["required"] == ["name"]
    assert action(Shop.close).invoke({"name": "x"}, ToolContext()) == "x"
    assert action(vars(Shop)["close"]).invoke({"name": "x"}, ToolContext()) == "x"


def test_callable_objects():
    tool = action(name="shop")(Shop())
    assert tool.spec.description == "Call the shop."
    assert tool.is_async
    with pytest.raises(ToolsetError) as info:
        action(Shop())
    assert info.value.code == "invalid_name"


def test_partials_hide_what_the_host_fixed():
    """The model neither sees nor sets it: it may be a key."""

    def fetch(url: str, key: str, n: int = 1) -> str:
        """Fetch a page."""
        return f"{url} {key} {n}"

    tool = action(functools.partial(fetch, key="s3cr3t"))
    assert (tool.name, tool.spec.description) == ("fetch", "Fetch a page.")
    assert "s3cr3t" not in json.dumps(tool.definition.parameters)
    assert tool.invoke(tool.check_arguments({"url": "u"}), ToolContext()) == "u s3cr3t 1"
    assert problems(tool, url="u", key="mine").keys() == {"key"}
    assert list(action(functools.partial(fetch, "u")).definition.parameters["properties"]) == ["key", "n"]


def test_wrapped_functions():
    def logged(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    @action
    @logged
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert add.definition.parameters["required"] == ["a", "b"]
    assert add.invoke({"a": 1, "b": 2}, ToolContext()) == 3


def test_builtin_functions():
    tool = action(math.sqrt)
    assert tool.invoke(tool.check_arguments({"x": 9}), ToolContext()) == 3.0
    if not math.hypot.__text_signature__:  # Python does not tell what it takes
        with pytest.raises(ToolsetError, match="the tool 'hypot'") as info:
            action(math.hypot)
        assert info.value.code == "unsupported_signature"


def test_async_functions():
    """tools.md 1: execute may be async."""

    @action
    async def wait(n: int) -> int:
        """Wait."""
        await asyncio.sleep(0)
        return n

    assert wait.is_async
    assert not lookup_order.is_async
    assert asyncio.run(wait(3)) == 3

    async def main():
        return await wait.execute(n="3")

    assert asyncio.run(main()) == ToolResult("wait", "3")
    assert action(functools.partial(wait.fn, n=1)).is_async

    @action
    async def count(n: int):
        """Count."""
        for i in range(n):
            yield i

    assert count.is_async


def test_execute_checks_runs_and_wraps():
    """tools.md 1: execute(**params) -> ToolResult."""
    assert lookup_order.execute(order_id="ORD-5") == ToolResult(
        "lookup_order", '{"order_id":"ORD-5","total_cents":4200}'
    )
    with pytest.raises(InvalidArguments):
        lookup_order.execute(order="x")

    @action
    def own(v: int) -> ToolResult:
        """Return a result."""
        return ToolResult("own", "mine", success=False)

    assert own.execute(v=1) == ToolResult("own", "mine", success=False)
    assert own.output_schema is None


def test_an_action_of_an_action_keeps_the_function():
    again = action(name="again", timeout=1)(lookup_order)
    assert again.fn is lookup_order.fn
    assert again.name == "again"


# What comes back.


@pytest.mark.parametrize(
    ("returns", "schema"),
    [
        (dict, {"type": "object", "additionalProperties": True}),
        (int, {"type": "integer"}),
        (None, {"type": "null"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Line, {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
            "required": ["sku"],
            "additionalProperties": False,
        }),
        (inspect.Parameter.empty, None),
        (Any, None),
        (Unusable, None),
        (ToolResult, None),
        ("Missing", None),
    ],
)  # fmt: skip
def test_output_schema(returns, schema):
    """flows.md unknown_output_field: where the action declares its output."""

    def it():
        """Do it."""

    if returns is not inspect.Parameter.empty:
        it.__annotations__ = {"return": returns}
    assert action(it).output_schema == schema


def test_output_schema_of_a_recursive_model_holds_its_definitions():
    def it() -> Node:
        """Do it."""
        return Node(n=1)

    schema = action(it).output_schema
    assert schema is not None
    assert schema["$ref"] == "#/$defs/Node"
    assert "Node" in schema["$defs"]


# Docstrings.

GOOGLE = """Search a collection.

    Takes its time.

    Note:
        It is slow.

    Args:
        query: Words to
            search for.
        limit (int): At most: this many.

    Returns:
        The records.

    Raises:
        ValueError: Never.
    """
NUMPY = """Search a collection.

    Takes its time.

    Parameters
    ----------
    query : str
        Words to
        search for.
    limit : int, optional
        At most: this many.

    Returns
    -------
    str
        The records.
    """
SPHINX = """Search a collection.

    Takes its time.

    :param query: Words to
        search for.
    :param int limit: At most: this many.
    :type query: str
    :returns: The records.
    :raises ValueError: Never.
    """


@pytest.mark.parametrize(
    ("doc", "description"),
    [
        (GOOGLE, "Search a collection.\n\nTakes its time.\n\nNote: It is slow."),
        (NUMPY, "Search a collection.\n\nTakes its time."),
        (SPHINX, "Search a collection.\n\nTakes its time."),
    ],
)
def test_docstrings_in_three_styles(doc, description):
    def search(query: str, limit: int = 5) -> str:
        return query * limit

    search.__doc__ = doc
    tool = action(search)
    assert tool.spec.description == description
    assert {n: p.get("description") for n, p in tool.definition.parameters["properties"].items()} == {
        "query": "Words to search for.",
        "limit": "At most: this many.",
    }


@pytest.mark.parametrize(
    ("doc", "description"),
    [
        ("Look up.", "Look up."),
        ("Look up 日本語.\n\n    - one\n      - two\n", "Look up 日本語.\n\n- one\n  - two"),
        ("Use it like this: a.\nArgs: none, really.", "Use it like this: a.\nArgs: none, really."),
        ("Convert {a} to % and \\.", "Convert {a} to % and \\."),
    ],
)
def test_plain_docstrings_are_kept_as_they_are(doc, description):
    assert parameter(int, doc=doc).spec.description == description


def test_what_the_annotation_says_wins_over_the_docstring():
    doc = "Do it.\n\nArgs:\n    v: From the docstring."
    assert schema_of(Annotated[int, "From the annotation."], doc=doc)["description"] == "From the annotation."
    assert schema_of(int, doc=doc)["description"] == "From the docstring."
    assert schema_of(Order, doc=doc)["description"] == "From the docstring."
    assert schema_of(Order)["description"] == "An order."


def test_a_broken_docstring_is_no_obstacle():
    doc = "Do it.\n\nArgs:\n  v\n    : broken\nReturns\n-------\n:param\n\nArgs:\n    w: Not there."
    assert parameter(int, doc=doc).spec.description.startswith("Do it.")


@given(st.text())
def test_any_text_is_a_docstring(text):
    from jarvis_nb.tools.docstring import read_docstring

    doc = read_docstring(text)
    assert isinstance(doc.description, str)
    assert all(isinstance(part, str) for pair in doc.parameters.items() for part in pair)


# as_tool.


class Echo(BaseTool):
    tool_id = "echo"

    @property
    def spec(self):
        return ToolSpec("echo", "Return the text.")

    def execute(self, **params):
        return ToolResult("echo", str(params))


def test_as_tool():
    """design.md: tools takes names, tools, functions, actions and flows."""
    echo = Echo()
    assert as_tool(echo) is echo
    assert as_tool(lookup_order) is lookup_order
    assert isinstance(as_tool(lookup_order.fn), Action)

    class Offers:
        def as_tool(self):
            return echo

    assert as_tool(Offers()) is echo


@pytest.mark.parametrize("thing", [5, "echo", None, Echo, [Echo()], Line])
def test_what_is_no_tool(thing):
    with pytest.raises(ToolsetError) as info:
        as_tool(thing)
    assert info.value.code == "not_a_tool"
    assert info.value.hint


# Weight.


def plain_definition(fn):
    """What the shortest loop over a signature costs, for comparison."""
    import typing

    kinds = {int: "integer", str: "string", float: "number", bool: "boolean"}
    properties, required = {}, []
    hints = typing.get_type_hints(fn)
    for name, one in inspect.signature(fn).parameters.items():
        hint = hints.get(name, str)
        properties[name] = {"type": kinds.get(hint, "array")}
        if one.default is one.empty:
            required.append(name)
        else:
            properties[name]["default"] = one.default
    return {
        "name": fn.__name__,
        "description": (fn.__doc__ or "").strip(),
        "parameters": [properties, required],
    }


@pytest.mark.slow
def test_a_thousand_definitions_cost_little():
    """A thousand functions to definitions: at most 8 times a bare loop (with room for a busy machine)."""
    source = "".join(
        f"def tool_{i}(query: str, limit: int = {i}, ratio: float = 0.5, exact: bool = False,"
        f' tags: list[str] | None = None) -> str:\n    """Search collection {i}.\n\n    Args:\n'
        f'        query: Words.\n        limit: Most.\n        tags: Keep.\n    """\n    return query\n'
        for i in range(1000)
    )
    space: dict = {}
    exec(source, space)
    functions = [space[f"tool_{i}"] for i in range(1000)]

    def best(run):
        times = []
        for _ in range(5):
            before = time.process_time()
            run()
            times.append(time.process_time() - before)
        return min(times)

    action(functions[0])
    ours = best(lambda: [action(fn).definition for fn in functions])
    theirs = best(lambda: [plain_definition(fn) for fn in functions])
    assert ours < 12 * theirs


@pytest.mark.slow
def test_a_plain_action_is_made_and_called_without_heavy_imports():
    """design.md rule 7: light."""
    code = (
        "import sys; from jarvis_nb import action, ToolExecutor, ToolCall\n"
        "@action\ndef f(a: int, b: list[str] | None = None, c: dict[str, float] = {}) -> int:\n    'Do.'\n    return a\n"
        "assert ToolExecutor([f]).execute(ToolCall('1', 'f', '{\"a\": 3}')).content == '3'\n"
        "heavy = {'pydantic', 'griffe', 'jsonschema'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


plain_annotations = st.recursive(
    st.sampled_from([Any, str, int, float, bool, None, list, dict])
    | st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True).map(lambda v: Literal[tuple(v)])
    | st.lists(st.integers(0, 9), min_size=1, unique=True).map(lambda v: Literal[tuple(v)]),
    lambda inner: (
        inner.map(lambda t: list[t])
        | inner.map(lambda t: dict[str, t])
        | st.tuples(inner, inner).map(lambda ts: Union[ts])  # noqa: UP007 - made at run time
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(plain_annotations)
def test_plain_schemas_are_what_pydantic_writes(annotation):
    """The shortcut for plain annotations says the same as the library."""
    written = pydantic.TypeAdapter(annotation).json_schema()
    canonical = canonical_schema({"properties": {"v": written}})["properties"]["v"]
    assert plain_schema(annotation) == canonical
