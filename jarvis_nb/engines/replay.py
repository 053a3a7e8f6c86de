"""An engine that records a real run to a file and replays it offline: notebooks that give the same bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.types import JSON
from jarvis_nb.engines.base import Completion, InferenceEngine, Piece, Request
from jarvis_nb.engines.recording import (
    Exchange,
    Recording,
    completion_dict,
    completion_from,
    error_dict,
    error_from,
    piece_list,
    request_dict,
)
from jarvis_nb.engines.scrub import Scrubber, environment_secrets
from jarvis_nb.engines.stream import StreamBroken

Mode = Literal["auto", "record", "replay"]
MOST_DIFFERENCES = 5


class ReplayEngine(InferenceEngine):
    """Records what another engine answers, or answers from such a recording.

    A request is compared with the recorded ones as data: model, messages, tools, tool choice, temperature and
    token limit. One that was not recorded is an error that says where it differs; a recorded one may come again
    (a cell that is run twice) and in another order (asks at the same time).

    Keys are cut out of the file. Ports on loopback and temporary folders are numbered instead, so that they may
    differ between the runs.

    Args:
        path: The recording, a JSON file.
        engine: Who answers while it is recorded.
        mode: ``record`` writes the file anew; ``replay`` never asks an engine; ``auto`` replays a file that is
            there and records one that is not.

    Raises:
        InvalidRequest: ``invalid_recording``; or there is nothing to replay and no engine to record.

    Example:
        >>> from jarvis_nb.engines import OpenAIEngine
        >>> engine = ReplayEngine("lesson1.json", OpenAIEngine(model="gpt-5-mini"))
    """

    engine_id: ClassVar[str] = "replay"

    def __init__(
        self, path: str | os.PathLike[str], engine: InferenceEngine | None = None, mode: Mode = "auto"
    ) -> None:
        if mode not in ("auto", "record", "replay"):
            raise InvalidRequest(f"mode is {mode!r}", value=mode, valid=["auto", "record", "replay"])
        self.path = Path(path)
        self.engine = engine
        records = mode == "record" or (mode == "auto" and engine is not None and not self.path.exists())
        self.mode: Literal["record", "replay"] = "record" if records else "replay"
        self._lock = threading.Lock()
        if records:
            if engine is None:
                raise InvalidRequest(
                    "there is no engine to record", value=mode, hint="ReplayEngine(path, engine=…)"
                )
            self._recording = Recording(engine.name, engine.default_model, engine.supports)
            self.wants_examples = engine.wants_examples
        else:
            self._recording = Recording.load(self.path)
        self.supports = self._recording.supports

    @property
    def name(self) -> str:
        """The name of the engine that was recorded."""
        return self._recording.engine

    @property
    def default_model(self) -> str:
        """The model that was recorded."""
        return self._recording.model

    @property
    def remaining(self) -> int:
        """How many recorded requests were not made yet."""
        return sum(not exchange.used for exchange in self._recording.exchanges)

    async def generate(self, request: Request) -> Completion:
        """Make one model call, or replay it.

        Raises:
            EngineError: ``replay_mismatch``: it was not recorded. A recorded error is raised as it was.
        """
        if self.mode == "replay":
            _, outcome = self._play(request)
            if isinstance(outcome, EngineError):
                raise outcome
            return outcome
        assert self.engine is not None  # noqa: S101 - checked in __init__
        scrubber, asked = self._asked(request)
        try:
            completion = await self.engine.generate(request)
        except EngineError as error:
            self._keep(Exchange(asked, None, None, scrubber.clean(error_dict(error))), request)
            raise
        self._keep(Exchange(asked, scrubber.clean(completion_dict(completion))), request)
        return completion

    async def stream(self, request: Request) -> AsyncIterator[Piece | Completion]:
        """Make one model call and pass its pieces on, or replay them.

        Raises:
            EngineError: As :meth:`generate`.
        """
        if self.mode == "replay":
            replayed, outcome = self._play(request)
            for piece in replayed:
                yield piece
            if isinstance(outcome, EngineError):
                raise outcome
            yield outcome
            return
        assert self.engine is not None  # noqa: S101 - checked in __init__
        scrubber, asked = self._asked(request)
        pieces: list[list[str]] = []
        try:
            async for item in self.engine.stream(request):
                if isinstance(item, Piece):
                    pieces += piece_list(item)
                else:
                    answer = scrubber.clean(completion_dict(item))
                    self._keep(Exchange(asked, answer, scrubber.clean(pieces)), request)
                yield item
        except EngineError as error:
            partial = error.partial if isinstance(error, StreamBroken) else None
            answer = None if partial is None else scrubber.clean(completion_dict(partial))
            failure = scrubber.clean(error_dict(error))
            self._keep(Exchange(asked, answer, scrubber.clean(pieces), failure), request)
            raise

    async def list_models(self) -> list[str]:
        """Return the models of the engine, or the recorded one."""
        if self.engine is not None and self.mode == "record":
            return await self.engine.list_models()
        return [self.default_model] if self.default_model else []

    async def close(self) -> None:
        """Close the engine that is recorded."""
        if self.engine is not None:
            await self.engine.close()

    def __repr__(self) -> str:
        return f"ReplayEngine({self.path.name!r}, {self.mode}, {len(self._recording.exchanges)} requests)"

    # Recording.

    def _asked(self, request: Request) -> tuple[Scrubber, JSON]:
        scrubber = Scrubber(environment_secrets() | set(getattr(self.engine, "secrets", ())))
        return scrubber, scrubber.clean(request_dict(request))

    def _keep(self, exchange: Exchange, request: Request) -> None:
        with self._lock:  # asks may run on several loops
            self._recording.model = self._recording.model or request.model
            exchange.used = True
            self._recording.exchanges.append(exchange)
            self._recording.save(self.path)

    # Replaying.

    def _play(self, request: Request) -> tuple[list[Piece], Completion | EngineError]:
        scrubber, asked = self._asked(request)
        exchange = self._find(asked)
        answer = scrubber.restore(exchange.answer)
        completion = None if answer is None else completion_from(answer)
        if exchange.pieces is not None:
            pieces = [_piece(kind, text) for kind, text in scrubber.restore(exchange.pieces)]
        else:
            content = completion.message.get("content") if completion is not None else None
            pieces = [Piece(content)] if isinstance(content, str) and content else []
        if exchange.error is not None:
            return pieces, error_from(scrubber.restore(exchange.error), completion)
        return pieces, completion or Completion({})

    def _find(self, asked: JSON) -> Exchange:
        with self._lock:
            equal = [exchange for exchange in self._recording.exchanges if exchange.request == asked]
            if equal:
                found = next((exchange for exchange in equal if not exchange.used), equal[-1])
                found.used = True
                return found
        raise self._mismatch(asked)

    def _mismatch(self, asked: JSON) -> EngineError:
        exchanges = self._recording.exchanges
        if not exchanges:
            return EngineError(
                f"{self.path.name} holds no request", code="replay_mismatch", hint="record it again"
            )
        found = [list(differences(exchange.request, asked)) for exchange in exchanges]
        # The nearest is at the same point of a run, and differs in least; of equals the one that was to come next.
        length = len(asked["messages"])
        distance = [abs(len(exchange.request["messages"]) - length) for exchange in exchanges]
        nearest = min(range(len(found)), key=lambda i: (distance[i], len(found[i]), exchanges[i].used, i))
        shown = "; ".join(found[nearest][:MOST_DIFFERENCES])
        more = len(found[nearest]) - MOST_DIFFERENCES
        return EngineError(
            f"{self.path.name} does not hold this request. Against request {nearest + 1} of {len(exchanges)}: "
            + shown
            + (f"; and {more} more" if more > 0 else ""),
            code="replay_mismatch",
            value=found[nearest],
            hint="undo the change, or record it again: ReplayEngine(path, engine, mode='record')",
        )


def _piece(kind: str, text: str) -> Piece:
    return Piece(reasoning=text) if kind == "reasoning" else Piece(text)


def differences(recorded: Any, got: Any, path: str = "") -> Iterator[str]:
    """Yield where two plain values differ, one line a place.

    Example:
        >>> list(differences({"messages": [{"content": "one two"}]}, {"messages": [{"content": "one three"}]}))
        ["messages[0].content: recorded 'two', got 'three' (from character 4)"]
    """
    if recorded == got:
        return
    if isinstance(recorded, dict) and isinstance(got, dict):
        for key in dict.fromkeys((*recorded, *got)):
            yield from differences(recorded.get(key), got.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(recorded, list) and isinstance(got, list):
        for index, (one, other) in enumerate(zip(recorded, got, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
        if len(recorded) != len(got):
            yield f"{path}: recorded {len(recorded)}, got {len(got)}"
    elif isinstance(recorded, str) and isinstance(got, str):
        unlike = (i for i, (one, other) in enumerate(zip(recorded, got, strict=False)) if one != other)
        start = next(unlike, min(len(recorded), len(got)))
        start = recorded.rfind(" ", 0, start) + 1  # show whole words
        yield f"{path}: recorded {recorded[start:]!r:.80}, got {got[start:]!r:.80} (from character {start})"
    else:
        yield f"{path}: recorded {recorded!r:.80}, got {got!r:.80}"
