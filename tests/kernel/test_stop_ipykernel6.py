"""The stop button in the oldest kernel we support, ipykernel 6.31, in an environment made for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.kernel.test_stop import (  # noqa: F401 - collected here again, with another kernel
    kernel,
    kernels,
    server,
    test_04_keyboard_interrupt_of_a_tool_passes_through,
    test_21_a_flow_is_stopped,
    test_21_a_hanging_server_is_stopped,
    test_21_a_tool_is_stopped,
    test_21_prints_of_sync_tools_land_in_their_cell,
    test_21_several_tools_are_stopped,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """An environment of its own, over this one's packages."""
    where = tmp_path_factory.mktemp("ipykernel6")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", where], check=True)
    python = where / "bin" / "python"
    uv = shutil.which("uv")
    pip = [uv, "pip", "install", "-q", "-p"] if uv else [sys.executable, "-m", "pip", "-q", "--python"]
    done = subprocess.run(
        [*pip, str(python), *([] if uv else ["install"]), "ipykernel==6.31.*"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"ipykernel 6.31 cannot be installed: {done.stderr[-300:]}")
    (site,) = where.glob("lib/python*/site-packages")
    ours = [sysconfig.get_paths()["purelib"], str(Path(__file__).parents[2])]
    (site / "ours.pth").write_text("\n".join(ours) + "\n")
    return [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def test_it_is_the_old_one(kernel):  # noqa: F811 - the fixture
    assert kernel.ok("import ipykernel; ipykernel.__version__").value.startswith("'6.31")
