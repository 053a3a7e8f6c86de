"""The error family. Callers' mistakes raise one of these; a model's mistakes are data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jarvis_nb.core.pictured import Pictured


@dataclass(frozen=True, slots=True)
class ErrorInfo(Pictured):
    """What went wrong, as data: on an attempt, a flow step or a reply.

    Example:
        >>> ErrorInfo("unknown_tool", "no tool is called 'get_wether'").to_dict()
        {'code': 'unknown_tool', 'message': "no tool is called 'get_wether'"}
    """

    code: str
    """A stable, lower-case word to test for, such as ``invalid_arguments``."""
    message: str
    """One short sentence, safe to show to a model: no traceback, no secret."""
    details: dict[str, Any] | None = None
    """Portable data beside the message: the field, the valid names, the position."""

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON-ready data, details beside code and message."""
        out: dict[str, Any] = {"code": self.code, "message": self.message}
        for key, value in (self.details or {}).items():
            out.setdefault(key, value)
        return out


class JarvisError(Pictured, Exception):
    """The base of every error this package raises.

    Args:
        message: What is wrong, with the offending value in it.
        code: A stable word to test for; a subclass has a default.
        value: The offending value, where there is one.
        valid: What would have been accepted (names, types), where that is a list.
        hint: The next step for the person who reads this.

    Example:
        >>> error = JarvisError("no tool 'calc'", code="unknown_tools", valid=["calculator"], hint="mend it")
        >>> error.code, error.valid
        ('unknown_tools', ('calculator',))
        >>> print(error)
        no tool 'calc' (valid: calculator; mend it) [unknown_tools]
    """

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        value: object = None,
        valid: Iterable[str] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.message = message
        self.value = value
        self.valid = None if valid is None else tuple(valid)
        self.hint = hint

    def __str__(self) -> str:
        notes: list[str] = []
        if self.valid is not None:
            notes.append(f"valid: {', '.join(self.valid) or 'none'}")
        if self.hint:
            notes.append(self.hint)
        note = f" ({'; '.join(notes)})" if notes else ""
        return f"{self.message}{note} [{self.code}]"

    def info(self) -> ErrorInfo:
        """Return the error as data."""
        return ErrorInfo(
            self.code, self.message, {"valid": list(self.valid)} if self.valid is not None else None
        )


class InvalidRequest(JarvisError, ValueError):  # noqa: N818 - the field says "invalid request"
    """An ask, a policy or a configuration that cannot be carried out as it stands."""

    code = "invalid_request"


class ToolsetError(JarvisError, ValueError):
    """A toolset or a tool definition that is not valid, such as ``duplicate_tools`` or ``invalid_name``."""

    code = "invalid_toolset"


class ToolError(JarvisError):
    """Raise it in a tool to tell the model what went wrong, with a code of your own.

    Example:
        >>> raise ToolError("order 'X' does not exist", code="unknown_order")
        Traceback (most recent call last):
        jarvis_nb.core.errors.ToolError: order 'X' does not exist [unknown_order]
    """

    code = "tool_error"


class InvalidArguments(JarvisError, ValueError):  # noqa: N818 - the code's own words
    """Arguments of a tool call that the tool's schema refuses.

    Args:
        problems: One entry a problem: ``{"field": "order.id", "message": "…"}``.
    """

    code = "invalid_arguments"

    def __init__(self, problems: Iterable[dict[str, str]]) -> None:
        self.problems = list(problems)
        super().__init__(
            "; ".join(f"{p['field']}: {p['message']}" if p["field"] else p["message"] for p in self.problems)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)  # the message alone, which Exception would give, is not enough

    def info(self) -> ErrorInfo:
        """Return the error as data, the fields beside the message."""
        return ErrorInfo(self.code, self.message, {"fields": self.problems})


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a flow's definition.

    Example:
        >>> print(Problem("unknown_step", "no step is called 'ordr'", step="discount", path="total_cents"))
        step 'discount', total_cents: no step is called 'ordr' [unknown_step]
    """

    code: str
    message: str
    step: str | None = None
    """The step that holds the mistake; None for the flow itself."""
    path: str = ""
    """Where in the step: a parameter, ``after``, the output's key."""
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON-ready data."""
        return {
            "code": self.code,
            "message": self.message,
            "step": self.step,
            "path": self.path,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        where = ", ".join(
            [*([f"step {self.step!r}"] if self.step is not None else []), *([self.path] if self.path else [])]
        )
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{': ' if where else ''}{self.message}{hint} [{self.code}]"


class FlowError(JarvisError, ValueError):
    """A flow that is not valid as it is defined. All mistakes are collected.

    ``code`` is the first problem's code, in declaration order.

    Args:
        flow: The flow's name.
        problems: What is wrong; at least one.
    """

    code = "invalid_flow"

    def __init__(self, flow: str, problems: Sequence[Problem]) -> None:
        self.flow = flow
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        count = "a problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(f"the flow {flow!r} has {count}:\n{lines}", code=self.problems[0].code, value=flow)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.flow, self.problems)

    def info(self) -> ErrorInfo:
        """Return the error as data, the problems beside the message."""
        return ErrorInfo(
            self.code, self.message, {"problems": [problem.to_dict() for problem in self.problems]}
        )


class SourceError(JarvisError):
    """A tool source that failed to list its tools or listed something unusable."""

    code = "source_failed"


class SkillError(JarvisError, ValueError):
    """A skill or a root of skills that cannot be used."""

    code = "invalid_skill"


class EngineError(JarvisError):
    """An engine that is missing, refuses, breaks off or answers nonsense.

    Codes: ``no_engine``, ``no_key``, ``no_model``, ``connection``, ``timeout``, ``http_error``,
    ``rate_limited``, ``bad_response``, ``stream_broken``, ``context_overflow``, ``forced_choice_refused``,
    ``script_exhausted``, ``replay_mismatch``, ``missing_extra``.
    """

    code = "engine_error"


class NotPortable(JarvisError, TypeError):  # noqa: N818 - "not portable" is the code's own word
    """A value that is not plain data where a stored turn needs plain data."""

    code = "not_portable"


class ApprovalUnavailable(JarvisError):  # noqa: N818 - nobody is there; nothing failed
    """Nobody can be asked: no front end, no terminal."""

    code = "approval_unavailable"


class MemoryBackendError(JarvisError):
    """A memory that cannot be opened, read or written."""

    code = "memory_error"


def close_names(name: str, valid: Iterable[str], most: int = 3) -> list[str]:
    """Return the valid names closest to ``name``, best first, compared without case.

    Example:
        >>> close_names("get_wether", ["get_weather", "get_time", "calculator"])
        ['get_weather', 'get_time']
    """
    from difflib import get_close_matches

    by_folded = {v.casefold(): v for v in valid}
    return [by_folded[m] for m in get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.6)]
