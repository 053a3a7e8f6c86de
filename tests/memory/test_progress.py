from __future__ import annotations

import pytest

CODE = """
from pathlib import Path
from jarvis_nb.memory import progress
from jarvis_nb.memory.handle import MemoryHandle
progress.PATIENCE_SECONDS = {patience}
progress.EVERY_SECONDS = 0
folder = Path({folder!r})
for number in range(3):
    (folder / f"{{number}}.md").write_text("orders")
MemoryHandle().index(folder)
"""


def outputs(kernel, code):
    kernel.execute(code)
    found = []
    while True:
        message = kernel.get_iopub_msg(timeout=60)
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            return found
        if message["msg_type"] in ("display_data", "update_display_data", "stream", "error"):
            found.append((message["msg_type"], content.get("data", content)))


@pytest.mark.slow
def test_16_progress_in_a_notebook(tmp_path):
    """tools.md 16: one line, updated in place, empty at the end; nothing at all where it is quick."""
    manager = pytest.importorskip("jupyter_client.manager")
    started, kernel = manager.start_new_kernel(kernel_name="python3")
    try:
        slow = outputs(kernel, CODE.format(patience=0, folder=str(tmp_path)))
        quick = outputs(kernel, CODE.format(patience=60, folder=str(tmp_path)))
    finally:
        kernel.stop_channels()
        started.shutdown_kernel(now=True)
        started.cleanup_resources()
    kinds = [kind for kind, _ in slow]
    texts = [data["text/plain"] for _, data in slow]
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}
    assert texts[0].startswith("indexing 0 of 3 files: ")
    assert texts[-1] == ""
    assert quick == []
