"""Disks as sparse files: what was never written, or was erased, costs nothing and reads as zeros."""

import errno
import os
from pathlib import Path
from typing import Any

from ingot.rack.config import DiskSpec

SECTOR = 512
# Wiping metadata clears this much at both ends: partition tables, boot sectors, file system and RAID headers.
METADATA = 2**20


class Disk:
    """A disk of a machine; offsets and sizes are bytes."""

    members: tuple["Disk", ...] = ()

    def __init__(self, spec: DiskSpec, path: Path) -> None:
        self.spec = spec
        self.path = path
        if not path.exists() or path.stat().st_size != spec.size:
            path.touch(mode=0o600)
            os.truncate(path, spec.size)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def size(self) -> int:
        return self.spec.size

    def read(self, offset: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def write(self, offset: int, data: bytes) -> None:
        """Write ``data``; zeros go where something else was and leave holes as they are.

        :raises OSError: ENOSPC when it does not fit.
        """
        if offset + len(data) > self.size:
            raise OSError(errno.ENOSPC, f"{self.name} ends at {self.size} bytes", str(self.path))
        with self.path.open("r+b") as file:
            if data.count(0) == len(data) and _is_hole(file.fileno(), offset, len(data)):
                return
            file.seek(offset)
            file.write(data)

    def erase(self) -> None:
        """Erase everything."""
        os.truncate(self.path, 0)
        os.truncate(self.path, self.size)

    def erase_metadata(self) -> None:
        """Clear both ends of the disk."""
        length = min(METADATA, self.size)
        self.write(0, bytes(length))
        self.write(self.size - length, bytes(length))

    def flush(self) -> None:
        """Have everything on the storage behind the file."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def public(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size": self.size,
            "serial": self.spec.serial,
            "wwn": self.spec.wwn,
            "path": str(self.path),
            "used": self.path.stat().st_blocks * 512,
        }


def _is_hole(fd: int, offset: int, length: int) -> bool:
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) >= offset + length
    except OSError as error:
        if error.errno == errno.ENXIO:
            return True
        raise
