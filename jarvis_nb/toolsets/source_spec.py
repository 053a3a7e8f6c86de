"""One tool source as the host gave it, and its tools as it lists them now."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from jarvis_nb.core.bridge import HAS_THREADS
from jarvis_nb.core.errors import InvalidRequest, JarvisError, SourceError, ToolsetError
from jarvis_nb.core.portable import Secret, portable
from jarvis_nb.core.threads import workers
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.toolsets.scrub import Scrubber
from jarvis_nb.toolsets.source_tool import SourceTool
from jarvis_nb.toolsets.tool_source import ToolSource


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
                f"{path} is {shown(given)}: not a tool source",
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
                check_distinct([(tool.name, self.id) for tool in tools])
                self._tools, self._listing = tools, listing
        except _Late:
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
            return SourceError(
                f"the source {self.id}: {scrub.text(error.message):.4000}",
                code=error.code,
                value=self.id,
                valid=None if error.valid is None else map(scrub.text, error.valid),
                hint=None if error.hint is None else scrub.text(error.hint),
            )
        text = f"{type(error).__name__}: {scrub.text(str(error)):.2000}"
        return SourceError(f"the source {self.id} failed to list its tools: {text}", value=self.id)


def check_distinct(owned: Iterable[tuple[str, str]]) -> None:
    """Raise if two tools have one name, compared without case.

    Args:
        owned: Names with their owners.

    Raises:
        ToolsetError: ``tool_name_clash``; the message names both owners.
    """
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


class _Late(Exception):  # noqa: N818 - unlike a TimeoutError it cannot come from the source itself
    pass


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
    raise _Late


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


def shown(given: object) -> str:
    """Return what an error calls a thing that the host gave."""
    return f"the text {given!r:.100}" if isinstance(given, str) else f"a {type(given).__name__}"


def _without_values(config: Any) -> Any:
    if isinstance(config, Secret):
        return {"$secret": config.name}
    if isinstance(config, dict):
        return {key: _without_values(value) for key, value in config.items()}
    if isinstance(config, list):
        return [_without_values(value) for value in config]
    return config
