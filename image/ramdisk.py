"""Builds a ramdisk with its kernel, and the media from which firmware boots it.

A result has ``vmlinuz``, ``initrd.img``, ``loaders`` (Debian's signed shim and GRUB, placed as in its ``/usr/lib``),
``esp.img`` and ``agent.iso`` unless they are not wanted, ``manifest.json`` and ``SHA256SUMS``.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from ingot.common.media import boot_medium, iso, loaders
from ingot.common.media.content import LocalFile
from ingot.image import agent, debian, manifest, modules, own_files
from ingot.image.builds import BuildError, build_once, fingerprint, pack, run, sources
from ingot.image.order import SUITE, Order

KERNEL, RAMDISK, LOADERS, ESP, ISO = "vmlinuz", "initrd.img", "loaders", "esp.img", "agent.iso"

_HERE = Path(__file__).parent
_LABEL = "INGOT_AGENT"
_PIECE = 2**20


def name_result(order: Order) -> str:
    """Return the name of the directory that keeps what is built for an order, by everything that it is made from."""
    patterns = ("*.py", "*.txt", "*.sh", "overlay/*.*", "agent-extensions/*.toml", "agent-extensions/*/*.py")
    made_from = fingerprint([*sources(_HERE, *patterns), *sources(Path(iso.__file__).parent, "*.py")])
    return f"{order.profile.name}-{order.architecture.debian}-{order.fingerprint(made_from)}"


def build(cache: Path, order: Order, command: Sequence[str], fresh: bool = False) -> Path:
    """Return the directory of the ramdisk that is ordered, built below ``cache`` if it is not there.

    :param command: what an operator typed, for the manifest.
    :param fresh: whether it is built although it is there.
    :raises BuildError: a tool is missing or failed; packages or the package index cannot be reached.
    """
    place = cache / name_result(order)
    return build_once(place, lambda scratch, result: _build(scratch, result, order, command), fresh)


def _build(scratch: Path, result: Path, order: Order, command: Sequence[str]) -> None:
    debian.check_host(order.architecture)
    root = scratch / "root"
    packages = debian.install(root, order)
    downloaded = debian.unpack(packages, scratch / "unpacked")
    shutil.rmtree(packages)
    kernel, drivers = _install_kernel(root, scratch / "unpacked", order, result / KERNEL)
    firmware = modules.keep_firmware(root / "usr/lib/firmware", drivers, scratch / "unpacked/lib/firmware")
    _copy_loaders(scratch / "unpacked/usr/lib", result / LOADERS, order)
    python = agent.install(root, order.architecture)
    facts = {
        "profile": order.profile.name,
        "architecture": order.architecture.debian,
        "cpu_arch": order.architecture.cpu_arch,
        "memory_mib": order.profile.memory_mib,
        "suite": SUITE,
        "agent": python["ironic-python-agent"],
        "kernel": kernel,
        "kernel_arguments": order.arguments,
        "command": list(command),
        "debian": debian.list_packages(root) | downloaded,
        "python": python,
        "modules": sorted(path.name.partition(".")[0] for path in drivers),
        "firmware": firmware,
        "extra_files": sorted(file.place for file in order.files),
    }
    _prune(root, order)
    own_files.install(root)
    own_files.add(root, order.files)
    pack(root, result / RAMDISK)
    if order.media:
        _write_media(result, order)
    manifest.write(result, facts)


def _install_kernel(root: Path, unpacked: Path, order: Order, image: Path) -> tuple[str, list[Path]]:
    """Put the kernel's modules into the root, and the kernel where the results go; return its version and modules."""
    found = list((unpacked / "boot").glob("vmlinuz-*"))
    if len(found) != 1:
        raise BuildError(
            f"{order.profile.kernel[order.architecture.debian]} brought {len(found)} kernels instead of one"
        )
    version = found[0].name.removeprefix("vmlinuz-")
    shutil.copyfile(found[0], image)
    directory = root / "usr/lib/modules" / version
    directory.parent.mkdir(exist_ok=True)
    shutil.move(unpacked / "lib/modules" / version, directory)
    run("depmod", "-b", root, version)
    wanted = (*order.profile.modules, *order.profile.modules_of.get(order.architecture.debian, ()))
    kept = modules.keep_only(directory, wanted)
    run("depmod", "-b", root, version)
    return version, [directory / path for path in kept]


def _copy_loaders(unpacked: Path, place: Path, order: Order) -> None:
    loader = loaders.LOADERS[order.architecture.cpu_arch]
    for name in (loader.shim, loader.grub):
        (place / name).parent.mkdir(parents=True)
        shutil.copyfile(unpacked / name, place / name)


def _prune(root: Path, order: Order) -> None:
    for pattern in order.profile.prune:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    # A machine makes its own identity.
    (root / "etc/machine-id").write_text("")


def _write_media(result: Path, order: Order) -> None:
    esp = loaders.read_esp(result / LOADERS, order.architecture.cpu_arch)
    (result / ESP).write_bytes(b"".join(esp.read(0, esp.measure())))
    files = boot_medium.list_files(
        LocalFile("kernel", result / KERNEL), LocalFile("ramdisk", result / RAMDISK), order.arguments
    )
    image = iso.lay_out(files, esp, _LABEL)
    with (result / ISO).open("wb") as file:
        for at in range(0, image.size, _PIECE):
            file.writelines(image.read(at, min(_PIECE, image.size - at)))
