"""What a TFTP server gives to machines with UEFI: Debian's signed shim and GRUB for the network.

Its directory has ``bootx64.efi``, which a firmware is to start, and ``grubx64.efi``, which that one asks for. They are
of the first release of Debian whose signed GRUB speaks HTTP, whatever release the rest is of.
"""

import shutil
from pathlib import Path

from ingot.image.builds import build_once, fingerprint, run

SUITE = "trixie"

_PACKAGES = ("shim-signed", "grub-efi-amd64-signed")
_FILES = {
    "bootx64.efi": "usr/lib/shim/shimx64.efi.signed",
    "grubx64.efi": "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
}
_SOURCE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {} main\n"
_SETTINGS = """
APT::Architecture "amd64";
APT::Sandbox::User "root";
Dir "{0}";
Dir::Etc::SourceList "{0}/sources.list";
Dir::Etc::SourceParts "-";
Dir::Etc::Parts "-";
Dir::State::status "/dev/null";
"""


def build(directory: Path) -> Path:
    """Return the directory of the loaders, fetched below ``directory`` if they are not there.

    :raises BuildError: packages cannot be reached, or are not signed by Debian.
    """
    return build_once(directory / f"netboot-{fingerprint([Path(__file__)])}", _build)


def _build(scratch: Path, result: Path) -> None:
    """Fetch with an apt that knows nothing of this computer's packages, as those may be of another release."""
    for folder in ("lists/partial", "archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "sources.list").write_text(_SOURCE.format(SUITE))
    settings = scratch / "apt.conf"
    places = f'Dir::State::lists "{scratch}/lists";\nDir::Cache "{scratch}";\n'
    settings.write_text(_SETTINGS.format(scratch) + places)
    own = {"APT_CONFIG": str(settings)}
    run("apt-get", "-q", "update", env=own)
    run("sh", "-c", 'cd "$1" && shift && apt-get -q download "$@"', "sh", scratch, *_PACKAGES, env=own)
    for package in scratch.glob("*.deb"):
        run("dpkg-deb", "-x", package, scratch / "unpacked")
    for name, source in _FILES.items():
        shutil.copyfile(scratch / "unpacked" / source, result / name)
