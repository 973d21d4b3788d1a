"""Proof that a disk holds an image: digests and config drives read back from the disks' files."""

import hashlib
from pathlib import Path

from ingot.rack import partitions
from ingot.rack.disks import SECTOR

_CHUNK = 2**20
# Writing an image to a larger disk changes only its partition table: the MBR's entries, and with a GPT the
# header and the entries in the sectors behind it.
_GPT_AREA = 34 * SECTOR
_MBR_ENTRIES = slice(446, 510)


class DiskFile:
    """An image or disk file, read only."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self.size = self._path.stat().st_size

    def read(self, offset: int, length: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def write(self, offset: int, data: bytes) -> None:
        raise PermissionError(f"{self._path} is opened for reading")


def content_digest(path: str | Path, length: int) -> str:
    """Return the SHA-256 of a file's first ``length`` bytes, the partition table left out.

    An image and the disk it was written to have the same digest, if the disk holds the image.
    """
    source, digest = DiskFile(path), hashlib.sha256()
    head = bytearray(source.read(0, min(_GPT_AREA, length)))
    if head[SECTOR : SECTOR + 8] == b"EFI PART":
        head[SECTOR:] = bytes(len(head) - SECTOR)
    head[_MBR_ENTRIES] = bytes(len(head[_MBR_ENTRIES]))
    digest.update(head)
    for offset in range(len(head), length, _CHUNK):
        digest.update(source.read(offset, min(_CHUNK, length - offset)))
    return digest.hexdigest()


def config_drive(path: str | Path) -> bytes | None:
    """Return the content of a disk's config drive partition (an ISO 9660 image), None without one.

    With a GPT that is the partition labeled config-2. An MBR has no labels: there it is the last partition that
    begins with an ISO 9660 volume of that name.
    """
    disk = DiskFile(path)
    for part in reversed(partitions.partitions(disk)):
        if part.label == partitions.CONFIG_DRIVE_LABEL or _volume_label(disk, part) == "config-2":
            return disk.read(part.start, part.size)
    return None


def _volume_label(disk: DiskFile, part: partitions.Partition) -> str:
    descriptor = disk.read(part.start + 16 * 2048, 80)
    return descriptor[40:72].decode("ascii", "replace").strip() if descriptor[1:6] == b"CD001" else ""
