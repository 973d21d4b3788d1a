"""The deploy ramdisk: Debian packages, a kernel, ironic-python-agent, and an init script that starts it.

Its directory has ``vmlinuz``, ``initrd.img``, ``manifest.json`` (what is in it), ``system.tar`` (modules and tools for
images that boot with the same kernel) and ``loaders`` (Debian's signed shim and GRUB, placed as in its ``/usr/lib``).
"""

import json
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from ramdisk import modules
from ramdisk.builds import (
    HERE,
    BuildError,
    build_once,
    fingerprint,
    pack,
    read_list,
    run,
    settle_times,
    sha256,
    sources,
)

SUITE = "bookworm"
ARCHITECTURE = "amd64"
PYTHON = "3.11"
KERNEL, RAMDISK, MANIFEST, SYSTEM = "vmlinuz", "initrd.img", "manifest.json", "system.tar"
SHIM, GRUB = "loaders/shim/shimx64.efi.signed", "loaders/grub/x86_64-efi-signed/grubx64.efi.signed"

_AGENT = "opt/ipa"
_EXTENSIONS = HERE.parent / "agent-extensions"
_ENTRY_POINTS = "ironic_python_agent.extensions"
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_NOT_UNPACKED = ("doc", "info", "locale", "man")
_OVERLAY = {
    "init": "init",
    "dhcp-event": "etc/dhcp-event",
    "poweroff": "usr/local/sbin/poweroff",
    "reboot": "usr/local/sbin/reboot",
    "power-button": "etc/acpi/PWRF/00000080",
    "agent.conf": "etc/ironic-python-agent.d/agent.conf",
}
_TOOLS_OF_IMAGES = ("usr/bin/busybox", "usr/sbin/mdadm")


def build(directory: Path) -> Path:
    """Return the directory of the ramdisk that these sources describe, built below ``directory`` if it is not there.

    :raises BuildError: a tool failed; packages or the package index cannot be reached.
    """
    files = sources("builds.py", "deploy.py", "modules.py", "*.txt", "files/deploy/*")
    extensions = sorted([*_EXTENSIONS.glob("*.toml"), *_EXTENSIONS.glob("*/*.py")])
    key = fingerprint([*files, *extensions], SUITE, ARCHITECTURE)
    return build_once(directory / f"deploy-{key}", _build)


def _build(scratch: Path, result: Path) -> None:
    root = scratch / "root"
    _install_debian(root)
    version = _unpack_kernel(root, result)
    _unpack_loaders(root, result)
    _install_agent(root)
    manifest = _manifest(root, version)
    _overlay(root)
    _save_tools(root, version, result / SYSTEM)
    _prune(root)
    pack(root, result / RAMDISK)
    manifest["sha256"] = {name: sha256(result / name) for name in (KERNEL, RAMDISK, SYSTEM, SHIM, GRUB)}
    (result / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def _install_debian(root: Path) -> None:
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _NOT_UNPACKED]
    run(
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--architectures={ARCHITECTURE}",
        f"--include={','.join(read_list(HERE / 'packages.txt'))}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        '--aptopt=Apt::Install-Recommends "false"',
        "--dpkgopt=force-unsafe-io",
        *excluded,
        f"--customize-hook={HERE / 'files/deploy/fetch-kernel'}",
        SUITE,
        root,
    )


def _unpack_kernel(root: Path, result: Path) -> str:
    """Unpack the kernel's modules into the root, and the kernel where the results go; return its version."""
    packages = list((root / "var/tmp").glob("linux-image-*.deb"))
    if len(packages) != 1:
        raise BuildError(
            f"the kernel's package brought {[package.name for package in packages]} instead of one package"
        )
    unpacked = root.parent / "kernel"
    run("dpkg-deb", "-x", packages[0], unpacked)
    packages[0].unlink()
    (kernel,) = (unpacked / "boot").glob("vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    shutil.copyfile(kernel, result / KERNEL)
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    shutil.move(unpacked / "lib/modules" / version, root / "usr/lib/modules" / version)
    run("chroot", root, "depmod", version)
    modules.keep_only(root / "usr/lib/modules" / version, read_list(HERE / "modules.txt"))
    run("chroot", root, "depmod", version)
    return version


def _unpack_loaders(root: Path, result: Path) -> None:
    unpacked = root.parent / "loaders"
    for package in ("shim-signed", "grub-efi-amd64-signed"):
        (path,) = (root / "var/tmp").glob(f"{package}_*.deb")
        run("dpkg-deb", "-x", path, unpacked)
        path.unlink()
    for name in (SHIM, GRUB):
        (result / name).parent.mkdir(parents=True)
        shutil.copyfile(unpacked / "usr/lib" / name.removeprefix("loaders/"), result / name)


def _install_agent(root: Path) -> None:
    """Install from outside: the ramdisk needs neither pip nor a compiler nor, while it is built, a network."""
    platforms = [f"--platform={name}" for name in _PLATFORMS]
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--require-hashes", "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp"),
        *platforms,
        f"--target={root / _AGENT}",
        f"--requirement={HERE / 'agent-requirements.txt'}",
    )
    _install_extensions(root / _AGENT)
    # Not PYTHONPATH: the agent starts programs with an empty environment.
    (root / "usr/lib/python3/dist-packages/agent.pth").write_text(f"/{_AGENT}\n")
    compiled = ["/usr/lib/python3", f"/usr/lib/python{PYTHON}", f"/{_AGENT}"]
    # Compiled code that does not depend on the times of files, and so not on when this was built.
    run("chroot", root, "python3", "-m", "compileall", "-q", "-f", "--invalidation-mode=unchecked-hash", *compiled)


def _install_extensions(place: Path) -> None:
    """Install our extensions of the agent as pip would, which would have to fetch a build system for it."""
    project = tomllib.loads((_EXTENSIONS / "pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    for package in _EXTENSIONS.glob("*/__init__.py"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package.parent, place / package.parent.name, ignore=ignored)
    about = place / f"{name}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n")
    points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"][_ENTRY_POINTS].items())
    (about / "entry_points.txt").write_text(f"[{_ENTRY_POINTS}]\n{points}")


def _manifest(root: Path, kernel: str) -> dict[str, object]:
    packages = run("chroot", root, "dpkg-query", "-W", "-f", "${Package} ${Version}\n").splitlines()
    wheels = sorted(path.name.removesuffix(".dist-info") for path in (root / _AGENT).glob("*.dist-info"))
    return {
        "suite": SUITE,
        "kernel": kernel,
        "debian": dict(line.split() for line in packages),
        "python": dict(name.rsplit("-", 1) for name in wheels),
    }


def _overlay(root: Path) -> None:
    for name, place in _OVERLAY.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "files/deploy" / name, root / place)


def _save_tools(root: Path, kernel: str, archive: Path) -> None:
    """Keep modules and a few tools with their libraries: an image needs them to find its root on an array."""
    libraries = run("chroot", root, "ldd", *(f"/{tool}" for tool in _TOOLS_OF_IMAGES)).split()
    paths = {_real(root, word) for word in libraries if word.startswith("/") and not word.endswith(":")}
    settle_times(root / "usr/lib/modules")
    _tar(root, sorted({*paths, *_TOOLS_OF_IMAGES, f"usr/lib/modules/{kernel}"}), archive)


def _real(root: Path, path: str) -> str:
    """Return where a library really is: ``/lib`` is a link."""
    return str(root.joinpath(path.lstrip("/")).parent.resolve().relative_to(root.resolve()) / Path(path).name)


def _tar(root: Path, names: Sequence[str], archive: Path) -> None:
    options = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--dereference")
    run("tar", *options, "-C", root, "-cf", archive, *names)


def _prune(root: Path) -> None:
    for pattern in read_list(HERE / "prune.txt"):
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    # A machine makes its own identity.
    (root / "etc/machine-id").write_text("")
