"""Reads files in the first folder of a FAT file system, FAT12 or FAT16, as virtual sticks and floppy disks have."""

import struct
from collections.abc import Iterator

_ENTRY = 32
_VOLUME, _LONG_NAME = 0x08, 0x0F
_LABEL = slice(43, 54)
_FAT12_CLUSTERS = 4084


class FatError(Exception):
    """An image has no such file system."""


def read_label(image: bytes) -> str:
    """Return the name of the volume."""
    return image[_LABEL].decode(errors="replace").rstrip()


def read_file(image: bytes, name: str) -> bytes | None:
    """Return the content of a file; None: there is none of this name.

    :raises FatError: the image is of another kind.
    """
    if image[510:512] != b"\x55\xaa" or image[54:57] != b"FAT":
        raise FatError("no FAT12 or FAT16 file system")
    sector, cluster, reserved, tables, entries, small = struct.unpack_from("<HBHBHH", image, 11)
    (table_size,) = struct.unpack_from("<H", image, 22)
    sectors = small or struct.unpack_from("<I", image, 32)[0]
    root = (reserved + tables * table_size) * sector
    data = root + entries * _ENTRY
    clusters = (sectors - data // sector) // cluster
    table = image[reserved * sector :]
    for known, start, size in _list_files(image[root:data]):
        if known.lower() == name.lower():
            chain = _follow(table, start, is_small=clusters <= _FAT12_CLUSTERS)
            length = cluster * sector
            return b"".join(image[data + (at - 2) * length :][:length] for at in chain)[:size]
    return None


def _list_files(folder: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield name, first cluster and size of each file."""
    long_name = ""
    for at in range(0, len(folder), _ENTRY):
        entry = folder[at : at + _ENTRY]
        if not entry[0]:
            return
        if entry[11] == _LONG_NAME:
            part = (entry[1:11] + entry[14:26] + entry[28:32]).decode("utf-16-le")
            long_name = part.partition("\0")[0] + long_name
            continue
        if not entry[11] & _VOLUME:
            base, extension = (
                entry[:8].decode("ascii", "replace").rstrip(),
                entry[8:11].decode("ascii", "replace").rstrip(),
            )
            start, size = struct.unpack_from("<HI", entry, 26)
            yield long_name or ".".join(filter(None, (base, extension))), start, size
        long_name = ""


def _follow(table: bytes, start: int, is_small: bool) -> Iterator[int]:
    """Yield the clusters of a file; in FAT12 two entries share three bytes."""
    at, end = start, 0xFF8 if is_small else 0xFFF8
    while 2 <= at < end:
        yield at
        if is_small:
            (pair,) = struct.unpack_from("<H", table, at * 3 // 2)
            at = pair >> 4 if at % 2 else pair & 0xFFF
        else:
            (at,) = struct.unpack_from("<H", table, at * 2)
