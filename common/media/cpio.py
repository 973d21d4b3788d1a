"""Archives that Linux unpacks over its initial ramdisk, in the form "newc" of cpio (initramfs buffer format)."""

from collections.abc import Mapping
from pathlib import PurePosixPath

_MAGIC = b"070701"
_FOLDER, _FILE = 0o040755, 0o100644
_END = "TRAILER!!!"


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of files by their paths, and of the folders that they are in; all of it is root's."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents if parent.name}
    entries = [*((name, _FOLDER, b"") for name in sorted(folders)), *((name, _FILE, files[name]) for name in files)]
    return b"".join(_write(*entry, number) for number, entry in enumerate([*entries, (_END, 0, b"")], start=1))


def _write(name: str, mode: int, content: bytes, number: int) -> bytes:
    given = name.encode() + b"\0"
    # inode, mode, user, group, links, time, size, device and node in two parts each, length of the name, checksum
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(given), 0)
    header = _MAGIC + b"".join(b"%08X" % one for one in numbers)
    return _pad(header + given) + _pad(content)


def _pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
