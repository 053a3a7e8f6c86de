"""What became of one tool call: a record that is true at every moment, whatever ends the run."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, Literal, Protocol

from jarvis_nb.core.errors import ErrorInfo, JarvisError
from jarvis_nb.core.types import JSON, ToolCall, ToolResult, dumps
from jarvis_nb.tools.base import BaseTool
from jarvis_nb.tools.content import cap_text, clean_text, convert, describe_error, json_value, plain_text
from jarvis_nb.tools.images import ImageContent

log = logging.getLogger("jarvis_nb.tools")

Status = Literal["ok", "failed", "denied", "cancelled", "abandoned", "pending"]

MAX_MESSAGE = 1000
"""Characters of an error's message; a model reads it."""
NOT_REACHED = ErrorInfo("cancelled", "the run was stopped before this call was made")


Product = tuple[Any, Any, ToolResult, bool, list[ImageContent], list[JSON] | None]
"""What a tool returned, ready to be recorded: the value, the JSON-ready output, the result, whether that was
cut, the images in it, a flow's trace."""


@dataclass(slots=True)
class Outcome:
    """One call and what became of it.

    It is made before the call is tried and filled in as it happens, so that an interrupt leaves the truth:
    as it is made, it says that the call was never reached.
    """

    call: ToolCall
    tool: BaseTool | None = None
    arguments: dict[str, Any] | None = None
    """JSON-ready: as validated; as parsed, where they were refused; None where they were no object."""
    status: Status = "cancelled"
    ran: bool = False
    """Whether the tool was entered."""
    error: ErrorInfo | None = NOT_REACHED
    value: Any = field(default=None, repr=False)
    """The output as the tool returned it."""
    output: Any = None
    """The whole output, JSON-ready."""
    truncated: bool = False
    """Whether the model reads less than the whole output."""
    steps: list[JSON] | None = None
    """A flow's trace."""
    images: Sequence[JSON] = ()
    """Pictures among the output, as parts of an OpenAI user message."""
    started: float = 0.0
    """Seconds of the performance counter, when the tool was entered; when the call was settled, if it was not."""
    ended: float = 0.0
    traceback: str | None = field(default=None, repr=False)
    """For the local record only."""
    _result: ToolResult | None = field(default=None, repr=False)

    @property
    def result(self) -> ToolResult:
        """What the tool gave, or the failure in the tools' own terms: short data for the model."""
        if self._result is None:
            error = self.error or NOT_REACHED
            name = self.tool.name if self.tool is not None else str(self.call.name)
            text = dumps({"error": error.to_dict()})
            self._result = ToolResult(name, text, success=False, latency_seconds=self.ended - self.started)
        return self._result

    def refuse(self, error: ErrorInfo, status: Status = "failed") -> None:
        """Settle the call without a result of the tool's; the model reads why."""
        self.status, self.error, self._result = status, error, None
        self._stop_clock()

    def fail(self, error: BaseException) -> None:
        """Settle the call because of an exception: a short reason for the model, the rest for the record."""
        log.debug("%s failed", self.call.name, exc_info=error)
        self.traceback = own_traceback(error)
        steps = getattr(error, "steps", None)
        self.steps = steps if isinstance(steps, list) else self.steps
        self.refuse(error_info(error))

    def give_up(self) -> None:
        """Settle a call that an interrupt caught; one that is settled stays as it is.

        A tool that was entered and has not come back may still be running in its thread.
        """
        if self.ended:
            return
        if not self.ran:
            self.refuse(NOT_REACHED, "cancelled")
        else:
            self.abandon("the run was stopped while this call was running; its thread runs on")

    def abandon(self, message: str, code: str = "cancelled") -> None:
        """Settle a call whose thread runs on."""
        self.refuse(ErrorInfo(code, message), "abandoned")

    def take(self, product: Product) -> None:
        """Settle the call with what the tool gave."""
        self.value, self.output, result, self.truncated, images, self.steps = product
        if images:
            self.images = [image.to_openai() for image in images]
        self.ended = perf_counter()
        result.latency_seconds = self.ended - self.started
        self._result = result
        if result.success:
            self.status, self.error = "ok", None
        else:
            code = result.metadata.get("code")
            code = code if isinstance(code, str) and code else "tool_error"
            self.status, self.error = "failed", ErrorInfo(code, _short(result.content))

    def _stop_clock(self) -> None:
        self.ended = perf_counter()
        self.started = self.started or self.ended


class Reading(Protocol):
    """How a tool's output is read."""

    name: str
    """The tool's name: a result under another one is put right."""
    limit: int | None
    """Characters that the model reads of it; None for all."""
    is_flow: bool
    """Whether the output and the trace stand in the value side by side."""


def produce(value: Any, reading: Reading) -> Product:
    """Make a record of what a tool returned: a result, text, a mapping or anything else."""
    steps = None
    if reading.is_flow and hasattr(value, "output") and hasattr(value, "steps"):
        value, steps = value.output, value.steps
    if issubclass(type(value), ToolResult):  # isinstance would ask the value itself
        return _from_result(value, reading.name, reading.limit, steps)
    output, images = convert(value)
    text, truncated = plain_text(output), False
    limit = reading.limit
    if limit is not None and len(text) > limit:
        text, truncated = cap_text(text, limit)
    return value, output, ToolResult(reading.name, text), truncated, images, steps


def _from_result(given: Any, name: str, limit: int | None, steps: list[JSON] | None) -> Product:
    """Take a result apart: an author may have put anything into its fields."""
    metadata = json_value(given.metadata) if given.metadata else {}
    metadata = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    content, images = convert(given.content)
    text, truncated = plain_text(content), False
    output = metadata.pop("output") if "output" in metadata else content
    if limit is not None:
        text, truncated = cap_text(text, limit)
    usage = json_value(given.usage) if isinstance(given.usage, dict) and given.usage else {}
    cost = given.cost_usd if isinstance(given.cost_usd, int | float) and 0 <= given.cost_usd < inf else 0.0
    result = ToolResult(name, text, bool(given.success), usage, cost, 0.0, metadata)
    return given, output, result, truncated, images, steps


def error_info(error: BaseException) -> ErrorInfo:
    """Return an exception as what a model may read of it: code and one short message, no traceback."""
    if not isinstance(error, JarvisError):
        return ErrorInfo("tool_failed", describe_error(error))
    info = error.info()
    details = {**(info.details or {}), **({"hint": _short(error.hint)} if error.hint else {})}
    return ErrorInfo(info.code, _short(info.message), details or None)


def _short(text: Any) -> str:
    text = clean_text(str(text))
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def own_traceback(error: BaseException) -> str:
    """Return a traceback that begins in the tool's own code."""
    frame = error.__traceback__
    while (
        frame is not None and frame.tb_next is not None and _is_ours(frame.tb_frame.f_globals.get("__name__"))
    ):
        frame = frame.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, frame, limit=-30))
    except Exception:  # an exception whose own __str__ raises
        return describe_error(error)


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.startswith("jarvis_nb.")
