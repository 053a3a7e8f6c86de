"""The tool document, block by block: every code block runs, every value and table it states holds.

`openjarvis_tools.md` is the document; only the package's name is changed, and its free names are bound.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import os
import re
import subprocess
import sys
import threading
import typing
from pathlib import Path

import pytest

from jarvis_nb import EventBus, EventType, ToolRegistry
from jarvis_nb.core.types import ToolCall, ToolResult
from jarvis_nb.engines import ScriptedEngine
from jarvis_nb.testing import StrictServer
from jarvis_nb.tools import BaseTool, ToolExecutor, ToolSpec
from jarvis_nb.tools.calculator import CalculatorTool
from jarvis_nb.tools.file_read import FileReadTool
from jarvis_nb.tools.llm_tool import LLMTool
from jarvis_nb.tools.retrieval import RetrievalTool
from jarvis_nb.tools.think import ThinkTool
from tests.acceptance.document import section

TOOLS = {
    "Calculator": CalculatorTool,
    "Think": ThinkTool,
    "Retrieval": RetrievalTool,
    "LLM": LLMTool,
    "FileRead": FileReadTool,
}
DESCRIPTION = "Description"


def run_block(code: str, **names):
    """Run a code block; return its names and the lines it printed."""
    printed: list[str] = []
    names["print"] = lambda *values: printed.append(" ".join(map(str, values)))
    exec(compile(code, "openjarvis_tools.md", "exec"), names)
    return names, printed


def stated(code: str) -> list[str]:
    """Return the values that stand in comments behind the block's prints."""
    return re.findall(r"^print\(.*\)\s+# (.*)$", code, re.MULTILINE)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    """The user's own settings stay out of it, and the project's directory too."""
    for name in [n for n in os.environ if n.startswith("JARVIS_NB_") or n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


# BaseTool, ToolSpec, ToolResult.


def test_01_base_tool():
    """tools.md 1: the class of the document, member by member."""
    theirs = run_block(section("BaseTool ABC").code())[0]["BaseTool"]
    for name, member in vars(theirs).items():
        if name.startswith("__") or name == "_abc_impl":
            continue
        ours = inspect.getattr_static(BaseTool, name)
        assert type(ours) is type(member), name
        if inspect.isfunction(member):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(member).parameters)
    assert BaseTool.__abstractmethods__ == theirs.__abstractmethods__ == {"spec", "execute"}
    assert "tool_id" in theirs.__annotations__
    assert "tool_id" in BaseTool.__annotations__


def _shape(value):
    return {k: _shape(v) for k, v in value.items()} if isinstance(value, dict) else type(value)


def test_01_openai_function():
    """tools.md 1: the format of the document, key by key; our texts say more."""
    theirs = json.loads(section("BaseTool ABC").code("json"))
    ours = CalculatorTool().to_openai_function()
    assert _shape(ours) == _shape(theirs)
    assert ours["function"]["name"] == theirs["function"]["name"]
    assert ours["function"]["description"].startswith(theirs["function"]["description"])
    assert ours["function"]["parameters"]["required"] == theirs["function"]["parameters"]["required"]
    mine = ours["function"]["parameters"]["properties"]["expression"]
    stated = theirs["function"]["parameters"]["properties"]["expression"]
    assert mine["type"] == stated["type"]
    assert mine["description"].startswith(stated["description"])


@pytest.mark.parametrize("kind", [ToolSpec, ToolResult])
def test_01_fields_types_and_defaults(kind):
    """tools.md 1: the two tables; fields of ours come after the document's."""
    (rows,) = section(kind.__name__).tables
    fields = dataclasses.fields(kind)
    hints = typing.get_type_hints(kind)
    assert [f.name for f in fields][: len(rows)] == [row["Field"] for row in rows]
    for field, row in zip(fields, rows, strict=False):
        assert hints[field.name] == eval(row["Type"], {"Any": typing.Any}), field.name
        default = (
            field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        )
        expected = dataclasses.MISSING if row["Default"] == "--" else eval(row["Default"])
        assert default == expected, field.name
    assert ToolSpec("a", "b").timeout_seconds == 30


# ToolExecutor.


def test_03_executor_block():
    """tools.md 3: the block of the document."""
    bus = EventBus(record_history=True)
    code = section("ToolExecutor").code()
    names, printed = run_block(code, calculator=CalculatorTool(), think_tool=ThinkTool(), event_bus=bus)
    assert printed == [json.loads(value) for value in stated(code)] == ["4"]
    assert [tool["function"]["name"] for tool in names["openai_tools"]] == ["calculator", "think"]
    assert names["openai_tools"][0] == CalculatorTool().to_openai_function()


class Slow(BaseTool):
    tool_id = "slow"

    def __init__(self, log):
        self.log = log

    @property
    def spec(self):
        return ToolSpec("slow", "Wait.", {"type": "object", "properties": {"n": {"type": "integer"}}})

    def execute(self, **params):
        threading.Event().wait(0.02)
        self.log.append(("execute", params))
        return ToolResult("slow", "done")


def test_03_execution_flow():
    """tools.md 3: parse, start event, execute, measure, end event, return; in that order."""
    assert len(re.findall(r"^\d\. ", section("Execution Flow").text, re.MULTILINE)) == 6
    log: list[typing.Any] = []
    bus = EventBus(record_history=True)
    bus.subscribe(lambda event: log.append((event.event_type, event.data)))
    result = ToolExecutor(tools=[Slow(log)], bus=bus).execute(ToolCall("c1", "slow", '{"n": 1}'))
    assert [kind for kind, _ in log] == [EventType.TOOL_CALL_START, "execute", EventType.TOOL_CALL_END]
    (_, start), (_, params), (_, end) = log
    assert (start["tool"], start["arguments"], params) == ("slow", {"n": 1}, {"n": 1})
    assert 0.02 <= result.latency_seconds < 5
    assert (end["success"], end["latency_seconds"]) == (True, result.latency_seconds)
    assert result == ToolResult("slow", "done", latency_seconds=result.latency_seconds)


class Broken(Slow):
    def execute(self, **params):
        raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [("nope", "{}", "unknown_tool"), ("slow", "{n: ", "invalid_json"), ("slow", "{}", "out of order")],
)
def test_04_failures_are_results(name, arguments, said):
    """tools.md 4: unknown name, bad JSON, a raising tool."""
    bus = EventBus(record_history=True)
    result = ToolExecutor([Broken([])], bus).execute(ToolCall("c1", name, arguments))
    assert isinstance(result, ToolResult)
    assert not result.success
    assert said in result.content
    assert [e.event_type for e in bus.history] == [EventType.TOOL_CALL_START, EventType.TOOL_CALL_END]
    assert bus.history[-1].data["success"] is False


def test_03_methods():
    """tools.md 3: the table of methods and what they return."""
    (rows,) = section("Methods").tables
    executor = ToolExecutor([ThinkTool(), CalculatorTool()])
    for row in rows:
        name = row["Method"].partition("(")[0]
        given = [ToolCall("c1", "think", '{"thought": "x"}')] if "tool_call" in row["Method"] else []
        result = getattr(executor, name)(*given)
        kind = eval(row["Returns"], {"ToolResult": ToolResult, "ToolSpec": ToolSpec})
        assert isinstance(result, typing.get_origin(kind) or kind)
        for item in result if typing.get_args(kind) else ():
            assert isinstance(item, typing.get_args(kind)[0])
    assert [spec.name for spec in executor.available_tools()] == ["think", "calculator"]


# The five tools.


@pytest.mark.parametrize("title", TOOLS)
def test_09_registry_key_and_category(title):
    """tools.md 2: looked up by name; the key and category of the document."""
    key, category = re.search(
        r"^Registry key: (\w+) \| Category: (\w+)$", section(title).text, re.MULTILINE
    ).groups()
    assert ToolRegistry.get(key) is TOOLS[title]
    spec = ToolRegistry.create(key).spec
    assert (spec.name, spec.category) == (key, category)
    assert ToolRegistry.create(key).tool_id == key


@pytest.mark.parametrize("title", TOOLS)
def test_09_parameters_and_constructor(title):
    """tools.md 9 to 13: the tables of parameters and of constructor parameters."""
    parameters, *rest = section(title).tables
    schema = TOOLS[title]().spec.parameters
    assert list(schema["properties"]) == [row["Parameter"] for row in parameters]
    for row in parameters:
        found = schema["properties"][row["Parameter"]]
        assert found["type"] == row["Type"]
        assert found["description"].startswith(row[DESCRIPTION].split(" (e.g.")[0])
        assert (row["Parameter"] in schema["required"]) == (row["Required"] == "Yes")
    constructor = [rows for rows in rest if "Default" in rows[0]]
    signature = inspect.signature(TOOLS[title]).parameters
    if not constructor:
        assert not signature
        return
    assert list(signature) == [row["Parameter"] for row in constructor[0]]
    for row in constructor[0]:
        assert signature[row["Parameter"]].default == eval(row["Default"])


CALCULATIONS = {
    "Arithmetic": {"7 + 2": "9", "7 - 2": "5", "7 * 2": "14", "7 / 2": "3.5", "7 // 2": "3", "7 % 2": "1", "7 ** 2": "49"},
    "Functions": {
        "abs(-3)": "3", "round(2.6)": "3", "min(2, 1)": "1", "max(2, 1)": "2", "sqrt(16)": "4.0",
        "log(e)": "1.0", "log10(100)": "2.0", "log2(8)": "3.0",
    },
    "Trigonometry": {"sin(0)": "0.0", "cos(0)": "1.0", "tan(0)": "0.0"},
    "Rounding": {"ceil(1.2)": "2", "floor(1.8)": "1"},
    "Constants": {"pi": str(math.pi), "e": str(math.e)},
}  # fmt: skip


def test_09_calculator_operations():
    """tools.md 9: every operation of the table."""
    rows = next(rows for rows in section("Calculator").tables if "Operations" in rows[0])
    assert [row["Category"] for row in rows] == list(CALCULATIONS)
    for row in rows:
        cases = CALCULATIONS[row["Category"]]
        operations = re.sub(r"\([^)]*\)", "", row["Operations"]).split(",")
        assert len(operations) == len(cases)
        for operation, (expression, value) in zip(operations, cases.items(), strict=True):
            assert operation.strip() in expression
            result = CalculatorTool().execute(expression=expression)
            assert (result.content, result.success) == (value, True)


@pytest.mark.parametrize("title", ["Calculator", "Think"])
def test_09_10_blocks(title):
    """tools.md 9 and 10: the blocks print what their comments say."""
    code = section(title).code()
    _, printed = run_block(code)
    assert printed == [json.loads(v) if v.startswith('"') else v for v in stated(code)]
    assert len(printed) == 2


def test_10_think_costs_nothing():
    """The document: zero cost, near-zero latency."""
    spec = ThinkTool().spec
    assert (spec.cost_estimate, spec.latency_estimate) == (0.0, 0.0)
    assert ThinkTool().execute(thought="x").cost_usd == 0.0


def test_11_retrieval_block(tmp_path):
    """tools.md 11: formatted context with source tags, from the file ./memory.db."""
    from jarvis_nb.memory.sqlite import SQLiteMemory

    memory = SQLiteMemory(db_path="./memory.db")
    memory.store("Machine learning fits functions to data.", source="ml.md")
    memory.close()
    names, printed = run_block(section("Retrieval").code())
    names["backend"].close()
    assert (tmp_path / "memory.db").is_file()
    assert len(printed) == 1
    assert "[Source: ml.md]" in printed[0]
    assert "fits functions to data" in printed[0]


def test_12_llm_block():
    """tools.md 12: the prompt and the system message reach the model."""
    engine = ScriptedEngine(["AI changes many industries."], usage=(20, 5))
    names, printed = run_block(section("LLM").code(), my_engine=engine)
    assert printed == ["AI changes many industries."]
    (request,) = engine.requests
    assert request.model == "qwen3:8b"
    assert [(str(m.role), m.text) for m in request.messages] == [
        ("system", "You are a concise summarizer."),
        ("user", "Summarize: AI is transforming industries..."),
    ]
    assert names["result"].usage["total_tokens"] == 25


def test_13_file_read_block(tmp_path):
    """tools.md 13: content, and the metadata in the comment's form."""
    lines = "".join(f"line {n} of the file\n" for n in range(1, 61))
    text = lines + "x" * (1234 - len(lines))
    (tmp_path / "README.md").write_text(text)
    code = section("FileRead").code().replace("/home/user/projects", str(tmp_path))
    _, printed = run_block(code)
    assert printed[0].splitlines()[:50] == text.splitlines()[:50]
    assert "line 51" not in printed[0]
    assert eval(printed[1]) == json.loads(stated(code)[0])


def test_13_file_read_safety(tmp_path):
    """tools.md 13: the document's list of safety features."""
    assert len(re.findall("^• ", section("FileRead").text, re.MULTILINE)) == 4
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.txt").write_text("out")
    (inside / "limit.txt").write_bytes(b"x" * 1_048_576)
    (inside / "large.txt").write_bytes(b"x" * 1_048_577)
    (inside / "binary.dat").write_bytes(b"\xff\xfe\x00")
    reader = FileReadTool(allowed_dirs=[str(inside)])
    assert reader.execute(path=str(inside / "limit.txt")).metadata["size_bytes"] == 1_048_576
    for path in (
        tmp_path / "outside.txt",
        inside / "large.txt",
        inside / "binary.dat",
        inside / "none",
        inside,
    ):
        assert reader.execute(path=str(path)).success is False


# Registration, the command, the Python SDK.


def test_02_registration_block():
    """tools.md 2: the class of the block, found by its name and run by an agent."""
    from jarvis_nb import Jarvis
    from jarvis_nb.engines import call

    run_block(section("Tool Registration").code(), __name__="document")
    try:
        assert ToolRegistry.create("my_tool").execute(input="x") == ToolResult("my_tool", "Processed: x")
        with Jarvis(engine=ScriptedEngine([call("my_tool", input="this data"), "Done."])) as j:
            reply = j.ask_full("Process this data", agent="orchestrator", tools=["my_tool"])
        assert reply["tool_results"][0]["content"] == "Processed: this data"
    finally:
        ToolRegistry._entries.pop("my_tool")


def calls_first_tool(*calls):
    """Return a server's script: the calls in order, one a round, then the last result in words."""
    remaining = list(calls)

    def reply(body):
        offered = [tool["function"]["name"] for tool in body.get("tools", ())]
        if remaining:
            name, arguments = remaining.pop(0)
            assert name in offered
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{len(remaining)}", "type": "function", "function": function}],
            }
        return f"The answer is {body['messages'][-1]['content']}."

    return reply


COMMANDS = {
    "calculator": [("calculator", {"expression": "340 * 15 / 100"})],
    "calculator,think": [("think", {"thought": "2x = 8"}), ("calculator", {"expression": "(13 - 5) / 2"})],
    "calculator,think,retrieval,file_read": [("file_read", {"path": "notes.txt"})],
    "my_tool": [("my_tool", {"input": "this data"})],
}
ANSWERS = {
    "calculator": "The answer is 51.0.\n",
    "calculator,think": "The answer is 4.0.\n",
    "calculator,think,retrieval,file_read": "The answer is Written by hand..\n",
    "my_tool": "The answer is Processed: this data.\n",
}


def commands() -> list[str]:
    blocks = section("Via CLI").code("bash") + section("Tool Registration").code("bash")
    return [line for line in blocks.splitlines() if line.startswith("jarvis ")]


def test_22_the_document_has_four_commands():
    assert [re.search(r"--tools (\S+)", line)[1] for line in commands()] == list(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("line", commands(), ids=list(COMMANDS))
def test_22_command_lines(line, tmp_path):
    """tools.md 22: the lines of the document as a shell runs them, against a strict server."""
    names = re.search(r"--tools (\S+)", line)[1]
    (tmp_path / "notes.txt").write_text("Written by hand.")
    # Another package registers my_tool through the entry-point group, as an installed one does.
    (tmp_path / "my_package.py").write_text(section("Tool Registration").code())
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jarvis_nb.tools]\nmy_tool = my_package:MyTool\n")
    with StrictServer(calls_first_tool(*COMMANDS[names])) as server:
        env = os.environ | {
            "JARVIS_NB_BASE_URL": server.url,
            "PYTHONPATH": str(tmp_path),
            "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"],
        }
        done = subprocess.run(
            line, shell=True, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (0, ANSWERS[names]), done.stderr
        server.assert_accepted()
        question = re.search(r'"(.*)"$', line)[1]
        assert server.requests[0].messages[-1]["content"] == question
        assert [t["function"]["name"] for t in server.requests[0].body["tools"]] == names.split(",")
        assert len(server.requests) == len(COMMANDS[names]) + 1
    for name, _ in COMMANDS[names]:
        assert f"→ {name}" in done.stderr


def test_19_python_sdk_block(monkeypatch):
    """tools.md 19: the block as it stands; the engine is the configured one."""
    calls = [("calculator", {"expression": "pi * 7**2"}), ("think", {"thought": "that is the area"})]
    with StrictServer(calls_first_tool(*calls)) as server:
        monkeypatch.setenv("JARVIS_NB_BASE_URL", server.url)
        names, printed = run_block(section("Via Python SDK").code())
        server.assert_accepted()
    assert printed == [
        "  calculator: 153.93804002589985 (success=True)",
        "  think: that is the area (success=True)",
    ]
    assert names["result"]["content"] == "The answer is that is the area."


def test_19_dependencies_are_wired(tmp_path):
    """tools.md 19: retrieval receives the configured memory, llm the active engine and model."""
    from jarvis_nb import Jarvis
    from jarvis_nb.engines import call
    from jarvis_nb.memory.sqlite import SQLiteMemory

    memory = SQLiteMemory(":memory:")
    memory.store("Refunds take 30 days.", source="refunds.md")
    engine = ScriptedEngine(
        [[call("retrieval", query="refunds"), call("llm", prompt="Say hi.")], "hi", "Done."]
    )
    with Jarvis(engine=engine, model="m1", memory=memory) as j:
        reply = j.ask_full("x", tools=["retrieval", "llm"], context=False)
    memory.close()
    assert "[Source: refunds.md]" in reply.tool_attempts[0].content
    assert reply.tool_attempts[1].content == "hi"
    assert [r.model for r in engine.requests] == ["m1", "m1", "m1"]
