"""What is on the disks of a machine, read from their files while it is off, or does not write."""

import errno
import hashlib
import os
from collections.abc import Iterator

_ARRAY_MEMBER = bytes.fromhex("fc4e2ba9")
"""How a superblock of Linux's software RAID begins; it is at a multiple of 4 KiB."""

_STEP = 4096


def has_partition_table(path: str) -> bool:
    """Return whether a disk has an MBR or a GPT."""
    with open(path, "rb") as disk:
        head = disk.read(1024)
    return head[510:512] == b"\x55\xaa" or head[512:520] == b"EFI PART"


def array_members(path: str) -> list[int]:
    """Return where on a disk superblocks of software RAIDs are, anywhere on it: bytes from its start."""
    found = []
    with open(path, "rb") as disk:
        for start, end in _written(disk.fileno()):
            for offset in range(start - start % _STEP, end, _STEP):
                if os.pread(disk.fileno(), len(_ARRAY_MEMBER), offset) == _ARRAY_MEMBER:
                    found.append(offset)
    return found


def digest(path: str) -> str:
    """Return a digest of everything on a disk: what was written, and where."""
    found = hashlib.sha256()
    with open(path, "rb") as disk:
        for start, end in _written(disk.fileno()):
            for offset in range(start, end, 2**20):
                piece = os.pread(disk.fileno(), min(2**20, end - offset), offset)
                found.update(b"%d %d " % (offset, len(piece)) + piece)
    return found.hexdigest()


def _written(file: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of what is not a hole of a file."""
    end = 0
    while True:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # there is no more
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end
