"""Which model server listens at an address, asked with the standard library alone and with little patience."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jarvis_nb.core.threads import workers

CONNECT_SECONDS = 0.5
"""Loopback refuses at once; this bounds an address from the environment that swallows packets."""
ANSWER_SECONDS = 2.0
MOST_BYTES = 1_000_000

OWNERS = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "library": "ollama",
    "organization_owner": "lmstudio",
}
"""What servers write into ``owned_by``: it tells who it is on a port that others use too."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What an address answered to ``GET /models``."""

    models: tuple[str, ...] = ()
    owner: str = ""
    """The preset's key, where the server says who it is."""
    problem: str = ""
    """Why it is no model server that can be used; empty if it is one."""


def probe_all(base_urls: Sequence[str]) -> list[Probe]:
    """Probe several addresses at the same time."""
    jobs = [workers().submit(lambda url=url: probe(url)) for url in base_urls]
    late = Probe(problem="does not answer in time")
    return [job.value() if job.wait(CONNECT_SECONDS + ANSWER_SECONDS) else late for job in jobs]


def probe(base_url: str) -> Probe:
    """Ask an address for its models. Whatever goes wrong is part of the result."""
    try:
        status, body = _get(base_url)
    except ConnectionRefusedError:
        return Probe(problem="nothing listens there")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Probe(problem=f"does not answer: {error or type(error).__name__}")
    if status in (401, 403):
        return Probe(problem="asks for a key: give it with base_url and api_key")
    try:
        entries: Any = json.loads(body)["data"]
        named = [entry for entry in entries if isinstance(entry["id"], str)]
    except (ValueError, RecursionError, KeyError, TypeError):
        return Probe(problem=f"answers {status}, but not as a model server")
    if not named:
        return Probe(problem="answers, but has no model")
    owner = next((OWNERS[e["owned_by"]] for e in named if e.get("owned_by") in OWNERS), "")
    return Probe(tuple(sorted(entry["id"] for entry in named)), owner)


def _get(base_url: str) -> tuple[int, bytes]:
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(ANSWER_SECONDS)
        connection.request("GET", f"{parts.path}/models", headers={"Accept": "application/json"})
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES)
    finally:
        connection.close()
