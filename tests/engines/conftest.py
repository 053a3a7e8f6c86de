"""What the tests of the engines share: both transports, and an environment without keys and proxies."""

from __future__ import annotations

import os

import pytest

from jarvis_nb.engines import transport
from jarvis_nb.engines.presets import KEY_NAMES, PRESETS


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No key, address or proxy of the machine reaches a test."""
    names = {*KEY_NAMES, *(name for preset in PRESETS.values() for name in preset.url_names)}
    for name in {
        *names,
        *(n for n in os.environ if n.lower().endswith("_proxy") or n.startswith("JARVIS_NB_")),
    }:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["aiohttp", "httpx"])
def each_transport(request, monkeypatch):
    """Run a test on aiohttp, and again as where aiohttp is missing."""
    if request.param == "httpx":
        monkeypatch.setattr(transport, "find_spec", lambda name: None)
    return request.param
