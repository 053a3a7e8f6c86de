"""Tool sources: trusted providers, given by the host, that say at run time which tools they have."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jarvis_nb.core.bridge import HAS_THREADS
from jarvis_nb.core.errors import InvalidRequest, JarvisError, SourceError, ToolsetError
from jarvis_nb.core.portable import Secret, portable
from jarvis_nb.core.threads import workers
from jarvis_nb.tools.base import BaseTool, ToolContext
from jarvis_nb.toolsets.scrub import Scrubber
from jarvis_nb.toolsets.source_tool import SourceTool

LIST_SECONDS = 30.0
"""How long a source may take to list its tools."""


class ToolSource(ABC):
    """A provider of tools that are known only at run time, such as one tenant's connectors.

    The host gives it, as ``tool_sources=[(RatesSource, {"base": "USD"})]``; request data never can. Both
    methods may be ``async``; a synchronous one runs on a worker thread. The config is portable data;
    a :class:`~jarvis_nb.Secret` in it is a reference while tools are listed (``config["token"].resolve(
    context.secrets)`` reads it, where listing needs it) and its value when a tool runs.

    Example:
        >>> class RatesSource(ToolSource):
        ...     def list_tools(self, config, context):
        ...         return [{"name": "exchange_rate", "description": "Return one exchange rate",
        ...                  "parameter_schema": {"type": "object", "required": ["currency"],
        ...                                       "properties": {"currency": {"type": "string"}}}}]
        ...     def run_tool(self, name, arguments, config, context):
        ...         return {"base": config["base"], "currency": arguments["currency"], "rate": 0.92}
    """

    id: str | None = None
    """What the ledger and attempts call the source; ``module.qualname`` of the class if None."""
    config: Any = None
    """The config of an instance that is given without one."""
    timeout_seconds: float = 30.0
    """A call of one of its tools that takes longer is reported as timed out."""
    max_tools: int = 2_000
    """A longer list is an error."""
    max_description: ClassVar[int] = 65_536
    """Bytes of one description; a longer one is an error."""
    check_schemas: ClassVar[bool] = True
    """Whether its schemas are checked and bounded; False only where the source makes them itself."""
    uncapped: ClassVar[bool] = False
    """Whether the model is to read results whole, whatever the executor's cap."""

    @abstractmethod
    def list_tools(self, config: Any, context: ToolContext) -> Any:
        """Return a list of ``{"name", "description", "parameter_schema"}``, in the order to offer.

        ``annotations`` (data) and ``requires_confirmation`` may stand beside them. May be ``async``.

        Args:
            config: What the host gave; a ``Secret`` in it is a reference.
            context: The host's run context, a mapping.
        """

    @abstractmethod
    def run_tool(self, name: str, arguments: dict[str, Any], config: Any, context: ToolContext) -> Any:
        """Run one of the listed tools and return any JSON value (or images). May be ``async``.

        Args:
            name: As listed.
            arguments: Validated against the tool's ``parameter_schema``.
            config: What the host gave, with secrets resolved.
            context: The host's run context, a mapping.

        Raises:
            ToolError: What the model reads, with a code of your own.
        """

    async def aclose(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Release what the source holds open. It may be used again afterwards."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(slots=True, eq=False, repr=False)
class SourceSpec:
    """One source as the host gave it: the provider, its portable config and its string id."""

    source: ToolSource
    config: Any
    id: str
    _listing: list[Any] | None = field(default=None, init=False)
    _tools: list[SourceTool] = field(default_factory=list[SourceTool], init=False)

    @classmethod
    def of(cls, given: object, path: str = "tool_sources[0]") -> SourceSpec:
        """Read ``(Source, config)``, ``Source`` or an instance of it; a spec is returned as it is.

        Raises:
            InvalidRequest: ``invalid_source``: neither of these.
            NotPortable: The config holds a callable, a handle or a client; the error has its path.
        """
        if isinstance(given, SourceSpec):
            return given
        source, config = given if isinstance(given, tuple | list) and len(given) == 2 else (given, None)  # noqa: PLR2004
        if isinstance(source, type) and issubclass(source, ToolSource):
            source = _instance(source)
        if not isinstance(source, ToolSource):
            raise InvalidRequest(
                f"{path} is {_shown(given)}: not a tool source",
                code="invalid_source",
                value=path,
                valid=["(Source, config)", "Source", "an instance of it"],
                hint="Source is a subclass of ToolSource",
            )
        kind = type(source)
        name = source.id or f"{kind.__module__}.{kind.__qualname__}"
        given_config = source.config if config is None else config
        config = {} if given_config is None else portable(given_config, f"{path}.config", secrets=True)
        return cls(source, config, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as a stored turn holds it; secrets are ``{"$secret": name}``."""
        return {"source": self.id, "config": _without_values(self.config)}

    async def aclose(self) -> None:
        """Release what the source holds open."""
        await self.source.aclose()

    def __repr__(self) -> str:
        return f"SourceSpec({self.id!r})"

    async def load(self, context: ToolContext, seconds: float) -> list[SourceTool]:
        """List the tools now and return them checked; the same objects as before where nothing changed.

        Raises:
            SourceError: Listing failed, took too long, or gave something unusable.
        """
        scrub = Scrubber(self.config, context.secrets)
        try:
            listing = await _within(self._list(context), seconds)
            listing = self._checked_length(listing)
            if listing != self._listing:
                tools = [SourceTool.of(self, item, scrub) for item in listing]
                _distinct([(tool.name, self.id) for tool in tools])
                self._tools, self._listing = tools, listing
        except TimeoutError:
            raise SourceError(
                f"the source {self.id} did not list its tools within {seconds:g} s",
                code="source_timeout",
                value=self.id,
            ) from None
        except Exception as error:
            raise self._failed(error, scrub) from (None if scrub else error)
        return list(self._tools)

    async def _list(self, context: ToolContext) -> Any:
        # A copy each time: what a source does to its config stays with that call.
        config = portable(self.config, secrets=True)
        list_tools = self.source.list_tools
        try:
            if inspect.iscoroutinefunction(list_tools) or not HAS_THREADS:
                listing = list_tools(config, context)
            else:
                listing = await workers().run(lambda: list_tools(config, context))
            return await listing if inspect.isawaitable(listing) else listing
        except SystemExit as error:  # left alone it would end the loop, not the listing
            raise SourceError(f"list_tools called sys.exit({error.code!r:.100})") from None

    def _checked_length(self, listing: Any) -> list[Any]:
        if not isinstance(listing, list | tuple):
            raise SourceError(
                f"list_tools gave a {type(listing).__name__}, not a list", code="invalid_listing"
            )
        if len(listing) > self.source.max_tools:
            raise SourceError(
                f"list_tools gave {len(listing):,} tools, at most {self.source.max_tools:,} are taken",
                code="too_many_tools",
            )
        return portable(listing, "list_tools")

    def _failed(self, error: Exception, scrub: Scrubber) -> SourceError:
        if isinstance(error, JarvisError):
            hint = None if error.hint is None else scrub.text(error.hint)
            return SourceError(
                f"the source {self.id}: {scrub.text(error.message)}",
                code=error.code,
                value=self.id,
                valid=error.valid,
                hint=hint,
            )
        text = scrub.text(str(error))
        return SourceError(
            f"the source {self.id} failed to list its tools: {type(error).__name__}: {text}", value=self.id
        )


def source_specs(given: object) -> list[SourceSpec]:
    """Return what the host gave as specs, checked, in order. See :meth:`SourceSpec.of`."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidRequest(
            f"tool_sources is {_shown(given)}, not a list",
            code="invalid_source",
            hint="give tool_sources=[(Source, config), …]",
        )
    items = list(given)
    return [SourceSpec.of(item, f"tool_sources[{index}]") for index, item in enumerate(items)]


async def load_sources(
    specs: Iterable[object],
    context: Mapping[str, Any] | None = None,
    *,
    taken: Mapping[str, str] | None = None,
    timeout: float = LIST_SECONDS,  # noqa: ASYNC109 - each source's own deadline, and its error names the source
) -> list[BaseTool]:
    """List every source once, together, and return their tools in the order of the list.

    Args:
        specs: What the host gave: specs, ``(Source, config)``, sources.
        context: The host's run context.
        taken: The names the agent's own tools have, with their owner.
        timeout: Seconds a source may take to list.

    Raises:
        InvalidRequest: Something in the list is not a source.
        NotPortable: A config is not plain data.
        SourceError: A source failed, hung or listed something unusable. No source's tools are returned then.
        ToolsetError: ``tool_name_clash``: two owners have a tool of one name; the message names both.
    """
    loaded = source_specs(specs)
    given = context if isinstance(context, ToolContext) else ToolContext(context)
    tasks = [asyncio.ensure_future(spec.load(given, timeout)) for spec in loaded]
    try:
        lists = [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    owners = list((taken or {}).items())
    _distinct(
        owners + [(tool.name, spec.id) for spec, tools in zip(loaded, lists, strict=True) for tool in tools]
    )
    return [tool for tools in lists for tool in tools]


async def close_sources(specs: Iterable[SourceSpec]) -> None:
    """Close every source, also where closing one of them fails; the first failure is raised at the end."""
    outcomes = await asyncio.gather(*(spec.aclose() for spec in specs), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _distinct(owned: Iterable[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for name, owner in owned:
        key = name.casefold()
        if key in owners:
            raise _clash(name, owners[key], owner)
        owners[key] = owner


def _clash(name: str, first: str, second: str) -> ToolsetError:
    return ToolsetError(
        f"two tools are called {name!r}: one of {first}, one of {second}",
        code="tool_name_clash",
        value=name,
        hint="rename one of them (with_name, or a prefix where the source has one), or leave one out",
    )


async def _within(work: Awaitable[Any], seconds: float) -> Any:
    """Await ``work`` for a time.

    Unlike ``asyncio.timeout`` it also ends when the work ignores its cancellation.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.add_done_callback(_seen)
    task.cancel()
    raise TimeoutError


def _seen(task: asyncio.Future[Any]) -> None:
    """Take the late outcome of an abandoned task, so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()


def _instance(source: Callable[[], ToolSource]) -> ToolSource:
    try:
        return source()
    except TypeError as error:
        raise InvalidRequest(
            f"the source cannot be made: {error}",
            code="invalid_source",
            hint="a class is made without arguments and has list_tools and run_tool; else give an instance",
        ) from error


def _shown(given: object) -> str:
    return f"the text {given!r:.100}" if isinstance(given, str) else f"a {type(given).__name__}"


def _without_values(config: Any) -> Any:
    if isinstance(config, Secret):
        return {"$secret": config.name}
    if isinstance(config, dict):
        return {key: _without_values(value) for key, value in config.items()}
    if isinstance(config, list):
        return [_without_values(value) for value in config]
    return config
