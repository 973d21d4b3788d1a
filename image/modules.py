"""Kernel modules: those on a list, what they need, and nothing else; and the firmware that they load."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from ingot.image.builds import BuildError, run


def keep_only(directory: Path, names: Iterable[str]) -> list[str]:
    """Remove all modules from a kernel's directory but those named and what they need; return their paths in it.

    :param directory: ``/lib/modules/VERSION`` with the lists that ``depmod`` makes.
    :param names: of modules, or of folders below ``kernel`` that end with a slash.
    :raises BuildError: the kernel has one of them neither as a module nor built in.
    """
    needs = _read_dependencies(directory / "modules.dep")
    built_in = {_name(line) for line in (directory / "modules.builtin").read_text().splitlines()}
    kept: set[str] = set()
    for name in names:
        found = _find(name, needs)
        if not found and _name(name) not in built_in:
            raise BuildError(f"kernel {directory.name} has no module {name}")
        kept.update(found, *(needs[path] for path in found))
    for path in directory.rglob("*.ko*"):
        if str(path.relative_to(directory)) not in kept:
            path.unlink()
    for leftover in ("build", "source"):
        (directory / leftover).unlink(missing_ok=True)
    for folder in sorted((p for p in directory.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            shutil.rmtree(folder)
    return sorted(kept)


def keep_firmware(directory: Path, modules: Iterable[Path], packages: Path) -> list[str]:
    """Copy the firmware that modules name; return the paths of the files in ``directory``.

    :param directory: ``/lib/firmware`` of the ramdisk. :param packages: that of unpacked packages.
    """
    named = run("modinfo", "--field", "firmware", *modules).splitlines() if modules else []
    found = {path for name in set(named) for path in packages.glob(name)}
    for path in sorted(found):
        place = directory / path.relative_to(packages)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)  # what a link leads to, under the link's name
    return sorted(str(path.relative_to(packages)) for path in found)


def _find(name: str, needs: Mapping[str, object]) -> list[str]:
    """Return the paths of the modules that are meant."""
    if name.endswith("/"):
        return [path for path in needs if path.startswith(f"kernel/{name}")]
    return [path for path in needs if _name(path) == _name(name)]


def _read_dependencies(path: Path) -> dict[str, list[str]]:
    """Return the module's paths with those of the modules that each needs, all of them."""
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {module: needed.split() for module, _, needed in lines}


def _name(path: str) -> str:
    """Return a module's name as ``modprobe`` knows it."""
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")
