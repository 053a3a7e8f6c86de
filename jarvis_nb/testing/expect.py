"""Checks of a run with a readable failure, and a run turned into a test."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jarvis_nb.reply import Reply


def check(
    reply: Reply,
    *,
    calls: Sequence[str] | None,
    args: Mapping[str, Mapping[str, Any]] | None,
    no_errors: bool,
    max_rounds: int | None,
    output: str | None,
    status: str | None,
) -> None:
    """Raise AssertionError with every difference, and the run below them; see :meth:`Reply.expect`."""
    made = [a.tool.name for a in reply.tool_attempts]
    wrong: list[str] = []
    if calls is not None and made != list(calls):
        wrong.append(f"calls: expected {list(calls)}, got {made}")
    for tool, wanted in (args or {}).items():
        wrong += _wrong_arguments(reply, tool, wanted)
    if no_errors:
        wrong += [
            f"error: {a.tool.name}: {a.error.message if a.error else a.content}"
            for a in reply.tool_attempts
            if not a.success
        ]
        if reply.error is not None:
            wrong.append(f"error: the run is {reply.status}: {reply.error.message} [{reply.error.code}]")
    if max_rounds is not None and reply.tool_rounds > max_rounds:
        wrong.append(f"max_rounds: expected at most {max_rounds} tool rounds, got {reply.tool_rounds}")
    if output is not None and output not in reply.output:
        wrong.append(f"output: expected {output!r} in {reply.output!r}")
    if status is not None and reply.status != status:
        wrong.append(f"status: expected {status}, got {reply.status}")
    if wrong:
        lines = "\n".join(f"  {line}" for line in _story(reply))
        raise AssertionError(
            "\n".join(["the run is not as expected", *(f"- {w}" for w in wrong), "what happened:", lines])
        )


def _wrong_arguments(reply: Reply, tool: str, wanted: Mapping[str, Any]) -> list[str]:
    got = [a.arguments for a in reply.tool_attempts if a.tool.name == tool]
    if not got:
        return [f"args: {tool} was not called"]
    missing = object()
    if any(all((g or {}).get(k, missing) == v for k, v in wanted.items()) for g in got):
        return []
    return [f"args: expected {tool} with {dict(wanted)}, got {got if len(got) > 1 else got[0]}"]


def _story(reply: Reply) -> list[str]:
    story = [f"question: {reply.question}"]
    story += [
        f"round {a.round}: {a.tool.name}({_arguments(a.arguments)}) -> {a.status}: {a.content:.200}"
        for a in reply.tool_attempts
    ]
    return [*story, f"answer ({reply.status}): {reply.output:.200}"]


def _arguments(arguments: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in (arguments or {}).items())


def to_test(reply: Reply, name: str = "test_reply") -> str:
    """Return the source of a pytest function that repeats a run with a scripted engine.

    The user's own tools stand in it by name: import them where the test lives.
    """
    from jarvis_nb.agents.limits import Limits

    steps = [_step(call.response) for call in reply.model_calls]
    names = [d.name for d in reply.definitions]
    options = [f"tools=[{', '.join(_tool(n) for n in names)}]"] if names else []
    if reply.agent is not None:
        options.append(f"agent={reply.agent!r}")
    if reply.policy:
        options.append(f"tool_policy={reply.policy!r}")
    limits = {k: v for k, v in reply.limits.items() if v != Limits().to_dict().get(k)}
    if limits:
        options.append(f"limits={limits!r}")
    approve = ', approve="pause"' if reply.status == "paused" else ""
    calls = [a.tool.name for a in reply.tool_attempts]
    arguments = {a.tool.name: a.arguments for a in reply.tool_attempts if a.arguments}
    own = [n for n in names if _tool(n) == n]
    lines = [
        "from jarvis_nb import Jarvis",
        "from jarvis_nb.engines import ScriptedEngine, call",
        *([f"# from your_module import {', '.join(own)}"] if own else []),
        "",
        "",
        f"def {name}():",
        "    engine = ScriptedEngine([",
        *(f"        {step}," for step in steps),
        "    ])",
        f"    j = Jarvis(engine=engine{approve})",
        f"    reply = j.ask_full({', '.join([repr(reply.question), *options])})",
        "    reply.expect(",
        f"        calls={calls!r},",
        *([f"        args={arguments!r},"] if arguments else []),
        f"        output={reply.output!r},",
        f"        status={reply.status!r},",
        "    )",
        "    engine.assert_complete()",
        "",
    ]
    return "\n".join(lines)


def _tool(name: str) -> str:
    from jarvis_nb.core.registry import ToolRegistry

    return repr(name) if name in ToolRegistry.builtin or not name.isidentifier() else name


def _step(response: Mapping[str, Any]) -> str:
    """Return one step as code: ``call(…)`` where the message was in order, else the raw message."""
    import json

    text, calls = response.get("content"), response.get("tool_calls")
    if not calls:
        return repr(text) if isinstance(text, str) else repr(dict(response))
    parts = [repr(text)] if text else []
    for item in calls:
        try:
            name, arguments = item["function"]["name"], json.loads(item["function"]["arguments"])
        except (TypeError, KeyError, ValueError):
            return repr(dict(response))
        plain = isinstance(arguments, dict) and all(
            re.fullmatch(r"[a-zA-Z_]\w*", k) and not keyword.iskeyword(k) for k in arguments
        )
        if not plain or not isinstance(text, str | None):
            return repr(dict(response))
        parts.append(f"call({', '.join([repr(name), *(f'{k}={v!r}' for k, v in arguments.items())])})")
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
