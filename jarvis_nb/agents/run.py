"""One run: its settings, the record it builds, and the two steps an agent is made of."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from jarvis_nb.agents.limits import Limits, RepeatWatch
from jarvis_nb.core.bridge import together
from jarvis_nb.core.errors import EngineError, ErrorInfo, JarvisError
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.types import Message, Role, ToolCall, ToolChoice
from jarvis_nb.engines.base import Completion, InferenceEngine, Piece, Request
from jarvis_nb.engines.wire import StreamBroken, normalise
from jarvis_nb.record import Attempt, ModelCall, RoundOffer
from jarvis_nb.reply import Reply, Status

if TYPE_CHECKING:
    from jarvis_nb.core.approval import Decision
    from jarvis_nb.tools.executor import Outcome, ToolExecutor
    from jarvis_nb.toolsets.policy import Offer


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """One answer of the model, normalised, with the round it belongs to."""

    round: int
    with_tools: bool
    text: str
    calls: list[ToolCall]
    refused: Mapping[str, ErrorInfo]
    by: dict[str, str]


@dataclass(slots=True, eq=False, repr=False)
class Run:
    """The state of one ask. Whatever ends it, :attr:`reply` is the record up to there."""

    reply: Reply
    engine: InferenceEngine
    model: str
    offer: Offer
    make_executor: Callable[[], ToolExecutor]
    bus: EventBus
    limits: Limits
    messages: list[Message]
    temperature: float | None = None
    max_tokens: int | None = None
    streaming: bool = False
    examples: Mapping[str, Sequence[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    closed: bool = False
    started: float = field(default_factory=perf_counter)
    forced_choice: bool = True
    """Whether the engine still takes a forced choice; False once it refused one."""
    repeats: RepeatWatch = field(default_factory=RepeatWatch)
    rounds_with_calls: int = 0
    calls_made: int = 0
    ran: set[str] = field(default_factory=set[str])
    """Names of the tools that were entered."""
    ids: set[str] = field(default_factory=set[str])
    """Call ids of the transcript."""
    known_names: Collection[str] = ()
    """The tools a call can mean, offered or not."""
    open_calls: list[tuple[Turn, list[Outcome]]] = field(default_factory=list)
    """The round that runs now: what an interrupt has to close."""
    _executor: ToolExecutor | None = None

    @property
    def executor(self) -> ToolExecutor:
        """What runs the calls: made, and imported, when the model makes the first."""
        if self._executor is None:
            self._executor = self.make_executor()
        return self._executor

    # Asking the model.

    async def ask_model(self, *, with_tools: bool = True) -> Turn:
        """Make one model call and record it, with its offer, repairs and usage.

        Raises:
            EngineError: The engine failed.
        """
        self._check_open()
        round_ = len(self.reply.model_calls) + 1
        tools = self.offer.definitions if with_tools and self.offer.definitions else None
        choice, reason = self._choice(tools is not None)
        entries = self.offer.entries
        if not with_tools and self.offer.definitions:
            reason = "the last call has no tools, so that the run ends in words"
            entries = tuple(replace(e, offered=False, reason=e.reason or reason) for e in entries)
        self.reply.offers.append(RoundOffer(round_, entries, choice, reason))
        self.bus.publish(
            EventType.ROUND_START,
            round=round_,
            offered=list(self.offer.names) if tools else [],
            choice=choice,
        )
        request = Request(
            self.model, self.messages, tools, choice, self.temperature, self.max_tokens, self.examples
        )
        before = perf_counter()
        try:
            completion = await self._complete(request, round_)
        except StreamBroken as broken:  # what came is kept, and no call of it runs
            turn = self._take(broken.partial, round_, before, with_tools=tools is not None, broken=True)
            await self.run_calls(turn)
            raise
        except EngineError:
            self.reply.offers.pop()
            raise
        return self._take(completion, round_, before, with_tools=tools is not None)

    def _choice(self, with_tools: bool) -> tuple[ToolChoice, str]:
        if not with_tools:
            return None, "no tool is offered"
        choice, reason = self.offer.choice(bool(self.ran)), self.offer.reason_for_choice(bool(self.ran))
        if choice in (None, "auto") or (self.forced_choice and self.engine.supports.forced_choice):
            return choice, reason
        if self.forced_choice:
            self._downgrade()
        return "auto", "the engine takes no forced choice"

    def _downgrade(self) -> None:
        self.forced_choice = False
        self.warn(
            f"{self.engine.name} takes no forced tool choice: it was sent as auto, and the outcome is checked"
        )

    async def _complete(self, request: Request, round_: int) -> Completion:
        self.bus.publish(
            EventType.INFERENCE_START, round=round_, model=self.model, messages=len(self.messages)
        )
        try:
            completion = await self._call_engine(request)
        except EngineError as error:
            if error.code != "forced_choice_refused" or request.tool_choice in (None, "auto"):
                raise
            self._downgrade()
            request.tool_choice = "auto"
            offer = self.reply.offers[-1]
            self.reply.offers[-1] = RoundOffer(
                round_, offer.entries, "auto", "the engine refused a forced choice"
            )
            completion = await self._call_engine(request)
        self.bus.publish(
            EventType.INFERENCE_END,
            round=round_,
            model=completion.model or self.model,
            finish_reason=completion.finish_reason,
            usage=completion.usage.to_dict() if self.bus.active else None,
        )
        return completion

    async def _call_engine(self, request: Request) -> Completion:
        """Call the engine; whatever it raises is an engine's failure.

        Raises:
            EngineError: The engine failed: ``engine_failed`` where it said so with an exception of another kind.
            AssertionError: A check in a scripted step, which is a test's own.
        """
        try:
            return await self._called(request)
        except (JarvisError, AssertionError):
            raise
        except Exception as error:
            raise EngineError(
                f"{self.engine.name} failed: {type(error).__name__}: {error}", code="engine_failed"
            ) from error

    async def _called(self, request: Request) -> Completion:
        if not self.streaming or not self.engine.supports.stream:
            return await self.engine.generate(request)
        bus = self.bus
        completion: Completion | None = None
        async for piece in self.engine.stream(request):
            if isinstance(piece, Piece):
                if piece.text:
                    bus.publish(EventType.TEXT, text=piece.text)
                if piece.reasoning:
                    bus.publish(EventType.REASONING, text=piece.reasoning)
            else:
                completion = piece
        if completion is None:
            raise EngineError(f"{self.engine.name} ended its stream without an answer", code="stream_broken")
        return completion

    def _record(self, completion: Completion, round_: int, before: float) -> None:
        now = perf_counter()
        self.reply.model_calls.append(
            ModelCall(
                round_,
                len(self.messages),
                completion.message,
                completion.finish_reason,
                completion.usage,
                completion.model,
                before - self.started,
                now - before,
            )
        )
        self.reply.usage += completion.usage

    def _take(
        self, completion: Completion, round_: int, before: float, *, with_tools: bool, broken: bool = False
    ) -> Turn:
        self._check_open()
        self._record(completion, round_, before)
        found = normalise(
            completion.message,
            finish_reason=completion.finish_reason,
            taken_ids=self.ids,
            known_names=self.known_names,
            round=round_,
            repairs=completion.repairs,
            broken=broken,
        )
        reply = self.reply
        if found.repairs:
            reply.repairs += found.repairs
            for repair in found.repairs:
                self.bus.publish(EventType.REPAIR, round=round_, code=repair.code, text=repair.message)
        self.ids.update(call.id for call in found.calls)
        self.messages.append(found.message)
        reply.output = found.text
        if found.reasoning:
            reply.reasoning = (
                f"{reply.reasoning}\n\n{found.reasoning}" if reply.reasoning else found.reasoning
            )
        return Turn(round_, with_tools, found.text, found.calls, found.refused, completion.provenance)

    # Running the calls.

    async def run_calls(self, turn: Turn, refuse: ErrorInfo | None = None) -> ErrorInfo | None:
        """Run the calls of one round together and answer every one of them, in call order.

        Args:
            turn: What the model asked for.
            refuse: Why no call of this turn may run, if none may.

        Returns:
            Why no further round may run tools, if a limit was met on the way.
        """
        from jarvis_nb.tools.executor import Outcome

        streaks = self.repeats.count(turn.calls)
        stopped: ErrorInfo | None = None
        outcomes: list[Outcome] = []
        jobs: list[Any] = []
        offered = self.offer.names if turn.with_tools else ()
        self.rounds_with_calls += 1
        for call, streak in zip(turn.calls, streaks, strict=True):
            outcome = Outcome(call)
            outcomes.append(outcome)
            why = turn.refused.get(call.id) or refuse or self._over_calls()
            if why is None and self.limits.repeats_stopped and streak >= self.limits.repeats_stopped:
                why = stopped = ErrorInfo(
                    "repeated_call",
                    f"the same call was made in {streak} rounds in a row: it was not run again",
                )
            if why is not None:
                outcome.refuse(why)
                continue
            self.calls_made += 1
            jobs.append(self.executor.run(call, offered=offered, outcome=outcome))
        self.open_calls = [(turn, outcomes)]
        if len(jobs) == 1:
            await jobs[0]
        elif jobs:
            await together(jobs)
        self._check_open()
        self._answer(turn, outcomes, streaks)
        return stopped

    def _over_calls(self) -> ErrorInfo | None:
        if self.limits.calls is not None and self.calls_made >= self.limits.calls:
            return ErrorInfo("limit_calls", f"the limit of {self.limits.calls} tool calls is used up")
        return None

    def _answer(self, turn: Turn, outcomes: list[Outcome], streaks: Sequence[int]) -> None:
        """Close the round: one attempt and one tool message a call, in call order."""
        self.open_calls = []
        paused = False
        images: list[Any] = []
        for index, (outcome, streak) in enumerate(zip(outcomes, streaks, strict=True)):
            attempt = self._attempt(turn, outcome, index)
            told = self.limits.repeats_told
            if outcome.ran and told and streak >= told:
                attempt.content += (
                    f"\n\n[This exact call was made in {streak} rounds in a row with the same arguments. "
                    "Use its result, or do something else.]"
                )
            paused = paused or attempt.status == "pending"
            self.reply.tool_attempts.append(attempt)
            self.messages.append(Message(Role.TOOL, attempt.content, tool_call_id=attempt.call_id))
            images += outcome.images
        if images and self.engine.supports.images:
            self.messages.append(Message(Role.USER, images))
        self.bus.publish(EventType.ROUND_END, round=turn.round, calls=len(outcomes))
        if paused:
            self._pause()

    def _attempt(self, turn: Turn, outcome: Outcome, index: int) -> Attempt:
        from jarvis_nb.agents.attempts import make_attempt

        if outcome.ran:
            self.ran.add(outcome.call.name)
        return make_attempt(outcome, turn.round, index, turn.by, self.started)

    async def decide(self, turn: Turn, decisions: Mapping[str, Decision]) -> None:
        """Carry on a paused round: run the pending calls under their decisions."""
        from jarvis_nb.tools.executor import Outcome

        waiting = {a.call_id for a in self.reply.pending if a.round == turn.round}
        outcomes = [Outcome(call) for call in turn.calls if call.id in waiting]
        self.open_calls = [(turn, outcomes)]
        await together(
            [
                self.executor.run(
                    o.call, offered=self.offer.names, outcome=o, decision=decisions.get(o.call.id)
                )
                for o in outcomes
            ]
        )
        self._check_open()
        self._decided(turn, outcomes)
        if self.reply.pending:
            self._pause()

    def _decided(self, turn: Turn, outcomes: list[Outcome]) -> None:
        """Put what became of waiting calls in their places."""
        self.open_calls = []
        attempts = self.reply.tool_attempts
        places = {attempt.call_id: place for place, attempt in enumerate(attempts)}
        for outcome in outcomes:
            place = places[outcome.call.id]
            attempts[place] = self._attempt(turn, outcome, attempts[place].index)
            for message in self.messages:
                if message.tool_call_id == outcome.call.id:
                    message.content = attempts[place].content
                    message.encoded.clear()

    def _pause(self) -> None:
        self.end(
            "paused", ErrorInfo("approval_pending", "a call waits for a decision: j.resume(reply, decisions)")
        )

    # Ending.

    def tools_used_up(self) -> ErrorInfo | None:
        """Return why no further round may run tools, or None."""
        if self.limits.rounds is not None and self.rounds_with_calls >= self.limits.rounds:
            return ErrorInfo("limit_rounds", f"the limit of {self.limits.rounds} tool rounds is used up")
        return self._over_calls()

    def spent(self) -> bool:
        """Whether tokens or dollars are used up; if so the run is ended."""
        if self.limits.tokens is None and self.limits.usd is None:
            return False
        error = self.limits.spent(self.reply.usage, self.cost() if self.limits.usd is not None else None)
        if error is not None:
            self.end("failed", error)
        return error is not None

    def check_requirement(self) -> None:
        """End as failed where a required tool was not called."""
        unmet = self.offer.unmet(self.ran)
        if unmet is not None:
            self.end("failed", unmet)

    def cost(self) -> float | None:
        """US dollars so far."""
        self.reply.__dict__.pop("cost_usd", None)
        return self.reply.cost_usd

    def warn(self, text: str) -> None:
        """Put a warning on the reply, once."""
        if text not in self.reply.warnings:
            self.reply.warnings.append(text)
            self.bus.publish(EventType.WARNING, text=text)

    def fail(self, code: str, message: str) -> None:
        """End as failed."""
        self.end("failed", ErrorInfo(code, message))

    def end(self, status: Status, error: ErrorInfo | None = None) -> None:
        """Set how the run ended."""
        self.reply.status = status
        self.reply.error = error

    def _check_open(self) -> None:
        """Go no further where an interrupt closed the run while a tool held the loop."""
        if self.closed:
            raise asyncio.CancelledError

    def close(self) -> Reply:
        """Close the history, whatever ended the run, and return the reply. Safe to call twice."""
        if self.closed:
            return self.reply
        self.closed = True
        for turn, outcomes in self.open_calls:
            for outcome in outcomes:
                outcome.give_up()
            if self.reply.pending:
                self._decided(turn, outcomes)
                continue
            status, error = self.reply.status, self.reply.error
            self._answer(turn, outcomes, itertools.repeat(0, len(outcomes)))  # pyright: ignore[reportArgumentType]
            self.end(status, error)
        self.reply.messages = self.messages
        self.bus.publish(EventType.RUN_END, status=self.reply.status, output=self.reply.output)
        return self.reply
