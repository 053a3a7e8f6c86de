"""The helpers of this room, importable by name, and the oldest ipykernel that is supported."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from driver import OLDEST


@pytest.fixture(scope="session")
def oldest(tmp_path_factory):
    """A directory with ipykernel 6.31 in it, which stands before the installed one."""
    target = Path(tmp_path_factory.getbasetemp().parent) / f"ipykernel-{OLDEST}"
    if not (target / "ipykernel").is_dir():
        install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*install, "--target", str(target), f"ipykernel=={OLDEST}", "nest-asyncio"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"ipykernel {OLDEST} cannot be installed beside the newest: {done.stderr[-200:]}")
    return {"PYTHONPATH": str(target)}
