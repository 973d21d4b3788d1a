"""Kernel modules: those on a list, what they need, and nothing else."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ramdisk.builds import BuildError


def keep_only(directory: Path, names: Iterable[str]) -> list[str]:
    """Remove all modules from a kernel's directory but those named and what they need; return their paths in it.

    :param directory: ``/lib/modules/VERSION`` with the lists that ``depmod`` makes.
    :raises BuildError: the kernel has one of them neither as a module nor built in.
    """
    needs = _read_dependencies(directory / "modules.dep")
    paths = {_name(path): path for path in needs}
    built_in = {_name(line) for line in (directory / "modules.builtin").read_text().splitlines()}
    kept: set[str] = set()
    for name in names:
        if name in paths:
            kept.update((paths[name], *needs[paths[name]]))
        elif name not in built_in:
            raise BuildError(f"kernel {directory.name} has no module {name}")
    for path in directory.rglob("*.ko*"):
        if str(path.relative_to(directory)) not in kept:
            path.unlink()
    for leftover in ("build", "source"):
        (directory / leftover).unlink(missing_ok=True)
    for folder in sorted((p for p in directory.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            shutil.rmtree(folder)
    return sorted(kept)


def _read_dependencies(path: Path) -> dict[str, list[str]]:
    """Return the module's paths with those of the modules that each needs, all of them."""
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {module: needed.split() for module, _, needed in lines}


def _name(path: str) -> str:
    """Return a module's name as ``modprobe`` knows it."""
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")
