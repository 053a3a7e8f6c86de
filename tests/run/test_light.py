"""What an ask does not import, and what a repeated ask does not make again (design, rule 7; issue 2, speed)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jarvis_nb import Jarvis, Toolset, action
from jarvis_nb.core.errors import MemoryBackendError
from jarvis_nb.engines import ScriptedEngine, call

ASK = """
import sys
from jarvis_nb import Jarvis
from jarvis_nb.engines.base import Completion, InferenceEngine

class Greeter(InferenceEngine):
    async def generate(self, request):
        return Completion({"role": "assistant", "content": "Hello."})

with Jarvis(engine=Greeter(), model="m") as j:
    assert j.ask("Hi") == "Hello."
print(*sorted(sys.modules))
"""


def test_an_answer_without_tools_imports_nothing_that_only_tools_need():
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    heavy = {
        "pydantic",
        "jsonschema",
        "griffe",
        "httpx",
        "numpy",
        "IPython",
        "rich",
        "typer",
        "yaml",
        "difflib",
    }
    assert not loaded & heavy
    assert not {
        name
        for name in loaded
        if name.startswith(("jarvis_nb.widgets", "jarvis_nb.display", "jarvis_nb.memory."))
    }
    assert "jarvis_nb.tools.executor" not in loaded


@action
def lookup(order_id: str) -> dict[str, str]:
    """Look up one order."""
    return {"order_id": order_id}


def test_a_repeated_offer_is_not_made_again():
    with Jarvis(engine=ScriptedEngine([call("lookup", order_id="7"), "Done.", "Done."])) as j:
        first = j.ask_full("Order 7?", tools=[lookup])
        second = j.ask_full("Again?", tools=[lookup])
    assert first.offers[0].entries is second.offers[0].entries
    assert first.definitions is second.definitions
    assert [d.name for d in second.definitions] == ["lookup"]


def test_what_a_reply_keeps_of_a_tool_shares_nothing_with_it():
    made = Toolset([lookup]).definitions()[0].parameters
    assert made == lookup.definition.parameters
    made["properties"]["order_id"]["type"] = "integer"
    assert lookup.definition.parameters["properties"]["order_id"]["type"] == "string"


@pytest.mark.parametrize("tools", [[], [lookup]])
def test_a_call_of_a_tool_that_is_not_there_is_still_refused(tools):
    with Jarvis(engine=ScriptedEngine([call("nothing"), "Sorry."])) as j:
        reply = j.ask_full("?", tools=tools, agent="orchestrator")
    assert [(a.status, a.error.code) for a in reply.tool_attempts] == [("failed", "unknown_tool")]


def test_a_memory_is_made_when_it_is_first_used_and_stays_closed():
    j = Jarvis(engine=ScriptedEngine(["a", "b"]))
    assert not j.has_memory
    j.ask("?")
    assert not j.has_memory
    j.memory.store("Orders ship within two days.")
    assert j.has_memory
    assert j.memory is j.memory
    other = Jarvis(engine=ScriptedEngine(["a"]))
    other.close()
    j.close()
    for closed in (j, other):
        with pytest.raises(MemoryBackendError) as caught:
            closed.memory.store("too late")
        assert caught.value.code == "closed"
