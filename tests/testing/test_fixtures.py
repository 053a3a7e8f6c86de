"""The pytest plugin: its fixtures in a user's own project, and what loading it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jarvis_nb.engines import call

USERS_TEST = """
from urllib.request import Request, urlopen

def test_server(strict_server):
    server = strict_server(["Hello."])
    body = b'{"model": "m", "messages": [{"role": "user", "content": "?"}]}'
    with urlopen(Request(server.url + "/chat/completions", body)) as response:
        assert b"Hello." in response.read()
    server.assert_complete()

def test_engine(scripted_engine):
    scripted_engine(["never asked for"])
"""


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, *arguments], check=False, capture_output=True, text=True, cwd=cwd, timeout=60
    )


@pytest.mark.slow
def test_in_a_users_project(tmp_path):
    """The fixtures are there without a conftest; a script that is not used up fails the test at its end."""
    (tmp_path / "test_mine.py").write_text(USERS_TEST)
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "1 scripted steps were not played" in done.stdout


def test_the_plugin_is_light():
    """It is imported in every pytest run of a project that has this package."""
    heavy = [
        "pydantic",
        "httpx",
        "aiohttp",
        "http.server",
        "numpy",
        "jarvis_nb.engines",
        "jarvis_nb.testing.server",
    ]
    code = f"import sys, pytest; import jarvis_nb.testing.fixtures; print([m for m in {heavy} if m in sys.modules])"
    assert run("-I", "-c", code).stdout.strip() == "[]"


def test_strict_server(strict_server):
    first, second = strict_server(["a"]), strict_server(["b"])
    assert first.url != second.url


def test_scripted_engine(scripted_engine):
    assert scripted_engine([]).remaining == []
    assert call("add", a=1).name == "add"
