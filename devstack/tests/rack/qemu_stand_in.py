"""Stands in for QEMU: takes its orders from a file, what it says on the console and how it ends.

    python qemu_stand_in.py DIRECTORY QEMU-ARGUMENTS...

The directory has the file ``order`` with a JSON object; the arguments are added to the file ``commands``.
"""

import json
import re
import socket
import sys
from pathlib import Path


def main(here: Path, words: str) -> str | None:
    """Be a machine; returned is what QEMU complains about when it fails."""
    monitor, console = (_passed(words, name) for name in ("monitor", "console"))
    with (here / "commands").open("a") as log:
        log.write(words + "\n")
    order = json.loads((here / "order").read_text())
    console.sendall(b"started\n")
    if reason := order.get("reason"):
        (here / "order").write_text("{}")
        _shut_down(monitor, reason)
        return None
    if complaint := order.get("complains"):
        return str(complaint)
    for line in monitor.makefile():
        if "system_powerdown" in line:
            _repeat(console)
            _shut_down(monitor, "guest-shutdown")
            return None
        if "inject-nmi" in line:
            console.sendall(b"NMI received\n")
    return None


def _passed(words: str, name: str) -> socket.socket:
    found = re.search(rf"id={name},fd=(\d+)", words)
    assert found, words
    return socket.socket(fileno=int(found[1]))


def _repeat(console: socket.socket) -> None:
    """Say what was typed until now."""
    console.setblocking(False)
    try:
        console.send(b"typed: " + console.recv(1000))
    except BlockingIOError:
        pass


def _shut_down(monitor: socket.socket, reason: str) -> None:
    event = {"event": "SHUTDOWN", "data": {"guest": True, "reason": reason}}
    monitor.sendall(json.dumps(event).encode() + b"\r\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), " ".join(sys.argv[2:])))
