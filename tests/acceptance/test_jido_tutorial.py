"""The toolset tutorial, cell by cell, with every value it states.

The cells are those of the tutorial in this package's words: a module becomes a decorated function, the
agent a :class:`Jarvis` with tools, and the recording client a scripted engine whose every step is one
function of the request. They run as one notebook here, and again in a real kernel, each declaring cell
twice and in any order.
"""

from __future__ import annotations

import ast
import itertools
import json
import random

import pytest

from jarvis_nb.core.errors import InvalidRequest, ToolsetError

IMPORTS = """
import pathlib, shutil, tempfile
from jarvis_nb import Flow, Jarvis, Skills, Toolset, ToolSource, action
from jarvis_nb.core.types import Role
from jarvis_nb.engines import ScriptedEngine, call
"""

LOOKUP_ORDER = '''
@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID"""
    return {"order_id": order_id, "total_cents": 4_200}
'''
APPLY_DISCOUNT = '''
@action
def apply_discount(total_cents: int, percent: int) -> dict:
    """Compute a discounted total"""
    return {"total_cents": total_cents * (100 - percent) // 100}
'''
DISCOUNT_FLOW = """
discount_order = Flow(
    "discount_order", "Look up an order and compute its 10 percent discount", inputs={"order_id": str}
)
order = discount_order.step("order", lookup_order, order_id=discount_order.input("order_id"))
discount = discount_order.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)
discount_order.output(discount)
"""
TOOLS = "tools = [lookup_order, discount_order]"

LOCAL_MODEL = """
ARGUMENTS = {"load_skill": {"name": "refund-policy"}, "exchange_rate": {"currency": "EUR"}}

def local_model(request):
    "Call the first tool that is offered, once; then say what it gave."
    last = request.messages[-1]
    if last.role is Role.USER and request.tools:
        name = request.tool_names[0]
        return call(name, **ARGUMENTS.get(name, {"order_id": "ORD-5"}))
    if last.role is Role.TOOL:
        return f"Tool result: {last.text}"
    return "No tool was needed."

engine = ScriptedEngine([local_model] * 1_000)

def offered():
    "What the newest request offered, and with which choice."
    return {"tools": engine.requests[-1].tool_names, "tool_choice": engine.requests[-1].tool_choice}

def run_orders(input, *, tool_sources=(), **options):
    with Jarvis(engine=engine, tools=tools, tool_sources=tool_sources, config={}) as j:
        return j.ask_full(input, **options)
"""
RATES_SOURCE = """
class RatesSource(ToolSource):
    def list_tools(self, config, context):
        return [{
            "name": "exchange_rate",
            "description": "Return one exchange rate",
            "parameter_schema": {
                "type": "object",
                "properties": {"currency": {"type": "string"}},
                "required": ["currency"],
                "additionalProperties": False,
            },
        }]

    def run_tool(self, name, arguments, config, context):
        return {"base": config["base"], "currency": arguments["currency"], "rate": 0.92}
"""
SKILL = '''
root = pathlib.Path(tempfile.mkdtemp(prefix="tools-guide-"))
(root / "refund-policy").mkdir()
_ = (root / "refund-policy" / "SKILL.md").write_text("""\\
---
name: refund-policy
description: Apply the refund policy to an order.
---
Refund within 30 days of delivery.
""")
'''
DECLARING = [LOOKUP_ORDER, APPLY_DISCOUNT, DISCOUNT_FLOW, TOOLS, LOCAL_MODEL, RATES_SOURCE, SKILL]

ASK = 'run_orders("Show order ORD-5.")'


class Notebook:
    """Cells that share their names; a cell's value is that of its last expression."""

    def __init__(self) -> None:
        self.names = {"__name__": "tutorial"}
        self.cell(IMPORTS)

    def cell(self, code: str):
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), self.names)
        return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), self.names)


def test_the_whole_tutorial():
    """toolsets.md, values from the tutorial; 1 to 4, 7 to 10, 13 to 17, 21 to 23, 27, 28, 33; skills.md 2 to 4."""
    book = Notebook()
    cell = book.cell

    # Declare Action and Flow tools.
    for code in (LOOKUP_ORDER, APPLY_DISCOUNT, DISCOUNT_FLOW, TOOLS):
        cell(code)
    assert cell("[(tool.name, tool.kind) for tool in Toolset(tools).tools]") == [
        ("lookup_order", "action"),
        ("discount_order", "flow"),
    ]
    with pytest.raises(ToolsetError) as caught:
        cell("Jarvis(engine=ScriptedEngine([]), tools=[*tools, lookup_order]).preview('x')")
    assert caught.value.code == "duplicate_tools"

    # Inspect the Toolset.
    cell("Toolset(tools).validate()")
    with pytest.raises(ToolsetError) as caught:
        cell("Toolset(tools + tools).validate()")
    assert caught.value.code == "duplicate_tools"
    definitions = cell("definitions = Toolset(tools).definitions()\ndefinitions")
    assert [(d.name, d.description) for d in definitions] == [
        ("lookup_order", "Look up one order by ID"),
        ("discount_order", "Look up an order and compute its 10 percent discount"),
    ]
    # "The definitions have no working callback", and are strict; a field with a default is not required.
    for definition in definitions:
        assert json.loads(json.dumps(definition.parameters)) == definition.parameters
        assert definition.parameters["additionalProperties"] is False
        assert definition.parameters["required"] == ["order_id"]
    with_default = cell(
        'def page(order_id: str, size: int = 10) -> dict:\n    """List."""\nToolset([page]).definitions()'
    )
    assert with_default[0].parameters["required"] == ["order_id"]

    # Record the tools each request sends.
    cell(LOCAL_MODEL)
    reply = cell(f"reply = {ASK}\nreply")
    assert (reply.output, reply.tool_attempts[0].tool.kind) == (
        'Tool result: {"order_id":"ORD-5","total_cents":4200}',
        "action",
    )

    # Narrow tools for one request.
    visible = cell('run_orders("Discount it.", tool_policy={"visible": ["discount_order"]})')
    assert (visible.output, visible.tool_attempts[0].tool.kind) == (
        'Tool result: {"total_cents":3780}',
        "flow",
    )
    disabled = cell('run_orders("Answer directly.", tool_policy={"requirement": "disabled"})')
    assert disabled.output == "No tool was needed."
    assert cell("offered()") == {"tools": [], "tool_choice": None}
    before = cell("len(engine.requests)")
    with pytest.raises(InvalidRequest) as unknown:
        cell('run_orders("Delete it.", tool_policy={"visible": ["delete_order"]})')
    assert unknown.value.code == "unknown_tools"
    assert "delete_order" in str(unknown.value)
    assert "discount_order" in str(unknown.value)

    # Require tool use.
    with pytest.raises(InvalidRequest) as none_left:
        cell('run_orders("x", tool_policy={"visible": [], "requirement": "required"})')
    assert none_left.value.code == "required_without_tools"
    assert cell("len(engine.requests)") == before
    required = cell('run_orders("Show order ORD-5.", tool_policy={"requirement": "required"})')
    assert (required.status, required.tool_rounds, cell("offered()['tool_choice']")) == (
        "completed",
        1,
        "auto",
    )
    assert cell("engine.requests[-2].tool_choice") == "required"
    assert required.turns == 2

    # Add tools at run time.
    cell(RATES_SOURCE)
    asked = (
        'run_orders("What is the rate?", tool_policy=POLICY, tool_sources=[(RatesSource, {"base": "USD"})])'
    )
    source_reply = cell(asked.replace("POLICY", '{"visible": ["exchange_rate"]}'))
    assert source_reply.output == 'Tool result: {"base":"USD","currency":"EUR","rate":0.92}'
    tool = source_reply.tool_attempts[0].tool
    assert (tool.kind, tool.name, tool.source) == ("source", "exchange_rate", "tutorial.RatesSource")
    after_own = cell(asked.replace("POLICY", "None"))  # source tools come after the agent's own
    assert after_own.offers[0].offered == ["lookup_order", "discount_order", "exchange_rate"]
    before = cell("len(engine.requests)")
    for live in ("print", "object()", "lambda: 1"):
        with pytest.raises(Exception, match="base") as caught:
            cell(f'run_orders("x", tool_sources=[(RatesSource, {{"base": {live}}})])')
        assert caught.value.code == "not_portable"
    with pytest.raises(InvalidRequest):  # request data cannot add a source
        cell('run_orders("x", tool_policy={"tool_sources": [(RatesSource, {"base": "USD"})]})')
    assert cell("len(engine.requests)") == before

    # Load skills.
    cell(SKILL)
    found = cell("Skills.discover([root])")
    assert [(s.name, s.description) for s in found] == [
        ("refund-policy", "Apply the refund policy to an order.")
    ]
    skill_reply = cell(
        'run_orders("Can I refund it?", tool_policy={"visible": ["load_skill"]}, tool_sources=[Skills.source([root])])'
    )
    assert skill_reply.offers[0].offered == ["load_skill"]
    listed = next(d for d in skill_reply.definitions if d.name == "load_skill").description
    assert "refund-policy" in listed
    assert "Apply the refund policy to an order." in listed
    cell("shutil.rmtree(root)")
    assert skill_reply.tool_attempts[0].output["instructions"] == "Refund within 30 days of delivery.\n"
    # "the model reads it in the next round"
    assert "Refund within 30 days" in cell("engine.requests[-1].messages[-1].text")


VALUES = """(
    run_orders("Show order ORD-5.").output,
    run_orders("Discount it.", tool_policy={"visible": ["discount_order"]}).output,
    run_orders("Rate?", tool_policy={"visible": ["exchange_rate"]}, tool_sources=[(RatesSource, {"base": "USD"})]).output,
    run_orders("Refund?", tool_policy={"visible": ["load_skill"]}, tool_sources=[Skills.source([root])]).tool_attempts[0].output,
)"""
STATED = (
    'Tool result: {"order_id":"ORD-5","total_cents":4200}',
    'Tool result: {"total_cents":3780}',
    'Tool result: {"base":"USD","currency":"EUR","rate":0.92}',
    {"instructions": "Refund within 30 days of delivery.\n"},
)


def orders(count: int):
    """Return orders in which the declaring cells may be run again: all of those with a dependency, and some."""
    related = [LOOKUP_ORDER, APPLY_DISCOUNT, DISCOUNT_FLOW, TOOLS]
    yield from (list(order) for order in itertools.permutations(related))
    shuffle = random.Random(3)
    for _ in range(count):
        yield shuffle.sample(DECLARING, len(DECLARING))


def test_06_every_declaring_cell_twice_in_any_order():
    """toolsets.md 6: nothing fails because a cell ran twice, and every value stays."""
    book = Notebook()
    for code in DECLARING:
        book.cell(code)
    for order in orders(20):
        for code in [*order, *order]:
            book.cell(code)
        assert book.cell(VALUES) == STATED


@pytest.mark.slow
def test_06_every_declaring_cell_twice_in_any_order_in_a_kernel(run_cells):
    """toolsets.md 6, in a real ipykernel."""
    run_cells(IMPORTS, *DECLARING)
    for order in orders(10):
        run_cells(*order, *order)
        assert ast.literal_eval(run_cells(VALUES)) == STATED


@pytest.fixture
def run_cells():
    """Run cells in a kernel; return the last one's value as text."""
    from tests.kernel.kernels import Kernel

    kernel = Kernel()

    def run(*cells: str) -> str:
        done = [kernel.ok(code) for code in cells]
        assert [cell.printed for cell in done] == [""] * len(cells)
        return done[-1].value or ""

    yield run
    kernel.close()
