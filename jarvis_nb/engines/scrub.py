"""What must not stand in a recording: keys; and what differs on every run: ports and temporary paths."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from jarvis_nb.engines.failures import BEARER

SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)(?:$|_)")
"""Environment variables whose values are cut out of recordings."""
SHORTEST = 8
"""Characters of the shortest value that counts as a secret: ``1`` and ``true`` do not."""
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+|(?<=\[::1\]:)\d+")
PLACEHOLDER = re.compile(r"<<(?:tmp|port)\d+>>")


def environment_secrets(environ: Mapping[str, str] = os.environ) -> set[str]:
    """Return the values of variables that hold secrets, by their names.

    Example:
        >>> environment_secrets({"OPENAI_API_KEY": "sk-123456789", "HOME": "/root"})
        {'sk-123456789'}
    """
    return {value for name, value in environ.items() if SECRET_NAME.search(name) and len(value) >= SHORTEST}


class Scrubber:
    """Takes keys, loopback ports and temporary folders out of data, and puts the last two in again.

    Ports and folders are numbered as they come, so equal data from two runs becomes equal, and what a recorded
    answer says of the first folder is said of this run's first folder.

    Args:
        secrets: What is cut out for good.

    Example:
        >>> scrubber = Scrubber(["hunter22"])
        >>> scrubber.clean({"url": "http://127.0.0.1:41234/v1", "note": "hunter22"})
        {'url': 'http://127.0.0.1:<<port1>>/v1', 'note': '<<key>>'}
        >>> scrubber.restore("try 127.0.0.1:<<port1>>")
        'try 127.0.0.1:41234'
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one secret may be the beginning of another.
        self._secrets = sorted((s for s in secrets if s), key=len, reverse=True)
        self._names: dict[str, str] = {}
        self._counts = {"tmp": 0, "port": 0}

    def clean(self, data: Any) -> Any:
        """Return JSON-ready data with placeholders in it."""
        return _map(data, self._clean)

    def restore(self, data: Any) -> Any:
        """Return data with what the placeholders stand for; unknown ones stay."""
        known = {name: text for text, name in self._names.items()}
        return _map(data, lambda text: PLACEHOLDER.sub(lambda m: known.get(m[0], m[0]), text))

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "<<key>>")
        text = re.sub(BEARER, "<<key>>", text)
        text = _temporary().sub(lambda m: self._name("tmp", m[0]), text)
        return PORT.sub(lambda m: self._name("port", m[0]), text)

    def _name(self, kind: str, text: str) -> str:
        if text not in self._names:
            self._counts[kind] += 1
            self._names[text] = f"<<{kind}{self._counts[kind]}>>"
        return self._names[text]


def _map(data: Any, change: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, dict):
        return {key: _map(value, change) for key, value in data.items()}
    return [_map(value, change) for value in data] if isinstance(data, list) else data


@cache
def _temporary() -> re.Pattern[str]:
    """Match a temporary folder up to the part that changes: pytest's three levels, else one."""
    roots = {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir()), "/tmp", "/private/tmp"}  # noqa: S108 - matched, not used
    roots |= {r"/(?:private/)?var/folders/\w+/\w+/T"}
    known = "|".join(sorted((r if "\\w" in r else re.escape(r) for r in roots), key=len, reverse=True))
    part = r"[^\\/\s\"'`<>|:,;()\[\]{}]+"
    return re.compile(rf"(?:{known})[\\/]+(?:pytest-of-{part}[\\/]+pytest-\d+[\\/]+{part}|{part})")
