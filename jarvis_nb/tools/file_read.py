"""The file_read tool: one text file, read where it is allowed and only if it is what it seems."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.files import FileRefused, decode_text, looks_secret, read_regular
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import ToolSpec
from jarvis_nb.tools.builtin import BuiltinTool, Examples, text_param, whole_param

MAX_BYTES = 1_048_576
"""The largest file that is read, inclusive."""

EXAMPLES: Examples = [
    ("Read README.md.", {"path": "README.md"}),
    ("What does the file notes.txt say?", {"path": "notes.txt"}),
    ("Show me the first 10 lines of data/sales.csv.", {"path": "data/sales.csv", "max_lines": 10}),
    ("Open docs/guide.md.", {"path": "docs/guide.md"}),
    ("Print the contents of src/main.py.", {"path": "src/main.py"}),
    ("What is in /home/user/todo.txt?", {"path": "/home/user/todo.txt"}),
    ("Give me the top 5 lines of server.log.", {"path": "server.log", "max_lines": 5}),
    ("Look into pyproject.toml, which version is it?", {"path": "pyproject.toml"}),
    ("Load the file results/run1.json.", {"path": "results/run1.json"}),
    ("Read only the first line of names.txt.", {"path": "names.txt", "max_lines": 1}),
]


@ToolRegistry.register("file_read")
class FileReadTool(BuiltinTool):
    """Reads UTF-8 text files of at most 1 MB.

    The path is resolved first and the target is what is checked: a link cannot lead out of the allowed
    directories or to a file that looks like a secret, and a file that is swapped for a link between check
    and read is refused.

    Args:
        allowed_dirs: Directories to which reading is restricted; None for no restriction.

    Raises:
        InvalidRequest: ``allowed_dirs`` is a string or holds something that is no path.

    Example:
        >>> FileReadTool(allowed_dirs=["."]).execute(path="../secret.txt").success
        False
    """

    tool_id = "file_read"

    def __init__(self, allowed_dirs: Iterable[str | os.PathLike[str]] | None = None) -> None:
        super().__init__()
        if isinstance(allowed_dirs, str | os.PathLike):
            raise InvalidRequest(
                f"allowed_dirs is the one path {str(allowed_dirs)!r}",
                value=allowed_dirs,
                hint=f"give a list: [{str(allowed_dirs)!r}]",
            )
        try:
            self.allowed_dirs = (
                None if allowed_dirs is None else [os.fspath(folder) for folder in allowed_dirs]
            )
        except TypeError:
            raise InvalidRequest(
                f"allowed_dirs is {allowed_dirs!r:.100}",
                value=allowed_dirs,
                hint="give a list of paths, or None",
            ) from None

    def make_spec(self) -> ToolSpec:
        """Return the tool specification."""
        return ToolSpec(
            name="file_read",
            description="Read a text file and return its contents. Use it when a file name or path is given.",
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path to the file to read"},
                    "max_lines": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Maximum lines to return (default: all)",
                    },
                },
                "required": ["path"],
            },
            category="filesystem",
            metadata={"examples": list(EXAMPLES)},
        )

    def run(self, params: dict[str, Any]) -> ToolResult:
        """Read the file."""
        path = params.get("path")
        path = os.fsdecode(path) if isinstance(path, os.PathLike) else text_param(params, "path")
        max_lines = whole_param(params, "max_lines", None)
        target = self._checked_target(path)
        shown = f"{path!r:.200}"
        data = read_regular(target, shown, MAX_BYTES)
        text = decode_text(data, shown)
        if max_lines is not None:
            # Not str.splitlines: it also breaks at form feeds and other signs inside a line.
            text = "".join(islice(io.StringIO(text, newline=""), max_lines))
        return ToolResult(self.name, text, metadata={"path": target, "size_bytes": len(data)})

    def _checked_target(self, path: str) -> str:
        shown = f"{path!r:.200}"
        if not path or "\0" in path:
            raise FileRefused(f"{shown} is not a path", code="not_found")
        try:
            target = os.path.realpath(path)
            roots = (
                None
                if self.allowed_dirs is None
                else [os.path.realpath(folder) for folder in self.allowed_dirs]
            )
        except (OSError, ValueError) as error:
            raise FileRefused(f"{shown} cannot be resolved: {error}", code="not_found") from None
        # Where it leads is checked before whether it exists: refusals tell nothing about files elsewhere.
        if roots is not None and not any(Path(target).is_relative_to(root) for root in roots):
            raise FileRefused(
                f"{shown} is outside the allowed directories",
                code="not_allowed",
                hint=f"allowed: {', '.join(map(str, self.allowed_dirs or ())) or 'none'}",
            )
        if looks_secret(target) or looks_secret(path):
            raise FileRefused(
                f"{shown} looks like a file of secrets (keys, passwords): it is not read", code="secret_file"
            )
        return target
