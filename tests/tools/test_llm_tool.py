from __future__ import annotations

import asyncio
import threading

import pytest

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import Role, Usage
from jarvis_nb.engines.base import Completion, InferenceEngine, Request
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.tools.llm_tool import LLMTool


class Recorder(InferenceEngine):
    """Answers with what it was given and keeps the requests."""

    engine_id = "recorder"

    def __init__(self, content="Short.", error=None, default="", name="recorder"):
        self.named = name
        self.content, self.error, self.default = content, error, default
        self.requests: list[Request] = []
        self.thread = ""

    async def generate(self, request):
        self.requests.append(request)
        self.thread = threading.current_thread().name
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return Completion(
            {"role": "assistant", "content": self.content}, "stop", Usage(1000, 100), request.model
        )

    @property
    def name(self):
        return self.named

    @property
    def default_model(self):
        return self.default


def test_reference_example():
    """Reference, LLM: the code block as it stands there."""
    my_engine = Recorder()
    llm = LLMTool(engine=my_engine, model="qwen3:8b")
    result = llm.execute(
        prompt="Summarize: AI is transforming industries...",
        system="You are a concise summarizer.",
    )
    assert result.content == "Short."
    (request,) = my_engine.requests
    assert request.model == "qwen3:8b"
    assert [(m.role, m.content) for m in request.messages] == [
        (Role.SYSTEM, "You are a concise summarizer."),
        (Role.USER, "Summarize: AI is transforming industries..."),
    ]
    assert request.tools is None


def test_12_usage_and_cost_on_the_result():
    """tools.md 12: tokens as the engine counted them; a price that is known, else 0.0."""
    known = LLMTool(Recorder(name="openai"), "gpt-4o-mini").execute(prompt="x")
    assert known.usage == {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    assert 0 < known.cost_usd < 0.01
    assert LLMTool(Recorder(name="openai"), "no-such-model").execute(prompt="x").cost_usd == 0.0


@pytest.mark.parametrize("system", [None, "", "  "])
def test_12_system_is_optional(system):
    """Reference, LLM: system is not required."""
    engine = Recorder()
    assert LLMTool(engine, "m").execute(prompt="x", system=system).success
    assert len(engine.requests[0].messages) == 1


def test_12_the_engines_default_model_is_used():
    """tools.md 12: no model fails only where the engine has none either."""
    engine = Recorder(default="house-model")
    assert LLMTool(engine).execute(prompt="x").success
    assert engine.requests[0].model == "house-model"


@pytest.mark.parametrize(
    ("tool", "params", "code"),
    [
        (LLMTool(), {"prompt": "x"}, "no_engine"),
        (LLMTool(Recorder()), {"prompt": "x"}, "no_model"),
        (LLMTool(Recorder(), "m"), {}, "invalid_arguments"),
        (LLMTool(Recorder(), "m"), {"prompt": None}, "invalid_arguments"),
        (LLMTool(Recorder(), "m"), {"prompt": ["x"]}, "invalid_arguments"),
        (LLMTool(Recorder(), "m"), {"prompt": -1}, "invalid_arguments"),
        (LLMTool(Recorder(), "m"), {"prompt": "x", "system": 3}, "invalid_arguments"),
        (LLMTool(Recorder(), "m"), {"prompt": " "}, "empty_prompt"),
        (LLMTool(Recorder(content=None), "m"), {"prompt": "x"}, "empty_answer"),
        (LLMTool(Recorder(error=EngineError("down", code="connection")), "m"), {"prompt": "x"}, "connection"),
        (LLMTool(Recorder(error=RuntimeError("odd")), "m"), {"prompt": "x"}, "tool_failed"),
        (LLMTool("ollama", "m"), {"prompt": "x"}, "tool_failed"),
    ],
)
def test_12_failures_are_results(tool, params, code):
    """tools.md 12: no engine or model, odd values and a failing engine give a failed result."""
    result = tool.execute(**params)
    assert (result.success, result.metadata["code"]) == (False, code)


def test_12_a_stand_in_is_resolved_to_the_engine_it_stands_for():
    """Through the facade the engine may be found on first use: model, price and name are the real one's."""

    class StandIn(Recorder):
        async def resolve(self):
            return Recorder(name="openai"), "gpt-4o-mini"

    result = LLMTool(StandIn()).execute(prompt="x")
    assert result.metadata == {"model": "gpt-4o-mini", "engine": "openai"}
    assert result.cost_usd > 0


def test_12_works_under_a_running_loop():
    """tools.md 21: sync calls work under a running event loop."""

    async def cell():
        return LLMTool(Recorder(), "m").execute(prompt="x").content

    assert asyncio.run(cell()) == "Short."


def test_12_the_executor_path_is_async():
    """The executor awaits the engine on its own loop: no thread is spent on waiting."""
    engine = Recorder()
    tool = LLMTool(engine, "m")

    async def loop():
        return await tool.invoke({"prompt": "x"}, ToolContext()), threading.current_thread().name

    assert tool.is_async
    result, name = asyncio.run(loop())
    assert (result.content, engine.thread) == ("Short.", name)


def test_12_content_parts_are_joined():
    """An engine may answer with a list of OpenAI content parts."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert LLMTool(Recorder(parts), "m").execute(prompt="x").content == "ab"


def test_spec_is_the_references():
    """Reference, LLM; local.md 5."""
    tool = ToolRegistry.create("llm")
    assert (tool.tool_id, tool.spec.category, tool.spec.parameters["required"]) == (
        "llm",
        "inference",
        ["prompt"],
    )
    assert set(tool.spec.parameters["properties"]) == {"prompt", "system"}
    examples = tool.spec.metadata["examples"]
    assert len(examples) == 10
    assert all(LLMTool(Recorder(), "m").execute(**arguments).success for _, arguments in examples)
