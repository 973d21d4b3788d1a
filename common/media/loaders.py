"""The file system from which UEFI starts a boot loader: Debian's signed shim and GRUB.

With these, secure boot goes from the firmware to the kernel without a gap.
"""

import functools
from pathlib import Path
from typing import NamedTuple

from ingot.common.media import fat
from ingot.common.media.content import Content

_LABEL = "INGOT ESP"

CONFIGURATIONS = ("/EFI/debian/grub.cfg", "/EFI/BOOT/grub.cfg", "/boot/grub/grub.cfg")
"""Where on the image loaders look for their configuration: Debian's GRUB, others, and GRUB on most live systems."""

# From a CD, GRUB reads its configuration of the CD itself; some firmware lets it see the file system that it came from.
# It never searches: a disk of the machine may hold a file of any name.
_CONFIGURATION = b"set root=cd0\nconfigfile (cd0)/boot/grub/grub.cfg\n"


class Loader(NamedTuple):
    """Files of an architecture, below the directory of Debian's libraries, and their names for firmware and shim."""

    shim: str
    first: str
    grub: str
    second: str


LOADERS = {
    "x86_64": Loader(
        *("shim/shimx64.efi.signed", "BOOTX64.EFI", "grub/x86_64-efi-signed/grubx64.efi.signed", "grubx64.efi")
    ),
    "aarch64": Loader(
        *("shim/shimaa64.efi.signed", "BOOTAA64.EFI", "grub/arm64-efi-signed/grubaa64.efi.signed", "grubaa64.efi")
    ),
}
"""By architecture, as ``cpu_arch`` of nodes names it."""


def read_esp(directory: str | Path, architecture: str) -> Content:
    """Return the file system with the signed loader for an architecture.

    :param directory: has the loaders as Debian places them in ``/usr/lib``.
    :param architecture: one of :data:`LOADERS`.
    :raises OSError: the loader cannot be read.
    """
    loader = LOADERS[architecture]
    places = [Path(directory, name) for name in (loader.shim, loader.grub)]
    return _build_esp(loader, *((place, place.stat().st_mtime_ns) for place in places))


@functools.lru_cache(maxsize=4)
def _build_esp(loader: Loader, shim: tuple[Path, int], grub: tuple[Path, int]) -> Content:
    files = {
        f"EFI/BOOT/{loader.first}": shim[0].read_bytes(),
        f"EFI/BOOT/{loader.second}": grub[0].read_bytes(),
        "EFI/debian/grub.cfg": _CONFIGURATION,
        "EFI/BOOT/grub.cfg": _CONFIGURATION,
    }
    return Content(fat.build(files, _LABEL))
