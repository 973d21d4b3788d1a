"""The boot loaders that firmware starts from the network: files of Debian's packages, and which machine gets which.

Clients differ by option 93 of DHCP, the architecture of their firmware (RFC 4578; the codes are those that IANA
keeps for RFC 5970). ingot-boot serves the files by TFTP, the API by HTTP.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors

IPXE, GRUB = "ipxe", "grub"
"""The two chains: [boot_services] loader."""

SCRIPT = "boot.ipxe"
"""What iPXE asks the API for first."""


class File(NamedTuple):
    """A file of a loader.

    :param option: group and name of the option with the directory that it is in.
    :param path: its place there.
    :param package: of Debian.
    """

    option: tuple[str, str]
    path: str
    package: str


_IPXE = ("boot_services", "ipxe_path")
_SIGNED = ("deploy", "signed_loader_path")

FILES: Mapping[str, File] = {
    "undionly.kpxe": File(_IPXE, "undionly.kpxe", "ipxe"),
    "snponly.efi": File(_IPXE, "snponly.efi", "ipxe"),
    "ipxe.efi": File(_IPXE, "ipxe.efi", "ipxe"),
    "snponly-i386.efi": File(_IPXE, "snponly-i386.efi", "ipxe"),
    "snponly-arm64.efi": File(_IPXE, "snponly-arm64.efi", "ipxe"),
    "bootx64.efi": File(_SIGNED, "shim/shimx64.efi.signed", "shim-signed"),
    "grubx64.efi": File(_SIGNED, "grub/x86_64-efi-signed/grubnetx64.efi.signed", "grub-efi-amd64-signed"),
    "bootaa64.efi": File(_SIGNED, "shim/shimaa64.efi.signed", "shim-signed:arm64"),
    "grubaa64.efi": File(_SIGNED, "grub/arm64-efi-signed/grubnetaa64.efi.signed", "grub-efi-arm64-signed"),
}
"""By the name under which they are served. A shim asks for the GRUB of its directory."""


class Client(NamedTuple):
    """A type of firmware that boots from the network.

    :param tag: its name in configurations.
    :param codes: of option 93.
    :param files: what it starts, by chain; a chain that is not there starts as iPXE's.
    :param by_http: whether it fetches that by HTTP, as UEFI HTTP boot does.
    """

    tag: str
    codes: tuple[int, ...]
    files: Mapping[str, str]
    by_http: bool = False

    def file(self, chain: str) -> str:
        """Return the name of the file that the firmware starts."""
        return self.files.get(chain, self.files[IPXE])


_X86_64 = {IPXE: "snponly.efi", GRUB: "bootx64.efi"}
_ARM64 = {IPXE: "snponly-arm64.efi", GRUB: "bootaa64.efi"}

CLIENTS = (
    Client("bios", (0,), {IPXE: "undionly.kpxe"}),
    Client("efi-i386", (6,), {IPXE: "snponly-i386.efi"}),
    Client("efi-x86-64", (7, 9), _X86_64),
    Client("efi-arm64", (11,), _ARM64),
    Client("http-x86-64", (16,), {IPXE: "ipxe.efi"}, by_http=True),
    Client("http-arm64", (19,), {IPXE: "snponly-arm64.efi"}, by_http=True),
)


def locate(conf: cfg.ConfigOpts, name: str) -> Path:
    """Return where this host has a loader.

    :param name: one of :data:`FILES`.
    """
    file = FILES[name]
    group, option = file.option
    return Path(conf[group][option], file.path)


def find(conf: cfg.ConfigOpts, needed: Iterable[str], others: Iterable[str]) -> dict[str, Path]:
    """Return the places of loaders on this host; of others than the needed ones, those that there are.

    :raises ConfigurationError: a needed one is missing; the message names the packages to install.
    """
    places = {name: locate(conf, name) for name in needed}
    if missing := [name for name, place in places.items() if not place.is_file()]:
        raise errors.ConfigurationError(describe_missing(conf, missing))
    rest = {name: locate(conf, name) for name in others}
    return places | {name: place for name, place in rest.items() if place.is_file()}


def describe_missing(conf: cfg.ConfigOpts, names: Iterable[str]) -> str:
    """Return what to do about loaders that this host lacks."""
    names = list(names)
    packages = ", ".join(sorted({FILES[name].package for name in names}))
    options = " and ".join(sorted({"[{}] {}".format(*FILES[name].option) for name in names}))
    files = ", ".join(str(locate(conf, name)) for name in names)
    return f"Boot loaders are missing: {files}. Install Debian's {packages}, or see {options}."
