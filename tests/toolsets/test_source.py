"""Tool sources: contracts toolsets.md 3, 5, 21 to 26."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb import Secret, ToolContext, ToolError, ToolResult, ToolSource
from jarvis_nb.core.errors import InvalidRequest, JarvisError, NotPortable, SourceError, ToolsetError
from jarvis_nb.core.portable import portable
from jarvis_nb.toolsets.scrub import Scrubber
from jarvis_nb.toolsets.source import SourceSpec, close_sources, load_sources, source_specs

SCHEMA = {"type": "object", "properties": {"currency": {"type": "string"}}, "required": ["currency"]}
RATE = {"name": "exchange_rate", "description": "Return one exchange rate", "parameter_schema": SCHEMA}


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


def listed(name="exchange_rate", **changes):
    return {**RATE, "name": name, **changes}


def load(*specs, context=None, taken=None, timeout=5.0):
    return asyncio.run(load_sources(specs, context, taken=taken, timeout=timeout))


def run(tool, context=None, **arguments):
    async def go():
        value = tool.invoke(arguments, ToolContext() if context is None else context)
        return await value if asyncio.iscoroutine(value) else value

    return asyncio.run(go())


def refused(*specs, kind=JarvisError, **options):
    with pytest.raises(kind) as caught:
        load(*specs, **options)
    return caught.value


# 21: the interface


@pytest.mark.parametrize("way", ["pair", "class", "instance", "instance and config", "spec", "list pair"])
def test_21_a_source_is_given_as_class_or_instance_with_or_without_config(way):
    class Defaulted(RatesSource):
        def __init__(self):
            self.config = {"base": "EUR"}

    given_ = {
        "pair": (RatesSource, {"base": "USD"}),
        "list pair": [RatesSource, {"base": "USD"}],
        "class": Defaulted,
        "instance": Defaulted(),
        "instance and config": (Defaulted(), {"base": "USD"}),
        "spec": SourceSpec.of((RatesSource, {"base": "USD"})),
    }[way]
    (tool,) = load(given_)
    assert tool.definition.name == "exchange_rate"
    assert tool.definition.description == "Return one exchange rate"
    assert tool.definition.parameters == {**SCHEMA, "additionalProperties": False}
    base = "EUR" if way in ("class", "instance") else "USD"
    assert run(tool, currency="EUR") == {"base": base, "currency": "EUR", "rate": 0.92}


def test_21_both_methods_may_be_async():
    class Async(ToolSource):
        async def list_tools(self, config, context):
            await asyncio.sleep(0)
            return [RATE]

        async def run_tool(self, name, arguments, config, context):
            await asyncio.sleep(0)
            return [name, arguments]

    (tool,) = load(Async)
    assert tool.is_async
    assert run(tool, currency="EUR") == ["exchange_rate", {"currency": "EUR"}]


def test_21_a_plain_function_that_gives_a_coroutine_is_awaited():
    async def later(*_):
        return [RATE]

    async def answer(*_):
        return "done"

    (tool,) = load(source_of(later, answer))
    assert run(tool, currency="EUR") == "done"


def test_21_synchronous_listing_runs_on_a_worker_thread():
    seen = []
    load(source_of(lambda *_: seen.append(threading.current_thread()) or [RATE]))
    assert seen[0] is not threading.current_thread()


def test_21_the_host_context_reaches_both_methods():
    seen = []
    made = source_of(lambda _, context: seen.append(context["tenant"]) or [RATE], lambda *a: a[3]["tenant"])
    (tool,) = load(made, context={"tenant": "acme"})
    assert run(tool, ToolContext({"tenant": "acme"}), currency="EUR") == "acme"
    assert seen == ["acme"]


@pytest.mark.parametrize("value", [None, True, 7, 0.92, "text", [1, "two"], {"a": {"b": []}}])
def test_21_a_result_is_any_json_value(value):
    (tool,) = load(source_of(run=lambda *_: value))
    assert run(tool, currency="EUR") == value


def test_21_a_tool_result_passes_through():
    (tool,) = load(source_of(run=lambda *_: ToolResult("x", "text")))
    assert run(tool, currency="EUR").content == "text"


# 28: what the attempt and the ledger say


def test_28_kind_and_string_id():
    class Named(RatesSource):
        id = "rates"

    tools = [load(RatesSource)[0], load((Named, {"base": "USD"}))[0]]
    assert [tool.kind for tool in tools] == ["source", "source"]
    assert [tool.source for tool in tools] == [f"{__name__}.RatesSource", "rates"]


# 3, 24: order and clashes


def test_03_source_tools_follow_in_list_order_and_each_source_is_listed_once():
    calls = []

    def slow(*_):
        calls.append("slow")
        time.sleep(0.05)
        return [listed("b"), listed("a")]

    tools = load(source_of(slow), source_of(lambda *_: calls.append("fast") or [listed("c")]))
    assert [tool.name for tool in tools] == ["b", "a", "c"]
    assert sorted(calls) == ["fast", "slow"]


def test_03_an_empty_list_is_fine():
    assert load(source_of([])) == []
    assert load() == []


def test_24_a_clash_with_the_agents_tools_names_both_owners():
    error = refused((RatesSource, {}), taken={"exchange_rate": "the agent"}, kind=ToolsetError)
    assert error.code == "tool_name_clash"
    assert "the agent" in error.message
    assert f"{__name__}.RatesSource" in error.message


def test_24_a_clash_between_sources_names_both_owners():
    class Other(RatesSource):
        id = "other-rates"

    error = refused(RatesSource, Other)
    assert error.code == "tool_name_clash"
    assert "RatesSource" in error.message
    assert "other-rates" in error.message


def test_24_a_clash_inside_one_source():
    error = refused(source_of([listed("a"), listed("a")]))
    assert error.code == "tool_name_clash"


def test_24_names_differing_in_case_clash():
    assert refused((RatesSource, {}), taken={"Exchange_Rate": "agent"}).code == "tool_name_clash"


# 5: names


@pytest.mark.parametrize("name", ["a", "get-weather", "x" * 63, "a_1-b"])
def test_05_a_source_name_may_hold_hyphens(name):
    assert load(source_of([listed(name)]))[0].name == name


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("getWeather", "get_weather"),
        ("Get Weather", "get_weather"),
        ("1st", "tool_1st"),
        ("a.b/c", "a_b_c"),
        ("wetter_für", "wetter_f_r"),
        ("a\n", "a"),
        ("", "tool"),
        ("x" * 64, "x" * 63),
        ("../../etc/passwd", "etc_passwd"),
    ],
)
def test_05_an_illegal_name_is_rejected_with_a_legal_one(name, suggested):
    error = refused(source_of([listed(name)]), kind=SourceError)
    assert error.code == "invalid_name"
    assert repr(suggested) in error.hint


def test_05_a_renamed_copy_still_runs_under_the_source_name():
    (tool,) = load(source_of(run=lambda name, *_: name))
    renamed = tool.with_name("rates_eur")
    assert (renamed.name, renamed.definition.name, tool.name) == ("rates_eur", "rates_eur", "exchange_rate")
    assert run(renamed, currency="EUR") == "exchange_rate"


# 22: given by the host


@pytest.mark.parametrize(
    "bad", ["RatesSource", 7, {"source": "x"}, object, (RatesSource, {}, 1), ("x", {}), None]
)
def test_22_what_is_not_a_source_is_refused(bad):
    error = refused(bad, kind=InvalidRequest)
    assert error.code == "invalid_source"
    assert "tool_sources[0]" in error.message


@pytest.mark.parametrize("bad", ["x", {"a": 1}, 7])
def test_22_tool_sources_is_a_list(bad):
    with pytest.raises(InvalidRequest, match="not a list"):
        source_specs(bad)


def test_22_a_class_that_cannot_be_made_is_refused_with_the_reason():
    class Half(ToolSource):
        def list_tools(self, config, context):
            return []

    assert "run_tool" in refused(Half, kind=InvalidRequest).message


# 23: portable data and secrets


class Handle:
    pass


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"client": Handle()}, "tool_sources[0].config.client"),
        ({"a": [1, {"f": print}]}, "tool_sources[0].config.a[1].f"),
        ({"rate": float("nan")}, "tool_sources[0].config.rate"),
        ({1: "x"}, "tool_sources[0].config"),
        ({"lock": threading.Lock()}, "tool_sources[0].config.lock"),
        ({"raw": b"x"}, "tool_sources[0].config.raw"),
    ],
)
def test_23_a_config_that_is_not_portable_fails_the_request_with_its_path(config, path):
    error = refused((RatesSource, config), kind=NotPortable)
    assert error.code == "not_portable"
    assert error.value == path
    assert path in error.message


def test_23_no_source_is_listed_when_another_has_a_bad_config():
    calls = []
    refused(source_of(lambda *_: calls.append(1) or []), (RatesSource, {"f": print}))
    assert calls == []


def test_23_a_definition_that_is_not_portable_fails_with_its_path():
    error = refused(source_of([listed(parameter_schema={**SCHEMA, "x": print})]), kind=SourceError)
    assert error.code == "not_portable"
    assert "list_tools[0].parameter_schema.x" in error.message


def test_23_tuples_become_lists_and_calls_cannot_change_the_config():
    def spoil(name, arguments, config, context):
        config["days"].append(99)
        return config["days"]

    (tool,) = load((source_of(run=spoil), {"days": (1, 2)}))
    assert [run(tool, currency="EUR"), run(tool, currency="EUR")] == [[1, 2, 99], [1, 2, 99]]


def test_23_a_secret_is_a_reference_when_listing_and_a_value_when_running(monkeypatch):
    monkeypatch.setenv("RATES_TOKEN", "s3cr3t-token")
    seen = []
    made = source_of(
        lambda config, _: seen.append(config["token"]) or [RATE],
        lambda name, arguments, config, context: seen.append(config["token"]) or "ok",
    )
    (tool,) = load((made, {"token": Secret("RATES_TOKEN")}))
    run(tool, currency="EUR")
    assert seen == [Secret("RATES_TOKEN"), "s3cr3t-token"]


def test_23_a_source_that_needs_its_secret_to_list_resolves_it_itself():
    seen = []
    made = source_of(lambda config, context: seen.append(config["token"].resolve(context.secrets)) or [RATE])
    load((made, {"token": Secret("T_LIST")}), context=ToolContext(secrets={"T_LIST": "from-config"}))
    assert seen == ["from-config"]


def test_23_a_secret_that_is_not_set_is_an_error_of_the_call_that_names_it():
    (tool,) = load((source_of(run=lambda *_: 1), {"token": Secret("NOT_SET_ANYWHERE")}))
    with pytest.raises(InvalidRequest, match="NOT_SET_ANYWHERE") as caught:
        run(tool, currency="EUR")
    assert caught.value.code == "missing_secret"


TOKEN = 'p@ss/w ord"é'
LEAKS = [TOKEN, "p%40ss/w%20ord%22%C3%A9", "p%40ss%2Fw+ord%22%C3%A9", 'p@ss/w ord\\"\\u00e9']


@pytest.mark.parametrize("leak", LEAKS)
def test_23_secret_values_are_scrubbed_from_outputs(leak):
    value = {"echo": f"key={leak}", leak: [leak], "n": 1}
    (tool,) = load((source_of(run=lambda *_: value), {"token": Secret("T")}))
    out = run(tool, ToolContext(secrets={"T": TOKEN}), currency="EUR")
    assert out == {"echo": "key=[secret T]", "[secret T]": ["[secret T]"], "n": 1}


@pytest.mark.parametrize("error", [ValueError, ToolError])
def test_23_secret_values_are_scrubbed_from_errors_and_their_tracebacks(error, monkeypatch):
    value = "s3cr3t-" + str(41 + 1)  # a traceback shows this file's lines too
    monkeypatch.setenv("T", value)

    def inner(config):
        raise RuntimeError(f"inner {config['token']}")

    def fail(name, arguments, config, context):
        try:
            inner(config)
        except RuntimeError as cause:
            raise error(f"GET https://api/?k={config['token']} failed") from cause

    (tool,) = load((source_of(run=fail), {"token": Secret("T")}))
    with pytest.raises(ToolError) as caught:
        run(tool, currency="EUR")
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value) + repr(caught.value)
    assert value not in shown
    assert "k=[secret T] failed" in caught.value.message
    assert "inner [secret T]" in shown


def test_23_an_error_without_a_secret_keeps_its_own_traceback():
    def fail(*_):
        raise ValueError("rates are closed")

    (tool,) = load((source_of(run=fail), {"token": Secret("T")}))
    with pytest.raises(ValueError, match="rates are closed"):
        run(tool, ToolContext(secrets={"T": "s3cr3t-token"}), currency="EUR")


def test_23_a_listing_error_shows_no_secret():
    def fail(config, context):
        raise ConnectionError(f"401 for {config['token'].resolve(context.secrets)}")

    error = refused(
        (source_of(fail), {"token": Secret("T")}),
        context=ToolContext(secrets={"T": "s3cr3t-token"}),
        kind=SourceError,
    )
    assert "401 for [secret T]" in error.message
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_23_a_definition_with_a_secret_in_it_is_refused():
    made = source_of(lambda c, x: [listed(description=f"Rates for {c['token'].resolve(x.secrets)}")])
    error = refused((made, {"token": Secret("T")}), context=ToolContext(secrets={"T": "s3cr3t-token"}))
    assert error.code == "secret_in_definition"
    assert "s3cr3t" not in str(error)


def test_23_reprs_and_saved_specs_hold_references_only(monkeypatch):
    monkeypatch.setenv("RATES_TOKEN", "s3cr3t-token")
    spec = SourceSpec.of((RatesSource, {"base": "USD", "auth": {"token": Secret("RATES_TOKEN")}}))
    (tool,) = load(spec)
    assert repr(spec) == f"SourceSpec('{__name__}.RatesSource')"
    assert repr(tool) == "SourceTool('exchange_rate')"
    assert spec.to_dict() == {
        "source": f"{__name__}.RatesSource",
        "config": {"base": "USD", "auth": {"token": {"$secret": "RATES_TOKEN"}}},
    }
    assert portable(spec.to_dict()) == spec.to_dict()


words = st.text('abcXYZ%/ "é\\', max_size=12)
plain = st.recursive(
    words | st.integers() | st.none(), lambda c: st.lists(c) | st.dictionaries(words, c), max_leaves=8
)


@given(plain)
def test_23_scrubbing_leaves_no_value_and_without_secrets_changes_nothing(data):
    scrub = Scrubber([Secret("ONE")], {"ONE": "aX"})
    assert "aX" not in str(scrub.value(data))
    assert Scrubber({}).value(data) is data


# 25: schemas


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema"}}},
        {"type": "object", "properties": {"x": {"type": "nonsense"}}},
        {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5_000)}},
    ],
)
def test_25_a_schema_that_is_no_object_invalid_remote_or_unbounded_fails_the_request(schema):
    error = refused(source_of([listed("good"), listed("bad", parameter_schema=schema)]), kind=SourceError)
    assert "'bad'" in error.message
    assert error.code == "invalid_schema"


@pytest.mark.parametrize(
    ("arguments", "ok"),
    [
        ({"currency": "EUR"}, True),
        ({}, False),
        ({"currency": 1.5}, False),
        ({"currency": "EUR", "x": 1}, False),
    ],
)
def test_25_arguments_are_validated_before_run_tool(arguments, ok):
    calls = []
    (tool,) = load(source_of(run=lambda *a: calls.append(a[1]) or "ran"))
    if ok:
        assert run(tool, **tool.check_arguments(arguments)) == "ran"
    else:
        with pytest.raises(JarvisError) as caught:
            tool.check_arguments(arguments)
        assert caught.value.code == "invalid_arguments"
    assert calls == ([arguments] if ok else [])


# 26: failures


def raising(*_):
    raise OSError("no route to host")


@pytest.mark.parametrize(
    ("listing", "code", "says"),
    [
        (raising, "source_failed", "OSError: no route to host"),
        (lambda *_: None, "invalid_listing", "NoneType, not a list"),
        (lambda *_: {"tools": []}, "invalid_listing", "dict, not a list"),
        ("exchange_rate", "invalid_listing", "str, not a list"),
        ([["exchange_rate"]], "invalid_listing", "list where a tool's dict belongs"),
        ([{"name": "a", "description": "b"}], "invalid_listing", "lacks 'parameter_schema'"),
        ([{**RATE, "parameters": {}}], "invalid_listing", "unknown key 'parameters'"),
        ([listed(description=None)], "invalid_listing", "description is a NoneType"),
        ([listed(description=" \n ")], "blank_description", "blank description"),
        ([listed(parameter_schema=[])], "invalid_listing", "parameter_schema is a list"),
        ([listed(name=7)], "invalid_name", "7 is not a tool name"),
        ([listed(annotations="x")], "invalid_listing", "annotations is a str"),
        ([listed(requires_confirmation=1)], "invalid_listing", "requires_confirmation is a int"),
        ([listed(description="x" * 65_537)], "description_too_long", "65,537 bytes"),
        ([listed(f"t{i}") for i in range(2_001)], "too_many_tools", "2,001 tools"),
    ],
)
def test_26_a_listing_that_fails_is_an_error_that_names_the_source(listing, code, says):
    made = source_of(listing)
    error = refused((RatesSource, {}), made, kind=SourceError)
    assert error.code == code
    assert says in error.message
    assert f"{made.__module__}.{made.__qualname__}" in error.message


def test_26_sys_exit_in_a_source_ends_nothing_but_the_listing():
    import sys

    error = refused(source_of(lambda *_: sys.exit(3)), kind=SourceError)
    assert "sys.exit(3)" in error.message
    (tool,) = load(source_of(run=lambda *_: sys.exit("bye")))
    with pytest.raises(ToolError, match=r"sys\.exit"):
        run(tool, currency="EUR")


@pytest.mark.parametrize("way", ["thread", "await", "ignores cancellation"])
def test_26_a_listing_that_hangs_is_an_error_after_its_time(way):
    gate = threading.Event()

    class Hangs(ToolSource):
        def run_tool(self, *_):
            return None

    async def wait(self, config, context):
        await asyncio.sleep(60)

    async def stubborn(self, config, context):
        for _ in range(5):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue

    Hangs.list_tools = {"thread": lambda *_: gate.wait(60), "await": wait, "ignores cancellation": stubborn}[
        way
    ]
    Hangs.__abstractmethods__ = frozenset()
    start = time.perf_counter()
    try:
        error = refused((RatesSource, {}), Hangs, timeout=0.05, kind=SourceError)
    finally:
        gate.set()
    assert time.perf_counter() - start < 2
    assert error.code == "source_timeout"
    assert "Hangs" in error.message


def test_26_a_time_out_inside_the_source_is_its_own_failure():
    def fail(*_):
        raise TimeoutError("the server took too long")

    error = refused(source_of(fail), kind=SourceError)
    assert error.code == "source_failed"
    assert "the server took too long" in error.message


def test_26_an_interrupted_listing_cancels_every_source():
    ended = []

    class Waits(ToolSource):
        async def list_tools(self, config, context):
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(config["n"])

        def run_tool(self, *_):
            return None

    async def go():
        task = asyncio.ensure_future(load_sources([(Waits, {"n": 1}), (Waits, {"n": 2})]))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(go())
    assert sorted(ended) == [1, 2]


def test_26_the_first_failing_source_in_list_order_is_reported():
    def late(*_):
        time.sleep(0.05)
        raise ValueError("late and first in the list")

    assert "late and first" in refused(source_of(late), source_of(raising)).message


def test_26_a_tool_error_of_run_tool_keeps_its_code():
    def fail(*_):
        raise ToolError("no such currency", code="unknown_currency")

    (tool,) = load(source_of(run=fail))
    with pytest.raises(ToolError) as caught:
        run(tool, currency="EUR")
    assert (caught.value.code, caught.value.message) == ("unknown_currency", "no such currency")


# Kept data, reuse, closing


def test_annotations_and_confirmation_are_kept_as_data():
    item = listed(annotations={"readOnlyHint": True}, requires_confirmation=True)
    (tool,) = load(source_of([item]))
    assert tool.spec.metadata == {"annotations": {"readOnlyHint": True}}
    assert tool.spec.requires_confirmation is True


def test_a_spec_lists_freshly_and_reuses_its_tools_where_nothing_changed():
    lists = [[listed("a")], [listed("a")], [listed("b")]]
    spec = SourceSpec.of(source_of(lambda *_: lists.pop(0)))
    first, second, third = load(spec), load(spec), load(spec)
    assert second[0] is first[0]
    assert third[0].name == "b"
    assert lists == []


def test_a_failed_listing_forgets_nothing_and_offers_nothing():
    lists = [[listed("a")], None, [listed("a")]]
    spec = SourceSpec.of(source_of(lambda *_: lists.pop(0)))
    (first,) = load(spec)
    refused(spec)
    assert load(spec)[0] is first


def test_closing_closes_every_source_and_tells_a_failure():
    closed = []

    class Closes(RatesSource):
        async def aclose(self):
            closed.append(self)
            if len(closed) == 1:
                raise OSError("socket")

    with pytest.raises(OSError, match="socket"):
        asyncio.run(close_sources(source_specs([Closes(), Closes()])))
    assert len(closed) == 2


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_direct_execute_validates_runs_and_shows(way):
    class Async(RatesSource):
        async def run_tool(self, *args):
            return RatesSource.run_tool(self, *args)

    (tool,) = load((RatesSource if way == "sync" else Async, {"base": "USD"}))

    async def go():
        result = tool.execute(currency="EUR")
        return await result if way == "async" else result

    assert asyncio.run(go()) == ToolResult("exchange_rate", '{"base":"USD","currency":"EUR","rate":0.92}')
    with pytest.raises(JarvisError):
        tool.execute()
