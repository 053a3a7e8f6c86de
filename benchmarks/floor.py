"""The floor: the loop a careful user writes by hand on httpx, with no framework. Nothing is checked in it."""

from __future__ import annotations

import asyncio
import inspect
import json
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from benchmarks.samples import functions

Tools = tuple[str, ...]
TYPES = {int: "integer", str: "string", float: "number", bool: "boolean"}


def schema_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return the OpenAI dict of a function by a bare ``inspect`` loop: names, simple types, defaults."""
    hints = typing.get_type_hints(fn)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(fn).parameters.items():
        kind = hints.get(name, str)
        inner = typing.get_args(kind)
        if kind in TYPES:
            properties[name] = {"type": TYPES[kind]}
        elif type(None) in inner:
            one = (
                {"type": "array", "items": {"type": "string"}}
                if typing.get_origin(inner[0]) is list
                else {"type": TYPES[inner[0]]}
            )
            properties[name] = {"anyOf": [one, {"type": "null"}]}
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name]["default"] = parameter.default
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": fn.__name__, "description": (fn.__doc__ or "").strip(), "parameters": parameters}
    return {"type": "function", "function": function}


class Side:
    """The hand-written side of every measurement."""

    def __init__(self, url: str) -> None:
        self.url = url + "/chat/completions"
        self.client = httpx.Client(timeout=60)
        self.aclient: httpx.AsyncClient | None = None
        self.tools: dict[Tools, Any] = {}

    def declare(self, names: Tools) -> tuple[dict[str, Any], dict[str, Any]]:
        if names not in self.tools:
            fns = functions(names)
            self.tools[names] = {f.__name__: f for f in fns}, {"tools": [schema_of(f) for f in fns]}
        return self.tools[names] if names else ({}, {})

    def ask(self, question: str, names: Tools = ()) -> str:
        fns, tools = self.declare(names)
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            response = self.client.post(self.url, json={"model": "bench", "messages": messages, **tools})
            response.raise_for_status()
            message = response.json()["choices"][0]["message"]
            calls = message.get("tool_calls")
            if not calls:
                return message["content"]
            messages.append(message)

            def run(call: Any) -> Any:
                return fns[call["function"]["name"]](**json.loads(call["function"]["arguments"]))

            if len(calls) == 1:
                results = [run(calls[0])]
            else:
                with ThreadPoolExecutor(len(calls)) as pool:
                    results = list(pool.map(run, calls))
            messages += told(calls, results)

    async def aask(self, question: str, names: Tools = ()) -> str:
        if self.aclient is None:
            self.aclient = httpx.AsyncClient(timeout=60)
        fns, tools = self.declare(names)
        messages: list[Any] = [{"role": "user", "content": question}]

        async def run(call: Any) -> Any:
            fn = fns[call["function"]["name"]]
            result = fn(**json.loads(call["function"]["arguments"]))
            return await result if inspect.isawaitable(result) else result

        while True:
            body = {"model": "bench", "messages": messages, **tools}
            response = await self.aclient.post(self.url, json=body)
            response.raise_for_status()
            message = response.json()["choices"][0]["message"]
            calls = message.get("tool_calls")
            if not calls:
                return message["content"]
            messages.append(message)
            messages += told(calls, await asyncio.gather(*map(run, calls)))

    def stream(self, question: str) -> Iterator[str]:
        body = {"model": "bench", "messages": [{"role": "user", "content": question}], "stream": True}
        with self.client.stream("POST", self.url, json=body) as response:
            for line in response.iter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    choices = json.loads(line[6:])["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        yield choices[0]["delta"]["content"]

    def definitions(self, fns: Any) -> list[dict[str, Any]]:
        return [schema_of(fn) for fn in fns]

    def dispatcher(self, fn: Callable[..., Any], heard: bool) -> Callable[[str], Any]:  # noqa: ARG002 - no events
        if inspect.iscoroutinefunction(fn):

            async def acall(arguments: str) -> str:
                return str(await fn(**json.loads(arguments)))

            return acall
        return lambda arguments: str(fn(**json.loads(arguments)))

    async def aclose(self) -> None:
        self.client.close()
        if self.aclient is not None:
            await self.aclient.aclose()


def told(calls: list[Any], results: list[Any]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
        for call, result in zip(calls, results, strict=True)
    ]
