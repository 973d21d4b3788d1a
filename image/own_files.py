"""What a ramdisk has of Ingot itself, and of its operator, beside Debian's packages and the agent."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ingot.image.builds import BuildError
from ingot.image.order import ExtraFile

_OVERLAY = Path(__file__).parent / "overlay"

_PLACES = {
    "init.sh": "init",
    "dhcp-event.sh": "etc/dhcp-event",
    "poweroff.sh": "usr/local/sbin/poweroff",
    "reboot.sh": "usr/local/sbin/reboot",
    "power-button.sh": "etc/acpi/PWRF/00000080",
    "agent.conf": "etc/ironic-python-agent.d/agent.conf",
}


def install(root: Path) -> None:
    """Put our files into a root file system."""
    for name, place in _PLACES.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_OVERLAY / name, root / place)
        (root / place).chmod(0o755 if name.endswith(".sh") else 0o644)


def add(root: Path, files: Iterable[ExtraFile]) -> None:
    """Put an operator's files into a root file system.

    :raises BuildError: a link would lead out of it, or a folder has the name.
    """
    for file in files:
        path = root / file.place.lstrip("/")
        if not path.parent.resolve().is_relative_to(root.resolve()):
            raise BuildError(
                f"{file.place}: a folder of it is a link to another; name the other, such as /run for /var/run"
            )
        if path.is_dir():
            raise BuildError(f"{file.place} is a folder of the ramdisk; name a file in it")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)
