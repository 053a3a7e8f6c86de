"""Sources and skills in a whole ask: toolsets.md 3, 16, 22 to 28 and the tutorial's values; skills.md 4 and 5."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from jarvis_nb import Jarvis, Reply, Secret, Skills, ToolError, ToolSource, action
from jarvis_nb.core.errors import InvalidRequest, JarvisError
from jarvis_nb.engines import ScriptedEngine, call

SCHEMA = {"type": "object", "properties": {"currency": {"type": "string"}}, "required": ["currency"]}
RATE = {"name": "exchange_rate", "description": "Return one exchange rate", "parameter_schema": SCHEMA}
ASKED = call("exchange_rate", currency="EUR")


class RatesSource(ToolSource):
    def list_tools(self, config, context):
        return [RATE]

    def run_tool(self, name, arguments, config, context):
        return {"base": config["base"], "currency": arguments["currency"], "rate": 0.92}


def source_of(listing=None, run=None):
    """A source class whose two methods are the given functions (or the list itself)."""

    class Made(ToolSource):
        def list_tools(self, config, context):
            return listing(config, context) if callable(listing) else ([RATE] if listing is None else listing)

        def run_tool(self, name, arguments, config, context):
            return run(name, arguments, config, context)

    return Made


def listed(name):
    return {**RATE, "name": name}


@action
def lookup_order(order_id: str) -> dict:
    """Look up one order by ID."""
    return {"order_id": order_id, "total_cents": 4200}


def asking(steps, sources, **options):
    engine = ScriptedEngine(steps)
    options.setdefault("tools", [lookup_order])
    return engine, Jarvis(engine=engine, tool_sources=sources, **options)


def skill(root, name="refund-policy", body="Refund within 30 days of delivery.\n"):
    file = root / name / "SKILL.md"
    file.parent.mkdir()
    file.write_text(f"---\nname: {name}\ndescription: Apply the refund policy to an order.\n---\n{body}")


# The tutorial's values


def test_tutorial_a_source():
    engine, j = asking([ASKED, "The rate is 0.92."], [(RatesSource, {"base": "USD"})])
    reply = j.ask_full("What is the rate?", tool_policy={"visible": ["exchange_rate"]})
    (attempt,) = reply.tool_attempts
    assert attempt.output == {"base": "USD", "currency": "EUR", "rate": 0.92}
    assert (attempt.tool.kind, attempt.tool.name, attempt.tool.source) == (
        "source",
        "exchange_rate",
        f"{RatesSource.__module__}.RatesSource",
    )
    assert [tool["function"]["name"] for tool in engine.requests[0].tools] == ["exchange_rate"]
    assert engine.requests[1].messages[-1].content == '{"base":"USD","currency":"EUR","rate":0.92}'


def test_tutorial_a_skill(tmp_path):
    skill(tmp_path)
    _, j = asking([call("load_skill", name="refund-policy"), "Yes."], [Skills.source([tmp_path])])
    reply = j.ask_full("Can I refund it?", tool_policy={"visible": ["load_skill"]})
    assert reply.tool_attempts[0].output["instructions"] == "Refund within 30 days of delivery.\n"
    assert reply.tool_attempts[0].tool.kind == "source"


# In order, narrowed, checked


def test_03_source_tools_follow_the_agents_own():
    engine, j = asking(["Hi."], [source_of([listed("b"), listed("a")]), RatesSource])
    j.ask("Hi")
    names = [tool["function"]["name"] for tool in engine.requests[0].tools]
    assert names == ["lookup_order", "b", "a", "exchange_rate"]


def test_16_a_hidden_source_tool_never_runs():
    ran = []
    _, j = asking([ASKED, "No."], [source_of(run=lambda *_: ran.append(1))])
    reply = j.ask_full("Rate?", tool_policy={"hidden": ["exchange_rate"]})
    (attempt,) = reply.tool_attempts
    assert (attempt.ran, attempt.error.code, ran) == (False, "tool_not_offered", [])
    hidden = [entry for entry in reply.offers[0].entries if not entry.offered]
    assert [(entry.name, entry.kind, entry.source) for entry in hidden] == [
        ("exchange_rate", "source", f"{__name__}.source_of.<locals>.Made")
    ]


@pytest.mark.parametrize("arguments", [{}, {"currency": 1.5}, {"currency": "EUR", "base": "GBP"}])
def test_25_bad_arguments_never_reach_the_source(arguments):
    ran = []
    _, j = asking([call("exchange_rate", **arguments), "No."], [source_of(run=lambda *_: ran.append(1))])
    (attempt,) = j.ask_full("Rate?").tool_attempts
    assert (attempt.ran, attempt.error.code, ran) == (False, "invalid_arguments", [])


@pytest.mark.parametrize(
    ("sources", "code"),
    [
        ([(RatesSource, {"client": object()})], "not_portable"),
        ([source_of(lambda *_: 1 / 0)], "source_failed"),
        ([source_of(None), source_of("nonsense")], "invalid_listing"),
        ([RatesSource, RatesSource], "tool_name_clash"),
        ([source_of([listed("lookup_order")])], "tool_name_clash"),
        (["RatesSource"], "invalid_source"),
    ],
)
def test_23_to_26_a_source_that_cannot_be_used_is_an_error_before_any_model_call(sources, code):
    engine = ScriptedEngine(["never"])
    with pytest.raises(JarvisError) as caught:
        Jarvis(engine=engine, tools=[lookup_order], tool_sources=sources).ask("Hi")
    assert caught.value.code == code
    assert engine.requests == []


def test_26_run_tool_that_raises_is_a_tool_error_to_the_model():
    def fail(*_):
        raise RuntimeError("the market is closed")

    engine, j = asking([ASKED, "Closed."], [source_of(run=fail)])
    reply = j.ask_full("Rate?")
    (attempt,) = reply.tool_attempts
    assert (reply.status, attempt.status, attempt.ran, attempt.error.code) == (
        "completed",
        "failed",
        True,
        "tool_failed",
    )
    told = engine.requests[1].messages[-1].content
    assert "the market is closed" in told
    assert "Traceback" not in told


def test_26_a_tool_error_of_the_source_keeps_its_code():
    def fail(*_):
        raise ToolError("no such currency", code="unknown_currency")

    _, j = asking([ASKED, "Unknown."], [source_of(run=fail)])
    assert j.ask_full("Rate?").tool_attempts[0].error.code == "unknown_currency"


@pytest.mark.parametrize("way", ["sync", "async"])
def test_26_run_tool_that_hangs_is_given_up(way):
    class Hangs(RatesSource):
        timeout_seconds = 0.1

        def run_tool(self, *_):
            time.sleep(1)

    class Waits(Hangs):
        async def run_tool(self, *_):
            await asyncio.sleep(60)

    _, j = asking([ASKED, "Too slow."], [Hangs if way == "sync" else Waits])
    start = time.perf_counter()
    (attempt,) = j.ask_full("Rate?").tool_attempts
    assert time.perf_counter() - start < 0.9
    assert attempt.error.code == "tool_timeout"


# Secrets


def test_23_secrets_appear_nowhere(monkeypatch, tmp_path):
    value = "s3cr3t-" + str(41 + 1)
    monkeypatch.setenv("RATES_TOKEN", value)

    def leak(name, arguments, config, context):
        if arguments["currency"] == "ERR":
            raise ValueError(f"401 for {config['token']}")
        return {"echo": config["token"]}

    engine, j = asking(
        [[ASKED, call("exchange_rate", currency="ERR")], "Done."],
        [(source_of(run=leak), {"token": Secret("RATES_TOKEN")})],
    )
    j.bus.record_history = True
    reply = j.ask_full("Rate?")
    reply.save(tmp_path / "turn.json")
    assert reply.tool_attempts[0].output == {"echo": "[secret RATES_TOKEN]"}
    assert "401 for [secret RATES_TOKEN]" in reply.tool_attempts[1].error.message
    shown = [
        (tmp_path / "turn.json").read_text(),
        repr(reply),
        str(reply),
        json.dumps([m.to_openai() for request in engine.requests for m in request.messages]),
        *map(repr, j.bus.history),
        *map(repr, reply.tool_attempts),
    ]
    assert len(j.bus.history) > 5
    assert not [text for text in shown if value in text]
    assert Reply.load(tmp_path / "turn.json") == reply


def test_23_a_secret_of_the_config_reaches_the_source(monkeypatch):
    monkeypatch.delenv("RATES_TOKEN", raising=False)
    seen = []
    _, j = asking(
        [ASKED, "Done."],
        [(source_of(run=lambda *a: seen.append(a[2]["token"])), {"token": Secret("RATES_TOKEN")})],
        config={"secrets": {"RATES_TOKEN": "from-config"}},
    )
    j.ask("Rate?")
    assert seen == ["from-config"]


def test_the_run_context_reaches_the_source():
    seen = []
    made = source_of(
        lambda _, context: seen.append(context["tenant"]) or [RATE], lambda *a: seen.append(a[3]["tenant"])
    )
    _, j = asking([ASKED, "Done."], [made], tool_context={"tenant": "acme"})
    j.ask("Rate?")
    assert seen == ["acme", "acme"]


def test_listing_happens_once_an_ask():
    count = []
    _, j = asking(
        [ASKED, ASKED, "Done.", "Hi."], [source_of(lambda *_: count.append(1) or [RATE], lambda *_: 1)]
    )
    j.ask("Rate?")
    assert len(count) == 1
    j.ask("Hi")
    assert len(count) == 2


# Skills


def test_04_a_skill_is_never_cut(tmp_path):
    body = "".join(f"Line {index}: é.\n" for index in range(15_000))
    skill(tmp_path, body=body)
    engine, j = asking([call("load_skill", name="refund-policy"), "Done."], [Skills.source([tmp_path])])
    (attempt,) = j.ask_full("Load it").tool_attempts
    assert attempt.output == {"instructions": body}
    assert attempt.truncated is False
    assert json.loads(engine.requests[1].messages[-1].content) == {"instructions": body}


def test_05_an_unknown_skill_is_told_with_the_valid_names(tmp_path):
    skill(tmp_path)
    engine, j = asking([call("load_skill", name="../etc"), "No."], [Skills.source([tmp_path])])
    (attempt,) = j.ask_full("Load it").tool_attempts
    assert (attempt.status, attempt.ran) == ("failed", False)
    assert "refund-policy" in engine.requests[1].messages[-1].content


def test_06_a_skill_that_goes_away_during_the_run_is_unavailable(tmp_path):
    skill(tmp_path)

    def remove(request):
        (tmp_path / "refund-policy" / "SKILL.md").unlink()
        return call("load_skill", name="refund-policy")

    _, j = asking([remove, "Gone."], [Skills.source([tmp_path])])
    (attempt,) = j.ask_full("Load it").tool_attempts
    assert attempt.error.code == "skill_unavailable"


# Untrusted requests


@pytest.mark.parametrize(
    "data",
    [
        {"input": "Hi", "tool_sources": [{"module": "os"}]},
        {"input": "Hi", "tools": ["file_read"]},
        '{"input": "Hi", "context": {}}',
        {"input": "Hi", "tool_policy": {"visible": ["exchange_rate"], "sources": []}},
        {"input": "Hi", "tool_policy": {"visible": ["file_read"]}},
    ],
)
def test_22_a_hostile_request_is_refused_before_anything_is_listed_or_asked(data):
    count = []
    engine, j = asking(["never"], [source_of(lambda *_: count.append(1) or [RATE])])
    with pytest.raises(InvalidRequest) as caught:
        j.ask_request(data)
    assert engine.requests == []
    if caught.value.code != "unknown_tools":
        assert caught.value.code in ("invalid_request", "invalid_policy")
        assert count == []


def test_a_request_may_narrow():
    engine, j = asking([ASKED, "0.92"], [(RatesSource, {"base": "USD"})])
    reply = j.ask_request({"input": "Rate?", "tool_policy": {"visible": ["exchange_rate"]}})
    assert reply.tool_attempts[0].output["rate"] == 0.92
    assert len(engine.requests[0].tools) == 1
