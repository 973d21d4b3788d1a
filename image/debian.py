"""The Debian system of a ramdisk, made by mmdebstrap; without root in a user namespace."""

import getpass
import importlib.util
import os
import shlex
import shutil
from pathlib import Path

from ingot.image.builds import BuildError, run, search_path
from ingot.image.order import SUITE, Architecture, Order

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "depmod": "kmod",
    "modinfo": "kmod",
    "cpio": "cpio",
    "zstd": "zstd",
    "tar": "tar",
}
"""What a build calls, and the packages of Debian with it."""
_NOT_UNPACKED = ("doc", "info", "locale", "man")
_DOWNLOADS = "var/tmp/packages"
_DOWNLOAD = (Path(__file__).parent / "download.sh").read_text()


def check_host(architecture: Architecture) -> None:
    """Check that this computer can build.

    :raises BuildError: something is missing; the message says how it is installed.
    """
    missing = {package for program, package in _PROGRAMS.items() if not shutil.which(program, path=search_path())}
    if not _KEYRING.exists():
        missing.add("debian-archive-keyring")
    if missing:
        raise BuildError(f"this computer lacks packages: apt-get install {' '.join(sorted(missing))}")
    if importlib.util.find_spec("pip") is None:
        raise BuildError("this Python has no pip, which fetches the agent: python3 -m ensurepip")
    if os.geteuid():
        _check_namespaces()
    _check_emulation(architecture)


def _check_namespaces() -> None:
    """Check that a user without privileges can make a system with several users in it."""
    user = getpass.getuser()
    files = [Path("/etc/subuid"), Path("/etc/subgid")]
    lacks = [
        str(path)
        for path in files
        if not path.exists() or not any(line.startswith((f"{user}:", f"{os.geteuid()}:")) for line in _lines(path))
    ]
    if lacks or not shutil.which("newuidmap", path=search_path()):
        raise BuildError(
            f"without root, {user} needs the package uidmap and ranges of ids in /etc/subuid and /etc/subgid: apt-get "
            f"install uidmap; usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}. Or build as root"
        )


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _check_emulation(architecture: Architecture) -> None:
    own = run("dpkg", "--print-architecture").strip()
    if own == architecture.debian:
        return
    try:
        run("arch-test", architecture.debian)
    except BuildError as error:
        raise BuildError(
            f"this computer ({own}) cannot run programs of {architecture.debian}, which a build has to: "
            "apt-get install arch-test qemu-user-static binfmt-support"
        ) from error


def install(root: Path, order: Order) -> Path:
    """Make the root file system of a Debian system; return the directory of packages that were only downloaded.

    Everything is verified by the keys of Debian's archive.

    :raises BuildError: a mirror cannot be reached, or has no such package.
    """
    archive = root.parent / "root.tar"
    try:
        run(*_command(order), output=archive)
    except BuildError as error:
        said = [line for line in str(error).splitlines() if line.startswith("E: ")] or [str(error)]
        place = ", ".join(order.mirrors) or "Debian's own servers"
        raise BuildError("\n  ".join([f"Debian cannot be installed from {place}:", *said])) from error
    root.mkdir()
    run("tar", "-x", "--no-same-owner", "--exclude=./dev/*", "-C", root, "-f", archive)
    archive.unlink()
    return root / _DOWNLOADS


def _command(order: Order) -> list[str]:
    """Return the command that writes a Debian system, and packages that it only downloads, to its standard output."""
    profile, architecture = order.profile, order.architecture
    words = (profile.kernel[architecture.debian], "shim-signed", architecture.grub, *profile.firmware)
    download = f'chroot "$1" sh -ec {shlex.quote(_DOWNLOAD)} download /{_DOWNLOADS} {shlex.join(words)}'
    return [
        "mmdebstrap",
        f"--mode={'unshare' if os.geteuid() else 'root'}",
        "--variant=minbase",
        "--format=tar",
        f"--architectures={architecture.debian}",
        f"--components={','.join(profile.components)}",
        f"--include={','.join((*profile.packages, *order.packages))}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        '--aptopt=Apt::Install-Recommends "false"',
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _NOT_UNPACKED),
        f"--customize-hook={download}",
        SUITE,
        "-",
        *order.mirrors,
    ]


def run_inside(root: Path, *command: str) -> str:
    """Return the standard output of a command that runs in a root file system.

    :raises BuildError: it failed.
    """
    become_root = ("unshare", "--map-root-user") if os.geteuid() else ()
    return run(*become_root, "chroot", root, *command)


def list_packages(root: Path) -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    lines = run("dpkg-query", "--admindir", root / "var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n").splitlines()
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


def unpack(packages: Path, place: Path) -> dict[str, str]:
    """Unpack all packages of a directory beside each other; return their versions."""
    versions = {}
    for path in sorted(packages.glob("*.deb")):
        run("dpkg-deb", "-x", path, place)
        name, version = run("dpkg-deb", "-W", "--showformat=${Package} ${Version}", path).split()
        versions[name] = version
    return versions
