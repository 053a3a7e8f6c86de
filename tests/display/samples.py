"""One of everything that shows itself, by name: ordinary, hostile, and large."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jarvis_nb import BaseTool, Flow, Jarvis, Reply, Skills, ToolPolicy, ToolResult, Toolset, ToolSpec, action
from jarvis_nb.core.errors import ErrorInfo
from jarvis_nb.core.types import Definitions, Message, Repair, Role, ToolDefinition
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.memory.handle import Hits
from jarvis_nb.record import Attempt, LedgerEntry, ModelCall, RoundOffer, ToolRef
from jarvis_nb.run.diff import Difference, ReplyDiff, diff
from jarvis_nb.run.preview import Preview
from jarvis_nb.toolsets.flow import FlowFailed
from jarvis_nb.toolsets.policy import resolve

NASTY = (
    "<img src=x onerror=alert(1)><script>alert(2)</script></code></td></details>\"'&amp; $x^2$ \\(y\\) \\[z\\] "
    "`t` \x1b[31m \u202eevil\u202c \u200b \U000e0041 [a](javascript:alert(3)) ${4} {{5}} #quot;"
)


ANSWER = (
    "With 10 percent off, order ORD-5 comes to $37.80; the circle's area is about 153.94.\n\n"
    "I could not refund anything: nobody was there to confirm it."
)


@action
def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up one order by ID."""
    if order_id == "ORD-9":
        raise ValueError("there is no order ORD-9")
    return {"order_id": order_id, "total_cents": 4200, "items": ["desk lamp", "bulb"]}


@action
def apply_discount(total_cents: int, percent: int = 10) -> dict[str, Any]:
    """Take a percentage off a total.

    Args:
        total_cents: The total, in cents.
        percent: How much to take off.
    """
    return {"total_cents": total_cents * (100 - percent) // 100}


@action(requires_confirmation=True, timeout=5)
def refund(order_id: str, cents: int) -> str:
    """Pay money back to the customer of an order."""
    return f"refunded {cents} cents of {order_id}"


def discount_flow() -> Flow:
    flow = Flow("discount_order", "Look up an order and take 10 percent off.", inputs={"order_id": str})
    order = flow.step("order", lookup_order, order_id=flow.input("order_id"))
    price = flow.step("discount", apply_discount, total_cents=order["total_cents"], percent=10)
    flow.output({"price": price["total_cents"], "items": order["items"]})
    return flow


def toolset() -> Toolset:
    from jarvis_nb.tools.calculator import CalculatorTool

    return Toolset([discount_flow().as_tool(), CalculatorTool(), lookup_order, refund])


def steps() -> list[Any]:
    return [
        [call("discount_order", order_id="ORD-5"), call("calculator", expression="pi * r**2")],
        [call("calculator", expression="pi * 7**2"), call("refund", order_id="ORD-5", cents=420)],
        call("lookup_order", order_id="ORD-9"),
        ANSWER,
    ]


def jarvis(script: list[Any] | None = None, **options: Any) -> Jarvis:
    return Jarvis(engine=ScriptedEngine(steps() if script is None else script, usage=(412, 96)), **options)


QUESTION = "Discount order ORD-5, refund the difference, and tell me the area of a circle with radius 7."


def reply() -> Reply:
    tools = [*toolset().tools, "think"]
    return jarvis().ask_full(
        QUESTION, tools=tools, tool_policy={"hidden": ["think"], "requirement": "required"}
    )


def hits(
    text: str = "Orders ship within two days. A lost order is refunded within 30 days of delivery.",
) -> Hits:
    found = [
        {"content": text, "score": 4.31, "source": "docs/shipping.md", "metadata": {"heading": "Refunds", "lines": [3, 9]}, "id": "a"},
        {"content": "Returns are free.\n" * 40, "score": 1.2, "source": "", "metadata": {}, "id": "b"},
    ]  # fmt: skip
    return Hits("refund a lost order", found)


def skills() -> Skills:
    root = Path(tempfile.mkdtemp())
    for name, text in {
        "refund-policy": "---\nname: refund-policy\ndescription: When money is paid back, and who decides.\n---\nWithin 30 days.\n",
        "tone-of-voice": "---\nname: tone-of-voice\ndescription: How we write to customers.\n---\nKindly.\n",
        "broken": "---\nname: something-else\ndescription: x\n---\n",
    }.items():
        (root / name).mkdir()
        (root / name / "SKILL.md").write_text(text)
    return Skills.discover([root])


def run_diff() -> ReplyDiff:
    return diff(reply(), jarvis(["No idea."]).ask_full(QUESTION, tools=toolset()))


def trace(order_id: str = "ORD-9") -> Any:
    flow = discount_flow()
    with contextlib.suppress(FlowFailed):
        flow.run(order_id=order_id)
    return flow.last


def interrupted() -> Reply:
    one = reply()
    one.status, one.error = "cancelled", ErrorInfo("interrupted", "the run was interrupted")
    one.output = ""
    return one


ORDINARY: dict[str, Callable[[], Any]] = {
    "run card": reply,
    "run card, direct": lambda: jarvis(["Hello."]).ask_full("Hi"),
    "run card, interrupted": interrupted,
    "toolset": toolset,
    "tool": lambda: toolset()["refund"],
    "offer": lambda: resolve(toolset(), {"hidden": ["refund"], "requirement": {"tool": "calculator"}}),
    "policy": lambda: ToolPolicy(hidden=["refund"]),
    "preview": lambda: jarvis().preview(QUESTION, tools=toolset(), tool_policy={"visible": ["calculator"]}),
    "diff": run_diff,
    "no diff": lambda: ReplyDiff([]),
    "flow": discount_flow,
    "flow run": trace,
    "skills": skills,
    "hits": hits,
    "jarvis": lambda: jarvis(tools=["calculator"]),
    "attempt": lambda: reply().tool_attempts[1],
    "spec": lambda: toolset()["refund"].spec,
}


def odd_reply(text: str = NASTY, calls: int = 3) -> Reply:
    """A record in which every text a model, tool, file or source can influence is the given one."""
    entries = tuple(
        LedgerEntry(f"{text}{n}", "source", f"x.{text}", offered=bool(n % 2), reason=text)
        for n in range(calls)
    )
    attempts = [
        Attempt(
            ToolRef("source", text, text), f"c{n}", 1 + n // 3, n % 3, {text: [text]},
            ("ok", "failed", "denied")[n % 3], True, {text: text}, text, None if n % 3 == 0 else ErrorInfo("x", text),
            True, [{"name": text, "tool": text, "status": "error", "error": {"message": text}, "output": text}],
            text, text, text, {text: text}, started=0.1 * n, seconds=0.25,
        )
        for n in range(calls)
    ]  # fmt: skip
    rounds = 1 + calls // 3
    return Reply(
        text,
        text,
        "failed",
        ErrorInfo("x", text),
        attempts,
        [
            RoundOffer(n + 1, entries, {"type": "function", "function": {"name": text}}, text)
            for n in range(rounds)
        ],
        [ModelCall(n + 1, 1, {"content": text}, started=n / 10, seconds=0.1) for n in range(rounds)],
        [Message(Role.USER, text)],
        [Repair("x", text, 1), Repair("x", f"c1 {text}", 1)],
        [text],
        text,
        text,
        text,
        text,
        definitions=Definitions([ToolDefinition(text, text, {"type": "object", "properties": {text: {}}})]),
        injected=[{"source": text, "reason": text}],
    )


class OddTool(BaseTool):
    """What a user's subclass can get wrong: nothing of it is checked when it is merely shown."""

    def __init__(self, text: str) -> None:
        self._name = text
        self.source = text
        self.text = text

    @property
    def spec(self) -> ToolSpec:
        text = self.text
        schema = {
            "type": "object",
            "properties": {text: {"type": "string", "default": text, "description": text, "enum": [text]}},
        }
        return ToolSpec(text, text, schema)

    def execute(self, /, **params: Any) -> ToolResult:
        return ToolResult("x", "x")


def odd_flow(text: str = NASTY) -> Flow:
    @action
    def given(value: Any = None) -> Any:
        """Give back what came."""
        return value

    flow = Flow("odd", text, inputs={"x": (str, text)})
    flow.output({text: flow.step("a", given, value={text: flow.input("x")})[text]})
    return flow


def odd_skills(text: str = NASTY) -> Skills:
    from jarvis_nb.toolsets.skill_file import Skill, SkillProblem

    problem = SkillProblem(f"/x/{text}/y", text, text, text)
    return Skills([Skill(text, text, warnings=(problem,))], [problem])


def odd_trace(text: str = NASTY) -> Any:
    flow = odd_flow(text)
    flow.run(x=text)
    return flow.last


def unchecked(text: str) -> Toolset:
    made = Toolset([lookup_order])
    made._tools = (OddTool(text), lookup_order)
    return made


ODD: dict[str, Callable[[str], Any]] = {
    "run card": odd_reply,
    "tool": OddTool,
    "toolset": unchecked,
    "offer": lambda text: resolve(unchecked(text)),
    "preview": lambda text: Preview(
        text, text, text, text, odd_reply(text).offers[0].entries, "auto", text, {text: text}, 7, False,
        [{"source": text, "reason": text}],
    ),
    "diff": lambda text: ReplyDiff([Difference(text, text, [text]), Difference(text, {text: text}, None)]),
    "flow": odd_flow,
    "flow run": odd_trace,
    "skills": odd_skills,
    "hits": lambda text: Hits(text, [{"content": text, "score": 1.0, "source": text, "metadata": {"heading": text}, "id": "x"}]),
    "attempt": lambda text: odd_reply(text).tool_attempts[1],
    "policy": lambda text: ToolPolicy(hidden=[text]),
}  # fmt: skip


def large_reply(calls: int = 20) -> Reply:
    """Twenty calls with long arguments and results, the size that the budget is stated for."""

    @action
    def search(query: str, limit: int = 5) -> dict[str, Any]:
        """Search the catalogue."""
        return {"hits": [{"title": f"{query} {n}", "text": "lorem ipsum " * 60} for n in range(limit)]}

    script: list[Any] = [
        [call("search", query=f"query {r} {c} " + "x" * 300) for c in range(5)] for r in range(calls // 5)
    ]
    return jarvis([*script, "Done. " * 100]).ask_full("Find it.", tools=[search, *toolset().tools])
