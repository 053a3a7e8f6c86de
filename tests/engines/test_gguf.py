"""local.md 3: a corrupt or foreign model file gives an error, not a dead kernel; this is the part before native code."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.errors import EngineError
from jarvis_nb.engines.gguf import read_gguf


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ENTRIES = {
    "general.architecture": entry("general.architecture", 8, text("llama")),
    "general.name": entry("general.name", 8, text("tiny")),
    "general.alignment": entry("general.alignment", 4, struct.pack("<I", 32)),
    "tokenizer.ggml.model": entry("tokenizer.ggml.model", 8, text("gpt2")),
    "tokens": entry(
        "tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 12) + b"".join(text(f"t{i}") for i in range(12))
    ),
    "scores": entry("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 12) + struct.pack("<12f", *range(12))),
    "flag": entry("flag", 7, b"\x01"),
}


def gguf(
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    without: str = "",
    extra: bytes = b"",
    kind: int = 0,
    data: int = 256,
) -> bytes:
    """A whole little model file: one tensor of 8 by 8 floats."""
    entries = [value for key, value in ENTRIES.items() if key != without]
    tensor = text("output.weight") + struct.pack("<IQQIQ", 2, 8, 8, kind, 0)
    head = (
        magic
        + struct.pack("<IQQ", version, 1, len(entries) + bool(extra))
        + b"".join(entries)
        + extra
        + tensor
    )
    return head + bytes(-len(head) % 32) + bytes(data)


WHOLE = gguf()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def test_a_whole_file_is_read(file: Path) -> None:
    file.write_bytes(WHOLE)
    found = read_gguf(file)
    assert (found.architecture, found.name, found.size) == ("llama", "tiny", len(WHOLE))
    assert found.metadata["tokenizer.ggml.tokens"] == [f"t{i}" for i in range(8)]  # the first of them
    assert found.metadata["flag"] is True


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not begin with GGUF"),
        (b"PK\x03\x04" + bytes(100), "does not begin with GGUF"),
        (gguf(version=1), "version is 1"),
        (gguf(version=99), "version is 99"),
        (WHOLE[:-1], "cut off"),
        (WHOLE[:20], "cut off in its head"),
        (WHOLE[:150], "cut off in its head"),
        (gguf(without="general.architecture"), "names no architecture"),
        (gguf(without="tokenizer.ggml.model"), "no language model"),
        (gguf(extra=entry("x", 77, b"")), "unknown type 77"),
        (gguf(extra=entry("x", 8, struct.pack("<Q", 1 << 40))), "a string of"),
        (gguf(extra=entry("x", 9, struct.pack("<IQ", 4, 1 << 50))), "array items"),
        (gguf(extra=entry("general.alignment", 8, text("no"))), "alignment"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1), "tensors"),
    ],
)
def test_a_broken_file_is_refused_and_named(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(EngineError, match=says) as caught:
        read_gguf(file)
    assert caught.value.code == "bad_model"
    assert str(file) in str(caught.value)


def test_a_missing_file_and_a_directory(file: Path) -> None:
    with pytest.raises(EngineError, match="jarvis models fetch") as caught:
        read_gguf(file)
    assert caught.value.code == "no_model"
    with pytest.raises(EngineError) as caught:
        read_gguf(file.parent)
    assert caught.value.code == "bad_model"


def test_a_tensor_type_newer_than_the_table_is_not_measured(file: Path) -> None:
    file.write_bytes(gguf(kind=4242, data=0))
    assert read_gguf(file).architecture == "llama"


@given(st.binary(max_size=400))
def test_bytes_after_the_magic_raise_nothing_but_the_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    file = tmp_path_factory.mktemp("gguf") / "junk"
    file.write_bytes(b"GGUF\x03\x00\x00\x00" + junk)
    with pytest.raises(EngineError):
        read_gguf(file)


@given(st.integers(0, len(WHOLE) - 257), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    file = tmp_path_factory.mktemp("gguf") / "changed"
    file.write_bytes(WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :])
    codes: list[str] = []
    try:
        read_gguf(file)
    except EngineError as error:
        codes.append(error.code)
    assert codes in ([], ["bad_model"])
