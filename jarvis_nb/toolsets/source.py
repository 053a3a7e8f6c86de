"""Tool sources: trusted providers, given by the host, that say at run time which tools they have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.tools.base import BaseTool, ToolContext
from jarvis_nb.toolsets.source_spec import SourceSpec, check_distinct, shown
from jarvis_nb.toolsets.tool_source import ToolSource

__all__ = ["SourceSpec", "ToolSource", "close_sources", "load_sources", "source_specs"]

LIST_SECONDS = 30.0
"""How long a source may take to list its tools."""


def source_specs(given: object) -> list[SourceSpec]:
    """Return what the host gave as specs, checked, in order. See :meth:`SourceSpec.of`."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidRequest(
            f"tool_sources is {shown(given)}, not a list",
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
    check_distinct(
        owners + [(tool.name, spec.id) for spec, tools in zip(loaded, lists, strict=True) for tool in tools]
    )
    return [tool for tools in lists for tool in tools]


async def close_sources(specs: Iterable[SourceSpec]) -> None:
    """Close every source, also where closing one of them fails; the first failure is raised at the end."""
    outcomes = await asyncio.gather(*(spec.aclose() for spec in specs), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
