"""Disks as sparse files: what was never written, or was erased, costs nothing and reads as zeros."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ingot.rack.config import DiskSpec

SECTOR = 512
# Wiping metadata clears this much at both ends: partition tables, boot sectors, file system and RAID headers.
METADATA = 2**20
_CHUNK = 2**20


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
    def read_only(self) -> bool:
        return self.spec.state == "read-only"

    @property
    def size(self) -> int:
        return self.spec.size

    def read(self, offset: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def write(self, offset: int, data: bytes) -> None:
        """Write ``data``; zeros go where something else was and leave holes as they are.

        :raises OSError: ENOSPC when it does not fit, EROFS when the disk is read only.
        """
        self._check_writable()
        if offset + len(data) > self.size:
            raise OSError(errno.ENOSPC, f"{self.name} ends at {self.size} bytes", str(self.path))
        with self.path.open("r+b") as file:
            if data.count(0) == len(data) and _is_hole(file.fileno(), offset, len(data)):
                return
            file.seek(offset)
            file.write(data)

    def erase(self) -> None:
        """Erase everything."""
        self._check_writable()
        os.truncate(self.path, 0)
        os.truncate(self.path, self.size)

    def shred(self, zeros: bool) -> None:
        """Overwrite everything with random data and, with ``zeros``, with zeros after that.

        What was never written stays a hole: readers see no difference, and a disk of terabytes fits onto a laptop.
        """
        if zeros:
            self.erase()
            return
        self._check_writable()
        with self.path.open("r+b") as file:
            for start, end in _extents(file.fileno(), self.size):
                for offset in range(start, end, _CHUNK):
                    os.pwrite(file.fileno(), os.urandom(min(_CHUNK, end - offset)), offset)

    def erase_metadata(self) -> None:
        """Clear both ends of the disk."""
        clear_ends(self.write, self.size)

    def _check_writable(self) -> None:
        if self.read_only:
            raise OSError(errno.EROFS, f"{self.name} is read only", str(self.path))

    def flush(self) -> None:
        """Have everything on the storage behind the file."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def public(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size": self.size,
            "kind": self.spec.kind,
            "state": self.spec.state,
            "serial": self.spec.serial,
            "wwn": self.spec.wwn,
            "path": str(self.path),
            "used": self.path.stat().st_blocks * 512,
        }


def clear_ends(write: Callable[[int, bytes], None], size: int) -> None:
    """Clear what makes the contents of a disk, or of an array, findable."""
    length = min(METADATA, size)
    write(0, bytes(length))
    write(size - length, bytes(length))


def _extents(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of everything in a file that is not a hole."""
    end = 0
    while end < size and not _is_hole(fd, end, size - end):
        start = os.lseek(fd, end, os.SEEK_DATA)
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end


def _is_hole(fd: int, offset: int, length: int) -> bool:
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) >= offset + length
    except OSError as error:
        if error.errno == errno.ENXIO:
            return True
        raise
