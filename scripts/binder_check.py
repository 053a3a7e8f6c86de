"""Replay Binder's steps here: a fresh environment, the pinned requirements, postBuild; then run the lessons in it.

    python scripts/binder_check.py [--keep DIR]

Fails if a step does, or if a lesson takes more memory than Binder promises. Where jupyter-repo2docker is installed,
it is asked first whether it accepts binder/ (``--no-build``: no Docker is needed).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINDER = ROOT / "binder"
MOST_MB = 1500


def rendered() -> str:
    """Return the Dockerfile that repo2docker makes of binder/.

    Raises:
        CalledProcessError: It does not accept it.
    """
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def replay(home: Path) -> Path:
    """Build the environment and return its Python."""
    wanted = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip().replace("-", "")
    python = shutil.which(wanted) or sys.executable
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    bin_ = home / "bin"
    env = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    pip = [
        str(bin_ / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-cache-dir",
    ]
    subprocess.run([*pip, "-r", "binder/requirements.txt"], check=True, cwd=ROOT, env=env)
    subprocess.run(["binder/postBuild"], check=True, cwd=ROOT, env=env)
    return bin_ / "python"


def main() -> int:
    """Check, replay, run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the environment is made and left")
    args = parser.parse_args()
    try:
        import repo2docker  # noqa: F401
    except ImportError:
        print("repo2docker is not installed: binder/ is not rendered")
    else:
        rendered()
        print("repo2docker accepts binder/")
    with tempfile.TemporaryDirectory() as folder:
        python = replay(args.keep or Path(folder) / "env")
        command = [sys.executable, str(ROOT / "scripts" / "notebook_costs.py"), "--python", str(python)]
        return subprocess.run([*command, "--most", str(MOST_MB), "--no-page"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
