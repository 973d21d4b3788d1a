"""Partition tables (MBR and GPT): is a disk bootable, what is on it, and where the config drive goes.

The layouts are those of the UEFI specification, chapter 5; sectors are 512 bytes.
"""

import struct
import uuid
import zlib
from dataclasses import dataclass, replace
from typing import Protocol

from ingot.rack.disks import SECTOR

CONFIG_DRIVE_LABEL = "config-2"
# A real agent reserves this much for a config drive behind a whole-disk image.
CONFIG_DRIVE_SIZE = 64 * 2**20

_LINUX_DATA = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_HEADER_SIZE = 92
_ENTRY = struct.Struct("<16s16sQQQ72s")
_MBR_ENTRY = struct.Struct("<B3sB3sII")
_MBR_TABLE = 446
_LINUX_MBR_TYPE = 0x83
_PROTECTIVE_MBR_TYPE = 0xEE
_ALIGN = 2048


class PartitionError(Exception):
    """The disk's partition table does not allow what was asked."""


class Storage(Protocol):
    """Anything with bytes on it."""

    @property
    def size(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes: ...
    def write(self, offset: int, data: bytes) -> None: ...


@dataclass(frozen=True)
class Partition:
    """A partition; ``start`` and ``size`` in bytes, ``label`` empty in an MBR."""

    number: int
    start: int
    size: int
    label: str = ""


@dataclass(frozen=True)
class GptHeader:
    """The fields of a GPT header that say where things are, in sectors."""

    current: int
    backup: int
    first_usable: int
    last_usable: int
    disk_id: bytes
    entries_at: int
    entry_count: int
    entry_size: int


def boot_signature(storage: Storage) -> str | None:
    """Return ``gpt`` or ``mbr`` when the firmware would find something to start, else None."""
    if storage.read(510, 2) != b"\x55\xaa":
        return None
    return "gpt" if read_gpt(storage) else "mbr"


def mbr_disk_id(storage: Storage) -> int:
    """Return the disk identifier of an MBR (0 under a GPT's protective MBR)."""
    return int.from_bytes(storage.read(440, 4), "little")


def partitions(storage: Storage) -> list[Partition]:
    """Return the partitions of a disk in table order."""
    header = read_gpt(storage)
    if header:
        return [found for found, _ in _gpt_entries(storage, header)]
    if boot_signature(storage) is None:
        return []
    return [
        Partition(number + 1, start * SECTOR, count * SECTOR)
        for number, (_, _, kind, _, start, count) in enumerate(_mbr_entries(storage))
        if kind
    ]


def read_gpt(storage: Storage) -> GptHeader | None:
    """Return the primary GPT header when its signature and checksum are right."""
    raw = storage.read(SECTOR, _HEADER_SIZE)
    if len(raw) < _HEADER_SIZE or not raw.startswith(b"EFI PART"):
        return None
    signature, revision, length, checksum, reserved, *places, count, size, entries_sum = _HEADER.unpack(raw)
    plain = _HEADER.pack(signature, revision, length, 0, reserved, *places, count, size, entries_sum)
    if zlib.crc32(plain) != checksum:
        return None
    current, backup, first, last, disk_id, entries_at = places
    return GptHeader(current, backup, first, last, disk_id, entries_at, count, size)


def move_backup_to_end(storage: Storage) -> None:
    """Make a GPT written from a smaller image use the whole disk, as firmware and agents expect it."""
    header = read_gpt(storage)
    if header:
        table = storage.read(header.entries_at * SECTOR, header.entry_count * header.entry_size)
        _write_gpt(storage, header, table)


def write_config_drive(storage: Storage, data: bytes) -> Partition:
    """Put ``data`` into the partition labeled config-2, adding it at the end of the disk if there is none.

    :raises PartitionError: without a partition table, without room or without a free entry.
    """
    if len(data) > CONFIG_DRIVE_SIZE:
        raise PartitionError(f"config drive of {len(data)} bytes is larger than {CONFIG_DRIVE_SIZE}")
    kind = boot_signature(storage)
    if kind is None:
        raise PartitionError("the image has no partition table, so it cannot take a config drive")
    existing = next((part for part in partitions(storage) if part.label == CONFIG_DRIVE_LABEL), None)
    part = existing or (_add_to_gpt(storage) if kind == "gpt" else _add_to_mbr(storage))
    if len(data) > part.size:
        raise PartitionError(f"config drive of {len(data)} bytes does not fit into {part.size}")
    storage.write(part.start, data)
    return part


def _place(storage: Storage, last_sector: int) -> tuple[int, int]:
    """Return first sector and sector count of a config drive that ends at ``last_sector``."""
    count = CONFIG_DRIVE_SIZE // SECTOR
    start = (last_sector + 1 - count) // _ALIGN * _ALIGN
    used = max((part.start + part.size for part in partitions(storage)), default=0)
    if start * SECTOR < max(used, _ALIGN * SECTOR):
        raise PartitionError(f"no room for a config drive of {CONFIG_DRIVE_SIZE} bytes behind the image")
    return start, count


# GPT


def _gpt_entries(storage: Storage, header: GptHeader) -> list[tuple[Partition, bytes]]:
    table = storage.read(header.entries_at * SECTOR, header.entry_count * header.entry_size)
    found = []
    for index in range(header.entry_count):
        raw = table[index * header.entry_size :][: _ENTRY.size]
        kind, _, first, last, _, label = _ENTRY.unpack(raw)
        if any(kind):
            text = label.decode("utf-16-le", "replace").rstrip("\0")
            found.append((Partition(index + 1, first * SECTOR, (last + 1 - first) * SECTOR, text), raw))
    return found


def _add_to_gpt(storage: Storage) -> Partition:
    move_backup_to_end(storage)
    header = read_gpt(storage)
    if header is None:
        raise PartitionError("the partition table's header is damaged")
    taken = {part.number for part, _ in _gpt_entries(storage, header)}
    number = next((n for n in range(1, header.entry_count + 1) if n not in taken), None)
    if number is None:
        raise PartitionError(f"all {header.entry_count} entries of the partition table are in use")
    start, count = _place(storage, header.last_usable)
    label = CONFIG_DRIVE_LABEL.encode("utf-16-le")
    entry = _ENTRY.pack(_LINUX_DATA.bytes_le, uuid.uuid4().bytes_le, start, start + count - 1, 0, label)
    table = bytearray(storage.read(header.entries_at * SECTOR, header.entry_count * header.entry_size))
    offset = (number - 1) * header.entry_size
    table[offset : offset + _ENTRY.size] = entry
    _write_gpt(storage, header, bytes(table))
    return Partition(number, start * SECTOR, count * SECTOR, CONFIG_DRIVE_LABEL)


def _write_gpt(storage: Storage, header: GptHeader, table: bytes) -> None:
    last = storage.size // SECTOR - 1
    table_sectors = -(-len(table) // SECTOR)
    primary = replace(header, current=1, backup=last, last_usable=last - table_sectors - 1)
    backup = replace(primary, current=last, backup=1, entries_at=last - table_sectors)
    for one in (backup, primary):
        storage.write(one.entries_at * SECTOR, table)
        storage.write(one.current * SECTOR, _pack_header(one, table))
    if _mbr_entries(storage)[0][2] == _PROTECTIVE_MBR_TYPE:
        entry = (0, b"\0\2\0", _PROTECTIVE_MBR_TYPE, b"\xff\xff\xff", 1, min(last, 0xFFFFFFFF))
        storage.write(_MBR_TABLE, _MBR_ENTRY.pack(*entry))


def _pack_header(header: GptHeader, table: bytes) -> bytes:
    places = (header.current, header.backup, header.first_usable, header.last_usable)
    tail = (header.disk_id, header.entries_at, header.entry_count, header.entry_size, zlib.crc32(table))
    start = (b"EFI PART", 0x10000, _HEADER_SIZE)
    plain = _HEADER.pack(*start, 0, 0, *places, *tail)
    return _HEADER.pack(*start, zlib.crc32(plain), 0, *places, *tail).ljust(SECTOR, b"\0")


# MBR


def _mbr_entries(storage: Storage) -> list[tuple[int, bytes, int, bytes, int, int]]:
    raw = storage.read(_MBR_TABLE, 4 * _MBR_ENTRY.size)
    return [_MBR_ENTRY.unpack_from(raw, number * _MBR_ENTRY.size) for number in range(4)]


def _add_to_mbr(storage: Storage) -> Partition:
    free = next((number for number, entry in enumerate(_mbr_entries(storage)) if not entry[2]), None)
    if free is None:
        raise PartitionError("all four primary partitions are in use")
    start, count = _place(storage, min(storage.size // SECTOR, 2**32) - 1)
    entry = _MBR_ENTRY.pack(0, b"\xfe\xff\xff", _LINUX_MBR_TYPE, b"\xfe\xff\xff", start, count)
    storage.write(_MBR_TABLE + free * _MBR_ENTRY.size, entry)
    return Partition(free + 1, start * SECTOR, count * SECTOR)
