"""Boot scripts, rendered on request from what the conductor wrote into the node: nothing lies on any disk."""

import posixpath
import re
import urllib.parse

from ingot.api.call import Call, Reply, operation
from ingot.db import ports

_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)

# A firmware that cannot start the disk itself gets it back with exit, and tries its next boot device.
LOCAL_DISK = "#!ipxe\nsanboot --no-describe --drive 0x80 || exit\n"


@operation()
def ipxe(call: Call, mac: str) -> Reply:
    """The script for the machine that has a MAC address; unknown machines boot from their disk."""
    config = ports.boot_config(call.db, mac.replace("-", ":").lower()) if _MAC.fullmatch(mac) else {}
    if config.get("target") not in ("ramdisk", "instance") or not config.get("kernel"):
        return Reply(LOCAL_DISK)
    return Reply(_script(config))


def _script(config: dict[str, str]) -> str:
    initrd = _word(config.get("initrd") or "")
    # A line break in the arguments would end the command.
    command = ["kernel", _word(config["kernel"]), *(config.get("kernel_args") or "").split()]
    lines = ["#!ipxe", " ".join(command), "boot"]
    if initrd:
        # UEFI kernels find their initial ramdisk by its name.
        lines[1] += f" initrd={posixpath.basename(urllib.parse.urlsplit(initrd).path)}"
        lines.insert(2, f"initrd {initrd}")
    return "\n".join(lines) + "\n"


def _word(url: str) -> str:
    return "".join(url.split())
