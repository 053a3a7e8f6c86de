"""One tool that a source listed: its definition checked once, its calls run by the source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NoReturn, cast

from jarvis_nb.core.errors import SourceError, ToolError
from jarvis_nb.core.types import ToolResult, dumps
from jarvis_nb.tools.base import BaseTool, Kind, ToolContext, ToolSpec
from jarvis_nb.toolsets.scrub import ScrubbedContext, Scrubber, resolve_secrets
from jarvis_nb.toolsets.toolset import SOURCE_NAME

if TYPE_CHECKING:
    from jarvis_nb.toolsets.source_spec import SourceSpec

KEYS = ("name", "description", "parameter_schema")
OPTIONAL_KEYS = ("annotations", "requires_confirmation")


class SourceTool(BaseTool):
    """A tool of a source. Made by :func:`~jarvis_nb.toolsets.source.load_sources`, never by hand."""

    kind: Kind = "source"

    def __init__(self, owner: SourceSpec, spec: ToolSpec) -> None:
        self.tool_id = spec.name
        self.source = owner.id
        self.uncapped = owner.source.uncapped
        self._owner = owner
        self._spec = spec

    @classmethod
    def of(cls, owner: SourceSpec, listed: Any, scrub: Scrubber) -> SourceTool:
        """Make the tool of one listed entry.

        Raises:
            SourceError: The entry has the wrong shape, an illegal name, a blank or oversized description,
                or holds a secret's value.
            JarvisError: Its schema is refused; see :func:`~jarvis_nb.core.schema.check_schema`.
        """
        from jarvis_nb.core.schema import check_schema

        _check_shape(listed, owner.source.max_description)
        name = listed["name"]
        if scrub.found_in(dumps(listed)):
            raise SourceError(
                f"the definition of {name!r} holds a secret's value", code="secret_in_definition"
            )
        if owner.source.check_schemas:
            check_schema(listed["parameter_schema"], f"the tool {name!r}")
        spec = ToolSpec(
            name,
            listed["description"],
            listed["parameter_schema"],
            category="source",
            requires_confirmation=listed.get("requires_confirmation", False),
            metadata={"annotations": listed["annotations"]} if listed.get("annotations") else {},
            timeout_seconds=owner.source.timeout_seconds,
        )
        tool = cls(owner, spec)
        _ = tool.definition  # made now, so that a schema that cannot be made canonical fails here
        return tool

    @property
    def spec(self) -> ToolSpec:
        """The tool as the source listed it."""
        return self._spec

    @property
    def is_async(self) -> bool:
        """Whether the source runs its tools on the loop; else they run on a worker thread."""
        return inspect.iscoroutinefunction(self._owner.source.run_tool)

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Run the source's tool and return its value, without secrets.

        Raises:
            ToolError: The source's own.
            InvalidRequest: ``missing_secret``.
        """
        if self.is_async:
            return self._run_async(arguments, context)
        config, scrub, context = self._prepare(context)
        try:
            value = self._owner.source.run_tool(self._spec.name, arguments, config, context)
            if inspect.isawaitable(value):  # a plain function that gives a coroutine
                from jarvis_nb.core.bridge import run_sync

                value = run_sync(_awaited(value))
            return scrub.value(value)
        except (Exception, SystemExit) as error:
            _fail(error, scrub)

    async def _run_async(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        config, scrub, context = self._prepare(context)
        try:
            value = await self._owner.source.run_tool(self._spec.name, arguments, config, context)
            return scrub.value(value)
        except (Exception, SystemExit) as error:
            _fail(error, scrub)

    def _prepare(self, context: ToolContext) -> tuple[Any, Scrubber, ToolContext]:
        config = self._owner.config
        scrub = Scrubber(config, context.secrets)
        told = ScrubbedContext(context, scrub) if scrub else context
        return resolve_secrets(config, context.secrets), scrub, told

    def execute(self, /, **params: Any) -> ToolResult | Awaitable[ToolResult]:
        """Run without a host's context, for a look at what the source gives."""
        value = self.invoke(self.check_arguments(params), ToolContext())
        return self._execute_async(value) if inspect.isawaitable(value) else self._shown(value)

    async def _execute_async(self, value: Awaitable[Any]) -> ToolResult:
        return self._shown(await value)

    def _shown(self, value: Any) -> ToolResult:
        from jarvis_nb.tools.content import render

        return value if isinstance(value, ToolResult) else ToolResult(self.name, render(value))


async def _awaited(value: Any) -> Any:
    return await value


def _fail(error: Exception | SystemExit, scrub: Scrubber) -> NoReturn:
    if isinstance(error, SystemExit):  # left alone it would end the loop, not the call
        error = ToolError(f"the tool called sys.exit({error.code!r:.100})", code="tool_failed")
    clean = scrub.error(error)
    if clean is error:
        raise error
    raise clean from None


def _check_shape(listed: Any, max_description: int) -> None:
    if not isinstance(listed, dict):
        raise SourceError(
            f"list_tools gave a {type(listed).__name__} where a tool's dict belongs", code="invalid_listing"
        )
    listed = cast("dict[str, Any]", listed)
    missing = [key for key in KEYS if key not in listed]
    unknown = [key for key in listed if key not in (*KEYS, *OPTIONAL_KEYS)]
    if missing or unknown:
        problem = f"lacks {missing[0]!r}" if missing else f"has the unknown key {unknown[0]!r:.100}"
        raise SourceError(
            f"the tool {listed.get('name')!r:.100} {problem}",
            code="invalid_listing",
            valid=(*KEYS, *OPTIONAL_KEYS),
        )
    name, description = listed["name"], listed["description"]
    _check_listed_name(name)
    for key, value, kind in (
        ("description", description, str),
        ("parameter_schema", listed["parameter_schema"], dict),
        ("annotations", listed.get("annotations") or {}, dict),
        ("requires_confirmation", listed.get("requires_confirmation", False), bool),
    ):
        if not isinstance(value, kind):
            raise SourceError(
                f"the tool {name!r}: its {key} is a {type(value).__name__}, not a {kind.__name__}",
                code="invalid_listing",
            )
    if not description.strip():
        raise SourceError(f"the tool {name!r} has a blank description", code="blank_description", value=name)
    size = len(description.encode(errors="replace"))
    if size > max_description:
        raise SourceError(
            f"the tool {name!r}: its description has {size:,} bytes, at most {max_description:,} are taken",
            code="description_too_long",
        )


def _check_listed_name(name: Any) -> None:
    if isinstance(name, str) and SOURCE_NAME.fullmatch(name):
        return
    hint = "a name is text"
    if isinstance(name, str):
        legal = legal_name(name)
        hint = (
            f"a name is a lower-case letter, then letters, digits, _ or -, at most 63: list it as {legal!r}"
        )
    raise SourceError(f"{name!r:.100} is not a tool name", code="invalid_name", value=name, hint=hint)


def legal_name(name: str) -> str:
    """Return a legal name close to one that is not.

    Example:
        >>> legal_name("getWeather v2")
        'get_weather_v2'
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:200]).casefold()
    legal = re.sub(r"[^a-z0-9_-]+", "_", words).strip("_-")[:63]
    return legal if SOURCE_NAME.fullmatch(legal) else f"tool_{legal}"[:63].rstrip("_")
