"""Secrets of a source's config: resolved when it runs, scrubbed from whatever comes back."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from jarvis_nb.core.errors import InvalidRequest, JarvisError, ToolError
from jarvis_nb.core.events import EventType
from jarvis_nb.core.portable import Secret
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import ToolContext


def resolve_secrets(config: Any, secrets: Mapping[str, str] | None = None) -> Any:
    """Return a copy of a portable config with every :class:`Secret` replaced by its value.

    Raises:
        InvalidRequest: ``missing_secret``: one is not set.

    Example:
        >>> resolve_secrets({"token": Secret("RATES_TOKEN"), "base": "USD"}, {"RATES_TOKEN": "t-1"})
        {'token': 't-1', 'base': 'USD'}
    """
    if isinstance(config, Secret):
        return config.resolve(secrets)
    if isinstance(config, dict):
        return {key: resolve_secrets(value, secrets) for key, value in config.items()}
    if isinstance(config, list):
        return [resolve_secrets(value, secrets) for value in config]
    return config


def references(config: Any) -> Iterator[Secret]:
    """Yield the secrets a portable config refers to."""
    if isinstance(config, Secret):
        yield config
    elif isinstance(config, dict):
        for value in config.values():
            yield from references(value)
    elif isinstance(config, list):
        for value in config:
            yield from references(value)


class Scrubber:
    """Replaces the values of a config's secrets by their names, in text and in data.

    A secret that is not set has nothing to hide. Beside the value itself, its URL-quoted and JSON-escaped
    forms are replaced, since that is how clients echo it in their errors.

    Example:
        >>> Scrubber({"token": Secret("T")}, {"T": "s3cr3t/x"}).value({"url": "https://api/?k=s3cr3t%2Fx"})
        {'url': 'https://api/?k=[secret T]'}
    """

    def __init__(self, config: Any, secrets: Mapping[str, str] | None = None) -> None:
        marks: dict[str, str] = {}
        for secret in references(config):
            try:
                value = secret.resolve(secrets)
            except InvalidRequest:
                continue  # not set: the run itself reports it
            for form in (
                value,
                quote(value),
                quote(value, safe=""),
                quote_plus(value),
                json.dumps(value)[1:-1],
            ):
                marks[form] = f"[secret {secret.name}]"
        # The longest first: one secret may hold another.
        self._marks = sorted(marks.items(), key=lambda mark: -len(mark[0]))

    def __bool__(self) -> bool:
        return bool(self._marks)

    def found_in(self, text: str) -> bool:
        """Whether a secret's value stands in the text."""
        return any(form in text for form, _ in self._marks)

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        for form, mark in self._marks:
            text = text.replace(form, mark)
        return text

    def value(self, value: Any) -> Any:
        """Return whatever a tool returned without secrets: as JSON-ready data, images kept as they are."""
        if not self._marks:
            return value
        if isinstance(value, ToolResult):
            value.content, value.metadata = self.text(value.content), self.value(value.metadata)
            return value
        from jarvis_nb.tools.content import convert

        data, images = convert(value)
        return self._walk(value if images else data)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._walk(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        return value

    def error(self, error: Exception) -> Exception:
        """Return the error to raise instead: itself, or one whose text and traceback hold no secret."""
        trace = "".join(traceback.format_exception(error)) if self._marks else ""
        shown = f"{error}{error.hint}{error.valid}" if isinstance(error, JarvisError) else str(error)
        if not self.found_in(trace + shown):
            return error
        if isinstance(error, JarvisError):
            clean: JarvisError = ToolError(
                self.text(error.message),
                code=error.code,
                valid=None if error.valid is None else map(self.text, error.valid),
                hint=None if error.hint is None else self.text(error.hint),
            )
        else:
            clean = ToolError(f"{type(error).__name__}: {self.text(str(error))}", code="tool_failed")
        clean.add_note(self.text(trace))
        return clean


class ScrubbedContext(ToolContext):
    """The host's context for a tool that knows secrets: none of them gets into the events it publishes."""

    __slots__ = ("_context", "_scrub")

    def __init__(self, context: ToolContext, scrub: Scrubber) -> None:
        super().__init__(
            context, call_id=context.call_id, tool_name=context.tool_name, secrets=context.secrets
        )
        self._context = context
        self._scrub = scrub

    def publish(self, event_type: EventType, **data: Any) -> None:
        """Publish an event of this call, without secrets."""
        self._context.publish(event_type, **self._scrub.value(data))
