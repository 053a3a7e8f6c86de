"""Helpers for tests against servers on loopback."""

from __future__ import annotations

import asyncio
import socket

from jarvis_nb.core.types import Definitions, Message, Role, ToolDefinition
from jarvis_nb.engines.base import Request
from jarvis_nb.engines.openai import OpenAIEngine

WEATHER = ToolDefinition(
    "get_weather",
    "Get the weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
USER = {"role": "user", "content": "Hi"}


def ask(text="Hi", *, tools=False, choice="auto", model="m", **options) -> Request:
    """Return a request of one user message."""
    messages = options.pop("messages", None) or [Message(Role.USER, text)]
    if tools:
        return Request(model, messages, Definitions([WEATHER]), choice, **options)
    return Request(model, messages, **options)


def engine_at(server, **options) -> OpenAIEngine:
    """Return an engine for a server, with waits that suit a test."""
    options.setdefault("api_key", "sk-test-0123456789abcdef")
    options.setdefault("max_wait", 0.01)
    return OpenAIEngine(getattr(server, "url", server), **options)


def generate(engine, request=None):
    """Make one call on a loop of its own and close the engine there."""

    async def call():
        try:
            return await engine.generate(request or ask())
        finally:
            await engine.close()

    return asyncio.run(call())


def stream(engine, request=None, seen=None):
    """Stream one call on a loop of its own; return pieces and completion, or fill ``seen`` before an error."""
    items = [] if seen is None else seen

    async def call():
        try:
            async for item in engine.stream(request or ask()):
                items.append(item)
        finally:
            await engine.close()

    asyncio.run(call())
    return items[:-1], items[-1]


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
