"""An MCP tool result as the output of a tool call."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.types import dumps
from jarvis_nb.tools.images import find_image

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_ERROR = 4_096
"""Characters of an error's text."""


def value_of(result: CallToolResult) -> Any:
    """Return the value of a result.

    * Structured content is the value; where there are pictures and the like beside it, both, as
      ``{"structured": …, "content": […]}``.
    * Else the one block, or a list of several: a text is a string, an image an
      :class:`~jarvis_nb.tools.images.ImageContent`, anything else the block as MCP writes it, with binary
      data as bytes. No block is None.

    Raises:
        ToolError: ``tool_error``: the result says it is an error; the message is its text.
    """
    blocks = [
        _plain(block.model_dump(mode="json", by_alias=True, exclude_none=True)) for block in result.content
    ]
    structured = result.structured_content
    if result.is_error:
        text = "\n".join(block for block in blocks if isinstance(block, str))
        text = text or (dumps(structured) if structured else "no reason given")
        more = len(text) - MAX_ERROR
        raise ToolError(f"{text[:MAX_ERROR]}… {more:,} more characters" if more > 0 else text)
    if structured is not None:
        others = [block for block in blocks if not isinstance(block, str)]
        return {"structured": structured, "content": others} if others else structured
    if len(blocks) > 1:
        return blocks
    return blocks[0] if blocks else None


def _plain(block: dict[str, Any]) -> Any:
    if block["type"] == "text":
        return block["text"]
    if block["type"] == "resource":
        return {**block, "resource": _unpacked(block["resource"], "blob")}
    unpacked = _unpacked(block, "data")
    return find_image(unpacked.get("data")) or unpacked


def _unpacked(block: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the block with its base64 as bytes; what is no base64 stays text."""
    try:
        return {**block, key: b64decode(block[key], validate=True)} if key in block else block
    except ValueError:
        return block
