"""Asking a machine's BMC with ipmitool, a client of its own that is not part of Ingot."""

import os
import re
import shutil
import subprocess
from typing import Any

from quickstart.children import SLOWNESS
from quickstart.failure import Failure

_TIMEOUT = 30 * SLOWNESS
_DEVICES = {"Force PXE": "pxe", "Force Boot from default Hard-Drive": "disk"}


def is_available() -> bool:
    """Return whether ipmitool is installed."""
    return shutil.which("ipmitool") is not None


def command_line(machine: dict[str, Any], user: str) -> list[str]:
    """Return the command to which what is asked is appended; ipmitool takes the password from IPMI_PASSWORD."""
    return [
        *("ipmitool", "-I", "lanplus", "-H", machine["bmc_address"], "-p", str(machine["bmc_port"])),
        *("-U", user, "-E"),
    ]


def power_state(machine: dict[str, Any], user: str, password: str) -> str:
    """Return ``on`` or ``off``.

    :raises Failure: with what ipmitool said.
    """
    said = _ask(machine, user, password, "power", "status")
    return said.split()[-1].lower()


def boot_device(machine: dict[str, Any], user: str, password: str) -> tuple[str, bool]:
    """Return the boot device (ipmitool's words for those that have no name here) and whether it is persistent.

    :raises Failure: with what ipmitool said.
    """
    said = _ask(machine, user, password, "chassis", "bootparam", "get", "5")
    found = re.search(r"Boot Device Selector\s*:\s*(.+)", said)
    words = found[1].strip() if found else "unknown"
    return _DEVICES.get(words, words), "Options apply to all future boots" in said


def _ask(machine: dict[str, Any], user: str, password: str, *question: str) -> str:
    command = [*command_line(machine, user), *question]
    environment = {**os.environ, "IPMI_PASSWORD": password}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{' '.join(command)}: no answer in {_TIMEOUT:.0f} s") from error
    if done.returncode:
        raise Failure(f"{' '.join(command)} failed with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
