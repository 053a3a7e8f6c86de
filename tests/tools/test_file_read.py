from __future__ import annotations

import os
import socket
import time

import pytest

from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.tools.file_read import FileReadTool

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX files")


@pytest.fixture
def home(tmp_path):
    """A directory that may be read, beside one that may not."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "outside.txt").write_text("outside")
    return allowed


def read(home, path, **params):
    return FileReadTool(allowed_dirs=[str(home)]).execute(path=str(path), **params)


def test_reference_example(home):
    """Reference, FileRead: content, and exactly path and size_bytes as metadata."""
    reader = FileReadTool(allowed_dirs=[str(home)])
    result = reader.execute(path=str(home / "notes.txt"), max_lines=2)
    assert result.content == "one\ntwo\n"
    assert result.metadata == {"path": str(home / "notes.txt"), "size_bytes": 14}


def test_13_a_path_object_is_a_path(home):
    """tools.md 13: called directly, as a notebook does, with a Path; the checks are the same."""
    reader = FileReadTool(allowed_dirs=[home])
    assert reader.execute(path=home / "notes.txt").content == "one\ntwo\nthree\n"
    assert not reader.execute(path=home.parent / "outside.txt").success
    (home / ".env").write_text("KEY=1")
    assert reader.execute(path=home / ".env").metadata["code"] == "secret_file"


@pytest.mark.parametrize("size", [0, 1, 1_048_576])
def test_13_size_limit_is_inclusive(home, size):
    """tools.md 13: 1 MB is 1,048,576 bytes, inclusive."""
    (home / "f.txt").write_text("x" * size)
    result = read(home, home / "f.txt")
    assert (result.success, len(result.content), result.metadata["size_bytes"]) == (True, size, size)


def test_13_one_byte_more_is_refused(home):
    """tools.md 13, also where max_lines would cut it."""
    (home / "f.txt").write_text("x" * 1_048_577)
    result = read(home, home / "f.txt", max_lines=1)
    assert (result.success, result.metadata["code"]) == (False, "too_large")
    assert "1,048,576" in result.content


@pytest.mark.parametrize(
    ("text", "max_lines", "lines"),
    [
        (b"a\r\nb\rc\nd", None, "a\r\nb\rc\nd"),
        (b"a\r\nb\rc\nd", 1, "a\r\n"),
        (b"a\r\nb\rc\nd", 2, "a\r\nb\r"),
        (b"a\r\nb\rc\nd", 99, "a\r\nb\rc\nd"),
        ("a\x0cb\u2028c\x85d\ne".encode(), 1, "a\x0cb\u2028c\x85d\n"),
        (b"\n\n\n", 2, "\n\n"),
        (b"", 3, ""),
    ],
)
def test_13_line_ends_are_kept(home, text, max_lines, lines):
    """tools.md 13: nothing is translated; a line ends where editors say so."""
    (home / "f.txt").write_bytes(text)
    result = read(home, home / "f.txt", max_lines=max_lines)
    assert result.content == lines
    assert result.metadata["size_bytes"] == len(text)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00a", b"caf\xe9", b"text\0more", b"\x89PNG\r\n\x1a\n\0"])
def test_13_binary_is_rejected(home, data):
    """tools.md 13: UTF-8 only."""
    (home / "f.bin").write_bytes(data)
    result = read(home, home / "f.bin")
    assert (result.success, result.metadata["code"]) == (False, "binary_file")


@pytest.mark.parametrize("path", ["../outside.txt", "../allowed/../outside.txt", "/etc/hostname", "..", "/"])
def test_13_outside_is_refused(home, path):
    """tools.md 13: the resolved target must lie in an allowed directory."""
    result = read(home, home / path)
    assert (result.success, result.metadata["code"]) == (False, "not_allowed")
    assert str(home) in result.content  # what is valid


def test_13_what_does_not_exist_elsewhere_is_refused_alike(home):
    """A refusal does not tell whether a file outside exists."""
    assert read(home, home / "../nope.txt").metadata["code"] == "not_allowed"


def test_13_sibling_with_the_same_beginning_is_outside(home):
    """/allowed-too does not lie in /allowed."""
    sibling = home.parent / "allowed-too"
    sibling.mkdir()
    (sibling / "f.txt").write_text("x")
    assert read(home, sibling / "f.txt").metadata["code"] == "not_allowed"


@posix
def test_13_links_are_judged_by_their_target(home):
    """tools.md 13: `notes.txt -> .env`, links out, links within, circles, broken ones."""
    (home / ".env").write_text("KEY=1")
    (home / "plain.txt").symlink_to(".env")
    (home / "out.txt").symlink_to(home.parent / "outside.txt")
    (home / "up").symlink_to(home.parent)
    (home / "in.txt").symlink_to("notes.txt")
    (home / "circle").symlink_to("circle")
    (home / "broken").symlink_to("nowhere")
    codes = {
        name: read(home, home / name).metadata.get("code")
        for name in ("plain.txt", "out.txt", "up/outside.txt", "in.txt", "circle", "broken")
    }
    assert codes == {
        "plain.txt": "secret_file",
        "out.txt": "not_allowed",
        "up/outside.txt": "not_allowed",
        "in.txt": None,
        "circle": "changed_meanwhile",
        "broken": "not_found",
    }


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.local", ".ENV", "prod.env", ".envrc", "server.pem", "id_rsa", "id_rsa.pub", "id_ed25519", "tls.key",
        "credentials", "credentials.json", ".netrc", ".pypirc", ".npmrc", ".git-credentials", "vault.kdbx", "store.p12",
        "secrets.toml", "kubeconfig", "terraform.tfstate", ".bash_history", ".aws/config", ".ssh/known_hosts",
        ".kube/config", ".docker/config.json", ".gnupg/x", "gcloud/x.txt", "jarvis_nb/config.toml",
    ],
)  # fmt: skip
def test_13_secrets_are_refused(home, name):
    """tools.md 13: secret-looking files, whether they exist or not."""
    path = home / name
    assert read(home, path).metadata["code"] == "secret_file"
    path.parent.mkdir(exist_ok=True)
    path.write_text("hush")
    result = read(home, path)
    assert (result.success, result.metadata["code"]) == (False, "secret_file")
    assert "hush" not in result.content


@pytest.mark.parametrize(
    "name", ["environment.md", "keynote.txt", "secrets.py", "pem.txt", "config.toml", "monkey"]
)
def test_13_ordinary_names_are_read(home, name):
    """What only resembles a secret's name is read."""
    (home / name).write_text("x")
    assert read(home, home / name).success


@posix
def test_13_fifos_devices_sockets_directories_never_block(home, monkeypatch):
    """tools.md 13: only regular files; a FIFO without a writer would block for ever."""
    os.mkfifo(home / "pipe")
    endpoint = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(home)  # a socket's path is short
    endpoint.bind("sock")
    start = time.perf_counter()
    unrestricted = FileReadTool()
    for path in (
        home / "pipe",
        home / "sock",
        home,
        "/dev/null",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/environ",
    ):
        result = unrestricted.execute(path=str(path))
        assert (result.success, result.metadata["code"]) == (False, "not_a_file"), path
    endpoint.close()
    assert time.perf_counter() - start < 1


@posix
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_13_a_file_swapped_between_check_and_read(home, monkeypatch, swapped):
    """tools.md 13: what is opened is what was checked, in every part of the path."""
    from jarvis_nb.core import files

    (home / "sub").mkdir()
    (home / "sub" / "f.txt").write_text("harmless")
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "f.txt").write_text("stolen")
    real = os.lstat

    def swap_then_lstat(path, **kwargs):
        facts = real(path, **kwargs)
        if swapped == "file" and not (home / "sub" / "f.txt").is_symlink():
            (home / "sub" / "f.txt").unlink()
            (home / "sub" / "f.txt").symlink_to(elsewhere / "f.txt")
        elif swapped == "folder" and not (home / "sub").is_symlink():
            (home / "sub").rename(home / "old")
            (home / "sub").symlink_to(elsewhere)
        return facts

    tool = FileReadTool(allowed_dirs=[home])
    target = tool._checked_target(str(home / "sub" / "f.txt"))
    monkeypatch.setattr(files.os, "lstat", swap_then_lstat)
    monkeypatch.setattr(tool, "_checked_target", lambda _: target)
    result = tool.execute(path=str(home / "sub" / "f.txt"))
    assert (result.success, result.metadata["code"]) == (False, "changed_meanwhile")
    assert "stolen" not in result.content


@posix
def test_13_a_file_that_grows_meanwhile_is_refused(home, monkeypatch):
    """tools.md 13: the limit holds for what is read, whatever the size said."""
    from jarvis_nb.core import files

    (home / "f.txt").write_text("x" * 1_048_577)
    real = os.fstat

    def small(handle):
        facts = list(real(handle))
        facts[6] = 10
        return os.stat_result(facts)

    monkeypatch.setattr(files.os, "fstat", small)
    result = read(home, home / "f.txt")
    assert (result.success, result.metadata["code"]) == (False, "too_large")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"path": None},
        {"path": []},
        {"path": -1},
        {"path": ""},
        {"path": "a\0b"},
        {"path": "\ud800"},
        {"path": "a" * 5000},
        {"path": "nope.txt"},
        {"path": "notes.txt/x"},
        {"path": "notes.txt", "max_lines": 0},
        {"path": "notes.txt", "max_lines": -1},
        {"path": "notes.txt", "max_lines": "two"},
        {"path": "notes.txt", "max_lines": 1.5},
    ],
)
def test_13_odd_values_are_failed_results(home, monkeypatch, params):
    """tools.md, built-in tools: they never raise."""
    monkeypatch.chdir(home)
    result = FileReadTool(allowed_dirs=["."]).execute(**params)
    assert not result.success
    assert result.metadata["code"] in ("invalid_arguments", "not_found", "unreadable")
    assert len(result.content) < 500


def test_13_relative_paths_and_no_restriction(home, monkeypatch):
    """Reference: allowed_dirs defaults to None; a relative path starts at the working directory."""
    monkeypatch.chdir(home)
    assert FileReadTool().execute(path="notes.txt").success
    assert FileReadTool().execute(path="../outside.txt").content == "outside"
    assert FileReadTool(allowed_dirs=["."]).execute(path="notes.txt").metadata["path"] == os.path.realpath(
        "notes.txt"
    )
    assert not FileReadTool(allowed_dirs=[]).execute(path="notes.txt").success


@posix
def test_13_allowed_directory_may_be_a_link(home):
    """Both sides are resolved."""
    (home.parent / "link").symlink_to(home)
    assert FileReadTool([home.parent / "link"]).execute(path=str(home.parent / "link" / "notes.txt")).success


@pytest.mark.parametrize("dirs", ["docs", 5, [None]])
def test_constructor_refuses_odd_directories(dirs):
    """The caller's mistakes raise: a string would be taken as a list of letters."""
    with pytest.raises(InvalidRequest, match="allowed_dirs"):
        FileReadTool(allowed_dirs=dirs)


def test_spec_is_the_references():
    """Reference, FileRead; local.md 5."""
    tool = ToolRegistry.create("file_read")
    assert (tool.tool_id, tool.spec.category, tool.allowed_dirs) == ("file_read", "filesystem", None)
    assert tool.spec.parameters["required"] == ["path"]
    assert tool.spec.parameters["properties"]["max_lines"]["type"] == "integer"
    assert len(tool.spec.metadata["examples"]) == 10


def test_examples_work(tmp_path, monkeypatch):
    """local.md 5: each example is a valid call."""
    monkeypatch.chdir(tmp_path)
    for _, arguments in FileReadTool().spec.metadata["examples"]:
        path = tmp_path / arguments["path"]
        if path.is_relative_to(tmp_path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x\n" * 20)
            assert FileReadTool(["."]).execute(**arguments).success
