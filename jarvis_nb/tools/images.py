"""Images a tool returns: a line of text for the model, and the picture for an engine that takes images."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class ImageContent:
    """One image, encoded.

    Example:
        >>> str(ImageContent(b"GIF89a" + bytes([2, 0, 3, 0]), "image/gif"))
        '[image: gif, 2 x 3, 10 bytes]'
    """

    data: bytes = field(repr=False)
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``."""

    def __str__(self) -> str:
        size = _size(self.data, self.media_type)
        shape = f"{size[0]} x {size[1]}, " if size else ""
        return f"[image: {self.media_type.removeprefix('image/')}, {shape}{len(self.data):,} bytes]"

    def to_openai(self) -> dict[str, Any]:
        """Return the image as a part of an OpenAI user message."""
        from base64 import b64encode

        url = f"data:{self.media_type};base64,{b64encode(self.data).decode('ascii')}"
        return {"type": "image_url", "image_url": {"url": url}}


def find_image(value: Any) -> ImageContent | None:
    """Return the image that ``value`` is, or None.

    Encoded bytes, a matplotlib figure, and whatever shows itself as PNG in a notebook (a PIL image).
    """
    if isinstance(value, ImageContent):
        return value
    if isinstance(value, bytes | bytearray):
        return _from_bytes(bytes(value))
    kind = type(value)
    # Looked up on the class: an object that answers to any attribute (a mock) is not an image.
    if hasattr(kind, "savefig"):
        buffer = BytesIO()
        # Without the metadata the same figure gives the same bytes under another matplotlib.
        value.savefig(buffer, format="png", metadata={"Software": None})
        return _from_bytes(buffer.getvalue())
    if hasattr(kind, "_repr_png_"):
        shown = value._repr_png_()
        if isinstance(shown, tuple):  # the protocol also allows (data, metadata)
            shown = shown[0]
        return _from_bytes(shown) if isinstance(shown, bytes) else None
    return None


def _from_bytes(data: bytes) -> ImageContent | None:
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return ImageContent(data, media_type)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageContent(data, "image/webp")
    return None


def _size(data: bytes, media_type: str) -> tuple[int, int] | None:
    if media_type == "image/png" and len(data) >= 24:  # noqa: PLR2004 - the header's length
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if media_type == "image/gif" and len(data) >= 10:  # noqa: PLR2004 - the header's length
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    return None
