"""What a fresh process costs, measured from outside: CPU of the whole process, less that of a bare Python."""

from __future__ import annotations

import os
import subprocess
import sys

# httpx also imports its command line, with rich and click, where those happen to be installed: a floor has none.
PLAIN = 'import sys; sys.modules["click"] = None'
IMPORTING = {"ours": "from jarvis_nb import Jarvis", "floor": f"{PLAIN}; import httpx"}

FIRST = {
    "ours": """
from jarvis_nb import Jarvis
from jarvis_nb.engines import OpenAIEngine
with Jarvis(engine=OpenAIEngine("URL", "no-key"), model="bench") as j:
    answer = j.ask("bench rounds=0")
assert answer == "done R=0 P=1", answer
""",
    "floor": f"""
{PLAIN}
import httpx
with httpx.Client(timeout=60) as client:
    body = {{"model": "bench", "messages": [{{"role": "user", "content": "bench rounds=0"}}]}}
    response = client.post("URL/chat/completions", json=body)
    answer = response.raise_for_status().json()["choices"][0]["message"]["content"]
assert answer == "done R=0 P=1", answer
""",
}


def importing(side: str, url: str) -> dict[str, float]:  # noqa: ARG001 - as its sibling
    """The import alone."""
    return {"cpu": process_cpu(IMPORTING[side]) - process_cpu("pass")}


def first(side: str, url: str) -> dict[str, float]:
    """From nothing to the first answer, and a clean end; the bare Python counts too."""
    return {"cpu": process_cpu(FIRST[side].replace("URL", url))}


def environment() -> dict[str, str]:
    """Return ours without what would change a measurement: proxies, settings, and a ban on compiled modules."""
    left = {
        k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.startswith("JARVIS_NB_")
    }
    left.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**left, "PYTHONHASHSEED": "0", "XDG_CONFIG_HOME": os.devnull}


def process_cpu(code: str) -> float:
    """Run code in a fresh Python and return its CPU seconds."""
    with subprocess.Popen([sys.executable, "-c", code], env=environment()) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the measured code failed: {code}")
    return used.ru_utime + used.ru_stime
