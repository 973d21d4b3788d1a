"""The file system from which UEFI starts a boot loader: Debian's signed shim and GRUB, or an image of the operator's.

With the signed ones, secure boot goes from the firmware to the kernel without a gap.
"""

import functools
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from ingot.api.agents.media import fat
from ingot.api.agents.media.sources import Content
from ingot.common import errors

_LABEL = "INGOT ESP"

CONFIGURATIONS = ("/EFI/debian/grub.cfg", "/EFI/BOOT/grub.cfg", "/boot/grub/grub.cfg")
"""Where on the image loaders look for their configuration: Debian's GRUB, others, and GRUB on most live systems."""

# From a CD, GRUB reads its configuration of the CD itself; some firmware lets it see the file system that it came from.
# It never searches: a disk of the machine may hold a file of any name.
_CONFIGURATION = b"set root=cd0\nconfigfile (cd0)/boot/grub/grub.cfg\n"


class _Loader(NamedTuple):
    """Files of an architecture, below the directory of Debian's libraries, and their names for firmware and shim."""

    shim: str
    first: str
    grub: str
    second: str


_LOADERS = {
    "x86_64": _Loader(
        *("shim/shimx64.efi.signed", "BOOTX64.EFI", "grub/x86_64-efi-signed/grubx64.efi.signed", "grubx64.efi")
    ),
    "aarch64": _Loader(
        *("shim/shimaa64.efi.signed", "BOOTAA64.EFI", "grub/arm64-efi-signed/grubaa64.efi.signed", "grubaa64.efi")
    ),
}


def read_esp(conf: cfg.ConfigOpts, architecture: str) -> Content:
    """Return the file system with the signed loader for an architecture.

    :raises ImageError: this host has no loader for it.
    """
    loader = _LOADERS.get(architecture)
    if loader is None:
        known = ", ".join(_LOADERS)
        raise errors.ImageError(
            f"no boot loader is known for {architecture}, only for {known}: set [deploy] bootloader_by_arch"
        )
    places = [Path(conf.deploy.signed_loader_path, name) for name in (loader.shim, loader.grub)]
    try:
        return _build_esp(loader, *((place, place.stat().st_mtime_ns) for place in places))
    except OSError as exc:
        raise errors.ImageError(
            f"{exc.filename} of this host of the API: {exc.strerror}. Install Debian's shim-signed and GRUB "
            "(grub-efi-amd64-signed or -arm64-signed), see [deploy] signed_loader_path, or set [deploy] bootloader"
        ) from exc


@functools.lru_cache(maxsize=4)
def _build_esp(loader: _Loader, shim: tuple[Path, int], grub: tuple[Path, int]) -> Content:
    files = {
        f"EFI/BOOT/{loader.first}": shim[0].read_bytes(),
        f"EFI/BOOT/{loader.second}": grub[0].read_bytes(),
        "EFI/debian/grub.cfg": _CONFIGURATION,
        "EFI/BOOT/grub.cfg": _CONFIGURATION,
    }
    return Content(fat.build(files, _LABEL))
