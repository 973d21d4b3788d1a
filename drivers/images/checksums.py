"""Checksums of images: what users give, what is in files of checksums, and those of files of this host."""

import hashlib
import re
import urllib.parse
from pathlib import Path

from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.drivers.images import fetches
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task

LENGTHS = {64: "sha256", 128: "sha512"}
"""Algorithms by the number of hexadecimal digits that they make."""

_FILE_LIMIT = 1024 * 1024
_CHUNK = 1024 * 1024
_READING_SECONDS = 3600.0
"""Seconds that reading a whole image may take: one of hundreds of GiB on a slow disk."""

_CHECKSUM = "instance_info.image_checksum"

_BSD_LINE = re.compile(r"^(SHA\d+)\s*\((?P<name>.+)\)\s*=\s*(?P<value>[0-9a-fA-F]+)$")
_GNU_LINE = re.compile(r"^(?P<value>[0-9a-fA-F]+)(?:\s+\*?(?P<name>.+))?$")


def read_requested(task: Task, instance_info: Json) -> tuple[str, str | None] | None:
    """Return the checksum that a user gives, in lower case, or the URL of a file with it; and its algorithm.

    The algorithm is None where the checksum's length says which it is; None in all: no checksum is given.

    :raises Invalid: a value cannot be used, with its key.
    """
    value, algorithm = instance_info.get("image_os_hash_value"), instance_info.get("image_os_hash_algo")
    if value:
        if algorithm not in LENGTHS.values():
            raise errors.Invalid(
                field="instance_info.image_os_hash_algo", value=algorithm, allowed="One of sha256, sha512."
            )
        return _check_hexadecimal("image_os_hash_value", value, algorithm), algorithm
    checksum = instance_info.get("image_checksum")
    if not checksum:
        return None
    if "://" in str(checksum):
        fetches.check_url(task, "image_checksum", checksum, "An http or https URL.")
        return str(checksum), None
    return _check_hexadecimal("image_checksum", checksum, None), None


def _check_hexadecimal(key: str, value: object, algorithm: str | None) -> str:
    found = LENGTHS.get(len(str(value))) if re.fullmatch("[0-9a-fA-F]+", str(value)) else None
    if found is None or algorithm not in (None, found):
        raise errors.Invalid(
            field=f"instance_info.{key}",
            value=value,
            allowed="A SHA-256 (64) or SHA-512 (128 hexadecimal digits) as image_os_hash_algo names it.",
        )
    return str(value).lower()


def find(task: Task, source: str, checksum: str) -> str | results.PollAfter:
    """Return the checksum of an image, hexadecimal, or when to ask again for the file that has it.

    :param checksum: as :func:`read_requested` returned it.
    :raises ImageError: the file of checksums cannot be fetched or does not have the image.
    """
    if "://" not in checksum:
        return checksum
    content = fetches.fetch(task, _CHECKSUM, checksum, _FILE_LIMIT)
    return content if isinstance(content, results.PollAfter) else _find_line(content, source, checksum)


def _find_line(content: bytes, source: str, checksum: str) -> str:
    """Return an image's checksum from a file that ``sha256sum`` or its like wrote, or that has nothing but it."""
    name, url = urllib.parse.urlsplit(source).path.rpartition("/")[2], masking.mask_text(checksum)
    try:
        lines = [line.strip() for line in content.decode().splitlines()]
    except UnicodeDecodeError:
        raise errors.ImageError(f"{_CHECKSUM}: {url} is not a file of checksums: it is not text") from None
    found = [match for line in lines if (match := _BSD_LINE.match(line) or _GNU_LINE.match(line))]
    fitting = [match for match in found if (match["name"] or "").rpartition("/")[2] == name]
    if not fitting and len(found) == 1 and not found[0]["name"]:
        fitting = found
    values = [match["value"].lower() for match in fitting if len(match["value"]) in LENGTHS]
    if not values:
        raise errors.ImageError(
            f"the file of checksums {url} has no SHA-256 or SHA-512 of {name}; check instance_info.image_checksum "
            "and image_source"
        )
    return max(values, key=len)


def read_file(task: Task, path: Path) -> str | results.PollAfter:
    """Return the SHA-256 of a file of this host, or when to ask again; it is read once for all nodes that need it.

    :raises ImageError: it cannot be read.
    """
    try:
        now = path.stat()
    except OSError as exc:
        raise errors.ImageError(f"{path} cannot be read: {exc.strerror}") from exc
    what = f"SHA-256 of {path}, {now.st_dev} {now.st_ino} {now.st_size} {now.st_mtime_ns}"
    return fetches.ask_for_all(task, what, _READING_SECONDS, lambda: _digest(path), kept=_READING_SECONDS)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as exc:
        raise errors.ImageError(f"{path} cannot be read: {exc.strerror}") from exc
    return digest.hexdigest()
