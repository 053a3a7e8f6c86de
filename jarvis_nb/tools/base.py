"""What every tool is: a spec, and an ``execute`` that gives a :class:`ToolResult`."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import ToolDefinition, ToolResult

if TYPE_CHECKING:
    from jarvis_nb.core.events import EventBus, EventType

Kind = Literal["tool", "action", "flow", "source"]

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A name an author may give (matched whole)."""


@dataclass(slots=True)
class ToolSpec(Pictured):
    """A tool's interface and characteristics.

    Example:
        >>> ToolSpec("echo", "Return the input.", {"type": "object", "properties": {}}).timeout_seconds
        30.0
    """

    name: str
    """Unique tool identifier."""
    description: str
    """Human-readable, sent to the model."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """JSON Schema of the arguments."""
    category: str = ""
    """Such as math, memory, reasoning."""
    cost_estimate: float = 0.0
    """US dollars an invocation."""
    latency_estimate: float = 0.0
    """Seconds an invocation."""
    requires_confirmation: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    """``examples``: a list of ``(question, arguments)`` that the embedded model learns from."""
    timeout_seconds: float = 30.0
    """A call that takes longer is reported as timed out."""


class ToolContext(Pictured, Mapping[str, Any]):
    """The host's run context, handed to sources, flows and actions that ask for it.

    An action gets it through a parameter annotated ``ToolContext``, which the schema leaves out.

    Args:
        data: What the host passed as ``tool_context``.
        call_id: The id of the call that runs.
        secrets: The config's ``secrets`` table, for :meth:`jarvis_nb.Secret.resolve`.

    Example:
        >>> ToolContext({"tenant": "acme"})["tenant"]
        'acme'
    """

    __slots__ = ("_bus", "_data", "call_id", "secrets", "steps", "tool_name")

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        tool_name: str = "",
        secrets: Mapping[str, str] | None = None,
        bus: EventBus | None = None,
    ) -> None:
        self._data = {} if data is None else data
        self.call_id = call_id
        self.tool_name = tool_name
        self.secrets = {} if secrets is None else secrets
        self.steps: list[dict[str, Any]] | None = None
        """What a flow leaves of its trace when the call is cancelled: there is no result to carry it."""
        self._bus = bus

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"ToolContext({', '.join(sorted(map(str, self._data)))})"

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far the call is; live views and the CLI show it."""
        from jarvis_nb.core.events import EventType

        self.publish(EventType.TOOL_PROGRESS, done=done, total=total, text=text)

    def publish(self, event_type: EventType, **data: Any) -> None:
        """Publish an event of this call, with its id and the tool's name."""
        if self._bus is not None:
            self._bus.publish(event_type, call_id=self.call_id, tool=self.tool_name, **data)

    def for_call(self, call_id: str, tool_name: str, bus: EventBus | None) -> ToolContext:
        """Return the same context for one call."""
        return ToolContext(self._data, call_id=call_id, tool_name=tool_name, secrets=self.secrets, bus=bus)


class BaseTool(Pictured, ABC):
    """The base of every tool.

    Subclass it with ``tool_id``, a ``spec`` and ``execute`` (which may be ``async``).

    Example:
        >>> class Echo(BaseTool):
        ...     tool_id = "echo"
        ...     @property
        ...     def spec(self):
        ...         return ToolSpec("echo", "Return the text.", {
        ...             "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
        ...     def execute(self, **params):
        ...         return ToolResult("echo", params["text"])
        >>> Echo().to_openai_function()["function"]["name"]
        'echo'
    """

    tool_id: str = ""
    kind: Kind = "tool"
    source: str | None = None
    """The id of the source that brought the tool, else None."""
    _name: str | None = None
    _definition: ToolDefinition | None = None

    @property
    @abstractmethod
    def spec(self) -> ToolSpec:
        """Return the tool specification."""

    @abstractmethod
    def execute(self, /, **params: Any) -> ToolResult | Awaitable[ToolResult]:
        """Run the tool. Expected failures are results with ``success=False``."""

    @property
    def name(self) -> str:
        """The name the model calls the tool by."""
        return self._name or self.spec.name

    def with_name(self, name: str) -> Self:
        """Return a copy under another name; the tool itself keeps its own.

        Raises:
            ToolsetError: ``invalid_name``: not ``[a-z][a-z0-9_]{0,62}``.
        """
        check_name(name)
        renamed = copy(self)
        renamed._name = name  # noqa: SLF001 - a copy of self
        renamed._definition = None  # noqa: SLF001
        return renamed

    @property
    def definition(self) -> ToolDefinition:
        """What a model is told: canonical, strict, plain data. Made once."""
        if self._definition is None:
            from jarvis_nb.core.schema import canonical_schema

            spec = self.spec
            self._definition = ToolDefinition(self.name, spec.description, canonical_schema(spec.parameters))
        return self._definition

    def to_openai_function(self) -> dict[str, Any]:
        """Convert to OpenAI function-calling format, with the parameters as the spec has them."""
        spec = self.spec
        parameters = spec.parameters or {"type": "object", "properties": {}}
        return {
            "type": "function",
            "function": {"name": self.name, "description": spec.description, "parameters": parameters},
        }

    # What the executor uses. A subclass with a better way (an action, a flow, a source) overrides these.

    @property
    def is_async(self) -> bool:
        """Whether :meth:`invoke` gives an awaitable and so runs on the loop, not in a thread."""
        return inspect.iscoroutinefunction(type(self).execute)

    def check_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments ready for :meth:`invoke`: validated, coerced where lossless.

        Raises:
            InvalidArguments: Names the field.
        """
        from jarvis_nb.tools.validate import validate_arguments

        return validate_arguments(self.definition.parameters, arguments)

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG002 - for subclasses
        """Run with checked arguments and return the raw value: a ToolResult or anything else."""
        return type(self).execute(self, **arguments)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def check_name(name: Any) -> None:
    """Raise unless an author may use the name.

    Raises:
        ToolsetError: ``invalid_name``, with a legal name close to it.
    """
    if isinstance(name, str) and NAME.fullmatch(name):
        return
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)[:200])
    legal = re.sub(r"[^a-z0-9_]+", "_", words.casefold()).strip("_")[:63]
    if not NAME.fullmatch(legal):
        legal = f"tool_{legal}"[:63].rstrip("_")
    raise ToolsetError(
        f"{name!r:.100} is not a tool name",
        code="invalid_name",
        value=name,
        hint=f"a name is a lower-case letter, then letters, digits or _, at most 63: try {legal!r}",
    )


ToolLike = BaseTool | Callable[..., Any]
