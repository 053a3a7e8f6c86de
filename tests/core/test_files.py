from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from jarvis_nb.core.files import FileRefused, decode_text, looks_secret, read_regular


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("", False),
        ("/", False),
        ("notes.md", False),
        (".env", True),
        ("a/.env.production", True),
        ("A/.ENV", True),
        ("environment.yml", False),
        ("prod.env", True),
        ("/home/ada/.ssh/config", True),
        ("ssh/config", False),
        (".ssh", False),
        ("x/.aws/credentials", True),
        ("credentials.md", True),
        ("secrets.py", False),
        ("secrets.yaml", True),
        ("id_rsa", True),
        ("id_rsa_notes.md", True),
        ("key", False),
        ("tls.key", True),
        ("monkey.txt", False),
        ("jarvis_nb/config.toml", True),
        ("other/config.toml", False),
    ],
)
def test_13_16_what_looks_like_a_secret(path, secret):
    """tools.md 13 and 16: files of keys and passwords by name; ordinary names are not hit."""
    assert looks_secret(path) is secret


@pytest.mark.parametrize("size", [0, 1, 10, 11])
def test_13_limit_is_inclusive(tmp_path, size):
    """tools.md 13."""
    path = tmp_path / "f"
    path.write_bytes(b"x" * size)
    if size <= 10:
        assert read_regular(str(path), "f", 10) == b"x" * size
    else:
        with pytest.raises(FileRefused) as caught:
            read_regular(str(path), "f", 10)
        assert caught.value.code == "too_large"


@pytest.mark.skipif(os.name != "posix", reason="POSIX files")
def test_13_no_handle_is_leaked(tmp_path):
    """Whatever the outcome, what was opened is closed."""
    (tmp_path / "f").write_bytes(b"x" * 20)
    (tmp_path / "link").symlink_to(tmp_path / "f")
    os.mkfifo(tmp_path / "pipe")
    handles = Path("/proc/self/fd")
    before = {path.name for path in handles.iterdir()} if handles.exists() else set()
    for name in ("f", "link", "pipe", "nope", "f/x"):
        for limit in (5, 50):
            with suppress(FileRefused):
                read_regular(str(tmp_path / name), name, limit)
    assert not before or {path.name for path in handles.iterdir()} == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_13_unreadable(tmp_path):
    """A file that may not be read says so."""
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0)
    with pytest.raises(FileRefused) as caught:
        read_regular(str(tmp_path / "f"), "f", 10)
    assert caught.value.code == "unreadable"


@pytest.mark.parametrize(
    ("data", "text"), [(b"", ""), ("é\r\n".encode(), "é\r\n"), (b"\xff", None), (b"a\0", None)]
)
def test_13_utf8_only(data, text):
    """tools.md 13: nothing is replaced, nothing guessed."""
    if text is not None:
        assert decode_text(data, "f") == text
    else:
        with pytest.raises(FileRefused) as caught:
            decode_text(data, "f")
        assert caught.value.code == "binary_file"
