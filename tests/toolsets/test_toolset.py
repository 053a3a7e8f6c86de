"""A toolset is an ordered value of distinct tools, checked in the cell that builds it."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import json
import subprocess
import sys
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from jarvis_nb.core.errors import InvalidRequest, ToolsetError
from jarvis_nb.core.types import Definitions, ToolDefinition, ToolResult
from jarvis_nb.tools.action import action
from jarvis_nb.tools.base import BaseTool, ToolSpec
from jarvis_nb.toolsets.flow import Flow
from jarvis_nb.toolsets.toolset import Toolset


class Echo(BaseTool):
    """A plain tool under any name, as if a source had brought it when ``source`` is given."""

    def __init__(
        self, name: str, description: Any = "Return the text.", source: str | None = None, **parameters: Any
    ):
        self.given = ToolSpec(name, description, parameters)
        self.source = source

    @property
    def spec(self) -> ToolSpec:
        return self.given

    def execute(self, /, **params: Any) -> ToolResult:
        return ToolResult(self.name, str(params))


@action
def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


@action
def apply_discount(total_cents: int, percent: int) -> dict[str, Any]:
    """Compute a discounted total."""
    return {"total_cents": total_cents * (100 - percent) // 100}


def discount_flow() -> Flow:
    flow = Flow(
        "discount_order",
        "Look up an order and compute its 10 percent discount",
        inputs={"order_id": str},
    )
    order = flow.step("order", lookup_order, order_id=flow.input("order_id"))
    price = flow.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)
    flow.output(price)
    return flow


class Line(BaseModel):
    sku: str
    count: int = 1


@action
def place_order(lines: list[Line], note: str = "", gift: bool | None = None) -> str:
    """Place an order."""
    return f"{lines} {note} {gift}"


def plain_function(city: str) -> str:
    """Tell the weather."""
    return city


def refused(*tools: Any) -> ToolsetError:
    with pytest.raises(ToolsetError) as caught:
        Toolset(tools)
    return caught.value


def test_tutorial_definitions():
    """The tutorial's first table row, and toolsets.md 1, 2: names and descriptions in declaration order."""
    definitions = Toolset([lookup_order, discount_flow()]).definitions()
    assert [(d.name, d.description.rstrip(".")) for d in definitions] == [
        ("lookup_order", "Look up one order by ID"),
        ("discount_order", "Look up an order and compute its 10 percent discount"),
    ]
    for definition in definitions:
        assert definition.parameters == {
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
            "additionalProperties": False,
        }


def test_1_an_action_is_not_offered_until_a_toolset_names_it():
    """toolsets.md 1."""
    assert "lookup_order" not in Toolset([apply_discount])
    assert [tool.kind for tool in Toolset([lookup_order, discount_flow(), Echo("echo")])] == [
        "action",
        "flow",
        "tool",
    ]


@pytest.mark.parametrize("description", ["", "   ", "\n", None])
def test_2_a_blank_description_is_an_error_that_names_the_tool(description):
    """toolsets.md 2."""
    error = refused(Echo("echo", description))
    assert error.code == "blank_description"
    assert "'echo'" in error.message


def test_3_order_is_declaration_order():
    """toolsets.md 3."""
    tools = [Echo("b"), lookup_order, Echo("a"), plain_function]
    toolset = Toolset(tools)
    assert toolset.names == ("b", "lookup_order", "a", "plain_function")
    assert tuple(d.name for d in toolset.definitions()) == toolset.names
    assert [tool.name for tool in toolset] == list(toolset.names)
    assert toolset.tools[0] is tools[0]


def test_4_a_repeated_object_is_refused_where_the_toolset_is_built():
    """toolsets.md 4."""
    error = refused(lookup_order, apply_discount, lookup_order)
    assert error.code == "duplicate_tools"
    assert "'lookup_order' stands in the toolset twice, at 1 and at 3" in error.message


def test_4_a_repeated_name_is_refused_and_both_are_named():
    """toolsets.md 4."""
    error = refused(lookup_order, Echo("lookup_order"))
    assert error.code == "duplicate_tools"
    assert "Action('lookup_order') at 1 and Echo('lookup_order') at 2" in error.message
    assert "'rates.Source'" not in error.message
    assert "of shop.Orders" in refused(lookup_order, Echo("lookup_order", source="shop.Orders")).message


@pytest.mark.parametrize(
    ("first", "second"), [("lookup", "Lookup"), ("LOOKUP", "lookup"), ("straße", "STRASSE")]
)
def test_4_names_that_differ_in_case_only_are_duplicates(first, second):
    """toolsets.md 4."""
    error = refused(Echo(first), Echo(second))
    assert error.code == "duplicate_tools"
    assert repr(first) in error.message
    assert repr(second) in error.message


def test_4_adding_a_toolset_to_itself_repeats_everything():
    """toolsets.md 4: the tutorial's ``tools ++ tools``."""
    tools = Toolset([lookup_order, discount_flow()])
    with pytest.raises(ToolsetError) as caught:
        tools + tools
    assert caught.value.code == "duplicate_tools"
    assert Toolset([lookup_order]).__add__([Echo("echo")]).names == ("lookup_order", "echo")
    assert (Toolset([lookup_order]) + Toolset([])).names == ("lookup_order",)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "Lookup",
        "lookUp",
        "1a",
        "_a",
        "a b",
        "a-b",
        "a.b",
        "é",
        "a" * 64,
        "a\n",
        "a/b",
        "functions.get",
    ],
)
def test_5_author_names_match_the_pattern_as_a_whole(name):
    """toolsets.md 5: never rewritten silently; a legal one is suggested."""
    error = refused(Echo(name))
    assert error.code == "invalid_name"
    suggested = str(error.hint).rsplit("try ", 1)[1].strip("'")
    assert Toolset([Echo(suggested)]).names == (suggested,)


@pytest.mark.parametrize("name", ["a", "a" * 63, "a_b", "a1", "lookup_order"])
def test_5_legal_names(name):
    """toolsets.md 5."""
    assert Toolset([Echo(name)]).names == (name,)


def test_5_names_of_sources_may_hold_a_hyphen():
    """toolsets.md 5."""
    assert Toolset([Echo("get-rate", source="rates.Source")]).names == ("get-rate",)
    for name in ("Get-Rate", "-rate", "get rate", "rate\n", ""):
        error = refused(Echo(name, source="rates.Source"))
        assert error.code == "invalid_name"
        assert "rates.Source" in error.message


def test_5_duplicates_are_checked_on_final_names():
    """toolsets.md 5."""
    renamed = lookup_order.with_name("find_order")
    assert Toolset([lookup_order, renamed]).names == ("lookup_order", "find_order")
    assert refused(apply_discount, lookup_order.with_name("apply_discount")).code == "duplicate_tools"
    assert Toolset([lookup_order, renamed]).definitions()[1].name == "find_order"


def test_6_running_the_declaring_cell_twice_fails_nowhere():
    """toolsets.md 6."""
    cell = "def tell(city: str) -> str:\n    'Tell the weather.'\n    return city\ntools = Toolset([tell])"
    space: dict[str, Any] = {"Toolset": Toolset}
    for _ in range(2):
        exec(cell, space)
    assert space["tools"].names == ("tell",)


def test_7_works_alone_and_empty_is_valid():
    """toolsets.md 7: no agent, no model, no process."""
    code = (
        "from jarvis_nb.toolsets.toolset import Toolset; import sys; t = Toolset(); t.validate();"
        "assert t.definitions() == () and len(t) == 0 and t.names == ();"
        "print([m for m in sys.modules if m.split('.')[0] in ('asyncio', 'httpx', 'IPython')"
        " or m.startswith(('jarvis_nb.engines', 'jarvis_nb.agents'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_7_definitions_without_running_anything():
    """toolsets.md 7."""

    class Explosive(Echo):
        def execute(self, /, **params: Any) -> ToolResult:
            raise AssertionError(params)

    toolset = Toolset([Explosive("explosive")])
    assert toolset.validate() is None
    assert isinstance(toolset.definitions(), Definitions)


BAD_SCHEMAS = [
    {"type": "string"},
    {"properties": {"a": {"type": "strng"}}},
    {"properties": ["a"]},
    {"properties": {"a": {"minimum": "1"}}},
    {"properties": {"a": {"default": {1, 2}}}},
]


@pytest.mark.parametrize("parameters", BAD_SCHEMAS)
def test_7_an_invalid_toolset_yields_nothing_and_names_the_tool(parameters):
    """toolsets.md 7."""
    error = refused(lookup_order, Echo("echo", **parameters))
    assert error.code in ("invalid_schema", "not_portable")
    assert "'echo'" in error.message


def test_7_a_toolset_that_became_invalid_yields_no_part_of_its_definitions():
    """toolsets.md 7."""
    late = Echo("late")
    toolset = Toolset([lookup_order, late])
    late._definition = ToolDefinition(
        "late", "Late.", {"type": "object", "properties": {"a": {"type": "strng"}}}
    )
    for ask in (toolset.definitions, toolset.validate):
        with pytest.raises(ToolsetError, match=r"the tool 'late'.*properties\.a\.type"):
            ask()


def callables_in(value: Any) -> list[Any]:
    """Walk everything a definition refers to, and return what could call user code."""
    seen: set[int] = set()
    found: list[Any] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, type):
            if not str(item.__module__).startswith(("builtins", "jarvis_nb.core")):
                found.append(item)
            continue  # a class of ours or of Python: everything refers to its class
        if callable(item) or isinstance(item, types.FrameType | types.CodeType | types.ModuleType | BaseTool):
            found.append(item)
        else:
            todo.extend(gc.get_referents(item))
    return found


def test_8_a_definition_holds_no_callable():
    """toolsets.md 8: walked through fields and through everything the garbage collector sees."""
    toolset = Toolset([lookup_order, place_order, discount_flow(), Echo("echo"), plain_function])
    assert callables_in(lookup_order), "the walk finds a callable where there is one"
    for definition in toolset.definitions():
        values = [getattr(definition, field.name) for field in dataclasses.fields(definition)]
        assert not any(map(callable, values))
        assert callables_in(definition) == []
        assert json.loads(json.dumps(definition.parameters)) == definition.parameters


def test_8_definitions_share_nothing_with_the_toolset():
    """toolsets.md 8: what is done to a copy does not reach what the model is told."""
    toolset = Toolset([place_order])
    before = json.dumps(toolset.definitions()[0].parameters)
    taken = toolset.definitions()[0].parameters
    taken["properties"].clear()
    taken["additionalProperties"] = True
    assert json.dumps(toolset.definitions()[0].parameters) == before
    assert json.dumps(place_order.definition.parameters) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        toolset.definitions()[0].name = "other"


def test_8_the_spec_that_a_definition_was_made_of_can_change_without_reaching_it():
    """toolsets.md 8."""
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = Echo("echo", **parameters)
    toolset = Toolset([tool])
    parameters["properties"]["text"]["type"] = "integer"
    assert toolset.definitions()[0].parameters["properties"]["text"]["type"] == "string"


def test_9_definitions_are_strict():
    """toolsets.md 9: closed recursively; a field with a default is not required."""
    (definition,) = Toolset([place_order]).definitions()
    assert definition.parameters["required"] == ["lines"]
    assert definition.parameters["additionalProperties"] is False
    line = definition.parameters["$defs"]["Line"]
    assert line["required"] == ["sku"]
    assert line["additionalProperties"] is False


def test_11_a_tool_without_fields():
    """toolsets.md 11."""

    @action
    def ping() -> str:
        """Answer."""
        return "pong"

    for definition in Toolset([ping, Echo("echo")]).definitions():
        assert definition.parameters["type"] == "object"
        assert definition.parameters["properties"] == {}
        assert definition.parameters["required"] == []


@pytest.mark.parametrize(
    ("given_", "hint"),
    [
        ("calculator", "a list of tools"),
        (b"calculator", "a list of tools"),
        ({"calculator": 1}, "a list of tools"),
        (lookup_order, "a list of tools"),
        (None, "a list of tools"),
        (7, "a list of tools"),
        (["calculator"], "Jarvis(tools=[…])"),
        ([Echo], "Echo()"),
    ],
)
def test_what_is_no_list_of_tools_is_refused_with_the_next_step(given_, hint):
    with pytest.raises(ToolsetError) as caught:
        Toolset(given_)
    assert caught.value.code == "not_a_tool"
    assert hint in str(caught.value)


@pytest.mark.parametrize("odd", [None, 7, object()])
def test_what_cannot_be_a_tool_is_refused(odd):
    with pytest.raises(ToolsetError):
        Toolset([lookup_order, odd])


def test_indexing_containment_length_equality():
    echo = Echo("echo")
    toolset = Toolset(iter([lookup_order, echo]))
    assert toolset["echo"] is echo
    assert "echo" in toolset
    assert echo in toolset
    assert "nope" not in toolset
    assert Echo("echo") not in toolset
    assert 7 not in toolset
    assert len(toolset) == 2
    assert toolset == Toolset([lookup_order, echo])
    assert hash(toolset) == hash(Toolset([lookup_order, echo]))
    assert toolset != Toolset([echo, lookup_order])
    assert toolset != [lookup_order, echo]


@pytest.mark.parametrize(
    ("name", "close"),
    [("Lookup_Order", "lookup_order"), ("lookup_ordr", "lookup_order"), ("zzz", None), (0, None)],
)
def test_an_unknown_name_lists_what_there_is(name, close):
    with pytest.raises(InvalidRequest) as caught:
        Toolset([lookup_order, Echo("echo")])[name]
    assert caught.value.code == "unknown_tools"
    assert caught.value.valid == ("lookup_order", "echo")
    assert caught.value.hint == (f"did you mean {close!r}?" if close else None)


def test_repr_is_deterministic():
    assert repr(Toolset([lookup_order, Echo("echo")])) == "Toolset('lookup_order', 'echo')"
    assert repr(Toolset()) == "Toolset()"


def test_a_toolset_is_a_value_that_cannot_be_changed():
    toolset = Toolset([lookup_order])
    for name in ("tools", "names"):
        with pytest.raises(AttributeError):
            setattr(toolset, name, ())
    assert not [
        m for m in ("append", "add", "remove", "extend", "__setitem__", "__delitem__") if hasattr(toolset, m)
    ]
    assert not inspect.isgenerator(toolset.tools)


NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True), max_size=8)


@settings(deadline=None)
@given(NAMES)
def test_any_list_of_names_is_either_a_toolset_in_that_order_or_refused_for_a_duplicate(names):
    tools = [Echo(name) for name in names]
    if len(set(names)) == len(names):
        assert Toolset(tools).names == tuple(names)
    else:
        assert refused(*tools).code == "duplicate_tools"
