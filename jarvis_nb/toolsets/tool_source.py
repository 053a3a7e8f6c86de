"""The class that tool sources are made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jarvis_nb.core.pictured import Pictured
from jarvis_nb.tools.base import ToolContext


class ToolSource(Pictured, ABC):
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

    async def aclose(self) -> None:
        """Release what the source holds open. It may be used again afterwards."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
