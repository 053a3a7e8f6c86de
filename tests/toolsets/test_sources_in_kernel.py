"""Sources, skills and MCP servers in a real kernel: toolsets.md 6, each declaring cell twice and in any order."""

from __future__ import annotations

import itertools
from ast import literal_eval
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parent / "mcp_servers" / "honest.py"

SETUP = """
import sys, pathlib, tempfile
from jarvis_nb import Jarvis, Secret, Skills, ToolSource
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.toolsets.mcp import MCPSource
root = pathlib.Path(tempfile.mkdtemp())
(root / "refund-policy").mkdir()
_ = (root / "refund-policy" / "SKILL.md").write_text(
    "---\\nname: refund-policy\\ndescription: Apply it.\\n---\\nRefund within 30 days of delivery.\\n")
"""
SOURCE = """
class RatesSource(ToolSource):
    def list_tools(self, config, context):
        return [{"name": "exchange_rate", "description": "Return one exchange rate",
                 "parameter_schema": {"type": "object", "properties": {"currency": {"type": "string"}}}}]
    def run_tool(self, name, arguments, config, context):
        return {"base": config["base"], **arguments, "rate": 0.92}
rates = (RatesSource, {"base": "USD"})
"""
SKILLS = "skills = Skills.source([root])"
MCP = f"far = MCPSource.stdio(sys.executable, [{str(SERVER)!r}], prefix='far_')"
STEPS = "[[call('exchange_rate', currency='EUR'), call('load_skill', name='refund-policy'), call('far_add', a=1)], 'Done.']"
JARVIS = f"j = Jarvis(engine=ScriptedEngine({STEPS}), tool_sources=[rates, skills, far])"
OUTPUTS = [
    {"base": "USD", "currency": "EUR", "rate": 0.92},
    {"instructions": "Refund within 30 days of delivery.\n"},
    {"result": 11},
]


@pytest.fixture(scope="module")
def kernel():
    """Run a cell in a kernel and return the value of its last line."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")

    def run(code):
        said, value = [], None

        def take(message):
            nonlocal value
            content = message["content"]
            if message["msg_type"] == "execute_result":
                value = content["data"]["text/plain"]
            elif message["msg_type"] == "stream":
                said.append(content["text"])

        reply = client.execute_interactive(code, output_hook=take, timeout=60)["content"]
        assert reply["status"] == "ok", "\\n".join(reply.get("traceback", []))
        assert said == []
        return value

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_06_declaring_cells_run_twice_in_any_order_and_ask_either_way(kernel):
    kernel(SETUP)
    for order in itertools.permutations([SOURCE, SKILLS, MCP]):
        for cell in (*order, *order):
            kernel(cell)
    for ask in ("j.ask_full('Hi')", "await j.aask_full('Hi')"):
        kernel(JARVIS)
        kernel(JARVIS)
        kernel(f"reply = {ask}")
        assert literal_eval(kernel("[attempt.output for attempt in reply.tool_attempts]")) == OUTPUTS
    kernel("j.close()")
