"""Keeps what a measurement found, with date, commit, machine and command, as a file of ``tests/scale/results``."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_HERE = pathlib.Path(__file__).parent
_FILES = _HERE / "results"


def keep(name: str, figures: Mapping[str, Any]) -> None:
    """Print what was measured and write ``results/<name>.json``, over what an earlier run left there."""
    record = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "--short=12", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "machine": f"{os.cpu_count()} cores, {_processor()}, load {os.getloadavg()[0]:.1f} at the end",
        "python": platform.python_version(),
        "command": f"python -m tests.scale.{pathlib.Path(sys.argv[0]).stem} {' '.join(sys.argv[1:])}".strip(),
        "figures": dict(figures),
    }
    _FILES.mkdir(exist_ok=True)
    text = json.dumps(record, indent=2) + "\n"
    (_FILES / f"{name}.json").write_text(text)
    print(text, end="")


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", _HERE, *words], capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    names = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor()
