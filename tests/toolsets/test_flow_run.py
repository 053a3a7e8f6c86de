"""Running a flow: flows.md, "Running" 1 to 4, 6, 7 and 10."""

import asyncio
import contextvars
import datetime as dt
import threading
import time
from typing import Any

import pytest

from jarvis_nb import Flow, action
from jarvis_nb.core.errors import InvalidArguments, ToolError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.tools.calculator import CalculatorTool
from jarvis_nb.toolsets.flow import FlowFailed


@action
def inc(n: int) -> dict[str, int]:
    """Add one."""
    return {"n": n + 1}


@action
async def ainc(n: int) -> dict[str, int]:
    """Add one, slowly."""
    await asyncio.sleep(0)
    return {"n": n + 1}


@action
def echo(value: Any) -> Any:
    """Give back what came."""
    return value


@action
def fail(why: str = "it broke") -> None:
    """Fail."""
    raise RuntimeError(why)


def new(**inputs: Any) -> Flow:
    return Flow("f", "A flow.", inputs=inputs)


class Meeting:
    """Counts how many are inside at once, and who came in in which order."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.most = 0
        self.order: list[int] = []
        self.threads: set[str] = set()

    def tool(self, seconds: float = 0.01):
        @action
        def meet(n: int) -> dict[str, int]:
            """Meet the others."""
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                self.order.append(n)
                self.threads.add(threading.current_thread().name)
            time.sleep(seconds)
            with self.lock:
                self.inside -= 1
            return {"n": n}

        return meet


def meeting_flow(tool: Any, steps: int, **options: Any) -> Flow:
    flow = Flow("f", "A flow.", **options)
    flow.output({f"s{n}": flow.step(f"s{n}", tool, n=n)["n"] for n in range(steps)})
    return flow


# 1 ------------------------------------------------------------------------------------------------------


def test_01_four_run_together_by_default():
    """flows.md Running 1."""
    meeting = Meeting()
    assert meeting_flow(meeting.tool(), 10).run() == {f"s{n}": n for n in range(10)}
    assert meeting.most == 4


@pytest.mark.parametrize("most", [1, 2, 7])
def test_01_max_concurrency(most):
    """flows.md Running 1."""
    meeting = Meeting()
    meeting_flow(meeting.tool(0.1), 10, max_concurrency=most).run()
    assert meeting.most == most


def test_01_max_concurrency_counts_async_and_sync_steps_together():
    """flows.md Running 1."""
    meeting = Meeting()
    meet = meeting.tool()

    @action
    async def ameet(n: int) -> dict[str, int]:
        """Meet the others, on the loop."""
        meeting.inside += 1
        meeting.most = max(meeting.most, meeting.inside)
        await asyncio.sleep(0.01)
        meeting.inside -= 1
        return {"n": n}

    flow = Flow("f", "A flow.", max_concurrency=3)
    flow.output({f"s{n}": flow.step(f"s{n}", (meet, ameet)[n % 2], n=n)["n"] for n in range(12)})
    flow.run()
    assert meeting.most == 3


def test_01_start_order_is_declaration_order():
    """flows.md Running 1: of the steps that can start, the first declared starts first."""
    meeting = Meeting()
    meet = meeting.tool(0)
    flow = Flow("f", "A flow.", max_concurrency=1)
    flow.step("last", meet, n=flow.result("early", "n"))
    flow.step("b", meet, n=2)
    flow.step("early", meet, n=0)
    flow.step("c", meet, n=3)
    flow.output(flow.result("last"))
    for _ in range(3):
        meeting.order.clear()
        flow.run()
        assert meeting.order == [2, 0, 0, 3]


def test_01_edges_come_from_references_and_after_never_from_source_order():
    """flows.md Running 1."""
    done: list[str] = []

    @action
    def note(name: str) -> str:
        """Note a name."""
        done.append(name)
        return name

    flow = new()
    flow.step("third", note, name="third").options(after=["second", "first"])
    second = flow.step("second", note, name="second").options(after="first")
    flow.step("first", note, name="first")
    flow.step("fourth", note, name="fourth").options(after=second)
    flow.output(flow.result("third"))
    flow.run()
    assert done.index("first") < done.index("second") < done.index("third")
    assert done.index("second") < done.index("fourth")
    assert flow.last is not None
    assert flow.last["third"].depends_on == ("second", "first")


# 2 ------------------------------------------------------------------------------------------------------


def test_02_sync_steps_run_in_threads_and_async_ones_on_one_loop():
    """flows.md Running 2."""
    where: dict[str, Any] = {}

    @action
    def sync_step() -> int:
        """Tell the thread."""
        where["sync"] = threading.current_thread().name
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return 1

    @action
    async def async_step(n: int) -> int:
        """Tell the loop."""
        where[f"async{n}"] = asyncio.get_running_loop()
        return n

    flow = new()
    flow.output([flow.step("a", async_step, n=1), flow.step("b", async_step, n=2), flow.step("c", sync_step)])
    assert flow.run() == {"result": [1, 2, 1]}
    assert where["sync"] == "jarvis-worker"
    assert where["async1"] is where["async2"]


def test_02_it_all_works_under_a_running_loop():
    """flows.md Running 2: as in a notebook, run() inside a running loop, and arun() on it."""
    flow = new(n=int)
    flow.output(flow.step("b", ainc, n=flow.step("a", inc, n=flow.input("n"))["n"]))

    async def cell() -> None:
        assert flow.run(n=1) == {"n": 3}
        assert await flow.arun(n=1) == {"n": 3}

    asyncio.run(cell())


def test_02_arun_runs_async_steps_on_the_caller_s_loop():
    """flows.md Running 2."""
    seen = []

    @action
    async def loop() -> int:
        """Tell the loop."""
        seen.append(asyncio.get_running_loop())
        return 1

    flow = new()
    flow.output(flow.step("a", loop))

    async def cell() -> None:
        await flow.arun()
        assert seen == [asyncio.get_running_loop()]

    asyncio.run(cell())


def test_02_the_caller_s_context_variables_are_seen_and_none_leak_between_steps():
    """flows.md Running 2."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("caller's")

    @action
    def look(after: Any = None) -> str:
        """Read and change the variable."""
        seen = variable.get()
        variable.set("step's")
        return seen

    @action
    async def alook(after: Any = None) -> str:
        """Read and change the variable."""
        seen = variable.get()
        variable.set("step's")
        return seen

    flow = new()
    a = flow.step("a", look)
    b = flow.step("b", look, after=a)
    c = flow.step("c", alook, after=b)
    flow.output([a, b, c, flow.step("d", alook, after=c)])
    assert flow.run() == {"result": ["caller's"] * 4}
    assert variable.get() == "caller's"


def test_02_without_threads_sync_steps_run_at_once(monkeypatch):
    """flows.md Running 2, in a browser (JupyterLite): no thread, and nothing to wait for."""
    monkeypatch.setattr("jarvis_nb.toolsets.flows.run.HAS_THREADS", False)
    flow = new(n=int)
    refs = [flow.step(f"s{n}", inc, n=flow.input("n"))["n"] for n in range(10)]
    flow.output(flow.step("all", echo, value=[refs, flow.step("end", inc, n=refs[3])]))

    async def page() -> None:
        run = flow.perform({"n": 1})
        with pytest.raises(StopIteration) as stopped:
            run.send(None)
        assert stopped.value.value.result() == {"result": [[2] * 10, {"n": 3}]}
        mixed = new()
        mixed.output(mixed.step("b", inc, n=mixed.step("a", ainc, n=1)["n"]))
        assert await mixed.arun() == {"n": 3}

    asyncio.run(page())


def test_02_a_sync_function_that_returns_an_awaitable_is_awaited():
    """flows.md Running 2."""

    class Lazy(CalculatorTool):
        def invoke(self, arguments, context):
            async def later():
                return {"it": arguments["expression"]}

            return later()

    flow = new()
    flow.output(flow.step("a", Lazy(), expression="1+1"))
    assert flow.run() == {"it": "1+1"}


# 3 ------------------------------------------------------------------------------------------------------


def test_03_a_step_cannot_mutate_what_another_reads():
    """flows.md Running 3: results, inputs, constants, context values and the producer's own object."""
    kept: list[Any] = []

    @action
    def make() -> list[int]:
        """Make a list and keep hold of it."""
        kept.append([1])
        return kept[0]

    @action
    def spoil(value: Any, more: Any, given: Any, context: Any) -> int:
        """Change everything in reach."""
        kept[0].append("late")
        for item in (value, more["deep"], given, context):
            item.append("spoiled")
        return 0

    @action
    def read(value: Any, more: Any, given: Any, context: Any) -> list[Any]:
        """Read the same."""
        return [value, more, given, context]

    flow = Flow("f", "A flow.", inputs={"given": list})
    made = flow.step("made", make)
    same = {
        "value": made,
        "more": {"deep": [2]},
        "given": flow.input("given"),
        "context": flow.context("list"),
    }
    flow.step("spoil", spoil, **same)
    flow.output(flow.step("read", read, **same).options(after="spoil"))
    context = {"list": [4]}
    given = [3]
    for _ in range(2):
        kept.clear()
        assert flow.run(context, given=given) == {"result": [[1], {"deep": [2]}, [3], [4]]}
    assert context == {"list": [4]}
    assert given == [3]


def test_03_the_output_shares_nothing_with_the_next_run():
    """flows.md Running 3."""
    flow = new()
    flow.output(flow.step("a", echo, value={"list": [1]}))
    flow.run()["list"].append(2)
    assert flow.run() == {"list": [1]}


# 4 ------------------------------------------------------------------------------------------------------


def test_04_a_missing_path_is_an_error_that_names_it():
    """flows.md Running 4."""
    flow = new()
    order = flow.step("order", echo, value={"order_id": "ORD-5"})
    flow.output(flow.step("price", inc, n=order["total_cents"]))
    with pytest.raises(FlowFailed, match=r'result\("order"\)\.total_cents') as caught:
        flow.run()
    assert caught.value.problems[0].code == "missing_path"
    assert [step["status"] for step in caught.value.steps] == ["ok", "error"]


def test_04_a_present_none_is_a_value_and_a_default_is_used_where_nothing_is():
    """flows.md Running 4."""
    flow = new()
    order = flow.step("order", echo, value={"note": None})
    flow.output(
        {
            "none": flow.step("a", echo, value=order.get("note", default="unused")),
            "default": flow.step("b", echo, value=order.get("nope", "deeper", default={"a": [1]})),
            "none_default": flow.step("c", echo, value=order.get("nope", default=None)),
        }
    )
    assert flow.run() == {"none": None, "default": {"a": [1]}, "none_default": None}


def test_04_a_missing_path_in_the_output_is_named():
    """flows.md Running 4."""
    flow = new()
    flow.output({"x": flow.step("a", echo, value={})["nope"]})
    with pytest.raises(FlowFailed, match=r'the output failed: there is no result\("a"\)\.nope'):
        flow.run()


def test_04_a_missing_context_value_is_named():
    """flows.md Running 4."""
    flow = new()
    flow.output(flow.step("a", echo, value=flow.context("tenant")))
    with pytest.raises(FlowFailed, match=r'no context\("tenant"\): the run\'s context has region'):
        flow.run({"region": "eu"})
    assert flow.run({"tenant": "acme"}) == {"result": "acme"}
    flow.output(flow.step("b", echo, value=flow.context("tenant").get(default="none")))
    assert flow.last is not None


# 6 ------------------------------------------------------------------------------------------------------


def test_06_on_failure_nothing_new_starts_and_what_runs_may_finish():
    """flows.md Running 6."""
    failed = threading.Event()

    @action
    def fail_first() -> None:
        """Fail at once."""
        try:
            raise RuntimeError("it broke")
        finally:
            failed.set()

    @action
    def slow() -> str:
        """Take a moment longer than the failure."""
        failed.wait(2)
        time.sleep(0.05)
        return "finished"

    flow = Flow("f", "A flow.", max_concurrency=2)
    slow_ = flow.step("slow", slow)
    bad = flow.step("bad", fail_first)
    flow.step("independent", inc, n=1)
    flow.step("after_bad", echo, value=bad)
    flow.step("after_slow", echo, value=slow_)
    flow.output(slow_)
    with pytest.raises(FlowFailed) as caught:
        flow.run()
    assert [(s["name"], s["status"]) for s in caught.value.steps] == [
        ("slow", "ok"),
        ("bad", "error"),
        ("independent", "skipped"),
        ("after_bad", "skipped"),
        ("after_slow", "skipped"),
    ]
    assert caught.value.steps[0]["output"] == "finished"
    assert caught.value.steps[2]["start"] is None


def test_06_all_failures_are_listed_in_declaration_order():
    """flows.md Running 6: whatever failed first."""
    barrier = threading.Barrier(3)

    @action
    def fail_together(seconds: float, why: str) -> None:
        """Fail after a while."""
        barrier.wait(2)
        time.sleep(seconds)
        raise ToolError(why, code=why)

    flow = new()
    refs = [
        flow.step("a", fail_together, seconds=0.04, why="why_a"),
        flow.step("b", fail_together, seconds=0.02, why="why_b"),
        flow.step("c", fail_together, seconds=0.0, why="why_c"),
    ]
    flow.output(refs)
    with pytest.raises(FlowFailed) as caught:
        flow.run()
    error = caught.value
    assert [(p.step, p.code) for p in error.problems] == [
        ("a", "why_a"),
        ("b", "why_b"),
        ("c", "why_c"),
    ]
    assert error.message == "step 'a' failed: why_a; step 'b' failed: why_b; step 'c' failed: why_c"
    assert error.code == "step_failed"
    assert isinstance(error.__cause__, ToolError)


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError("inner"), "CancelledError: inner"),
        (ToolError("no such order"), "no such order"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_06_whatever_a_step_raises_is_its_error(exception, message, is_async):
    """flows.md Running 6."""

    @action
    def raise_(n: int) -> None:
        """Raise."""
        raise exception

    @action
    async def araise(n: int) -> None:
        """Raise."""
        raise exception

    flow = new()
    flow.output(flow.step("a", araise if is_async else raise_, n=1))
    with pytest.raises(FlowFailed) as caught:
        flow.run()
    assert caught.value.problems[0].message == message


@pytest.mark.parametrize("is_async", [True, False])
def test_06_a_keyboard_interrupt_of_a_step_passes_through(is_async):
    """tools.md 4."""

    @action
    def interrupt(n: int) -> None:
        """Interrupt."""
        raise KeyboardInterrupt

    @action
    async def ainterrupt(n: int) -> None:
        """Interrupt."""
        raise KeyboardInterrupt

    flow = new()
    flow.step("b", inc, n=flow.result("a"))
    flow.output(flow.step("a", ainterrupt if is_async else interrupt, n=1))
    with pytest.raises(KeyboardInterrupt):
        flow.run()
    assert flow.last is not None
    assert [s.status for s in flow.last] == ["skipped", "error"]
    ok = new()
    ok.output(ok.step("a", ainc, n=1))
    assert ok.run() == {"n": 2}


def test_06_arguments_the_action_refuses_fail_the_step():
    """flows.md Running 6."""
    flow = new(n=Any)
    flow.output(flow.step("a", inc, n=flow.input("n")))
    with pytest.raises(FlowFailed) as caught:
        flow.run(n="x")
    assert caught.value.problems[0].code == "invalid_arguments"
    assert caught.value.steps[0]["tries"] == 0


# 7 ------------------------------------------------------------------------------------------------------


def flaky(failures: int, *, idempotent: bool, is_async: bool = False):
    calls: list[int] = []

    def body() -> dict[str, int]:
        calls.append(1)
        if len(calls) <= failures:
            raise ConnectionError(f"try {len(calls)}")
        return {"calls": len(calls)}

    if is_async:

        @action(idempotent=idempotent)
        async def atool() -> dict[str, int]:
            """Fail a few times."""
            return body()

        return atool, calls

    @action(idempotent=idempotent)
    def tool() -> dict[str, int]:
        """Fail a few times."""
        return body()

    return tool, calls


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr("jarvis_nb.toolsets.flows.run.RETRY_SECONDS", 0.001)


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("is_async", [True, False])
def test_07_an_idempotent_action_is_tried_again(is_async):
    """flows.md Running 7."""
    tool, calls = flaky(2, idempotent=True, is_async=is_async)
    flow = new()
    flow.output(flow.step("a", tool).options(retries=2))
    assert flow.run() == {"calls": 3}
    assert len(calls) == 3
    assert flow.last is not None
    assert (flow.last["a"].status, flow.last["a"].tries, flow.last["a"].error) == ("ok", 3, None)


@pytest.mark.usefixtures("no_waiting")
def test_07_retries_end():
    """flows.md Running 7."""
    tool, calls = flaky(5, idempotent=True)
    flow = new()
    flow.output(flow.step("a", tool).options(retries=2))
    with pytest.raises(FlowFailed, match="try 3"):
        flow.run()
    assert len(calls) == 3


@pytest.mark.usefixtures("no_waiting")
def test_07_an_action_that_does_not_say_so_is_never_tried_again():
    """flows.md Running 7."""
    tool, calls = flaky(1, idempotent=False)
    flow = new()
    flow.output(flow.step("a", tool).options(retries=5))
    with pytest.raises(FlowFailed):
        flow.run()
    assert len(calls) == 1


def test_07_the_default_is_none():
    """flows.md Running 7."""
    tool, calls = flaky(1, idempotent=True)
    flow = new()
    flow.output(flow.step("a", tool))
    with pytest.raises(FlowFailed):
        flow.run()
    assert len(calls) == 1


def test_07_after_a_failure_elsewhere_nothing_is_tried_again():
    """flows.md Running 6 and 7: a retry is a new start."""
    tool, calls = flaky(5, idempotent=True)

    @action
    async def fail_soon() -> None:
        """Fail while the other waits for its second try."""
        await asyncio.sleep(0.02)
        raise RuntimeError("it broke")

    flow = new()
    flow.output([flow.step("a", tool).options(retries=3), flow.step("b", fail_soon)])
    with pytest.raises(FlowFailed) as caught:
        flow.run()
    assert len(calls) == 1
    assert [p.step for p in caught.value.problems] == ["a", "b"]


def test_07_a_retry_that_would_start_after_the_deadline_is_not_waited_for():
    """flows.md Running 5 and 7."""
    tool, calls = flaky(5, idempotent=True)
    flow = new()
    flow.output(flow.step("a", tool).options(retries=3, timeout=0.05))
    started = time.perf_counter()
    with pytest.raises(FlowFailed, match="try 1"):
        flow.run()
    assert time.perf_counter() - started < 0.05
    assert len(calls) == 1


# 10 -----------------------------------------------------------------------------------------------------


def test_10_the_trace():
    """flows.md Running 10."""

    @action
    def nap(seconds: float) -> dict[str, Any]:
        """Sleep."""
        time.sleep(seconds)
        return {"slept": seconds, "long": "x" * 10_000, "list": list(range(500))}

    flow = Flow("f", "A flow.", inputs={"seconds": float})
    a = flow.step("a", nap, seconds=flow.input("seconds"))
    flow.step("b", nap, seconds=a["slept"])
    flow.step("c", echo, value=[flow.context("token"), flow.result("b", "slept")])
    flow.output(flow.step("d", fail).options(after="c"))
    flow.step("e", inc, n=flow.result("d"))
    with pytest.raises(FlowFailed):
        flow.run({"token": "s3cret"}, seconds=0.02)
    trace = flow.last
    assert trace is not None
    assert repr(trace) == "FlowTrace('f', 'error': a ok, b ok, c ok, d error, e skipped)"
    assert [s.status for s in trace] == ["ok", "ok", "ok", "error", "skipped"]
    assert [s.depends_on for s in trace] == [(), ("a",), ("b",), ("c",), ("d",)]
    a_, b_ = trace["a"], trace["b"]
    assert a_.start is not None
    assert a_.duration is not None
    assert b_.start is not None
    assert 0 <= a_.start < 0.02 <= a_.duration < 0.2
    assert a_.start + a_.duration <= b_.start
    assert a_.inputs == {"seconds": 0.02}
    assert len(a_.output["long"]) < 5000
    assert len(a_.output["list"]) == 100
    assert trace["d"].error is not None
    assert trace["d"].error.to_dict() == {"code": "tool_failed", "message": "RuntimeError: it broke"}
    assert (trace["e"].start, trace["e"].duration, trace["e"].inputs) == (None, None, {})
    assert len(trace) == 5
    with pytest.raises(KeyError):
        _ = trace["nope"]


def test_10_a_context_value_never_enters_the_trace():
    """flows.md Running 10; a context value may be a secret."""

    @action
    def use(token: str) -> str:
        """Use the token."""
        return f"{len(token)} characters"

    flow = new()
    flow.output(flow.step("a", use, token=flow.context("token")))
    flow.run({"token": "s3cret"})
    assert flow.last is not None
    assert flow.last["a"].inputs == {"token": 'context("token")'}
    assert "s3cret" not in str(flow.last.to_dicts()) + str(flow.last.view()) + flow.last.view().to_html()


def test_10_the_trace_is_json_ready():
    """flows.md Running 10."""
    import json

    @action
    def odd(n: Any, live: Any) -> Any:
        """Give back what JSON cannot hold."""
        return {"nan": float("nan"), "n": n, "tuple": (1, 2), "day": dt.date(2024, 2, 29)}

    flow = new(n=Any)
    flow.output(flow.step("a", odd, live=flow.context("live"), n=flow.input("n")))
    flow.run({"live": object()}, n={"deep": [1, "ü"]})
    assert flow.last is not None
    assert flow.last["a"].inputs == {"live": 'context("live")', "n": {"deep": [1, "ü"]}}
    assert json.loads(json.dumps(flow.last.to_dicts(), allow_nan=False)) == flow.last.to_dicts()


def test_10_steps_are_events():
    """flows.md Running 10; design.md: everything that happens is an event on the one bus."""
    bus = EventBus(record_history=True)
    context = ToolContext({}, call_id="call_1", tool_name="f", bus=bus)
    flow = new()
    flow.output(flow.step("b", fail).options(after=flow.step("a", inc, n=1)))
    with pytest.raises(FlowFailed):
        asyncio.run(flow.tool.invoke({}, context))
    assert [(e.event_type, e.data["step"], e.data.get("status")) for e in bus.history] == [
        (EventType.FLOW_STEP_START, "a", None),
        (EventType.FLOW_STEP_END, "a", "ok"),
        (EventType.FLOW_STEP_START, "b", None),
        (EventType.FLOW_STEP_END, "b", "error"),
    ]
    assert {e.data["call_id"] for e in bus.history} == {"call_1"}
    assert bus.history[-1].data["error"]["message"] == "RuntimeError: it broke"
    assert bus.history[2].data["depends_on"] == ["a"]


# Inputs, outputs and what travels between ---------------------------------------------------------------


def test_inputs_are_checked_by_name_and_type():
    flow = Flow("f", "A flow.", inputs={"n": int, "by": (int, 2)})
    flow.output({"n": flow.input("n"), "by": flow.input("by"), "s": flow.step("a", inc, n=flow.input("n"))})
    assert flow.run(n=1) == {"n": 1, "by": 2, "s": {"n": 2}}
    for wrong, field in [({}, "n"), ({"n": "x"}, "n"), ({"n": 1, "bye": 2}, "bye")]:
        with pytest.raises(InvalidArguments, match=field):
            flow.run(**wrong)


def test_an_input_or_parameter_may_have_any_name():
    """design.md: a parameter may be called name, after, tool, self or context."""

    @action
    def odd(name: str, after: str, tool: str, timeout: str) -> list[str]:
        """Take odd names."""
        return [name, after, tool, timeout]

    flow = Flow("f", "A flow.", inputs={"self": str, "context": str})
    flow.output(
        flow.step("a", odd, name=flow.input("self"), after=flow.input("context"), tool="t", timeout="x")
    )
    assert flow.run(self="s", context="c") == {"result": ["s", "c", "t", "x"]}


def test_dates_and_models_travel_as_data():
    import pydantic

    class Order(pydantic.BaseModel):
        day: dt.date
        total: int

    @action
    def make(day: dt.date) -> Order:
        """Make an order."""
        return Order(day=day, total=3)

    @action
    def take(order: Order, day: dt.date) -> str:
        """Take an order."""
        return f"{order.total} {order.day == day}"

    flow = Flow("f", "A flow.", inputs={"day": dt.date})
    order = flow.step("make", make, day=flow.input("day"))
    flow.output({"text": flow.step("take", take, order=order, day=order["day"]), "order": order})
    out = flow.run(day=dt.date(2024, 2, 29))
    assert out == {"text": "3 True", "order": {"day": "2024-02-29", "total": 3}}


def test_a_plain_tool_gives_content_and_metadata():
    flow = new()
    sum_ = flow.step("sum", CalculatorTool(), expression="2+2")
    flow.output({"text": sum_["content"]})
    assert flow.run() == {"text": "4"}


def test_a_plain_tool_s_failed_result_is_a_failed_step():
    flow = new()
    flow.output(flow.step("sum", CalculatorTool(), expression="1/0"))
    with pytest.raises(FlowFailed, match="step 'sum' failed"):
        flow.run()


def test_an_action_gets_the_run_s_context():
    @action
    def whose(context: ToolContext) -> str:
        """Tell the tenant."""
        return context["tenant"]

    flow = new()
    flow.output(flow.step("a", whose))
    assert flow.run({"tenant": "acme"}) == {"result": "acme"}


def test_a_live_context_value_reaches_an_action_as_it_is():
    client = object()
    seen: list[object] = []

    @action
    def use(client: Any) -> int:
        """Use a client."""
        seen.append(client)
        return 1

    flow = new()
    flow.output(flow.step("a", use, client=flow.context("client")))
    flow.run({"client": client})
    assert seen[0] is client


def test_plain_functions_are_steps():
    def twice(n: int) -> int:
        """Double."""
        return 2 * n

    flow = new(n=int)
    flow.output(flow.step("a", twice, n=flow.input("n")))
    assert flow.run(n=4) == {"result": 8}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (lambda r: r, {"n": 2}),
        (lambda r: r["n"], {"result": 2}),
        (lambda r: {"a": r["n"], "b": [r, 1], "c": None}, {"a": 2, "b": [{"n": 2}, 1], "c": None}),
        (lambda r: [r["n"]], {"result": [2]}),
        (lambda r: {}, {}),
    ],
)
def test_09_the_output_is_always_a_mapping(output, expected):
    """flows.md Running 9."""
    flow = new()
    flow.output(output(flow.step("a", inc, n=1)))
    assert flow.run() == expected


def test_runs_of_one_flow_do_not_disturb_each_other():
    flow = new(n=int)
    flow.output(flow.step("b", ainc, n=flow.step("a", inc, n=flow.input("n"))["n"]))

    async def many() -> list[dict[str, Any]]:
        return await asyncio.gather(*(flow.arun(n=n) for n in range(50)))

    assert asyncio.run(many()) == [{"n": n + 2} for n in range(50)]


def test_a_run_keeps_to_the_plan_it_started_with():
    flow = new()
    entered, go_on = threading.Event(), threading.Event()

    @action
    def wait() -> int:
        """Wait for the test."""
        entered.set()
        go_on.wait(5)
        return 1

    flow.output(flow.step("b", echo, value=flow.step("a", wait)))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(flow.run()))
    thread.start()
    entered.wait(5)
    flow.step("c", fail)
    flow.output({"changed": True})
    go_on.set()
    thread.join(5)
    assert results == [{"result": 1}]


def test_a_flow_of_a_hundred_trivial_steps_takes_under_5_ms_of_cpu():
    """The speed that was asked for."""
    flow = new(n=int)
    ref: Any = flow.input("n")
    for index in range(100):
        ref = flow.step(f"s{index}", inc, n=ref)["n"]
    flow.output({"n": ref})
    flow.run(n=0)
    spent: list[float] = []
    for _ in range(7):
        before = time.process_time()
        assert flow.run(n=0) == {"n": 100}
        spent.append(time.process_time() - before)
    assert min(spent) < 0.005
