"""What boot loaders make of their configuration: GRUB, PXELINUX and Petitboot.

Each reads the commands that a configuration for one machine is made of, and stumbles over all others.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urljoin

_DEVICE = re.compile(r"\((http|tftp),([^()]+)\)/(.*)")
_NO_EFFECT = {"echo", "insmod", "set", "sleep"}


class BootError(Exception):
    """The machine cannot boot from the network; the text says at which URL or command."""


@dataclass(frozen=True)
class BootPlan:
    """A kernel to start; ``arguments`` are the ``name=value`` words of its command line."""

    kernel: str
    initrds: tuple[str, ...]
    arguments: dict[str, str]


def parse_arguments(words: list[str]) -> dict[str, str]:
    """Return the kernel arguments of a command line; a word without ``=`` has an empty value."""
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def read_grub(url: str, text: str) -> BootPlan | None:
    """Return what GRUB boots; None when it leaves booting to the firmware.

    :raises BootError: GRUB has no such command, or nothing to boot.
    """
    files: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("if "):
            continue  # about the loader on a disk, which the firmware of this machine finds itself
        try:
            name, *arguments = shlex.split(line, comments=True) or ["echo"]
        except ValueError as error:
            raise BootError(f"{url}: {line}: {error}") from error
        if name == "exit":
            return None
        if name == "boot":
            break
        if name in ("linux", "initrd") and arguments:
            files[name] = arguments
        elif name not in _NO_EFFECT:
            raise BootError(f"{url}: {name}: can't find command")
    if "linux" not in files:
        raise BootError(f"{url}: you need to load the kernel first")
    kernel, *words = files["linux"]
    return BootPlan(
        _read_device(url, kernel),
        tuple(_read_device(url, name) for name in files.get("initrd", ())),
        parse_arguments(words),
    )


def _read_device(url: str, name: str) -> str:
    match = _DEVICE.fullmatch(name)
    if match is None:
        raise BootError(f"{url}: {name}: no such device")
    return f"{match[1]}://{match[2]}/{match[3]}"


def read_labels(url: str, text: str) -> BootPlan | None:
    """Return what PXELINUX and Petitboot boot: the first label with a kernel; None if there is none.

    A name is in capitals, as Petitboot wants it; the rest of its line is the value.
    """
    labels: list[dict[str, str]] = []
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "LABEL":
            labels.append({})
        elif labels and not name.startswith("#"):
            labels[-1][name] = value.strip()
    for label in labels:
        if kernel := label.get("KERNEL") or label.get("LINUX"):
            initrds = (urljoin(url, label["INITRD"]),) if "INITRD" in label else ()
            return BootPlan(urljoin(url, kernel), initrds, parse_arguments(label.get("APPEND", "").split()))
    return None


READERS: dict[str, Callable[[str, str], BootPlan | None]] = {
    "grub": read_grub,
    "pxelinux": read_labels,
    "petitboot": read_labels,
}
"""By loader."""
