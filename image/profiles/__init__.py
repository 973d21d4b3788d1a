"""What ramdisks are for: one file for each profile says which kernel, drivers, firmware and programs it has."""

import dataclasses
import functools
import tomllib
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Profile:
    """A kind of machine, and what its ramdisk has.

    :ivar memory_mib: what a machine needs to boot it.
    :ivar components: of Debian's archive.
    :ivar packages: of Debian that are installed.
    :ivar firmware: packages of Debian of whose files those come along that a module names.
    :ivar modules: names, or folders of the kernel that end with a slash.
    :ivar modules_of: further ones by Debian's architecture; ``kernel``: the package by architecture.
    :ivar prune: patterns of paths below the root that are removed.
    """

    name: str
    description: str
    memory_mib: int
    components: tuple[str, ...]
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    prune: tuple[str, ...]
    kernel: dict[str, str]
    modules_of: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    firmware: tuple[str, ...] = ()


_ADDED = ("packages", "modules", "prune", "firmware")
"""What a profile has beside what the one has that it extends; the rest replaces it."""


@functools.cache
def load_all() -> dict[str, Profile]:
    """Return the profiles by their names."""
    return {path.stem: Profile(name=path.stem, **_read(path.stem)) for path in sorted(_HERE.glob("*.toml"))}


def _read(name: str) -> dict[str, Any]:
    """Return the fields of a profile, with those of the one that it extends."""
    fields = tomllib.loads((_HERE / f"{name}.toml").read_text())
    base = _read(fields.pop("extends")) if "extends" in fields else {}
    added = {key: (*base.get(key, ()), *fields.get(key, ())) for key in _ADDED}
    return {**base, **fields, **added}
