"""An ask over an index of this project's own documentation, on the embedded model (issue 4)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from jarvis_nb import Jarvis
from jarvis_nb.engines import LocalEngine
from jarvis_nb.engines.models import model_path
from jarvis_nb.memory import HybridMemory

ROOT = Path(__file__).parents[2]
QUESTION = "Which files does file_read refuse?"
ANSWERED_IN = "docs/security.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed (extra: local)"),
    pytest.mark.skipif(
        not model_path().is_file(), reason="the model is not on this machine: jarvis models fetch"
    ),
]


@pytest.fixture
def jarvis(monkeypatch):
    monkeypatch.chdir(ROOT)  # sources are told as seen from here
    with HybridMemory() as memory, Jarvis(engine=LocalEngine(), memory=memory) as made:
        report = made.memory.index("docs")
        assert ANSWERED_IN in report.added
        yield made


def test_17_the_injected_source_is_in_the_reply_and_on_the_card(jarvis):
    """tools.md 17: what was put into the question, from where and why, is on the reply and its card."""
    reply = jarvis.ask_full(QUESTION, context=True, max_tokens=16)
    assert reply.status == "completed"
    assert reply["content"]
    best = reply.injected[0]
    assert (best["source"], best["used"], best["reason"]) == (ANSWERED_IN, True, "injected")
    assert f"[Source: {ANSWERED_IN}]" in reply.messages[0].text
    card = reply._repr_mimebundle_()
    shown = f"{ANSWERED_IN} ({best['tokens']} tokens): injected"
    assert shown in card["text/html"]
    assert shown in card["text/plain"]


def test_11_what_is_answered_stands_in_the_source_that_retrieval_found(jarvis):
    """tools.md 11: the model searches; the result names the source, and the answer is quoted from it."""
    reply = jarvis.ask_full(f"Search the memory: {QUESTION}", tools=["retrieval"], context=False)
    assert reply.status == "completed"
    (result,) = reply.tool_results
    assert (result["tool_name"], result["success"]) == ("retrieval", True)
    assert result["content"].startswith(f"[Source: {ANSWERED_IN}]")
    text = " ".join((ROOT / ANSWERED_IN).read_text(encoding="utf-8").split())
    quoted = reply["content"].removeprefix(f"[Source: {ANSWERED_IN}] ").split(" … ")[0]
    assert len(quoted) > 20
    assert quoted.removeprefix("## Files ") in text
