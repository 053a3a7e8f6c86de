"""One measurement in this fresh process: ``python -m benchmarks.measure SIDE WHAT URL PARAMS`` prints one JSON line.

CPU is that of this process alone (``getrusage``), all its threads together, in seconds here.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import resource
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any
from urllib.request import urlopen

from benchmarks import samples

Result = dict[str, float]


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def stats(url: str) -> dict[str, Any]:
    with urlopen(url.removesuffix("/v1") + "/stats", timeout=10) as response:
        return json.load(response)


def rounds(side: Any, url: str, *, rounds: int, times: int) -> Result:
    """Asks of many rounds: CPU a round, and the client's time a round as the server sees it."""
    ask = f"bench rounds={rounds}"
    side.ask("bench rounds=2", ("add",))
    used: list[float] = []
    growth: list[float] = []
    for _ in range(times):
        stats(url)
        samples.RAN.clear()
        before = cpu()
        answer = side.ask(ask, ("add",))
        used.append((cpu() - before) / rounds)
        gaps = stats(url)["gaps"]
        check(answer == f"done R={rounds} P=1" and len(samples.RAN) == rounds == len(gaps), answer)
        span = min(20, rounds // 2)
        growth.append(median(gaps[-span:]) / median(gaps[1 : span + 1]))
    return {"cpu": median(used), "growth": median(growth)}


def together(side: Any, url: str, *, calls: int, tool: str, times: int) -> Result:  # noqa: ARG001
    """The calls of one round, each of a tool that takes 20 ms."""
    ask = f"bench rounds=1 calls={calls} tool={tool}"
    loop = asyncio.new_event_loop() if tool.endswith("async") else None

    def go() -> float:
        samples.RAN.clear()
        before = perf_counter()
        answer = loop.run_until_complete(side.aask(ask, (tool,))) if loop else side.ask(ask, (tool,))
        taken = perf_counter() - before
        check(answer == f"done R=1 P={calls}" and len(samples.RAN) == calls, answer)
        return taken

    go()
    return {"wall": median(go() for _ in range(times))}


def at_once(side: Any, url: str, *, asks: int, latency_ms: int, warm: bool, times: int) -> Result:  # noqa: ARG001
    """Asks at once on one client, two rounds each, on a server that takes its time; cold: no ask before them."""
    ask = f"bench rounds=2 latency_ms={latency_ms}"
    side.declare(("add",))
    walls: list[float] = []

    async def waves() -> None:
        if warm:
            await asyncio.gather(*[side.aask(ask, ("add",)) for _ in range(asks)])
        for _ in range(times):
            before = perf_counter()
            answers = await asyncio.gather(*[side.aask(ask, ("add",)) for _ in range(asks)])
            walls.append(perf_counter() - before)
            check(set(answers) == {"done R=2 P=1"}, answers)

    asyncio.run(waves())
    return {"rate": asks / median(walls)}


def stream(side: Any, url: str, *, chunks: int, times: int) -> Result:  # noqa: ARG001
    """CPU of an answer in many pieces, less that of an answer in one."""
    loop = asyncio.new_event_loop()

    def read(chunks: int) -> tuple[float, int]:
        before = cpu()
        pieces = side.stream(f"bench rounds=0 chunks={chunks}")
        if hasattr(pieces, "__aiter__"):

            async def eat() -> list[str]:
                return [piece async for piece in pieces]

            got = loop.run_until_complete(eat())
        else:
            got = list(pieces)
        return cpu() - before, len(got)

    read(3)
    one, many = [], []
    for _ in range(times):
        one.append(read(1)[0])
        used, pieces = read(chunks)
        many.append(used)
        check(pieces == chunks, pieces)
    return {"cpu": (median(many) - median(one)) * 1000 / chunks}


def schema(side: Any, url: str) -> Result:  # noqa: ARG001
    """A thousand functions, once each, to what a model is told of them."""
    fns = samples.thousand()
    side.definitions(fns[:1])
    before = cpu()
    definitions = side.definitions(fns)
    used = cpu() - before
    check(len(definitions) == 1000 and len(set(map(str, definitions))) == 1000, len(definitions))
    return {"cpu": used}


def many_tools(side: Any, url: str, *, times: int) -> Result:  # noqa: ARG001
    """Asks of one round with 1,001 tools on offer, after the first."""
    names = ("thousand", "add")
    side.ask("bench rounds=1", names)
    used: list[float] = []
    for _ in range(times):
        before = cpu()
        answer = side.ask("bench rounds=1", names)
        used.append(cpu() - before)
        check(answer == "done R=1 P=1", answer)
    return {"cpu": median(used)}


def dispatch(side: Any, url: str, *, tool: str, heard: bool, times: int) -> Result:  # noqa: ARG001
    """One call after the other, without a model; ``heard``: somebody has subscribed to its events."""
    run = side.dispatcher(getattr(samples, tool), heard)
    text = '{"a":1,"b":2}'
    if tool.endswith("async"):
        loop = asyncio.new_event_loop()

        async def several(number: int) -> Any:
            result = None
            for _ in range(number):
                result = await run(text)
            return result

        def batch(number: int) -> Any:
            return loop.run_until_complete(several(number))
    else:

        def batch(number: int) -> Any:
            result = None
            for _ in range(number):
                result = run(text)
            return result

    return {"cpu": a_call(batch, times)}


def a_call(batch: Callable[[int], Any], times: int) -> float:
    """Return the CPU seconds of one call, from batches that take about 0.2 s."""
    check("3" in str(batch(20)), "the sum of 1 and 2")
    number = 50
    while (taken := timed(batch, number)) < 0.05:
        number *= 4
    number = max(10, int(number * 0.2 / taken))
    return median(used(batch, number) / number for _ in range(times))


def timed(batch: Callable[[int], Any], number: int) -> float:
    before = perf_counter()
    batch(number)
    return perf_counter() - before


def used(batch: Callable[[int], Any], number: int) -> float:
    before = cpu()
    batch(number)
    return cpu() - before


def check(right: bool, got: object) -> None:
    """A measurement of something that went wrong is none."""
    if not right:
        raise SystemExit(f"the measured code gave something else: {got!r:.300}")


def main(side: str, what: str, url: str, params: str) -> None:
    here = importlib.import_module(f"benchmarks.{side}").Side(url)
    homes = [importlib.import_module(f"benchmarks.{name}") for name in ("measure", "alone", "cell")]
    function = next(getattr(home, what) for home in homes if hasattr(home, what))
    result = function(here, url, **json.loads(params))
    print("@@" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
