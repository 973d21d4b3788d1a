"""Looking at the machines' disks from outside: filling them with rubbish, proving what is on them."""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pycdlib

from ingot.rack import partitions, readback
from quickstart.failure import Failure
from quickstart.gpt import SECTOR

RUBBISH = b"secrets of another user\n"
_BLOCK = 2**20
_GPT_END = 34 * SECTOR
_GPT = slice(SECTOR, _GPT_END)
_MBR_TABLE = slice(446, 510)
_LATEST = "/openstack/latest"


def fill_with_rubbish(disk: Path) -> int:
    """Write a previous owner's data to the beginning, the middle and the end of a disk; return how many bytes."""
    data = (RUBBISH * (_BLOCK // len(RUBBISH) + 1))[:_BLOCK]
    size = disk.stat().st_size
    places = (0, size // 2, size - _BLOCK)
    with disk.open("r+b") as file:
        for place in places:
            file.seek(place)
            file.write(data)
    return len(places) * _BLOCK


def check_erased(disk: Path) -> None:
    """Make sure that a disk holds nothing but zeros.

    :raises Failure: with the place of the first byte that is something else.
    """
    with disk.open("rb") as file:
        for start, end in _find_written(file.fileno(), disk.stat().st_size):
            file.seek(start)
            for place in range(start, end, _BLOCK):
                block = file.read(min(_BLOCK, end - place))
                if block.count(0) != len(block):
                    first = place + len(block) - len(block.lstrip(b"\0"))
                    raise Failure(f"{disk} was to be erased, but at byte {first} there is data")


def _find_written(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sparse file that were ever written; the holes between them read as zeros."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:
            return  # ENXIO: only a hole is left
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def check_image(disk: Path, image: Path, sha256: str) -> None:
    """Make sure that a disk begins with an image: read back, it has the image's checksum.

    An agent makes the partition table fit the larger disk. So the bytes of the table are taken from the image, and the
    partitions that the disk's own table holds are compared one by one.

    :raises Failure: saying what differs.
    """
    ours, theirs = (partitions.partitions(readback.DiskFile(path)) for path in (image, disk))
    if theirs[: len(ours)] != ours:
        raise Failure(f"{disk} has the partitions {theirs}, the image {ours}")
    found = _digest(disk, image)
    if found != sha256:
        raise Failure(f"{disk} does not hold the image: read back, its SHA-256 is {found}, but should be {sha256}")


def _digest(disk: Path, image: Path) -> str:
    """Return the SHA-256 of a disk as far as the image goes, with the image's partition table in place of its own."""
    digest = hashlib.sha256()
    with disk.open("rb") as written, image.open("rb") as original:
        head, table = bytearray(written.read(_GPT_END)), original.read(_GPT_END)
        head[_MBR_TABLE] = table[_MBR_TABLE]
        head[_GPT] = table[_GPT]
        digest.update(head)
        left = image.stat().st_size - len(head)
        while left > 0 and (block := written.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def check_config_drive(disk: Path, expected: Mapping[str, Any]) -> list[str]:
    """Make sure that a disk's config drive holds what was asked for; return the files that were compared.

    :param expected: ``meta_data``, ``user_data`` and ``network_data``, as the API takes them.
    :raises Failure: saying which file is missing or different.
    """
    image = readback.config_drive(disk)
    if image is None:
        raise Failure(f"{disk} has no partition with a config drive")
    files = {
        f"{_LATEST}/meta_data.json": expected["meta_data"],
        f"{_LATEST}/user_data": expected["user_data"],
        f"{_LATEST}/network_data.json": expected["network_data"],
    }
    for name, value in files.items():
        content = read_iso_file(image, name)
        found = json.loads(content) if name.endswith(".json") else content.decode()
        if found != value:
            raise Failure(f"{name} in the config drive of {disk} is {found!r}, but should be {value!r}")
    return [name.rpartition("/")[2] for name in files]


def read_iso_file(image: bytes, name: str) -> bytes:
    """Return a file of an ISO 9660 image, under the long name that Linux shows it by.

    :raises Failure: there is no such file, or the image cannot be read.
    """
    iso, content = pycdlib.PyCdlib(), io.BytesIO()
    try:
        iso.open_fp(io.BytesIO(image))
        long_names = "rr_path" if iso.has_rock_ridge() else "joliet_path"
        iso.get_file_from_iso_fp(content, **{long_names: name})
    except pycdlib.pycdlibexception.PyCdlibException as error:
        raise Failure(f"{name} cannot be read from the config drive: {error}") from error
    return content.getvalue()
