"""Verifies images that others publish by the checksum files beside them, in the forms that these have.

A file ``NAME.sha256`` has the sum of ``NAME``, alone or as ``sha256sum`` writes it; the name in it may be that of the
computer on which it was built. A file such as ``SHA256SUMS`` has a line for each file.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ingot.image.builds import BuildError

_ALGORITHMS = {"sha256": 64, "sha512": 128}
"""Digits of the sums; MD5 is none that proves anything."""
_LIST = re.compile(r"(sha(?:256|512))sums?(?:\.txt)?", re.IGNORECASE)
_LINE = re.compile(r"([0-9a-fA-F]+)(?:\s+\*?(\S.*))?")
_LARGEST = 2**20

PAIRS = ((".kernel", ".initramfs"), (".vmlinuz", ".initramfs"), (".vmlinuz", ".gz"), ("vmlinuz", "initrd.img"))
"""How kernels and their ramdisks end: of diskimage-builder, of TinyIPA, of Ingot."""


class Check(NamedTuple):
    """What is known of a file.

    :param fault: None: it is what it should be.
    """

    name: str
    fault: str | None


class _Sum(NamedTuple):
    algorithm: str
    digits: str
    source: str


def verify(directory: Path) -> list[Check]:
    """Compare all files of a directory with the checksum files in it.

    :raises BuildError: it has no checksum file, or one that cannot be read.
    """
    sums = dict(_read_all(directory))
    if not sums:
        raise BuildError(
            f"{directory} has no manifest of ingot-image, and no checksum file: NAME.sha256, NAME.sha512, SHA256SUMS"
        )
    files = {path.name for path in directory.iterdir() if path.is_file() and not _is_list(path)}
    return [Check(name, _find_fault(directory / name, sums.get(name))) for name in sorted(files | sums.keys())]


def list_pairs(names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield kernels and ramdisks that belong together."""
    for kernel, ramdisk in PAIRS:
        for name in sorted(names):
            other = name.removesuffix(kernel) + ramdisk
            if name.endswith(kernel) and other in names:
                yield name, other


def _is_list(path: Path) -> bool:
    return path.suffix[1:] in _ALGORITHMS or _LIST.fullmatch(path.name) is not None


def _read_all(directory: Path) -> Iterator[tuple[str, _Sum]]:
    for path in sorted(path for path in directory.iterdir() if path.is_file() and _is_list(path)):
        if listed := _LIST.fullmatch(path.name):
            for digits, name in _read(path, listed[1].lower()):
                if not name or "/" in name:
                    raise BuildError(f"{path}: {name!r} is no name of a file beside it")
                yield name, _Sum(listed[1].lower(), digits, path.name)
            continue
        algorithm, lines = path.suffix[1:], _read(path, path.suffix[1:])
        if len(lines) != 1:
            raise BuildError(f"{path} has {len(lines)} sums, and should have that of {path.stem}")
        yield path.stem, _Sum(algorithm, lines[0][0], path.name)


def _read(path: Path, algorithm: str) -> list[tuple[str, str]]:
    """Return the sums of a checksum file, with the names of what they are for."""
    if path.stat().st_size > _LARGEST:
        raise BuildError(f"{path} is too large for a checksum file")
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if not match or len(match[1]) != _ALGORITHMS[algorithm]:
            raise BuildError(
                f"{path}: {line[:100]!r} is no {algorithm} sum of {_ALGORITHMS[algorithm]} hexadecimal digits"
            )
        found.append((match[1].lower(), (match[2] or "").removeprefix("./")))
    return found


def _find_fault(path: Path, known: _Sum | None) -> str | None:
    if known is None:
        return "no checksum file has its sum"
    if not path.is_file():
        return f"it is missing, and {known.source} has its sum"
    with path.open("rb") as file:
        found = hashlib.file_digest(file, known.algorithm).hexdigest()
    return None if found == known.digits else f"its {known.algorithm} is {found}; {known.source} has {known.digits}"
