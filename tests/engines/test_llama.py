"""local.md 3, 4, 7: the runtime is checked, shared, queued, stopped and freed."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.engines import models
from jarvis_nb.engines.generation import ContextOverflow, Generated, Order
from jarvis_nb.engines.llama import Runtime, Settings, acquire, import_runtime, release

MODEL = models.model_path()
with_model = pytest.mark.skipif(not MODEL.is_file(), reason="the model is not here: jarvis models fetch")
SHA256 = models.MODELS[models.DEFAULT].sha256


def order(text: str, tokens: int = 8, grammar: str | None = None) -> Order:
    messages = [
        {"role": "system", "content": "Answer briefly and correctly."},
        {"role": "user", "content": text},
    ]
    return Order(messages, max_tokens=tokens, grammar=grammar)


def resident() -> float:
    """Megabytes of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_without_the_extra_the_error_names_the_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """local.md 4."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(EngineError, match=r"run: pip install 'jarvis-nb\[local\]'") as caught:
        import_runtime()
    assert caught.value.code == "missing_extra"


def test_without_libgomp_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """local.md: libgomp1 is not bundled."""
    why = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({why!r})")
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EngineError, match="apt-get install libgomp1") as caught:
        import_runtime()
    assert caught.value.code == "missing_library"


def test_a_runtime_is_shared_by_path_and_counted(tmp_path: Path) -> None:
    """local.md 7: one model in memory however many engines."""
    file, link = tmp_path / "a.gguf", tmp_path / "b.gguf"
    file.write_bytes(b"")
    link.symlink_to(file)
    one, two = acquire(file, Settings()), acquire(link, Settings())
    try:
        assert one is two
        with pytest.raises(InvalidRequest, match="close the other engine") as caught:
            acquire(file, Settings(threads=2))
        assert caught.value.code == "model_settings"
    finally:
        assert release(one) is False
        assert release(two) is True
    three = acquire(file, Settings(threads=2))
    assert three is not one
    assert release(three) is True
    assert release(three) is False


def test_a_model_that_was_closed_says_so() -> None:
    runtime = Runtime(MODEL, Settings())
    runtime.close()
    with pytest.raises(EngineError, match="closed") as caught:
        asyncio.run(runtime.generate(order("x")))
    assert caught.value.code == "closed"


class Server:
    """Plays chunks as llama.cpp's server sends them."""

    def __init__(self, *chunks: dict[str, object]) -> None:
        self.chunks = chunks

    def handle_chat_completions(self, _: object, listener: object) -> None:
        for chunk in self.chunks:
            if listener(chunk):  # type: ignore[operator]
                return


def says(text: str) -> dict[str, object]:
    return {"choices": [{"delta": {"content": text}}]}


def generate(*chunks: dict[str, object], must_start: str = "") -> Generated:
    runtime = Runtime(MODEL, Settings())
    runtime._server = Server(*chunks)
    return asyncio.run(runtime.generate(Order([], must_start=must_start)))


def test_chunks_are_joined() -> None:
    end = {"choices": [{"delta": {}, "finish_reason": "length"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    found = generate({"prompt_progress": {}}, says("a"), says("b"), end, usage)
    assert (found.text, found.finish_reason, found.usage.total_tokens) == ("ab", "length", 5)


def test_errors_of_the_server_are_errors() -> None:
    too_long = {
        "error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "message": "too long"}
    }
    with pytest.raises(ContextOverflow, match=r"9,000 tokens.*reads 2,048"):
        generate(too_long)
    with pytest.raises(EngineError, match="went wrong") as caught:
        generate({"error": {"message": "went wrong"}})
    assert caught.value.code == "bad_response"


@pytest.mark.parametrize(("start", "kept"), [("{", True), ("Sure", False), ("\n{", False)])
def test_a_grammar_that_was_dropped_is_noticed_at_the_first_letter(start: str, *, kept: bool) -> None:
    found = generate(says(start), says("more"), must_start="{")
    assert found.constrained is kept
    assert ("more" in found.text) is kept


# With the real model.


@pytest.mark.slow
@with_model
def test_it_loads_with_progress_answers_and_is_freed() -> None:
    """local.md 7: loaded on first use with progress, freed on close."""
    runtime = Runtime(MODEL, Settings(), trusted_sha256=SHA256)
    assert not runtime.loaded
    seen: list[str] = []
    before = resident()
    found = asyncio.run(
        runtime.generate(
            order("What is the capital of France?", 12), on_load=lambda *report: seen.append(report[2])
        )
    )
    assert "Paris" in found.text
    assert [text.split()[0] for text in seen] == ["checking", "loading", "warming", "smollm2-135m.gguf"]
    loaded = resident()
    runtime.close()
    assert not runtime.loaded
    if sys.platform == "linux":
        assert loaded - before > 60
        assert resident() < loaded - 60


@pytest.mark.slow
@with_model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_loading_and_closing_again_and_again_does_not_grow() -> None:
    """local.md 7: freed on close."""

    async def cycle() -> float:
        runtime = Runtime(MODEL, Settings(), trusted_sha256=SHA256)
        await runtime.generate(order("Hi", 2, "%llguidance {}\nstart: /[a-z]{3}/\n"))
        await runtime.aclose()
        return resident()

    first = asyncio.run(cycle())
    sizes = [asyncio.run(cycle()) for _ in range(5)]
    assert sizes[-1] - first < 40


@pytest.mark.slow
@with_model
def test_an_interrupt_stops_at_the_next_token_and_the_next_call_waits_for_nobody() -> None:
    """local.md 7: in an answer and in a long prompt."""

    async def scene(text: str) -> float:
        runtime = Runtime(MODEL, Settings(), trusted_sha256=SHA256)
        await runtime.load()
        task = asyncio.ensure_future(runtime.generate(order(text, 1500)))
        await asyncio.sleep(0.5)
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < 0.2
        await runtime.generate(order("Hi", 1))
        waited = time.perf_counter() - started
        await runtime.aclose()
        return waited

    for text in ("Tell a very long story about a dog.", "word " * 1500):
        assert asyncio.run(scene(text)) < 5  # the whole of either takes far longer


@pytest.mark.slow
@with_model
def test_asks_from_threads_and_loops_wait_in_line() -> None:
    """local.md 7."""
    runtime = Runtime(MODEL, Settings(), trusted_sha256=SHA256)
    texts: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: texts.append(asyncio.run(runtime.generate(order("Name three colors.", 12))).text)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runtime.close()
    assert len(texts) == 4
    assert len(set(texts)) == 1


@pytest.mark.slow
@with_model
def test_its_port_is_on_loopback_and_asks_for_a_key() -> None:
    runtime = Runtime(MODEL, Settings(), trusted_sha256=SHA256)
    asyncio.run(runtime.load())
    try:
        address = runtime._server.listening_address
        assert address.startswith("http://127.0.0.1:")
        for path, code in (("/v1/models", 401), ("/slots", 401), ("/", 404)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(address + path, timeout=5)
            assert caught.value.code == code
            assert caught.value.headers.get("Access-Control-Allow-Origin") in (None, "")
            caught.value.close()
    finally:
        runtime.close()


@pytest.mark.slow
@with_model
@pytest.mark.parametrize("damage", ["cut", "overwritten", "other architecture", "text"])
def test_a_broken_file_gives_an_error_and_not_a_dead_kernel(tmp_path: Path, damage: str) -> None:
    """local.md 3."""
    path = tmp_path / "model.gguf"
    if damage == "text":
        path.write_text("not a model")
    else:
        shutil.copy(MODEL, path)
        with path.open("r+b") as file:
            if damage == "cut":
                file.truncate(10_000_000)
            elif damage == "overwritten":
                file.seek(8)
                file.write(os.urandom(4096))
            else:
                head = file.read(4096)
                file.seek(head.index(b"llama"))
                file.write(b"lxxxa")
    runtime = Runtime(path, Settings())
    with pytest.raises(EngineError) as caught:
        asyncio.run(runtime.generate(order("Hi", 1)))
    assert caught.value.code == "bad_model"
    assert str(path) in str(caught.value)
    runtime.close()


@pytest.mark.slow
@with_model
def test_the_known_model_with_a_changed_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shutil.copy(MODEL, path)
    with path.open("r+b") as file:
        file.seek(-100, 2)
        file.write(b"\x00\x01\x02")
    runtime = Runtime(path, Settings(), trusted_sha256=SHA256)
    with pytest.raises(EngineError, match="checksum") as caught:
        asyncio.run(runtime.load())
    assert caught.value.code == "bad_model"
    runtime.close()


@pytest.mark.slow
@with_model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_loads_its_own_and_ends_in_peace() -> None:
    from jarvis_nb.core.types import Message, Role
    from jarvis_nb.engines import LocalEngine, Request

    engine = LocalEngine()
    request = Request("", [Message(Role.USER, "What is the capital of France?")], max_tokens=12)
    asyncio.run(engine.generate(request))
    child = os.fork()
    if child == 0:
        try:
            found = asyncio.new_event_loop().run_until_complete(engine.generate(request))
            asyncio.new_event_loop().run_until_complete(engine.close())
            os._exit(0 if "Paris" in found.message["content"] else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(engine.close())
    gc.collect()
