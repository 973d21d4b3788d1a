"""Writes images with a FAT file system: what firmware reads before anything else runs.

The images are small, made in memory, and the same for the same content.
"""

import math
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SECTOR = 512
_ENTRY = 32
_ROOT_ENTRIES = 512
_FAT12_CLUSTERS = 4084
_FAT16_CLUSTERS = 65524
_ARCHIVE, _DIRECTORY, _VOLUME, _LONG_NAME = 0x20, 0x10, 0x08, 0x0F
_DATE = (2000 - 1980) << 9 | 1 << 5 | 1
_FLOPPY_SECTORS = 2880
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~!#$%&()@^`{}'")

_Tree = dict[str, "bytes | _Tree"]


class _Shape(NamedTuple):
    """The dimensions of a file system."""

    cluster: int  # sectors
    clusters: int
    bits: int
    fat: int  # sectors of one table

    @property
    def sectors(self) -> int:
        return 1 + 2 * self.fat + _ROOT_ENTRIES * _ENTRY // _SECTOR + self.clusters * self.cluster

    def count(self, size: int) -> int:
        """Return how many clusters some bytes take."""
        return math.ceil(size / (self.cluster * _SECTOR))


def build(files: Mapping[str, bytes], label: str) -> bytes:
    """Return an image with files, given by their paths with slashes; it is at least as large as a floppy disk.

    :param label: name of the volume, at most 11 characters.
    :raises ValueError: they are more than FAT16 takes, 2 GiB.
    """
    tree = _grow(files)
    shape = _choose_shape(tree)
    writer = _Writer(shape)
    root = _entry(_pad_label(label), _VOLUME, 0, 0) + writer.write_folder(tree, 0)
    if len(root) > _ROOT_ENTRIES * _ENTRY:
        raise ValueError("too many files in the first folder")
    parts = (
        _build_boot_sector(shape, label),
        writer.build_table() * 2,
        root.ljust(_ROOT_ENTRIES * _ENTRY, b"\0"),
        bytes(writer.data).ljust(shape.clusters * shape.cluster * _SECTOR, b"\0"),
    )
    return b"".join(parts)


def _grow(files: Mapping[str, bytes]) -> _Tree:
    tree: _Tree = {}
    for path, content in sorted(files.items()):
        *folders, name = path.strip("/").split("/")
        place = tree
        for folder in folders:
            below = place.setdefault(folder, {})
            if isinstance(below, bytes):
                raise TypeError(f"{folder} is a file and a folder")
            place = below
        place[name] = content
    return tree


def _list_sizes(tree: _Tree) -> Iterator[int]:
    """Yield the bytes of all that takes clusters; of folders, at most."""
    for part in tree.values():
        if isinstance(part, bytes):
            yield len(part)
        else:
            yield (2 + sum(_count_entries(name) for name in part)) * _ENTRY
            yield from _list_sizes(part)


def _choose_shape(tree: _Tree) -> _Shape:
    sizes = list(_list_sizes(tree))
    for cluster in (1, 2, 4, 8, 16, 32, 64):
        needed = sum(math.ceil(size / (cluster * _SECTOR)) for size in sizes)
        clusters = max(needed + 16, (_FLOPPY_SECTORS - 64) // cluster)
        if clusters <= _FAT16_CLUSTERS:
            bits = 12 if clusters <= _FAT12_CLUSTERS else 16
            return _Shape(cluster, clusters, bits, math.ceil((clusters + 2) * bits / 8 / _SECTOR))
    raise ValueError("the files are too large for FAT16")


def _build_boot_sector(shape: _Shape, label: str) -> bytes:
    small = shape.sectors if shape.sectors < 0x10000 else 0
    parameters = struct.pack(
        "<HBHBHHBHHHII",
        *(_SECTOR, shape.cluster, 1, 2, _ROOT_ENTRIES, small, 0xF8, shape.fat, 32, 64, 0),
        0 if small else shape.sectors,
    )
    extended = struct.pack(
        "<BBBI11s8s", 0x80, 0, 0x29, 0x1E607, _pad_label(label), f"FAT{shape.bits}".ljust(8).encode()
    )
    jump = b"\xeb\x3c\x90"
    return (jump + b"INGOT   " + parameters + extended).ljust(510, b"\0") + b"\x55\xaa"


class _Writer:
    """Lays files and folders into clusters, one after the other.

    :ivar data: the clusters so far.
    """

    def __init__(self, shape: _Shape) -> None:
        self._shape = shape
        self._end = 0xFFF if shape.bits == 12 else 0xFFFF
        self._table = [self._end & ~0xFF | 0xF8, self._end]
        self.data = bytearray()

    def write_folder(self, tree: _Tree, start: int) -> bytes:
        """Write all that is in a folder, and return the folder's own content.

        :param start: the first cluster of the folder; 0: it is the root.
        """
        content, taken = b"", set[bytes]()
        for name, part in tree.items():
            short = _shorten(name, taken)
            taken.add(short)
            content += _long_name(name, short)
            if isinstance(part, bytes):
                content += _entry(short, _ARCHIVE, self._write(part), len(part))
            else:
                content += _entry(short, _DIRECTORY, self._write_below(part, start), 0)
        return content

    def _write_below(self, tree: _Tree, parent: int) -> int:
        size = (2 + sum(_count_entries(name) for name in tree)) * _ENTRY
        start = self._write(bytes(size))
        links = _entry(b".".ljust(11), _DIRECTORY, start, 0) + _entry(b"..".ljust(11), _DIRECTORY, parent, 0)
        content = links + self.write_folder(tree, start)
        offset = (start - 2) * self._shape.cluster * _SECTOR
        self.data[offset : offset + len(content)] = content
        return start

    def _write(self, content: bytes) -> int:
        """Write some content; return its first cluster, 0 for none."""
        if not content:
            return 0
        start, count = len(self._table), self._shape.count(len(content))
        self._table += [*range(start + 1, start + count), self._end]
        self.data += content.ljust(count * self._shape.cluster * _SECTOR, b"\0")
        return start

    def build_table(self) -> bytes:
        size = self._shape.fat * _SECTOR
        if self._shape.bits == 16:
            return struct.pack(f"<{len(self._table)}H", *self._table).ljust(size, b"\0")
        pairs = [*self._table, 0] if len(self._table) % 2 else self._table
        packed = b"".join(
            (low | high << 12).to_bytes(3, "little") for low, high in zip(pairs[::2], pairs[1::2], strict=True)
        )
        return packed.ljust(size, b"\0")


def _entry(name: bytes, attributes: int, start: int, size: int) -> bytes:
    """Return the entry of a folder for a name of 11 bytes."""
    return struct.pack("<11sBBBHHHHHHHI", name, attributes, 0, 0, 0, _DATE, _DATE, 0, 0, _DATE, start, size)


def _pad_label(label: str) -> bytes:
    return label.upper().encode("ascii")[:11].ljust(11)


def _is_short(name: str) -> bool:
    stem, _, suffix = name.partition(".")
    return 0 < len(stem) <= 8 and len(suffix) <= 3 and _PLAIN.issuperset(stem + suffix)


def _shorten(name: str, taken: set[bytes]) -> bytes:
    """Return the name of 11 bytes under which old systems know a file."""
    stem, _, suffix = name.rpartition(".") if "." in name.strip(".") else (name, "", "")
    plain = ["".join(one if one in _PLAIN else "_" for one in part.upper()) for part in (stem, suffix[:3])]
    if _is_short(name):
        return plain[0].encode().ljust(8) + plain[1].encode().ljust(3)
    for number in range(1, 1000):
        tail = f"~{number}"
        short = (plain[0][: 8 - len(tail)] + tail).encode().ljust(8) + plain[1].encode().ljust(3)
        if short not in taken:
            return short
    raise ValueError(f"too many names like {name}")


def _count_entries(name: str) -> int:
    return 1 if _is_short(name) else 1 + math.ceil(len(name) / 13)


def _long_name(name: str, short: bytes) -> bytes:
    """Return the entries that go before that of a file whose name is not a short one."""
    if _is_short(name):
        return b""
    checksum = 0
    for byte in short:
        checksum = ((checksum & 1) << 7 | checksum >> 1) + byte & 0xFF
    count = math.ceil(len(name) / 13)
    text = name.encode("utf-16-le")
    text = (text if len(name) % 13 == 0 else text + b"\0\0").ljust(count * 26, b"\xff")
    entries = []
    for number in range(count, 0, -1):
        part = text[(number - 1) * 26 : number * 26]
        order = number | (0x40 if number == count else 0)
        entries.append(
            struct.pack("<B10sBBB12sH4s", order, part[:10], _LONG_NAME, 0, checksum, part[10:22], 0, part[22:])
        )
    return b"".join(entries)
