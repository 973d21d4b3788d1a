"""Builds the disk image that the quickstart deploys: a small Linux that a UEFI and a BIOS machine can start.

    python3 -m quickstart.image DIRECTORY     build it there, or find it there, and print where it is

It is put together from Debian packages by an unprivileged user: no loop device, no mount, nothing installed. A FAT file
system in one GPT partition holds a kernel, an initial ramdisk and two boot loaders: systemd-boot for UEFI, SYSLINUX for
BIOS. Only the standard library is used: it runs while the environment is still being installed.
"""

import argparse
import hashlib
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quickstart import cpio, debs, gpt

MARKER = "INGOT-QUICKSTART-BOOTED"
DISK, KERNEL, RAMDISK = "disk.img", "vmlinuz", "initrd.gz"

_NAME = "ingot-quickstart"
# With fewer clusters than a partition of this size has, it would not be FAT32, which UEFI wants on fixed disks.
_SMALLEST_FAT32 = 36 * gpt.MEBIBYTE
_SPARE = 8 * gpt.MEBIBYTE
_INIT = f"""#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox --install -s /bin
export PATH=/bin
firmware=bios
[ -d /sys/firmware/efi ] && firmware=efi
echo "{MARKER} kernel=$(uname -r) firmware=$firmware"
while true; do setsid cttyhack sh; sleep 1; done
"""


class ImageError(Exception):
    """The image cannot be built; the message says why."""


@dataclass(frozen=True)
class Platform:
    """What differs between processor architectures: kernel packages in order of preference, loader, console.

    :param bios: whether there are machines with a BIOS.
    """

    kernels: tuple[str, ...]
    efi_loader: str
    efi_name: str
    console: str
    bios: bool


PLATFORMS: Mapping[str, Platform] = {
    "x86_64": Platform(
        kernels=("linux-image-cloud-amd64", "linux-image-virtual", "linux-image-amd64"),
        efi_loader="systemd-bootx64.efi",
        efi_name="BOOTX64.EFI",
        console="ttyS0,115200",
        bios=True,
    ),
    "aarch64": Platform(
        kernels=("linux-image-cloud-arm64", "linux-image-virtual", "linux-image-arm64"),
        efi_loader="systemd-bootaa64.efi",
        efi_name="BOOTAA64.EFI",
        console="ttyAMA0,115200",
        bios=False,
    ),
}


def build(directory: Path) -> Path:
    """Return a directory with the image, its kernel and its ramdisk; what this same code built before is used again.

    :param directory: keeps the result, downloads while they are needed.
    :raises ImageError: for an unknown architecture or a failing tool. :raises debs.PackageError: a package is missing.
    """
    machine = platform.machine()
    if machine not in PLATFORMS:
        raise ImageError(f"this machine is a {machine}; images can be built on {' and '.join(PLATFORMS)}")
    result = directory / f"image-{machine}-{_fingerprint()}"
    if result.exists():
        return result
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix="building-") as scratch:
        _Builder(PLATFORMS[machine], Path(scratch)).run()
        finished = Path(scratch, "result")
        if not result.exists():
            finished.rename(result)
    return result


def _fingerprint() -> str:
    """Return a digest of the code that builds the image."""
    sources = sorted(Path(__file__).parent / name for name in ("cpio.py", "debs.py", "gpt.py", "image.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


class _Builder:
    """One build, in a scratch directory of its own; the finished files are in ``result``."""

    def __init__(self, target: Platform, scratch: Path) -> None:
        self._target = target
        self._tools = scratch / "tools"
        self._downloads = scratch / "packages"
        self._result = scratch / "result"
        self._result.mkdir()

    def run(self) -> None:
        kernel, busybox = self._packages()
        ramdisk = cpio.ramdisk(("bin", "dev", "proc", "sys"), {"init": _INIT.encode(), "bin/busybox": busybox})
        (self._result / KERNEL).write_bytes(kernel)
        (self._result / RAMDISK).write_bytes(ramdisk)
        partition = self._partition_size(len(kernel) + len(ramdisk))
        boot_code = self._file("usr/lib/syslinux/mbr/gptmbr.bin").read_bytes() if self._target.bios else b""
        gpt.write(self._result / DISK, partition, _NAME, boot_code)
        self._make_file_system(partition)
        self._copy_files()
        if self._target.bios:
            self._install_syslinux()

    def _packages(self) -> tuple[bytes, bytes]:
        """Fetch the packages, unpack the tools; return the kernel and a shell that needs no libraries."""
        source = debs.PackageSource(self._downloads)
        kernel = source.dependency(source.first_known(self._target.kernels), "linux-image-")
        tools = ["mtools", "systemd-boot-efi", *(["syslinux", "syslinux-common"] if self._target.bios else [])]
        packages = [source.first_known([name]) for name in (kernel, "busybox-static", *tools)]
        found = source.download(packages)
        for name in ("busybox-static", *tools):
            debs.unpack(found[name], self._tools)
        busybox = self._file("bin/busybox", "usr/bin/busybox").read_bytes()
        return debs.read_first(found[kernel], "./boot/vmlinuz-"), busybox

    def _file(self, *places: str) -> Path:
        """Return the file at the first of the places where there is one; newer systems have moved some."""
        for place in places:
            if (self._tools / place).exists():
                return self._tools / place
        raise ImageError(f"the unpacked packages have no {' or '.join(places)}")

    @staticmethod
    def _partition_size(content: int) -> int:
        return max(_SMALLEST_FAT32, -(-(content + _SPARE) // gpt.MEBIBYTE) * gpt.MEBIBYTE)

    def _make_file_system(self, size: int) -> None:
        sectors, hidden = str(size // gpt.SECTOR), str(gpt.FIRST_PARTITION // gpt.SECTOR)
        geometry = ["-h", "255", "-s", "63", "-H", hidden]
        self._run("mformat", "-i", self._volume, "-F", "-c", "1", "-T", sectors, *geometry, "-v", "INGOT", "::")

    def _copy_files(self) -> None:
        """Copy kernel, ramdisk, loaders and their configuration onto the file system."""
        command_line = f"console=tty0 console={self._target.console} quiet"
        loader = self._file(f"usr/lib/systemd/boot/efi/{self._target.efi_loader}").read_bytes()
        files = {
            KERNEL: (self._result / KERNEL).read_bytes(),
            RAMDISK: (self._result / RAMDISK).read_bytes(),
            f"EFI/BOOT/{self._target.efi_name}": loader,
            "loader/loader.conf": b"default ingot.conf\ntimeout 0\n",
            "loader/entries/ingot.conf": (
                f"title Ingot quickstart\nlinux /{KERNEL}\ninitrd /{RAMDISK}\noptions {command_line}\n"
            ).encode(),
            "syslinux/syslinux.cfg": (
                f"DEFAULT ingot\nLABEL ingot\n  LINUX /{KERNEL}\n  INITRD /{RAMDISK}\n  APPEND {command_line}\n"
            ).encode(),
        }
        for folder in ("EFI", "EFI/BOOT", "loader", "loader/entries", "syslinux"):
            self._run("mmd", "-i", self._volume, f"::{folder}")
        for path, content in files.items():
            self._run("mcopy", "-i", self._volume, "-", f"::{path}", content=content)

    def _install_syslinux(self) -> None:
        self._run(
            "syslinux", "--install", "--directory", "syslinux", "--offset", str(gpt.FIRST_PARTITION), str(self._disk)
        )

    @property
    def _disk(self) -> Path:
        return self._result / DISK

    @property
    def _volume(self) -> str:
        """How mtools name a file system inside a file."""
        return f"{self._disk}@@{gpt.FIRST_PARTITION}"

    def _run(self, program: str, *arguments: str, content: bytes = b"") -> None:
        environment = {
            "PATH": f"{self._tools}/usr/bin:/usr/bin:/bin",
            "LC_ALL": "C",
            "MTOOLS_SKIP_CHECK": "1",
        }
        done = subprocess.run(
            [str(self._file(f"usr/bin/{program}")), *arguments],
            input=content, capture_output=True, env=environment, check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise ImageError(f"{program} {' '.join(arguments)} failed with status {done.returncode}: {said}")


def main() -> int:
    """Entry point. Exit code 1 with the reason on standard error when there is no image."""
    parser = argparse.ArgumentParser(prog="quickstart.image", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the scratch directory would stay behind
    try:
        print(build(parser.parse_args().directory.absolute()))
    except (ImageError, debs.PackageError, OSError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
