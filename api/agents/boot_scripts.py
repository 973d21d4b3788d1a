"""What boot loaders read: a template for each of them, filled with what the conductor has noted in the node."""

import posixpath
import urllib.parse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ingot.common import boot_files
from ingot.common.json_types import BootConfig


class Loader(NamedTuple):
    """What a loader reads.

    :param disk: for a machine that boots from its disk.
    :param template: for one that boots a kernel: ``{kernel}``, ``{initrds}``, their ``{names}``, ``{arguments}``.
    :param write_file: writes an address, and write_arguments, with the card's MAC address, the kernel's arguments.
    :param between: what stands between two initial ramdisks; empty where there can only be one.
    """

    disk: str
    template: str
    write_file: Callable[[str], str]
    write_arguments: Callable[[str, str], str]
    between: str

    def render(self, config: BootConfig, mac: str, more: Sequence[str] = ()) -> str:
        """Return what boots a kernel.

        :param mac: of the card that boots, with hyphens.
        :param more: addresses of further initial ramdisks, which are unpacked over the first one.
        """
        initrds = [_strip(config.get("initrd") or ""), *(more if self.between else ())]
        return self.template.format(
            kernel=self.write_file(_strip(config["kernel"])),
            initrds=self.between.join(map(self.write_file, initrds)),
            names=" ".join(f"initrd={name_file(initrd)}" for initrd in initrds),
            arguments=self.write_arguments(" ".join((config.get("kernel_args") or "").split()), mac),
        )


def name_file(url: str) -> str:
    """Return the name of a file, as loaders make it of its address."""
    return posixpath.basename(urllib.parse.urlsplit(url).path)


def choose_by_cpu(pc: str | None, arm64: str | None) -> str | None:
    """Return a configuration of GRUB that does one thing on PCs, another on ARM64.

    :param pc: what it does there; None: it boots from the disk, and so for ``arm64``; None for both is None.
    """
    if pc == arm64:
        return pc
    return f'if [ "$grub_cpu" = arm64 ]; then\n{arm64 or _GRUB_DISK}else\n{pc or _GRUB_DISK}fi\n'


def _strip(url: str) -> str:
    return "".join(url.split())


def _write_device(url: str) -> str:
    """Return a URL as GRUB writes it: (http,server:port)/path."""
    place = boot_files.parse_url(url)
    return boot_files.quote_for_grub(f"({place.scheme},{place.server})/{place.path}" if place else url)


def _fill_in(arguments: str, mac: str) -> str:
    return arguments.replace(boot_files.OWN_MAC, mac)


def _write_label(kernel: str) -> str:
    """
    :param kernel: the word for a kernel of Linux, whatever its file is called.
    """
    lines = ("DEFAULT ingot", "PROMPT 0", "TIMEOUT 1", "LABEL ingot", f"{kernel} {{kernel}}", "INITRD {initrds}")
    return "\n".join([*lines, "APPEND {arguments}", ""])


# A firmware whose loader exits shows its menu, and tries no further boot device. So GRUB starts the loader on the disk.
_GRUB_DISK = """set loader=/EFI/BOOT/BOOTX64.EFI
if [ "$grub_cpu" = arm64 ]; then set loader=/EFI/BOOT/BOOTAA64.EFI; fi
if search --no-floppy --set=root --file $loader; then chainloader $loader; boot; fi
exit
"""

LOADERS = {
    "ipxe": Loader(
        # A firmware that cannot start the disk itself gets it back with exit, and tries its next boot device.
        disk="#!ipxe\nsanboot --no-describe --drive 0x80 || exit\n",
        # UEFI kernels find their initial ramdisk by its name.
        template="#!ipxe\nkernel {kernel} {arguments} {names}\ninitrd {initrds}\nboot\n",
        write_file=str,
        write_arguments=lambda arguments, _mac: arguments,
        between="\ninitrd ",
    ),
    "grub": Loader(
        disk=_GRUB_DISK,
        template="linux {kernel} {arguments}\ninitrd {initrds}\nboot\n",
        write_file=_write_device,
        write_arguments=lambda arguments, mac: boot_files.quote_arguments(_fill_in(arguments, mac)),
        between=" ",
    ),
    "pxelinux": Loader(
        disk="DEFAULT disk\nPROMPT 0\nTIMEOUT 1\nLABEL disk\nLOCALBOOT -1\n",
        template=_write_label("LINUX"),
        write_file=str,
        write_arguments=_fill_in,
        between=",",
    ),
    # Petitboot looks at the disks itself, and takes a label without a kernel for something that it can boot.
    "petitboot": Loader(
        disk="# from disk\n",
        template=_write_label("KERNEL"),
        write_file=str,
        write_arguments=_fill_in,
        between="",
    ),
}
