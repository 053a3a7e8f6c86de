"""local.md 1, 5, 6, 7: the embedded engine as a user has it, on the real model."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.registry import EngineRegistry, ToolRegistry
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.types import Definitions, Message, Role, ToolDefinition
from jarvis_nb.engines import LocalEngine, Request, llama, models
from jarvis_nb.engines.base import Completion, Piece

MODEL = models.model_path()
with_model = pytest.mark.skipif(not MODEL.is_file(), reason="the model is not here: jarvis models fetch")
DEVELOPMENT = Path(__file__).parents[2] / "benchmarks" / "data" / "embedded.json"
BUILT_IN = [ToolRegistry.create(name) for name in ("calculator", "think", "retrieval", "llm", "file_read")]
OFFERED = Definitions([tool.definition for tool in BUILT_IN])
EXAMPLES = {tool.name: tool.spec.metadata["examples"] for tool in BUILT_IN}


def ask(question: str, tools: Any = (), choice: Any = "auto", **more: Any) -> Request:
    return Request("", [Message(Role.USER, question)], tools or None, choice if tools else None, **more)


async def once(engine: LocalEngine, request: Request) -> Completion:
    try:
        return await engine.generate(request)
    finally:
        await engine.close()


def test_it_is_the_engine_called_local() -> None:
    """local.md 1."""
    assert EngineRegistry.get("local") is LocalEngine
    assert LocalEngine.engine_id == "local"
    assert repr(LocalEngine()) == "LocalEngine('smollm2-135m')"
    assert LocalEngine().wants_examples  # local.md 5


def test_without_the_model_the_error_names_the_one_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """local.md 3: nothing downloads in an ask."""
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path))
    monkeypatch.delenv("JARVIS_NB_GGUF", raising=False)
    with pytest.raises(EngineError, match="run once: jarvis models fetch") as caught:
        asyncio.run(LocalEngine().generate(ask("Hi")))
    assert caught.value.code == "no_model"
    assert asyncio.run(LocalEngine().health()) is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["path=", "JARVIS_NB_GGUF"])
def test_a_path_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way == "path=":
        engine = LocalEngine(path="/no/such/model.gguf")
    else:
        monkeypatch.setenv("JARVIS_NB_GGUF", "/no/such/model.gguf")
        engine = LocalEngine()
    assert engine.default_model == "model"
    with pytest.raises(EngineError, match=f"'/no/such/model.gguf'.*check {way}") as caught:
        asyncio.run(engine.generate(ask("Hi")))
    assert caught.value.code == "no_model"


@pytest.mark.parametrize("options", [{"threads": 0}, {"context": 10}])
def test_settings_that_cannot_work_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        LocalEngine(**options)
    assert caught.value.code == "invalid_engine"


def test_an_unknown_model_lists_the_known() -> None:
    with pytest.raises(EngineError, match="smollm2-135m") as caught:
        LocalEngine("gpt-9")
    assert caught.value.code == "unknown_model"


# With the real model.


@pytest.mark.slow
@with_model
def test_the_demo_question_is_answered_by_a_call_with_the_number_unchanged() -> None:
    """local.md 1: the call is valid, its argument the model's, the answer holds the result; the question is no example."""
    question = "What is 15% of 340?"
    assert question not in [asked for examples in EXAMPLES.values() for asked, _ in examples]
    tools = Definitions(OFFERED[:2])
    engine = LocalEngine()

    async def scene() -> None:
        called = await engine.generate(ask(question, tools, examples=EXAMPLES))
        assert called.provenance == {"tool": "router", "arguments": "model"}
        (call,) = called.message["tool_calls"]
        result = BUILT_IN[0].execute(**json.loads(call["function"]["arguments"]))
        assert result.content == "51.0"
        messages = [Message(Role.USER, question), Message.from_openai(called.message)]
        messages.append(Message(Role.TOOL, result.content, tool_call_id=call["id"]))
        told = await engine.generate(Request("", messages, tools, "auto", examples=EXAMPLES))
        assert told.provenance == {"answer": "model"}
        assert "51.0" in told.message["content"]
        assert (told.model, told.finish_reason) == ("smollm2-135m", "stop")
        assert told.usage.completion_tokens > 0
        await engine.close()

    asyncio.run(scene())


@pytest.mark.slow
@with_model
@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is 8% of 1250?", 100),
        ("How much is 12 percent of 90?", 10.8),
        ("What is 17 plus 25?", 42),
        ("Multiply 19 by 23.", 437),
    ],
)
def test_the_same_method_answers_questions_of_its_kind(question: str, value: float) -> None:
    found = asyncio.run(once(LocalEngine(), ask(question, Definitions(OFFERED[:2]), examples=EXAMPLES)))
    arguments = json.loads(found.message["tool_calls"][0]["function"]["arguments"])
    assert float(BUILT_IN[0].execute(**arguments).content) == pytest.approx(value)


@pytest.mark.slow
@pytest.mark.timeout(900)
@with_model
def test_same_question_same_bytes_in_any_order() -> None:
    """local.md 6: over 50 calls, three times, each time in another order, on engines of their own."""
    rows = json.loads(DEVELOPMENT.read_text(encoding="utf-8"))
    tools = Definitions(
        [*OFFERED, *(ToolDefinition(t["name"], t["description"], t["parameters"]) for t in rows["tools"])]
    )
    questions = [*dict.fromkeys(row["question"] for row in rows["questions"])][::2][:51]

    async def round_of(order: list[str]) -> dict[str, str]:
        engine = LocalEngine()
        found: dict[str, str] = {}
        try:
            for question in order:
                completion = await engine.generate(ask(question, tools, examples=EXAMPLES, max_tokens=24))
                found[question] = hashlib.sha256(json.dumps(completion.message).encode()).hexdigest()
        finally:
            await engine.close()
        return found

    first = asyncio.run(round_of(questions))
    assert len(first) >= 50
    for seed in (1, 2):
        shuffled = questions.copy()
        random.Random(seed).shuffle(shuffled)
        assert asyncio.run(round_of(shuffled)) == first


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 9, "multipleOf": 2}}, "required": ["n"]},
    {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}}, "required": ["tags"]},
    {"type": "object", "properties": {"kind": {"enum": ["a", "b", None]}, "note": {"type": ["string", "null"], "maxLength": 4}}, "required": ["kind", "note"]},
    {"type": "object", "properties": {"date": {"type": "string", "format": "date"}, "ok": {"type": "boolean"}}, "required": ["date", "ok"]},
    {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}}, "required": ["code"]},
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}}}, "required": ["n"]},
    {"type": "object", "properties": {"either": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}]}}, "required": ["either"]},
    {"$defs": {"N": {"type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/N"}}, "required": ["v"]}}, "type": "object", "properties": {"list": {"$ref": "#/$defs/N"}}, "required": ["list"]},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {}},
]  # fmt: skip


@pytest.mark.slow
@with_model
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: "-".join(schema.get("properties", schema)))
def test_calls_are_always_valid(schema: dict[str, Any]) -> None:
    """local.md 5: also what a grammar cannot express."""
    from jsonschema import Draft202012Validator

    tool = ToolDefinition("record", "Record what was said.", canonical_schema(schema))
    found = asyncio.run(
        once(LocalEngine(), ask("Record 7 things about AB-123 for Tom", Definitions([tool]), "required"))
    )
    arguments = json.loads(found.message["tool_calls"][0]["function"]["arguments"])
    assert list(Draft202012Validator(tool.parameters).iter_errors(arguments)) == []


@pytest.mark.slow
@with_model
def test_engines_share_one_model_and_the_last_close_frees_it() -> None:
    """local.md 7."""

    async def scene() -> None:
        one, two, three = LocalEngine(), LocalEngine(), LocalEngine()
        for engine in (one, two, three):
            await engine.generate(ask("Hi", max_tokens=1))
        (held,) = llama._Process.loaded.values()
        assert held[1] == 3
        await one.close()
        await one.close()  # twice is safe
        assert held[0].loaded
        await two.close()
        del three, engine  # dropped without close
        gc.collect()
        assert llama._Process.loaded == {}
        assert not held[0].loaded
        await one.generate(ask("Hi", max_tokens=1))  # and it comes back
        await one.close()

    asyncio.run(scene())


@pytest.mark.slow
@with_model
def test_loading_is_told_to_the_callback_and_both_buses() -> None:
    """local.md 7: with progress."""
    own, runs = EventBus(record_history=True), EventBus(record_history=True)
    seen: list[str] = []
    engine = LocalEngine(bus=own, progress=lambda *report: seen.append(report[2]))
    asyncio.run(once(engine, ask("Hi", max_tokens=1, bus=runs)))
    assert len(seen) == 4
    for bus in (own, runs):
        assert [event.event_type for event in bus.history] == [EventType.MODEL_LOAD] * 4
        assert bus.history[-1].data == {
            "model": "smollm2-135m",
            "done": 3,
            "total": 3,
            "text": "smollm2-135m.gguf is ready",
        }


@pytest.mark.slow
@with_model
def test_an_answer_streams_in_pieces_and_leaving_the_stream_stops_it() -> None:
    async def scene() -> None:
        engine = LocalEngine()
        seen = [item async for item in engine.stream(ask("What is the capital of France?", max_tokens=16))]
        pieces = [item.text for item in seen if isinstance(item, Piece)]
        assert len(pieces) > 3
        assert isinstance(seen[-1], Completion)
        assert "".join(pieces).strip() == seen[-1].message["content"]
        left = engine.stream(ask("Tell a very long story.", max_tokens=1500))
        async for _ in left:
            break
        started = time.perf_counter()
        await left.aclose()
        await engine.generate(ask("Hi", max_tokens=1))
        assert time.perf_counter() - started < 5
        await engine.close()

    asyncio.run(scene())


@pytest.mark.slow
@with_model
def test_a_gguf_of_the_users_own(tmp_path: Path) -> None:
    """local.md 3: `path=` takes any GGUF; an unknown file is tried in a process of its own first."""
    path = tmp_path / "mine.gguf"
    shutil.copy(MODEL, path)
    with path.open("r+b") as file:  # other weights than the known ones, still a whole file
        file.seek(-2, 2)
        file.write(b"\x01")
    engine = LocalEngine(path=path)
    assert engine.default_model == "mine"
    found = asyncio.run(
        once(engine, ask("What is 17 plus 25?", Definitions(OFFERED[:1]), "required", examples=EXAMPLES))
    )
    assert found.model == "mine"
    assert found.message["tool_calls"]


@pytest.mark.slow
@with_model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_stays_under_300_megabytes_and_a_call_under_a_second() -> None:
    """local.md 7 and the target of the first table: a process that loads, routes, calls and answers."""
    code = """
import asyncio, time
from pathlib import Path
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import Definitions, Message, Role
from jarvis_nb.engines import LocalEngine, Request
tools = [ToolRegistry.create(name) for name in ("calculator", "think", "file_read")]
examples = {tool.name: tool.spec.metadata["examples"] for tool in tools}
async def main():
    engine, spent = LocalEngine(), []
    for n in range(12):
        messages = [Message(Role.USER, f"What is {n + 3}% of {n + 200}?")]
        started = time.process_time()
        await engine.generate(Request("", messages, Definitions([t.definition for t in tools]), "auto", examples=examples))
        spent.append(time.process_time() - started)
    await engine.generate(Request("", [Message(Role.USER, "word " * 1500)], max_tokens=300))
    await engine.close()
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(peak, sorted(spent)[6])
asyncio.run(main())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    megabytes, seconds = map(float, out.stdout.split())
    assert megabytes < 300
    assert seconds < 1.0  # of CPU, on one thread: wall time on a machine that does nothing else
