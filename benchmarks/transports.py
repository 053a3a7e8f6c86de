"""What one small request costs over each HTTP client: ``python -m benchmarks transports``.

For every client, in fresh processes and in turns: the CPU of importing it and of one request among many on a kept
connection; beside them our engine over both of its transports, which adds encoding, reading and the checks.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from benchmarks import start
from benchmarks.measure import cpu

REPEATS = 7
REQUESTS = 300
BODY = {"model": "bench", "messages": [{"role": "user", "content": "bench rounds=0"}]}

IMPORTS = {
    "httpx, sync": f"{start.PLAIN}; import httpx",
    "httpx, async": f"{start.PLAIN}; import httpx, asyncio, anyio",
    "aiohttp": "import asyncio, aiohttp",
    "our engine over httpx": f"{start.PLAIN}; import jarvis_nb.engines.openai, jarvis_nb.engines.httpx_transport",
    "our engine over aiohttp": "import jarvis_nb.engines.openai, jarvis_nb.engines.aiohttp_transport",
}


def measure(client: str, url: str) -> float:
    """Return the CPU seconds of one request."""
    if client == "httpx, sync":
        import httpx

        with httpx.Client(timeout=60) as http:
            return _timed(lambda: http.post(f"{url}/chat/completions", json=BODY).json())
    return asyncio.run(_awaited(client, url))


def _timed(request: Callable[[], Any]) -> float:
    for _ in range(20):
        request()
    before = cpu()
    for _ in range(REQUESTS):
        request()
    return (cpu() - before) / REQUESTS


async def _awaited(client: str, url: str) -> float:
    request, close = _client(client, f"{url}/chat/completions")
    try:
        for _ in range(20):
            await request()
        before = cpu()
        for _ in range(REQUESTS):
            await request()
        return (cpu() - before) / REQUESTS
    finally:
        await close()


def _client(client: str, url: str) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[None]]]:
    """Return what makes one request, and what closes the client."""
    import aiohttp
    import httpx

    if client == "httpx, async":
        http = httpx.AsyncClient(timeout=60)

        async def by_httpx() -> Any:
            return (await http.post(url, json=BODY)).json()

        return by_httpx, http.aclose
    if client == "aiohttp":
        session = aiohttp.ClientSession()

        async def by_aiohttp() -> Any:
            async with session.post(url, json=BODY) as response:
                return await response.json()

        return by_aiohttp, session.close
    from jarvis_nb.core.types import Message, Role
    from jarvis_nb.engines import OpenAIEngine
    from jarvis_nb.engines.base import Request

    own = httpx.AsyncClient(timeout=60) if client == "our engine over httpx" else None
    engine = OpenAIEngine(url.removesuffix("/chat/completions"), "no-key", http_client=own)

    async def by_engine() -> Any:
        return await engine.generate(Request("bench", [Message(Role.USER, "bench rounds=0")]))

    async def close() -> None:
        await engine.close()
        if own is not None:
            await own.aclose()

    return by_engine, close


def main() -> None:
    from benchmarks.__main__ import machine, number, server

    imports: dict[str, list[float]] = {name: [] for name in IMPORTS}
    requests: dict[str, list[float]] = {name: [] for name in IMPORTS}
    with server() as url:
        for _ in range(REPEATS):
            for name, code in IMPORTS.items():
                imports[name].append((start.process_cpu(code) - start.process_cpu("pass")) * 1e3)
                command = [sys.executable, "-m", "benchmarks.transports", name, url]
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=start.environment()
                )
                requests[name].append(json.loads(done.stdout) * 1e6)
    print(f"{REPEATS} repeats of {REQUESTS} requests; {machine()}\n")
    print("| client | import, CPU | one request, CPU |")
    print("|---|--:|--:|")
    for name in IMPORTS:
        print(f"| {name} | {number(median(imports[name]))} ms | {number(median(requests[name]))} µs |")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(*sys.argv[1:])))
    else:
        main()
