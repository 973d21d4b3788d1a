"""What the boot loader on an ISO image starts: the kernel arguments of its configuration (GRUB, ISOLINUX).

The agent that it starts finds settings on the image, too.
"""

import configparser
import io
import re
import shlex
from pathlib import Path

import pycdlib
from pycdlib.pycdlibexception import PyCdlibException

from ingot.rack.boot_files import parse_arguments

# Where loaders have their configuration, as Rock Ridge or Joliet names and as names of plain ISO 9660.
_CONFIGURATIONS = (
    "/boot/grub/grub.cfg",
    "/EFI/BOOT/grub.cfg",
    "/EFI/boot/grub.cfg",
    "/EFI/debian/grub.cfg",
    "/isolinux/isolinux.cfg",
    "/isolinux.cfg",
)
_SETTINGS = "/etc/ironic-python-agent.d/ingot.conf"
_NAMES = ("rr_path", "joliet_path")
_KERNEL_LINE = re.compile(r"^\s*(linux(?:efi|16)?\s+\S+|append)\s+(.*)$", re.IGNORECASE | re.MULTILINE)


class IsoError(Exception):
    """An image is no ISO 9660, or nothing on it boots."""


def read_arguments(path: Path) -> dict[str, str]:
    """Return the arguments with which the image's loader starts its first kernel.

    :raises IsoError: there is no loader with a configuration.
    """
    image = pycdlib.PyCdlib()
    try:
        image.open(str(path))
    except (PyCdlibException, OSError) as error:
        raise IsoError(f"no ISO 9660 image: {error}") from error
    try:
        texts = filter(None, (_read(image, name) for name in _CONFIGURATIONS))
        for text in texts:
            if found := _KERNEL_LINE.search(text):
                return parse_arguments(_split(found[1], found[2]))
    finally:
        image.close()
    raise IsoError("none of the loaders' configurations starts a kernel")


def _split(command: str, arguments: str) -> list[str]:
    """Return the words of a line: GRUB has quotation marks, as a shell; ISOLINUX has none."""
    if command.lower() == "append":
        return arguments.split()
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise IsoError(f"{command} {arguments}: {error}") from error


def read_settings(path: Path) -> dict[str, str]:
    """Return what the agent would find in its configuration on the image, as kernel arguments."""
    image = pycdlib.PyCdlib()
    image.open(str(path))
    try:
        options = configparser.ConfigParser(interpolation=None)
        options.read_string(_read(image, _SETTINGS) or "")
        return {f"ipa-{name.replace('_', '-')}": value for name, value in options.defaults().items()}
    finally:
        image.close()


def _read(image: pycdlib.PyCdlib, name: str) -> str | None:
    plain = f"{name.upper()};1"
    for where, path in (*((kind, name) for kind in _NAMES), ("iso_path", plain)):
        content = io.BytesIO()
        try:
            image.get_file_from_iso_fp(content, **{where: path})
        except PyCdlibException:
            continue
        return content.getvalue().decode(errors="replace")
    return None
