"""An MCP tool result as the output of a tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.types import dumps

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_ERROR = 4_096
"""Characters of an error's text."""


def value_of(result: CallToolResult) -> Any:
    """Return the JSON value of a result.

    * Structured content is the value; where there are pictures and the like beside it, both, as
      ``{"structured": …, "content": […]}``.
    * One text is that text; anything else is ``{"content": […]}``, blocks as MCP writes them.

    Raises:
        ToolError: ``tool_error``: the result says it is an error; the message is its text.
    """
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if result.is_error:
        text = "\n".join(texts) or (
            dumps(result.structured_content) if result.structured_content else "no reason given"
        )
        raise ToolError(
            text
            if len(text) <= MAX_ERROR
            else f"{text[:MAX_ERROR]}… {len(text) - MAX_ERROR:,} more characters"
        )
    if result.structured_content is not None:
        others = [block for block in blocks if block["type"] != "text"]
        return (
            {"structured": result.structured_content, "content": others}
            if others
            else result.structured_content
        )
    if len(blocks) == len(texts) <= 1:
        return texts[0] if texts else ""
    return {"content": blocks}
