"""The facade: ask a model, with tools, and get the whole record back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from jarvis_nb.agents.limits import Limits
from jarvis_nb.config import Config, load_config
from jarvis_nb.core.bridge import heartbeat, run_sync, together
from jarvis_nb.core.errors import EngineError, ErrorInfo, InvalidRequest
from jarvis_nb.core.events import Event, EventBus
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.engines.base import InferenceEngine
from jarvis_nb.reply import Reply
from jarvis_nb.run.engines import EngineHandle
from jarvis_nb.run.live import unwatched, watch
from jarvis_nb.run.options import Ask, AskOptions, listed
from jarvis_nb.run.prepare import announce, prepare
from jarvis_nb.run.toolsets import ToolsetHandle

if TYPE_CHECKING:
    from jarvis_nb.agents.run import Run
    from jarvis_nb.core.approval import Decision
    from jarvis_nb.memory.handle import MemoryHandle
    from jarvis_nb.run.approval import ApproveSetting
    from jarvis_nb.run.preview import Preview

T = TypeVar("T")


class Jarvis(Pictured):
    """Wires tools to an engine and a memory, and asks.

    Args:
        engine: An engine; a key such as ``"ollama"``, ``"openai"`` or ``"local"``; or None: the configured one,
            else one with a key in the environment, else a local server that answers, else the embedded model.
        model: The model's name; None for the engine's own.
        tools: The tools of every ask that names none: names, tools, functions, actions, flows.
        tool_sources: Trusted run-time providers, each ``(Source, config)``.
        memory: A memory backend or a key such as ``"sqlite"``; None for the configured one.
        approve: Who decides about calls that need confirmation: None denies them, ``"ask"`` asks a person,
            ``"pause"`` returns a paused reply, a function decides.
        limits: The bounds of every run; see :class:`jarvis_nb.agents.limits.Limits`.
        tool_context: The host's run context, for sources, flows and actions.
        system: A system message for every ask.
        config: A mapping of settings, or the path of a TOML file; see :class:`jarvis_nb.config.Config`.

    Raises:
        InvalidRequest: A setting is wrong.

    Example:
        >>> from jarvis_nb.engines import ScriptedEngine, call
        >>> with Jarvis(engine=ScriptedEngine([call("calculator", expression="2+2"), "It is 4."])) as j:
        ...     print(j.ask("2+2?", tools=["calculator"]))
        It is 4.
    """

    def __init__(
        self,
        *,
        engine: InferenceEngine | str | None = None,
        model: str | None = None,
        tools: Sequence[Any] = (),
        tool_sources: Sequence[Any] = (),
        memory: Any = None,
        approve: ApproveSetting = None,
        limits: Mapping[str, Any] | None = None,
        tool_context: Mapping[str, Any] | None = None,
        system: str | None = None,
        config: Mapping[str, Any] | Config | str | Path | None = None,
    ) -> None:
        self.config = load_config(config)
        self.bus = EventBus()
        self.engines = EngineHandle(engine, model, self.config, self.bus)
        self._closed = False
        if memory is not None or self.config.memory or self.config.memory_path:
            self._open_memory(memory)  # a wrong key fails in this cell
        self.toolsets = ToolsetHandle(self)
        self.tools = list(self.toolsets.resolve(tools)) if tools else []
        self.tool_sources: list[Any] = list(tool_sources)
        self.approve = approve
        self.always: set[str] = set()
        if approve is not None:
            from jarvis_nb.run.approval import make_approver

            make_approver(approve, self.always)  # a wrong setting fails in this cell
        self.limits = Limits.of(limits, Limits.of(self.config.limits))
        self.tool_context = tool_context
        self.system = system
        self.last: Reply | None = None
        """The newest reply, an interrupted one too."""

    @property
    def memory(self) -> MemoryHandle:
        """The memory: search it, index files, see :class:`jarvis_nb.memory.handle.MemoryHandle`."""
        return vars(self).get("_memory") or self._open_memory(None)

    @property
    def has_memory(self) -> bool:
        """Whether there is a memory that an ask could carry something from."""
        return "_memory" in vars(self) and self.memory.configured

    def _open_memory(self, given: Any) -> MemoryHandle:
        from jarvis_nb.memory.handle import MemoryHandle

        made = MemoryHandle(given, self.config, bus=self.bus)
        if self._closed:
            made.close()
        return vars(self).setdefault("_memory", made)  # of two threads one is first

    @property
    def model(self) -> str | None:
        """The model's name, where it is known; settable."""
        return self.engines.model_name

    @model.setter
    def model(self, name: str | None) -> None:
        self.engines.named = name
        self.toolsets.forget_named()

    # Asking.

    def ask(self, query: str, **options: Unpack[AskOptions]) -> str:
        """Ask and return the answer's text. Takes the options of :meth:`ask_full`."""
        __tracebackhide__ = True
        return self.ask_full(query, **options).output

    def ask_full(self, query: str, **options: Unpack[AskOptions]) -> Reply:
        """Ask and return the whole record. Works under a running loop, as in a notebook.

        Args:
            query: The question.
            **options: ``agent`` (``"simple"`` or ``"orchestrator"``), ``tools`` (for this ask, instead of the
                Jarvis's own), ``tool_policy`` (narrows the tools), ``history``, ``model``, ``temperature``,
                ``max_tokens``, ``context`` (memory injection), ``limits``, ``tool_context``, ``system``.

        Raises:
            InvalidRequest: The request cannot be carried out as it stands; no model was called.
            EngineError: There is no engine, or it failed before it answered once.
            KeyboardInterrupt: The stop button; :attr:`last` then holds the record up to there.
        """
        __tracebackhide__ = True
        ask, begun = Ask.of(query, options), list["Run"]()
        return self._wait(self._ask(ask, begun), begun)

    async def aask_full(self, query: str, **options: Unpack[AskOptions]) -> Reply:
        """Ask and return the whole record, for ``await``; see :meth:`ask_full`."""
        async with heartbeat():
            try:
                return await self._ask(Ask.of(query, options), [])
            except (asyncio.CancelledError, KeyboardInterrupt) as stop:
                raise stop.with_traceback(None) from None  # who stops a run needs no map of its insides

    async def astream(self, query: str, **options: Unpack[AskOptions]) -> AsyncGenerator[Event]:
        """Ask and yield what happens: ``event.text`` is a piece of the answer, the last has ``event.reply``.

        Example:
            >>> async def show(j):
            ...     async for event in j.astream("Hello"):
            ...         print(event.text or "", end="")
        """
        from jarvis_nb.run.stream import stream_events

        ask = Ask.of(query, options)
        async with (
            heartbeat(),
            aclosing(stream_events(lambda bus: self._ask(ask, [], bus), self.bus)) as events,
        ):
            try:
                async for event in events:
                    yield event
            except (asyncio.CancelledError, KeyboardInterrupt) as stop:
                raise stop.with_traceback(None) from None

    def preview(self, query: str, **options: Unpack[AskOptions]) -> Preview:
        """Return the offer, the exact payload and its tokens; no model is called."""
        return run_sync(self._preview(Ask.of(query, options)))

    async def _preview(self, ask: Ask) -> Preview:
        from jarvis_nb.run.preview import make_preview

        _, run = await prepare(self, ask)
        return make_preview(run)

    def ask_request(self, data: Any, **options: Unpack[AskOptions]) -> Reply:
        """Carry out untrusted JSON: only ``input`` and ``tool_policy`` may stand in it.

        Args:
            data: The decoded JSON object of a request.
            **options: The host's own options, as for :meth:`ask_full`.

        Raises:
            InvalidRequest: Anything else stands in it, or one of the two is malformed.
        """
        from jarvis_nb.toolsets.request import parse_request

        request = parse_request(data)
        options["tool_policy"] = request.tool_policy
        return self.ask_full(request.input, **options)

    def map(self, queries: Iterable[str], *, at_once: int = 8, **options: Unpack[AskOptions]) -> list[Reply]:
        """Ask many questions, several at once, and return the replies in order.

        Args:
            queries: The questions.
            at_once: How many run at the same time.
            **options: As for :meth:`ask_full`.

        Raises:
            InvalidRequest: ``queries`` is one text, ``at_once`` is below 1, or an ask is wrong.
        """
        if isinstance(queries, str):
            raise InvalidRequest(
                f"queries is the text {queries!r:.100}", value=queries, hint="give a list of questions"
            )
        if at_once < 1:
            raise InvalidRequest(f"at_once is {at_once!r}", value=at_once, hint="give 1 or more")
        settled = listed(options)
        asks, begun = [Ask.of(query, settled) for query in queries], list["Run"]()
        return self._wait(self._map(asks, begun, at_once), begun)

    async def _map(self, asks: list[Ask], begun: list[Run], at_once: int) -> list[Reply]:
        gate = asyncio.Semaphore(at_once)

        async def one(ask: Ask) -> Reply:
            async with gate:
                return await self._ask(ask, begun)

        with unwatched():
            return await together([one(ask) for ask in asks])

    # Carrying on a paused run.

    def resume(
        self, reply: Reply, decisions: Mapping[str, Decision] | None = None, **options: Unpack[AskOptions]
    ) -> Reply:
        """Carry on a paused reply, of this process or loaded from a file.

        Args:
            reply: A reply with status ``paused``; it is not changed.
            decisions: Call id to ``Approve(…)`` or ``Deny(…)``; calls without one are asked about again.
            **options: Only ``tools`` and ``tool_context``, where the first ask had them.

        Raises:
            InvalidRequest: ``not_paused``, ``unknown_call``, or a tool of the reply is missing.
        """
        begun = list["Run"]()
        return self._wait(self._resume(reply, decisions or {}, options, begun), begun)

    async def aresume(
        self, reply: Reply, decisions: Mapping[str, Decision] | None = None, **options: Unpack[AskOptions]
    ) -> Reply:
        """Carry on a paused reply, for ``await``; see :meth:`resume`."""
        async with heartbeat():
            try:
                return await self._resume(reply, decisions or {}, options, [])
            except (asyncio.CancelledError, KeyboardInterrupt) as stop:
                raise stop.with_traceback(None) from None

    async def _resume(
        self, reply: Reply, decisions: Mapping[str, Decision], options: Mapping[str, Any], begun: list[Run]
    ) -> Reply:
        from jarvis_nb.run.resume import prepare_resume

        agent, run, turn = await prepare_resume(self, reply, decisions, options)
        begun.append(run)

        async def body() -> None:
            await run.decide(turn, decisions)
            if not run.reply.pending:
                await agent.run(run)

        with watch(run) as run.streaming:
            return await self._carry_out(run, body)

    # The one body of them all.

    async def _ask(self, ask: Ask, begun: list[Run], bus: EventBus | None = None) -> Reply:
        __tracebackhide__ = True
        agent, run = await prepare(self, ask, bus)
        begun.append(run)
        with watch(run, wanted=bus is None) as shown:
            run.streaming = shown or bus is not None
            announce(run)
            return await self._carry_out(run, lambda: agent.run(run))

    async def _carry_out(self, run: Run, body: Any) -> Reply:
        seconds = run.limits.seconds
        try:
            async with asyncio.timeout(seconds) if seconds is not None else nullcontext():
                await body()
        except TimeoutError:
            run.fail("limit_seconds", f"the limit of {seconds:g} seconds is used up")
        except EngineError as error:
            if not run.reply.model_calls:
                run.close()
                raise
            run.end("failed", error.info())
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._interrupted([run])
            raise
        except BaseException as error:
            run.end("failed", ErrorInfo("internal_error", f"{type(error).__name__}: {error}"))
            self.last = run.close()
            raise
        self.last = run.close()
        return self.last

    def _wait(self, coroutine: Coroutine[Any, Any, T], begun: list[Run]) -> T:
        """Wait for a run or several, interruptibly."""
        __tracebackhide__ = True  # a notebook shows the caller's line and the message, not our layers
        try:
            return run_sync(coroutine)
        except KeyboardInterrupt as stop:
            self._interrupted(begun)  # by now they have done it themselves, unless a tool holds their loop
            raise stop.with_traceback(None) from None  # who stops a run needs no map of its insides

    def _interrupted(self, begun: list[Run]) -> None:
        for run in begun:
            if not run.closed:
                run.end("cancelled", ErrorInfo("interrupted", "the run was interrupted"))
                self.last = run.close()

    # The end.

    def close(self) -> None:
        """Close what this Jarvis opened, not what it was given. Safe to call twice."""
        run_sync(self.aclose())

    async def aclose(self) -> None:
        """Close, for ``await``; see :meth:`close`."""
        try:
            if self.tool_sources:
                from jarvis_nb.toolsets.source import close_sources, source_specs

                await close_sources(source_specs(self.tool_sources))
        finally:
            await self.engines.close()
            self._closed = True
            if "_memory" in vars(self):
                self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        model = f", model={self.model!r}" if self.model else ""
        tools = f", tools={[tool.name for tool in self.tools]}" if self.tools else ""
        return f"Jarvis(engine={self.engines.label}{model}{tools})"
