"""What the built-in tools share: whatever they are called with, they answer with a result."""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any

from jarvis_nb.core.errors import JarvisError, ToolError
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import BaseTool, ToolSpec

log = logging.getLogger("jarvis_nb.tools")

Examples = list[tuple[str, dict[str, Any]]]


class BuiltinTool(BaseTool):
    """A tool whose :meth:`run` may raise and whose ``execute`` never does.

    A failed result has a machine-readable code in ``metadata["code"]``.
    """

    def __init__(self) -> None:
        self._spec = self.make_spec()

    @property
    def spec(self) -> ToolSpec:
        """The tool specification."""
        return self._spec

    @abstractmethod
    def make_spec(self) -> ToolSpec:
        """Return a spec of this instance's own."""

    @abstractmethod
    def run(self, params: dict[str, Any]) -> ToolResult:
        """Do the work.

        Raises:
            JarvisError: Becomes a failed result with the error's code.
        """

    def execute(self, /, **params: Any) -> ToolResult:
        """Run the tool. Odd parameters give a failed result, never an exception."""
        try:
            return self.run(params)
        except Exception as error:
            return self.failed(error)

    def failed(self, error: Exception) -> ToolResult:
        """Return the failed result for an error."""
        if isinstance(error, JarvisError):
            text = f"{error.message} ({error.hint})" if error.hint else error.message
            return ToolResult(self.name, text, success=False, metadata={"code": error.code})
        log.warning("%s failed", self.name, exc_info=error)
        text = f"{type(error).__name__}: {error}"
        return ToolResult(self.name, text, success=False, metadata={"code": "tool_failed"})


def text_param(params: dict[str, Any], name: str, *, required: bool = True) -> str:
    """Return a parameter that must be text; an optional one that is absent or None is empty.

    Raises:
        ToolError: ``invalid_arguments``.
    """
    value = params.get(name)
    if isinstance(value, str):
        return value
    if value is None and not required:
        return ""
    if name not in params:
        raise ToolError(f"the parameter {name!r} is missing", code="invalid_arguments")
    raise ToolError(
        f"{name!r} must be text, not {type(value).__name__}", code="invalid_arguments", value=value
    )


def whole_param(params: dict[str, Any], name: str, default: int | None) -> int | None:
    """Return a parameter that must be a whole number of at least 1; absent or None gives the default.

    Raises:
        ToolError: ``invalid_arguments``.
    """
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ToolError(
        f"{name!r} must be a whole number of at least 1, not {value!r:.40}",
        code="invalid_arguments",
        value=value,
    )
