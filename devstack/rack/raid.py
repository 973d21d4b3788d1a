"""Software RAID-1 as Linux has it: the same data on every member, and an md superblock near each one's end.

The superblock is version 1.0 (``linux/raid/md_p.h``): it stands behind the data, so that each member alone is
a bootable copy. Arrays are found by reading the disks: erasing the metadata of members dissolves them, a restart does
not.
"""

import operator
import struct
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ingot.rack.disks import SECTOR, Disk, clear_ends

MEBIBYTE = 2**20
GIBIBYTE = 2**30

_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq, "s!=": operator.ne, "<in>": operator.contains,
}  # fmt: skip

_MAGIC = 0xA92B4EFC
_DEVICES = 2
# magic, version, features, pad; set uuid, set name, ctime, level, layout, size, chunk, disks, bitmap;
# reshape (28 bytes); data offset and size, super offset, recovery, device number, corrected, device uuid,
# flags and bad block log (8 bytes); utime, events, resync, checksum, max_dev, pad; role of each device
_SUPERBLOCK = struct.Struct(f"<IIII16s32sQiiQIII28xQQQQII16s8xQQQII32x{_DEVICES}H")
_CHECKSUM_OFFSET = 216
_CLEAN = 2**64 - 1


class RaidError(Exception):
    """The requested RAID configuration cannot be built."""


class BlockDevice(Protocol):
    """What an image can be written to: a disk or an array."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def members(self) -> tuple[Disk, ...]: ...
    @property
    def read_only(self) -> bool: ...
    def read(self, offset: int, length: int) -> bytes: ...
    def write(self, offset: int, data: bytes) -> None: ...
    def erase_metadata(self) -> None: ...
    def flush(self) -> None: ...
    def public(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Mirror:
    """An assembled RAID-1 array; ``size`` in bytes."""

    name: str
    size: int
    members: tuple[Disk, ...]
    array_id: uuid.UUID

    @property
    def read_only(self) -> bool:
        return any(member.read_only for member in self.members)

    def read(self, offset: int, length: int) -> bytes:
        return self.members[0].read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        if offset + len(data) > self.size:
            raise OSError(28, f"{self.name} ends at {self.size} bytes")
        for member in self.members:
            member.write(offset, data)

    def erase_metadata(self) -> None:
        """Clear both ends of the array; its members still know that they are in it."""
        clear_ends(self.write, self.size)

    def flush(self) -> None:
        for member in self.members:
            member.flush()

    def public(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size": self.size,
            "raid_level": "1",
            "uuid": str(self.array_id),
            "members": [disk.name for disk in self.members],
        }


def block_devices(disks: Sequence[Disk]) -> list[BlockDevice]:
    """Return the arrays found on the disks, then the disks that belong to none."""
    found: dict[uuid.UUID, list[tuple[int, Disk, int]]] = {}
    for disk in disks:
        header = _read_superblock(disk)
        if header:
            found.setdefault(header[0], []).append((header[1], disk, header[2]))
    arrays = [
        Mirror(f"/dev/md{number}", members[0][2], tuple(disk for _, disk, _ in sorted(members, key=_role)), key)
        for number, (key, members) in enumerate(found.items())
    ]
    used = {disk.name for array in arrays for disk in array.members}
    return [*arrays, *(disk for disk in disks if disk.name not in used)]


def _role(member: tuple[int, Disk, int]) -> int:
    return member[0]


def create(disks: Sequence[Disk], raid_config: dict[str, Any], delete_existing: bool) -> list[dict[str, Any]]:
    """Build the one logical disk of ``raid_config`` and return it; its size is reported as requested.

    :raises RaidError: for a configuration that this machine cannot have, naming the field.
    """
    requested = _check_config(raid_config)
    chosen = _members(disks, requested.get("physical_disks"))
    if delete_existing:
        delete(disks)
    taken = [disk.name for disk in chosen if _read_superblock(disk)]
    if taken:
        raise RaidError(f"{', '.join(taken)}: already in an array; delete_configuration first")
    size = _size(chosen, requested["size_gb"])
    array_id = uuid.uuid4()
    for role, disk in enumerate(chosen):
        disk.erase_metadata()
        offset = _superblock_offset(disk.size)
        disk.write(offset, _superblock(array_id, role, size, offset))
    return [requested]


def delete(disks: Sequence[Disk]) -> None:
    """Dissolve every array; the members' metadata is gone with it."""
    for disk in disks:
        if _read_superblock(disk):
            disk.erase_metadata()


def _check_config(raid_config: Any) -> dict[str, Any]:
    logical_disks = raid_config.get("logical_disks") if isinstance(raid_config, dict) else None
    if not isinstance(logical_disks, list) or len(logical_disks) != 1:
        raise RaidError(f"raid_config.logical_disks must hold exactly one entry, got {logical_disks!r}")
    requested = logical_disks[0]
    if str(requested.get("raid_level")) != "1":
        raise RaidError(f"raid_level {requested.get('raid_level')!r}: this machine can do '1' only")
    if requested.get("controller", "software") != "software":
        raise RaidError(f"controller {requested['controller']!r}: this machine has 'software' only")
    if requested.get("size_gb") != "MAX" and not isinstance(requested.get("size_gb"), int):
        raise RaidError(f"size_gb {requested.get('size_gb')!r}: must be a number of GiB or 'MAX'")
    return dict(requested)


def _members(disks: Sequence[Disk], hints: list[dict[str, Any]] | None) -> list[Disk]:
    chosen = list(disks) if not hints else [disk for hint in hints for disk in disks if _matches(disk, hint)]
    if len(chosen) != _DEVICES:
        raise RaidError(f"RAID-1 takes {_DEVICES} disks, found {len(chosen)} of {len(disks)}")
    return chosen


def _matches(disk: Disk, hint: dict[str, Any]) -> bool:
    known = {"name": disk.name, "serial": disk.spec.serial, "wwn": disk.spec.wwn}
    return bool(hint) and all(key in known and fits_text(known[key], str(value)) for key, value in hint.items())


def fits_text(actual: str, expected: str) -> bool:
    """Return whether a disk has what a hint names, which may begin with an operator."""
    mark, _, value = expected.partition(" ")
    if mark in _TEXTS:
        return _TEXTS[mark](actual.lower(), value.strip().lower())
    return actual.lower() == expected.lower()


def _size(members: Sequence[Disk], size_gb: int | str) -> int:
    room = min(_superblock_offset(disk.size) for disk in members) // MEBIBYTE * MEBIBYTE
    size = room if size_gb == "MAX" else int(size_gb) * GIBIBYTE
    if not 0 < size <= room:
        raise RaidError(f"size_gb {size_gb}: the disks have room for {room} bytes")
    return size


def _superblock_offset(disk_size: int) -> int:
    sectors = disk_size // SECTOR
    return ((sectors - 16) & ~7) * SECTOR


def _superblock(array_id: uuid.UUID, role: int, size: int, offset: int) -> bytes:
    now, sectors = int(time.time()), size // SECTOR
    head = (_MAGIC, 1, 0, 0, array_id.bytes, b"rack:0", now, 1, 0, sectors, 0, _DEVICES, 0)
    data = (0, offset // SECTOR, offset // SECTOR, 0, role, 0, uuid.uuid4().bytes)
    roles = tuple(range(_DEVICES))
    plain = _SUPERBLOCK.pack(*head, *data, now, 1, _CLEAN, 0, _DEVICES, *roles)
    return _SUPERBLOCK.pack(*head, *data, now, 1, _CLEAN, _checksum(plain), _DEVICES, *roles)


def _checksum(plain: bytes) -> int:
    total: int = sum(struct.unpack(f"<{len(plain) // 4}I", plain))
    return ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF


def _read_superblock(disk: Disk) -> tuple[uuid.UUID, int, int] | None:
    """Return array, role and size in bytes of a member; None for a disk without a valid superblock."""
    raw = disk.read(_superblock_offset(disk.size), _SUPERBLOCK.size)
    if len(raw) < _SUPERBLOCK.size or not raw.startswith(_MAGIC.to_bytes(4, "little")):
        return None
    plain = raw[:_CHECKSUM_OFFSET] + bytes(4) + raw[_CHECKSUM_OFFSET + 4 :]
    values = _SUPERBLOCK.unpack(raw)
    stored = int.from_bytes(raw[_CHECKSUM_OFFSET : _CHECKSUM_OFFSET + 4], "little")
    if stored != _checksum(plain):
        return None
    array_id, sectors, role = uuid.UUID(bytes=values[4]), values[9], values[17]
    return array_id, role, sectors * SECTOR
