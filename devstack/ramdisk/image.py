"""The test image: a disk for BIOS and UEFI with the smallest system that can say from where it runs.

Its directory has ``image.raw``, ``image.qcow2`` and ``manifest.json`` (marker and SHA-256 sums). The system is the
kernel of the agent's ramdisk with an init script; its root, a partition of its own, holds the marker. On an array it
finds that root only by putting the array together. The loader for UEFI is signed, as the kernel is, for secure boot.
"""

import json
import shutil
import uuid
from pathlib import Path

from ingot.common.media.loaders import LOADERS
from ingot.image import ramdisk as builder
from ingot.image.builds import EPOCH, BuildError, build_once, fingerprint, pack, run, sha256, sources

HERE = Path(__file__).parent
RAW, QCOW2, MANIFEST = "image.raw", "image.qcow2", "manifest.json"

_MEBIBYTE = 2**20
_SECTOR = 512
# Each partition begins a MiB after the one before has ended.
_BOOT_AT, _BOOT_SIZE = 1 * _MEBIBYTE, 64 * _MEBIBYTE
_ROOT_AT, _ROOT_SIZE = 66 * _MEBIBYTE, 16 * _MEBIBYTE
_SIZE = 84 * _MEBIBYTE

_COMMAND_LINE = "console=ttyS0,115200 quiet no_timer_check mitigations=off"
"""Without the check a kernel does not panic where the ticks of an emulated clock come late; see the rack, too."""
_TOOLS = ("usr/bin/busybox", "usr/sbin/mdadm")
_LOADER = LOADERS["x86_64"]
_BIOS_LOADER = Path("/usr/lib/syslinux/mbr/gptmbr.bin")
_FOLDERS = ("EFI", "EFI/BOOT", "EFI/debian", "syslinux")
_TEXTS = {
    "EFI/debian/grub.cfg": f"linux /vmlinuz {_COMMAND_LINE}\ninitrd /initrd.img\nboot\n",  # where Debian's GRUB looks
    "syslinux/syslinux.cfg": (
        f"DEFAULT ingot\nLABEL ingot\n  LINUX /vmlinuz\n  INITRD /initrd.img\n  APPEND {_COMMAND_LINE}\n"
    ),
}


def build(directory: Path, ramdisk: Path) -> Path:
    """Return the directory of the image for a ramdisk, built below ``directory`` if it is not there.

    :raises BuildError: a tool failed.
    """
    key = fingerprint(sources(HERE, "image.py", "files/image/*"), ramdisk.name)
    return build_once(
        directory / f"image-{key}", lambda scratch, result: _build(scratch, result, ramdisk, f"ingot-{key}")
    )


def _build(scratch: Path, result: Path, ramdisk: Path, marker: str) -> None:
    disk = result / RAW
    with disk.open("wb") as file:
        file.truncate(_SIZE)
    _partition(disk, marker)
    _put(_boot_partition(scratch, ramdisk), disk, _BOOT_AT)
    _put(_root_partition(scratch, marker), disk, _ROOT_AT)
    run("syslinux", "--install", "--directory", "syslinux", "--offset", str(_BOOT_AT), disk)
    run("qemu-img", "convert", "-c", "-O", "qcow2", disk, result / QCOW2)
    sums = {name: sha256(result / name) for name in (RAW, QCOW2)}
    (result / MANIFEST).write_text(json.dumps({"marker": marker, "sha256": sums}, indent=2) + "\n")


def _partition(disk: Path, marker: str) -> None:
    def place(start: int, size: int) -> str:
        return f"{start // _SECTOR}:{(start + size) // _SECTOR - 1}"

    identity = [str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{part}.{marker}")) for part in ("disk", "boot", "root")]
    run(
        "sgdisk",
        *(f"--new=1:{place(_BOOT_AT, _BOOT_SIZE)}", "--typecode=1:ef00", f"--partition-guid=1:{identity[1]}"),
        *(f"--new=2:{place(_ROOT_AT, _ROOT_SIZE)}", "--typecode=2:8300", f"--partition-guid=2:{identity[2]}"),
        *("--attributes=1:set:2", f"--disk-guid={identity[0]}", disk),  # the attribute by which a BIOS finds it
    )
    with disk.open("r+b") as file:
        file.write(_BIOS_LOADER.read_bytes())


def _boot_partition(scratch: Path, ramdisk: Path) -> Path:
    volume = scratch / "boot.img"
    with volume.open("wb") as file:
        file.truncate(_BOOT_SIZE)
    geometry = ("-h", "255", "-s", "63", "-H", str(_BOOT_AT // _SECTOR), "-T", str(_BOOT_SIZE // _SECTOR))
    run("mformat", "-i", volume, "-F", "-c", "1", *geometry, "-N", "696e676f", "-v", "INGOT", "::")
    run("mmd", "-i", volume, *(f"::{folder}" for folder in _FOLDERS))
    initrd = scratch / "initrd.img"
    pack(_system(scratch / "system", ramdisk), initrd)
    files = {
        "vmlinuz": ramdisk / builder.KERNEL,
        "initrd.img": initrd,
        "EFI/BOOT/BOOTX64.EFI": ramdisk / builder.LOADERS / _LOADER.shim,
        "EFI/BOOT/grubx64.efi": ramdisk / builder.LOADERS / _LOADER.grub,
    }
    for name, source in files.items():
        run("mcopy", "-i", volume, source, f"::{name}")
    for name, text in _TEXTS.items():
        run("mcopy", "-i", volume, "-", f"::{name}", content=text.encode())
    return volume


def _system(tree: Path, ramdisk: Path) -> Path:
    for folder in ("dev", "etc/acpi/PWRF", "mnt", "proc", "sys", "usr/lib64", "usr/sbin"):
        (tree / folder).mkdir(parents=True)
    _copy_tools(tree, ramdisk)
    for link in ("bin", "lib", "lib64", "sbin"):
        (tree / link).symlink_to(f"usr/{link}")
    shutil.copy(HERE / "files/image/init", tree / "init")
    shutil.copy(HERE / "files/image/power-button", tree / "etc/acpi/PWRF/00000080")
    return tree


def _copy_tools(tree: Path, ramdisk: Path) -> None:
    """Copy modules and a few tools with their libraries: an image needs them to find its root on an array."""
    root = tree.parent / "ramdisk"
    root.mkdir()
    unpack = 'zstd -q -d -c "$1" | cpio --quiet --extract --make-directories --directory "$2"'
    run("bash", "-c", f"set -o pipefail; {unpack}", "unpack", ramdisk / builder.RAMDISK, root)
    libraries = run("chroot", root, "ldd", *(f"/{tool}" for tool in _TOOLS)).split()
    paths = {_real(root, word) for word in libraries if word.startswith("/") and not word.endswith(":")}
    for path in sorted({*paths, *_TOOLS}):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, tree / path)
    shutil.copytree(root / "usr/lib/modules", tree / "usr/lib/modules")


def _real(root: Path, path: str) -> str:
    """Return where a library really is: ``/lib`` is a link."""
    return str(root.joinpath(path.lstrip("/")).parent.resolve().relative_to(root.resolve()) / Path(path).name)


def _root_partition(scratch: Path, marker: str) -> Path:
    volume, text = scratch / "root.img", scratch / "marker"
    text.write_text(f"{marker}\n")
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"file-system.{marker}"))
    options = ("-L", "ingot-root", "-U", identity, "-E", f"hash_seed={identity},root_owner=0:0")
    time = {"E2FSPROGS_FAKE_TIME": str(EPOCH)}
    run("mke2fs", "-q", "-t", "ext4", *options, volume, f"{_ROOT_SIZE // 1024}k", env=time)
    # Not mke2fs -d, which copies the times at which files were made.
    for request in ("mkdir /etc", f"write {text} /etc/marker"):
        run("debugfs", "-w", "-R", request, volume, env=time)
    if run("debugfs", "-R", "cat /etc/marker", volume) != text.read_text():  # it never fails by its status
        raise BuildError(f"debugfs could not write the marker to {volume}")
    return volume


def _put(volume: Path, disk: Path, offset: int) -> None:
    with disk.open("r+b") as file:
        file.seek(offset)
        file.write(volume.read_bytes())
