"""The strict server asked by a page of another origin (CORS)."""

from __future__ import annotations

import urllib.request

import pytest

from jarvis_nb.testing import StrictServer


def request(server: StrictServer, method: str, path: str):
    return urllib.request.urlopen(urllib.request.Request(server.url + path, method=method), timeout=5)


@pytest.mark.parametrize("origin", ["*", "http://127.0.0.1:8000", None])
def test_pages_may_ask_where_it_was_said(origin: str | None):
    """Every answer carries the origin, the browser's question before a request too; by default none does."""
    with StrictServer(allow_origin=origin) as server:
        with request(server, "OPTIONS", "/chat/completions") as asked:
            assert asked.headers["Access-Control-Allow-Origin"] == origin
            allowed = asked.headers["Access-Control-Allow-Headers"]
        with request(server, "GET", "/models") as answered:
            assert answered.headers["Access-Control-Allow-Origin"] == origin
    assert (allowed is not None) == (origin is not None)
    if allowed:
        assert {"authorization", "content-type"} <= set(allowed.split(", "))
