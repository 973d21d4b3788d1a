"""Disk images for tests: small, bootable by their signature, with content that can be recognised."""

import struct
import uuid
import zlib

SECTOR = 512
_LINUX = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le


def mbr_image(size: int = 4 * 2**20, disk_id: int = 0x12345678) -> bytes:
    """Return an image with an MBR and one partition of recognizable bytes behind the first MiB."""
    image = bytearray(size)
    image[440:444] = disk_id.to_bytes(4, "little")
    image[446:462] = struct.pack("<B3sB3sII", 0x80, b"\0\0\0", 0x83, b"\0\0\0", 2048, size // SECTOR - 2048)
    image[510:512] = b"\x55\xaa"
    _fill(image, 2**20, size)
    return bytes(image)


def gpt_image(size: int = 4 * 2**20) -> bytes:
    """Return an image with a GPT and one partition ``root`` of recognizable bytes behind the first MiB."""
    image = bytearray(size)
    last = size // SECTOR - 1
    entry = struct.pack("<16s16sQQQ72s", _LINUX, uuid.uuid4().bytes, 2048, last - 34, 0, "root".encode("utf-16-le"))
    table = entry.ljust(128 * 128, b"\0")
    image[446:462] = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, last)
    image[510:512] = b"\x55\xaa"
    disk_id = uuid.uuid4().bytes
    for current, backup, entries_at in ((1, last, 2), (last, 1, last - 32)):
        image[entries_at * SECTOR : entries_at * SECTOR + len(table)] = table
        header = _header(current, backup, last - 33, disk_id, entries_at, table)
        image[current * SECTOR : current * SECTOR + len(header)] = header
    _fill(image, 2**20, (last - 33) * SECTOR)
    return bytes(image)


def _header(current: int, backup: int, last_usable: int, disk_id: bytes, entries_at: int, table: bytes) -> bytes:
    def pack(checksum: int) -> bytes:
        return struct.pack(
            "<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, checksum, 0, current, backup, 34, last_usable,
            disk_id, entries_at, 128, 128, zlib.crc32(table),
        )  # fmt: skip

    return pack(zlib.crc32(pack(0)))


def _fill(image: bytearray, start: int, end: int) -> None:
    pattern = b"".join(b"image data %08d\n" % line for line in range(1000))
    image[start:end] = (pattern * ((end - start) // len(pattern) + 1))[: end - start]
