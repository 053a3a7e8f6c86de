"""Reads the head of a GGUF file, so that a broken one is refused before native code sees it.

The layout is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from jarvis_nb.core.errors import EngineError

MAGIC = b"GGUF"
MOST_ITEMS = 1 << 24
"""Entries of one table at most; a larger count is a broken file."""
MOST_TEXT = 1 << 24
"""Bytes of one string at most."""
KEEP_ITEMS = 8
"""Items of an array that are kept; a vocabulary is skipped over."""
DEFAULT_ALIGNMENT = 32

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9

# Block length and bytes of a block, by ggml type.
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GGUF:
    """What the head of a model file says."""

    architecture: str
    name: str
    size: int
    """Bytes of the whole file."""
    metadata: dict[str, Any]
    """Scalars and strings, and the first items of arrays."""


def read_gguf(path: Path) -> GGUF:
    """Read and check the head of a GGUF file.

    Raises:
        EngineError: ``no_model``: there is no such file; ``bad_model``: it is not GGUF, is cut off, or holds
            no language model.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _read(file, size)
    except FileNotFoundError:
        raise EngineError(
            f"there is no model file {str(path)!r}",
            code="no_model",
            value=str(path),
            hint="check path= or JARVIS_NB_GGUF, or get the default one with: jarvis models fetch",
        ) from None
    except OSError as error:
        raise _bad(path, f"it cannot be read: {error.strerror or error}") from error
    except _Broken as error:
        raise _bad(path, str(error)) from None


class _Broken(Exception):  # noqa: N818 - private, and turned into an EngineError at once
    """What is wrong with the file."""


def _bad(path: Path, why: str) -> EngineError:
    return EngineError(
        f"{str(path)!r} is not a usable GGUF model: {why}",
        code="bad_model",
        value=str(path),
        hint="download it again, or get the default one with: jarvis models fetch",
    )


def _read(file: BinaryIO, size: int) -> GGUF:
    if file.read(4) != MAGIC:
        raise _Broken("it does not begin with GGUF")
    version = _number(file, "I")
    if version not in (2, 3):
        raise _Broken(f"its format version is {version}, known are 2 and 3")
    tensors, entries = _count(file, "tensors"), _count(file, "metadata entries")
    metadata: dict[str, Any] = {}
    for _ in range(entries):
        key = _text(file)
        metadata[key] = _value(file, _number(file, "I"))
    end = max((_tensor(file) for _ in range(tensors)), default=0)
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise _Broken(f"its alignment is {alignment!r:.40}")
    start = -(-file.tell() // alignment) * alignment
    if start + end > size:
        raise _Broken(f"it is cut off: {size:,} bytes instead of {start + end:,}")
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise _Broken("it names no architecture")
    if not tensors or "tokenizer.ggml.model" not in metadata:
        raise _Broken("it holds no language model (no tensors or no tokenizer)")
    return GGUF(architecture, str(metadata.get("general.name", "")), size, metadata)


def _number(file: BinaryIO, form: str) -> Any:
    data = file.read(struct.calcsize(f"<{form}"))
    try:
        return struct.unpack(f"<{form}", data)[0]
    except struct.error:
        raise _Broken("it is cut off in its head") from None


def _count(file: BinaryIO, what: str) -> int:
    count = _number(file, "Q")
    if count > MOST_ITEMS:
        raise _Broken(f"it claims {count:,} {what}")
    return count


def _text(file: BinaryIO) -> str:
    length = _number(file, "Q")
    if length > MOST_TEXT:
        raise _Broken(f"it claims a string of {length:,} bytes")
    data = file.read(length)
    if len(data) != length:
        raise _Broken("it is cut off in its head")
    return data.decode(errors="replace")


def _value(file: BinaryIO, kind: int, depth: int = 0) -> Any:
    if kind in SCALARS:
        return _number(file, SCALARS[kind])
    if kind == TEXT:
        return _text(file)
    if kind != ARRAY or depth:
        raise _Broken(f"it holds a value of unknown type {kind}")
    inner, count = _number(file, "I"), _count(file, "array items")
    kept = [_value(file, inner, 1) for _ in range(min(count, KEEP_ITEMS))]
    if inner in SCALARS:
        file.seek((count - len(kept)) * struct.calcsize(f"<{SCALARS[inner]}"), 1)
    else:
        for _ in range(count - len(kept)):
            length = _number(file, "Q")
            if length > MOST_TEXT:
                raise _Broken(f"it claims a string of {length:,} bytes")
            file.seek(length, 1)
    return kept


def _tensor(file: BinaryIO) -> int:
    """Read one tensor's entry and return where its data ends, counted from the start of the data."""
    _text(file)
    rank = _number(file, "I")
    if rank > 8:  # noqa: PLR2004 - ggml has four
        raise _Broken(f"it claims a tensor of {rank} dimensions")
    elements = 1
    for _ in range(rank):
        elements *= _number(file, "Q")
    kind, offset = _number(file, "I"), _number(file, "Q")
    block, size = BLOCKS.get(kind, (1, 0))  # a type newer than this table: its size is not checked
    return offset + -(-elements // block) * size
