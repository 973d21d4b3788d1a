"""A disk with one partition: boot code, protective MBR and both copies of the GPT (UEFI specification, chapter 5)."""

import struct
import uuid
import zlib
from pathlib import Path

SECTOR = 512
MEBIBYTE = 2**20
FIRST_PARTITION = MEBIBYTE
"""Where the partition begins, in bytes."""

_EFI_SYSTEM = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
# The attribute by which a BIOS boot sector recognises the partition to start from.
_LEGACY_BIOS_BOOTABLE = 1 << 2
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_ENTRY = struct.Struct("<16s16sQQQ72s")
_ENTRIES = 128
_TABLE_SECTORS = _ENTRIES * _ENTRY.size // SECTOR
_MAX_BOOT_CODE = 440


def disk_size(partition_size: int) -> int:
    """Return the size of a disk that holds a partition of that many bytes (a multiple of a MiB)."""
    return FIRST_PARTITION + partition_size + MEBIBYTE


def write(disk: Path, partition_size: int, name: str, boot_code: bytes = b"") -> None:
    """Write the partition tables of an EFI system partition onto a file, which is created and gets its size.

    Identifiers depend on the name only, so that the same image comes out each time.

    :param boot_code: up to 440 bytes that a BIOS runs; empty for a disk that only UEFI starts.
    :raises ValueError: boot code that does not fit.
    """
    if len(boot_code) > _MAX_BOOT_CODE:
        raise ValueError(f"boot code of {len(boot_code)} bytes: only {_MAX_BOOT_CODE} fit")
    size = disk_size(partition_size)
    last = size // SECTOR - 1
    table = _table(partition_size, name)
    disk_id = uuid.uuid5(uuid.NAMESPACE_DNS, f"disk.{name}")
    with disk.open("wb") as file:
        file.truncate(size)
        file.write(_protective_mbr(boot_code, last))
        file.write(_header(1, last, 2, disk_id, table))
        file.write(table)
        file.seek((last - _TABLE_SECTORS) * SECTOR)
        file.write(table)
        file.write(_header(last, 1, last - _TABLE_SECTORS, disk_id, table))


def _table(partition_size: int, name: str) -> bytes:
    first = FIRST_PARTITION // SECTOR
    last = first + partition_size // SECTOR - 1
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"partition.{name}")
    label = name.encode("utf-16-le")
    entry = _ENTRY.pack(_EFI_SYSTEM.bytes_le, identity.bytes_le, first, last, _LEGACY_BIOS_BOOTABLE, label)
    return entry.ljust(_ENTRIES * _ENTRY.size, b"\0")


def _header(here: int, other: int, table_at: int, disk_id: uuid.UUID, table: bytes) -> bytes:
    last = max(here, other)
    places = (here, other, 2 + _TABLE_SECTORS, last - _TABLE_SECTORS - 1)
    tail = (disk_id.bytes_le, table_at, _ENTRIES, _ENTRY.size, zlib.crc32(table))
    start = (b"EFI PART", 0x10000, _HEADER.size)
    checksum = zlib.crc32(_HEADER.pack(*start, 0, 0, *places, *tail))
    return _HEADER.pack(*start, checksum, 0, *places, *tail).ljust(SECTOR, b"\0")


def _protective_mbr(boot_code: bytes, last: int) -> bytes:
    entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, min(last, 0xFFFFFFFF))
    return boot_code.ljust(446, b"\0") + entry + bytes(48) + b"\x55\xaa"
