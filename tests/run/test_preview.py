"""What an ask would send, without sending it: toolsets.md 20."""

from __future__ import annotations

import pytest

from jarvis_nb import Jarvis
from jarvis_nb.core.errors import JarvisError
from jarvis_nb.engines import OpenAIEngine, ScriptedEngine
from jarvis_nb.memory.sqlite import SQLiteMemory
from jarvis_nb.testing import StrictServer
from tests.run.shop import TOOLS

POLICIES = [
    None,
    {"visible": ["lookup_order"]},
    {"hidden": ["lookup_order"], "requirement": "required"},
    {"requirement": {"tool": "calculator"}},
    {"requirement": "disabled"},
    {"visible": []},
]


@pytest.mark.parametrize("policy", POLICIES)
def test_20_the_payload_is_what_is_sent(policy):
    """toolsets.md 20: the exact payload, the offer and the choice."""
    with StrictServer(lambda body: "ok") as server:
        j = Jarvis(
            engine=OpenAIEngine(server.url, api_key="k"),
            model="m",
            tools=TOOLS,
            system="Be brief.",
            config={},
        )
        options = {"tool_policy": policy, "temperature": 0.5, "max_tokens": 9, "limits": {"rounds": 0}}
        preview = j.preview("x", **{**options, "limits": None})
        assert server.requests == []
        reply = j.ask_full("x", **{**options, "limits": None})
        j.close()
        sent = server.requests[0].body
    assert {k: v for k, v in preview.payload.items() if not k.startswith("stream")} == {
        k: v for k, v in sent.items() if not k.startswith("stream")
    }
    assert preview.offered == reply.offers[0].offered
    assert preview.hidden == reply.offers[0].hidden
    assert preview.choice == reply.offers[0].choice == sent.get("tool_choice")
    assert preview.reason == reply.offers[0].reason
    assert (preview.model, preview.engine, preview.agent) == (reply.model, reply.engine, reply.agent)


def test_20_tokens_are_estimated_where_nobody_counts():
    """toolsets.md 20: its token count."""
    j = Jarvis(engine=ScriptedEngine([]), tools=TOOLS, config={})
    small, large = j.preview("x", tool_policy={"visible": []}), j.preview("x")
    assert (small.exact, large.exact) == (False, False)
    assert 0 < small.tokens < large.tokens
    assert repr(small) == f"Preview(offered=[], choice=None, about {small.tokens} tokens)"


def test_20_wrong_requests_raise_here_too():
    j = Jarvis(engine=ScriptedEngine([]), tools=TOOLS, config={})
    for options in ({"tool_policy": {"visible": ["nope"]}}, {"tools": ["nope"]}, {"agent": "nope"}):
        with pytest.raises(JarvisError):
            j.preview("x", **options)


def test_17_what_memory_injects_is_in_the_preview():
    """tools.md 17."""
    memory = SQLiteMemory(":memory:")
    memory.store("Refunds take thirty days.", source="refunds.md")
    preview = Jarvis(engine=ScriptedEngine([]), memory=memory, config={}).preview("refunds")
    memory.close()
    assert "[Source: refunds.md]" in preview.payload["messages"][0]["content"]
    assert preview.injected[0]["source"] == "refunds.md"


def test_a_preview_leaves_no_trace():
    j = Jarvis(engine=ScriptedEngine(["ok"]), tools=TOOLS, config={})
    seen = []
    j.bus.subscribe(seen.append)
    j.preview("x")
    assert seen == []
    assert j.last is None
