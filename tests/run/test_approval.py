"""Who decides: the meanings of ``approve=`` (tools.md 6, toolsets.md 34, notebook.md 12)."""

from __future__ import annotations

import asyncio
import builtins
import sys

import pytest

from jarvis_nb import Approve, Deny, Jarvis, Reply
from jarvis_nb.core.approval import ApprovalRequest, Pause
from jarvis_nb.core.errors import ApprovalUnavailable, InvalidRequest
from jarvis_nb.engines import ScriptedEngine, call
from jarvis_nb.run.approval import make_approver
from tests.run.shop import run

REQUEST = ApprovalRequest("call_1", "delete_order", {"order_id": "1"}, "Delete one order.", {})
DELETE = call("delete_order", order_id="1")


def decide(setting, always=None):
    return asyncio.run(make_approver(setting, set() if always is None else always)(REQUEST))


def test_06_none_approves_nothing():
    """tools.md 6: without an approver, denied."""
    assert make_approver(None, set()) is None


def test_34_pause():
    assert isinstance(decide("pause"), Pause)


@pytest.mark.parametrize("setting", ["yes", "", 5, True, [], Approve()])
def test_another_setting_is_an_error(setting):
    with pytest.raises(InvalidRequest) as caught:
        make_approver(setting, set())
    assert caught.value.code == "invalid_approve"
    assert "'ask'" in caught.value.valid


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_decides(is_async):
    """design: a function, async too."""

    async def later(request):
        return Deny(f"not {request.name}")

    assert decide(later if is_async else (lambda r: Deny(f"not {r.name}"))) == Deny("not delete_order")


def test_always_counts_for_the_tool_in_this_session():
    """notebook.md 12: always for this tool in this session."""
    always: set[str] = set()
    assert decide(lambda r: Approve(always=True), always) == Approve(always=True)
    assert always == {"delete_order"}
    assert decide(lambda r: Deny("no"), always) == Approve()
    assert decide(lambda r: Deny("no")) == Deny("no")


@pytest.mark.parametrize(
    "answer",
    [None, True, "yes", {"approve": True}, lambda r: Approve(), Approve, object()],
    ids=["None", "True", "yes", "dict", "function", "class", "object"],
)
def test_an_odd_answer_denies(answer):
    """tools.md 6: never let through."""
    reply = run(DELETE, "ok", jarvis={"approve": lambda r: answer})
    assert (reply.tool_attempts[0].status, reply.tool_attempts[0].ran) == ("denied", False)


def test_an_approver_that_raises_denies():
    def broken(request):
        raise RuntimeError("no idea")

    reply = run(DELETE, "ok", jarvis={"approve": broken})
    attempt = reply.tool_attempts[0]
    assert (attempt.status, attempt.ran) == ("denied", False)
    assert "no idea" in attempt.error.message


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ("y", Approve()),
        (" YES ", Approve()),
        ("always", Approve(always=True)),
        ("", Deny("denied by the user")),
        ("n", Deny("denied by the user")),
        ("No", Deny("denied by the user")),
        ("not this one", Deny("denied by the user: not this one")),
    ],
)
def test_ask_at_a_terminal(typed, decision, monkeypatch):
    """design: "ask" asks by input(); the exact name and arguments are shown."""
    shown = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(builtins, "input", lambda prompt: shown.append(prompt) or typed)
    assert decide("ask") == decision
    assert 'delete_order({"order_id":"1"})' in shown[0]


def test_ask_without_a_terminal_is_denied_at_once(monkeypatch):
    """notebook.md 12: no front end: denied at once with a clear record."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    monkeypatch.setattr(builtins, "input", lambda prompt: pytest.fail("nobody can be asked"))
    with pytest.raises(ApprovalUnavailable):
        decide("ask")
    reply = run(DELETE, "ok", jarvis={"approve": "ask"})
    attempt = reply.tool_attempts[0]
    assert (attempt.status, attempt.error.code, attempt.ran) == ("denied", "approval_unavailable", False)


def test_edited_arguments_are_validated():
    """tools.md 6: an edit that does not fit does not run."""
    reply = run(DELETE, "ok", jarvis={"approve": lambda r: Approve({"nope": 1})})
    attempt = reply.tool_attempts[0]
    assert (attempt.error.code, attempt.ran) == ("invalid_arguments", False)


def test_34_a_paused_turn_resumes_elsewhere_under_the_same_call_alone(tmp_path):
    """toolsets.md 34: an approval is bound to the exact name and arguments; a changed call needs a new one."""
    paused = run(DELETE, jarvis={"approve": "pause"})
    data = Reply.load(paused.save(tmp_path / "t.json"))
    from tests.run.shop import delete_order

    j = Jarvis(engine=ScriptedEngine(["ok"]), config={})
    done = j.resume(data, {"call_1": Approve({"order_id": "2"})}, tools=[delete_order])
    assert done.tool_attempts[0].arguments == {"order_id": "2"}
    assert done.tool_attempts[0].output == "deleted 2"
    for decisions, code in (
        ({"call_9": Approve()}, "unknown_call"),
        ({"call_1": True}, "invalid_decision"),
        ({"call_1": Pause()}, "invalid_decision"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            j.resume(data, decisions, tools=[delete_order])
        assert caught.value.code == code
    with pytest.raises(InvalidRequest) as caught:
        j.resume(done, {})
    assert caught.value.code == "not_paused"
    with pytest.raises(InvalidRequest) as caught:
        j.resume(data, {"call_1": Approve()}, tools=["calculator"])
    assert caught.value.code == "unknown_tools"
