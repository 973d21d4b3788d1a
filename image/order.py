"""What a ramdisk is to be made of: a profile, an architecture, and what an operator adds."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from ingot.image.profiles import Profile

SUITE = "bookworm"
"""The release of Debian; the agent's packages are those for its Python."""


class Architecture(NamedTuple):
    """A kind of processor.

    :param debian: its name in Debian; ``cpu_arch``: in nodes' properties.
    :param grub: the package with the signed GRUB.
    :param console: of the serial line that a server has.
    """

    debian: str
    cpu_arch: str
    grub: str
    console: str

    @property
    def platforms(self) -> list[str]:
        """Names of platforms whose Python wheels run there."""
        return [f"{kind}_{self.cpu_arch}" for kind in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]


ARCHITECTURES = {
    "amd64": Architecture("amd64", "x86_64", "grub-efi-amd64-signed", "ttyS0"),
    "arm64": Architecture("arm64", "aarch64", "grub-efi-arm64-signed", "ttyAMA0"),
}


@dataclass(frozen=True)
class ExtraFile:
    """A file that an operator adds.

    :ivar place: its absolute path in the ramdisk.
    """

    place: str
    content: bytes = field(repr=False)
    mode: int = 0o644


@dataclass(frozen=True)
class Order:
    """What is to be built.

    :ivar arguments: of the kernel on the ISO image.
    :ivar mirrors: addresses or lines of sources.list; none: Debian's own servers.
    :ivar media: whether firmware is to boot from it: an ESP and an ISO image.
    """

    profile: Profile
    architecture: Architecture
    arguments: str
    packages: tuple[str, ...] = ()
    files: tuple[ExtraFile, ...] = ()
    mirrors: tuple[str, ...] = ()
    media: bool = True

    def fingerprint(self, sources: str) -> str:
        """Return a short hash by which a result is found again.

        :param sources: the hash of the builder.
        """
        files = [(file.place, file.mode, hashlib.sha256(file.content).hexdigest()) for file in self.files]
        words = [sources, SUITE, asdict(self.profile), self.architecture, self.packages, files, self.mirrors]
        text = json.dumps([*words, self.arguments, self.media], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
