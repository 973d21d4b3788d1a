"""What an image has in it that boots a kernel: the kernel, its ramdisk, and what tells GRUB to start them."""

from ingot.common import boot_files
from ingot.common.media import loaders
from ingot.common.media.content import Content, Source

_KERNEL, _RAMDISK = "/boot/kernel", "/boot/ramdisk"


def list_files(kernel: Source, ramdisk: Source, arguments: str) -> dict[str, Source]:
    """Return files by their paths.

    :param arguments: the kernel's.
    """
    quoted = boot_files.quote_arguments(arguments)
    script = f"set timeout=0\nlinux {_KERNEL} {quoted}\ninitrd {_RAMDISK}\nboot\n".encode()
    return {_KERNEL: kernel, _RAMDISK: ramdisk, **dict.fromkeys(loaders.CONFIGURATIONS, Content(script))}
