"""What models and servers really send, as data: each row a message, and what is right to do with it.

Play one with :func:`~jarvis_nb.testing.answer` (``answer(odd.message, odd.finish_reason)``), whole or streamed.
The tools they call are ``get_weather(city: str)`` and ``add(a: int, b: int)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.types import JSON


@dataclass(frozen=True, slots=True)
class Expected:
    """What is right for one call."""

    name: str
    """As it is sent again."""
    arguments: JSON | None = None
    """What the tool gets; None where it does not run."""
    code: str = "ok"
    """``ok``, or the code of the failed attempt."""
    early: bool = False
    """Refused by the wire already, not only by the tool's schema."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One assistant message, and what is right."""

    name: str
    message: Any
    finish_reason: str = "tool_calls"
    calls: tuple[Expected, ...] = ()
    text: str = ""
    """The text that stays beside the calls, or the whole answer."""
    reasoning: str = ""
    repairs: tuple[str, ...] = ()
    """The codes of the repairs to be shown, in order."""
    streams: bool = True
    """Whether it can come as a stream too."""

    def __str__(self) -> str:
        return self.name


PARIS = {"city": "Paris"}
_RUNS = (Expected("get_weather", PARIS),)
_UNUSABLE = (Expected("get_weather", code="invalid_arguments"),)
_NO_OBJECT = (Expected("get_weather", code="invalid_arguments", early=True),)
_NO_JSON = (Expected("get_weather", code="invalid_json", early=True),)
_CUT = Expected("get_weather", code="cut_off", early=True)


def _function(arguments: Any = '{"city":"Paris"}', name: Any = "get_weather", **call: Any) -> JSON:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **call}


def _call(arguments: Any = '{"city":"Paris"}', name: Any = "get_weather", call_id: Any = "call_1") -> JSON:
    return _function(arguments, name, id=call_id)


def _message(*calls: Any, content: Any = None, **other: Any) -> JSON:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **other}


def _said(content: Any, **other: Any) -> JSON:
    return {"role": "assistant", "content": content, **other}


_ARGUMENTS = [
    Oddity("ok", _message(_call()), calls=_RUNS),
    Oddity("empty", _message(_call("")), calls=_UNUSABLE, repairs=("empty_arguments",)),
    Oddity("blanks", _message(_call(" \n")), calls=_UNUSABLE, repairs=("empty_arguments",)),
    Oddity("null text", _message(_call("null")), calls=_UNUSABLE, repairs=("empty_arguments",)),
    Oddity("null", _message(_call(None)), calls=_UNUSABLE, repairs=("empty_arguments",)),
    Oddity(
        "no arguments key",
        _message({"id": "call_1", "type": "function", "function": {"name": "get_weather"}}),
        calls=_UNUSABLE,
        repairs=("empty_arguments",),
    ),
    Oddity("object", _message(_call({"city": "Paris"})), calls=_RUNS, repairs=("object_arguments",)),
    Oddity("list", _message(_call('["Paris"]')), calls=_NO_OBJECT, repairs=("invalid_arguments",)),
    Oddity("number", _message(_call("7")), calls=_NO_OBJECT, repairs=("invalid_arguments",)),
    Oddity("text", _message(_call('"Paris"')), calls=_NO_OBJECT, repairs=("invalid_arguments",)),
    Oddity("malformed", _message(_call('{"city": "Paris"')), calls=_NO_JSON, repairs=("invalid_json",)),
    Oddity("doubled", _message(_call("{}{}")), calls=_NO_JSON, repairs=("doubled_arguments",)),
    Oddity("cut off, parses", _message(_call()), "length", (_CUT,), repairs=("cut_off",)),
    Oddity(
        "cut off, does not parse",
        _message(_call('{"city": "Par')),
        "length",
        (_CUT,),
        repairs=("invalid_json", "cut_off"),
    ),
    Oddity(
        "cut off, second of two",
        _message(_call(), _call('{"ci', call_id="call_2")),
        "length",
        (_CUT, _CUT),
        repairs=("invalid_json", "cut_off"),
    ),
    Oddity("extra field", _message(_call('{"city":"Paris","units":"C"}')), calls=_UNUSABLE),
    Oddity("missing field", _message(_call("{}")), calls=_UNUSABLE),
    Oddity(
        "wrong field",
        _message(_call('{"a":"2","b":"x"}', "add")),
        calls=(Expected("add", code="invalid_arguments"),),
    ),
    Oddity(
        "lossless text for a number",
        _message(_call('{"a":"2","b":3}', "add")),
        calls=(Expected("add", {"a": 2, "b": 3}),),
    ),
]

_IDS = [
    Oddity("shared id", _message(_call(), _call()), calls=_RUNS * 2, repairs=("duplicate_id",)),
    Oddity("empty id", _message(_call(call_id="")), calls=_RUNS, repairs=("missing_id",)),
    Oddity("null id", _message(_call(call_id=None)), calls=_RUNS, repairs=("missing_id",)),
    Oddity("absent id", _message(_function()), calls=_RUNS, repairs=("missing_id",)),
    Oddity(
        "two null ids",
        _message(_call(call_id=None), _call(call_id=None)),
        calls=_RUNS * 2,
        repairs=("missing_id", "missing_id"),
    ),
]

_NAMES = [
    Oddity(
        "wrong name",
        _message(_call(name="get_wether")),
        calls=(Expected("get_wether", code="unknown_tool"),),
    ),
    Oddity(
        "empty name",
        _message(_call(name="")),
        calls=(Expected("unnamed", code="unknown_tool"),),
        repairs=("illegal_name",),
    ),
    Oddity(
        "namespaced name",
        _message(_call(name="functions.get_weather")),
        calls=_RUNS,
        repairs=("namespaced_name",),
    ),
    Oddity(
        "illegal name",
        _message(_call(name="天気 now!")),
        calls=(Expected("___now_", code="unknown_tool"),),
        repairs=("illegal_name",),
    ),
    Oddity(
        "illegal name that would become a tool's",
        _message(_call(name="get weather")),
        calls=(Expected("get_weather_2", code="unknown_tool"),),
        repairs=("illegal_name",),
    ),
]

_FINISHES = [
    Oddity("finish stop with calls", _message(_call()), "stop", _RUNS, repairs=("finish_reason",)),
    Oddity("finish tool_calls without calls", _said("done"), text="done", repairs=("finish_reason",)),
    Oddity("text and a call", _message(_call(), content="Let me look."), calls=_RUNS, text="Let me look."),
    Oddity("text cut off", _said("Once upon a"), "length", text="Once upon a"),
]

_THINKING = [
    Oddity(
        "thinking",
        _said("<think>hmm</think>done"),
        "stop",
        text="done",
        reasoning="hmm",
        repairs=("thinking_in_text",),
    ),
    Oddity(
        "thinking on lines of its own",
        _said("\n<think>\nhmm\n</think>\n\ndone"),
        "stop",
        text="done",
        reasoning="hmm",
        repairs=("thinking_in_text",),
    ),
    Oddity(
        "thinking whose opener stood in the prompt",
        _said("hmm</think>done"),
        "stop",
        text="done",
        reasoning="hmm",
        repairs=("thinking_in_text",),
    ),
    Oddity(
        "thinking cut off",
        _said("<think>hm"),
        "length",
        reasoning="hm",
        repairs=("thinking_in_text",),
    ),
    Oddity(
        "thinking and a call",
        _message(_call(), content="<think>hmm</think>\n\n"),
        calls=_RUNS,
        reasoning="hmm",
        repairs=("thinking_in_text",),
    ),
    Oddity("reasoning_content", _said("done", reasoning_content="hmm"), "stop", text="done", reasoning="hmm"),
    Oddity("reasoning", _said("done", reasoning="hmm"), "stop", text="done", reasoning="hmm"),
    Oddity(
        "text about tags",
        _said("Write <think>so</think> around it."),
        "stop",
        text="Write <think>so</think> around it.",
    ),
    Oddity(
        "thinking part",
        _said(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
                {"type": "text", "text": "done"},
            ]
        ),
        "stop",
        text="done",
        reasoning="hmm",
    ),
]

_SHAPES = [
    Oddity(
        "content in parts",
        _said([{"type": "text", "text": "do"}, {"type": "text", "text": "ne"}]),
        "stop",
        text="done",
    ),
    Oddity(
        "a part without text",
        _said([{"type": "text", "text": "done"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
        "stop",
        text="done",
        repairs=("content_parts",),
        streams=False,
    ),
    Oddity("refusal", _said(None, refusal="No."), "stop", text="No.", repairs=("refusal",)),
    Oddity("no content key", {"role": "assistant"}, "stop"),
    Oddity("tool_calls null", _said("done", tool_calls=None), "stop", text="done"),
    Oddity("tool_calls empty", _said("done", tool_calls=[]), "stop", text="done"),
    Oddity("tool_calls an empty object", _said("done", tool_calls={}), "stop", text="done"),
    Oddity(
        "tool_calls text",
        _said("done", tool_calls="get_weather"),
        "stop",
        text="done",
        repairs=("tool_calls_shape",),
        streams=False,
    ),
    Oddity(
        "tool_calls one object",
        _said(None, tool_calls=_call()),
        calls=_RUNS,
        repairs=("tool_calls_shape",),
        streams=False,
    ),
    Oddity(
        "a call that is no object",
        _message("get_weather", _call()),
        calls=_RUNS,
        repairs=("tool_calls_shape",),
        streams=False,
    ),
    Oddity(
        "function_call",
        _said(None, function_call={"name": "get_weather", "arguments": '{"city":"Paris"}'}),
        "function_call",
        _RUNS,
        repairs=("function_call", "missing_id"),
    ),
    Oddity("message is text", "done", "stop", text="done", repairs=("not_a_message",), streams=False),
    Oddity("message is null", None, "stop", repairs=("not_a_message",), streams=False),
    Oddity("lone surrogate", _said("half \ud83c of it"), "stop", text="half \ud83c of it"),
    Oddity(
        "not ASCII",
        _message(_call('{"city":"日本語 🎉"}')),
        calls=(Expected("get_weather", {"city": "日本語 🎉"}),),
    ),
]

ODDITIES: tuple[Oddity, ...] = (*_ARGUMENTS, *_IDS, *_NAMES, *_FINISHES, *_THINKING, *_SHAPES)
"""All of them, each with its own name."""
