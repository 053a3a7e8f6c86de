"""The file of a recorded run: readable, versioned, without repetition.

::

    {"format": "jarvis_nb.recording", "version": 1, "engine": "openai", "model": "gpt-5-mini", "supports": {…},
     "exchanges": [
       {"request": {"model": …, "messages": […], "tools": […], "tool_choice": "auto", …},
        "answer": {"message": {…}, "finish_reason": "tool_calls", "usage": {…}}},
       {"request": {"same_messages": 1, "messages": [the new ones], "tools": "same", …},
        "pieces": [["text", "It "], ["text", "is 51."]],
        "answer": {…}},
       {"request": {…}, "error": {"code": "rate_limited", "message": …}}]}

``same_messages`` counts the leading messages that are those of the exchange before, ``"tools": "same"`` means
the tools of the exchange before.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.types import JSON, Repair, Usage
from jarvis_nb.engines.base import Completion, Piece, Request, Support
from jarvis_nb.engines.stream import StreamBroken

FORMAT = "jarvis_nb.recording"
VERSION = 1


@dataclass(slots=True)
class Exchange:
    """One model call: what was asked, in plain data, and what came."""

    request: JSON
    answer: JSON | None = None
    pieces: list[list[str]] | None = None
    """Kind and text of each piece, if the answer was streamed."""
    error: JSON | None = None
    used: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Recording:
    """A recorded run."""

    engine: str = ""
    model: str = ""
    supports: Support = field(default_factory=Support)
    exchanges: list[Exchange] = field(default_factory=list[Exchange])

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a file.

        Raises:
            InvalidRequest: ``invalid_recording``: it is missing, or no recording of a version we know.
        """
        try:
            data: Any = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise _invalid(path, "does not exist", "record it: ReplayEngine(path, engine=…)") from None
        except (OSError, ValueError) as error:
            raise _invalid(path, f"cannot be read: {error}") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise _invalid(path, "is no recording of an engine")
        if data.get("version") != VERSION:
            raise _invalid(
                path, f"has version {data.get('version')!r}, this package reads {VERSION}", "record it again"
            )
        try:
            exchanges = _unfold([Exchange(**entry) for entry in data["exchanges"]])
            return cls(data["engine"], data["model"], Support(**data["supports"]), exchanges)
        except (KeyError, TypeError, IndexError) as error:
            raise _invalid(path, f"lacks something: {type(error).__name__} {error}") from None

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        exchanges = [_exchange_dict(entry) for entry in _fold(self.exchanges)]
        data = {"format": FORMAT, "version": VERSION, "engine": self.engine, "model": self.model}
        data |= {"supports": asdict(self.supports), "exchanges": exchanges}
        try:
            text = json.dumps(data, ensure_ascii=False, indent=1).encode()
        except UnicodeEncodeError:  # half a surrogate pair can only be written as an escape
            text = json.dumps(data, indent=1).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            beside.write_bytes(text + b"\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def request_dict(request: Request) -> JSON:
    """Return a request as plain data.

    Example:
        >>> request_dict(Request("m", []))["tools"] is None
        True
    """
    from jarvis_nb.core.schema import openai_tools

    return {
        "model": request.model,
        "messages": [message.to_openai() for message in request.messages],
        "tools": openai_tools(request.tools) if request.tools else None,
        "tool_choice": request.tool_choice if request.tools else None,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }


def completion_dict(completion: Completion) -> JSON:
    """Return an answer as plain data; what is empty is left out."""
    whole = {
        "message": completion.message,
        "finish_reason": completion.finish_reason,
        "usage": completion.usage.to_dict(),
        "model": completion.model,
        "repairs": [{"code": r.code, "message": r.message} for r in completion.repairs],
        "provenance": completion.provenance,
    }
    return {key: value for key, value in whole.items() if value or key == "message"}


def completion_from(data: JSON) -> Completion:
    """Read what :func:`completion_dict` made."""
    return Completion(
        data["message"],
        data.get("finish_reason"),
        Usage.from_openai(data.get("usage")),
        data.get("model", ""),
        [Repair(r["code"], r["message"]) for r in data.get("repairs", ())],
        dict(data.get("provenance", {})),
    )


def error_dict(error: EngineError) -> JSON:
    """Return an error as plain data."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def error_from(data: JSON, partial: Completion | None) -> EngineError:
    """Read what :func:`error_dict` made, with what had come of a broken stream."""
    if partial is not None:
        return StreamBroken(data["message"], partial=partial, hint=data.get("hint"))
    return EngineError(data["message"], code=data["code"], hint=data.get("hint"))


def piece_list(piece: Piece) -> list[list[str]]:
    """Return a piece as kind and text."""
    pairs = (("reasoning", piece.reasoning), ("text", piece.text))
    return [[kind, text] for kind, text in pairs if text]


def _exchange_dict(exchange: Exchange) -> JSON:
    whole = {
        "request": exchange.request,
        "pieces": exchange.pieces,
        "answer": exchange.answer,
        "error": exchange.error,
    }
    return {key: value for key, value in whole.items() if value is not None}


def _fold(exchanges: list[Exchange]) -> list[Exchange]:
    """Leave out what each request shares with the one before."""
    folded: list[Exchange] = []
    before: JSON = {"messages": [], "tools": None}
    for exchange in exchanges:
        request = dict(exchange.request)
        messages = request.pop("messages")
        same = 0
        while (
            same < min(len(messages), len(before["messages"])) and messages[same] == before["messages"][same]
        ):
            same += 1
        tools = "same" if request["tools"] and request["tools"] == before["tools"] else request["tools"]
        request = {
            "model": request.pop("model"),
            "same_messages": same,
            "messages": messages[same:],
            **request,
        }
        folded.append(Exchange({**request, "tools": tools}, exchange.answer, exchange.pieces, exchange.error))
        before = exchange.request
    return folded


def _unfold(exchanges: list[Exchange]) -> list[Exchange]:
    before: JSON = {"messages": [], "tools": None}
    for exchange in exchanges:
        request = exchange.request
        request["messages"] = before["messages"][: request.pop("same_messages", 0)] + request["messages"]
        if request["tools"] == "same":
            request["tools"] = before["tools"]
        before = request
    return exchanges


def _invalid(path: Path, what: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(
        f"the recording {path.name} {what}", code="invalid_recording", value=str(path), hint=hint
    )
