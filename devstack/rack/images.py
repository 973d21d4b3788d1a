"""Getting an image onto a disk: download, checksum, format, and writing that keeps sparse disks sparse."""

import base64
import functools
import hashlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from ingot.rack.partitions import Storage

TIMEOUT = 60.0
CHUNK = 2**20
_ALGORITHMS = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}
_ALGORITHM_BY_LENGTH = {64: "sha256", 96: "sha384", 128: "sha512"}
_CONVERTED = {"qcow2": b"QFI\xfb", "vmdk": b"KDMV", "vdi": b"<<< ", "vhdx": b"vhdxfile"}
"""Formats that are converted, as qemu-img calls them, and what they begin with."""


class ImageError(Exception):
    """The image could not be written; ``kind`` is the class of error as the real agent names it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Download:
    """An image to fetch.

    :param info: the agent's ``image_info`` (urls, os_hash_algo, os_hash_value, checksum, disk_format).
    :param scratch: directory for what has to be converted first.
    :param stopped: set when the machine loses its power.
    :param not_found: the server answers 404. :param corrupt: one byte changes on the way.
    """

    info: dict[str, Any]
    scratch: Path
    stopped: threading.Event
    not_found: bool = False
    corrupt: bool = False

    def write_to(self, target: Storage, size: int) -> int:
        """Write the image to the first ``size`` bytes of ``target`` and return its length.

        :raises ImageError: naming the image and what is wrong with it.
        """
        algorithm, expected = self._checksum()
        form = self.info.get("disk_format", "raw")
        converted = {name: functools.partial(self._convert, name) for name in _CONVERTED}
        writers: dict[str, Callable[..., int]] = {"raw": self._write_raw, **converted}
        if form not in writers:
            raise ImageError("InvalidImage", f"{self._name}: disk_format {form!r} is not one of {sorted(writers)}")
        return writers[form](target, size, algorithm, expected)

    @property
    def _name(self) -> str:
        return f"image {self.info.get('id')}"

    def _checksum(self) -> tuple[str, str]:
        algorithm, value = self.info.get("os_hash_algo"), self.info.get("os_hash_value")
        if not value:
            value = self.info.get("checksum") or ""
            if str(value).startswith(("http://", "https://")):
                value = self._checksum_file(str(value))
            algorithm = _ALGORITHM_BY_LENGTH.get(len(value))
        if algorithm not in _ALGORITHMS:
            raise ImageError("ImageChecksumError", f"{self._name}: no usable checksum: os_hash_algo must be "
                             f"one of {sorted(_ALGORITHMS)} with an os_hash_value")  # fmt: skip
        return str(algorithm), str(value).lower()

    def _checksum_file(self, url: str) -> str:
        """Return the image's checksum from a file with one, or with lines of ``checksum  name``."""
        lines = [line.split() for line in b"".join(self._fetch([url])).decode("ascii", "replace").splitlines()]
        lines = [words for words in lines if words]
        if len(lines) == 1:
            return lines[0][0]
        file_name = str(self.info["urls"][0]).rpartition("/")[2]
        for words in lines:
            if words[-1].lstrip("*") == file_name:
                return words[0]
        raise ImageError("ImageChecksumError", f"{self._name}: {url} has no checksum for {file_name}")

    def _fetch(self, urls: list[str]) -> Iterator[bytes]:
        """Yield the body of the first URL that answers."""
        failures = []
        for url in urls:
            try:
                with requests.get(url, stream=True, timeout=TIMEOUT, headers=self._login()) as answer:
                    status = 404 if self.not_found else answer.status_code
                    if status != 200:
                        failures.append(f"{url}: HTTP {status}")
                        continue
                    yield from answer.iter_content(CHUNK)
                    return
            except requests.RequestException as error:
                failures.append(f"{url}: {type(error).__name__}")
        raise ImageError("ImageDownloadError", f"{self._name}: download failed: {'; '.join(failures) or 'no URL'}")

    def _login(self) -> dict[str, str]:
        """Return the header with which the image is fetched; requests drops it where a redirect leads elsewhere."""
        given = self.info.get("image_request_authorization")
        return {"Authorization": base64.b64decode(given).decode()} if given else {}

    def _chunks(self, algorithm: str, expected: str) -> Iterator[bytes]:
        """Yield the image; raise after its last byte if the checksum is wrong."""
        digest, corrupt = _ALGORITHMS[algorithm](), self.corrupt
        for data in self._fetch(self.info.get("urls") or []):
            if self.stopped.is_set():
                raise ImageError("ImageWriteError", f"{self._name}: the machine lost its power")
            chunk = bytes([data[0] ^ 1]) + data[1:] if corrupt else data
            corrupt = False
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != expected:
            raise ImageError("ImageChecksumError", f"{self._name}: its {algorithm} is {digest.hexdigest()}, "
                             f"but should be {expected}")  # fmt: skip

    def _write_raw(self, target: Storage, size: int, algorithm: str, expected: str) -> int:
        offset = 0
        for chunk in self._chunks(algorithm, expected):
            if offset == 0 and chunk.startswith(_CONVERTED["qcow2"]):
                raise ImageError("InvalidImage", f"{self._name}: disk_format is raw, but it is a qcow2 image")
            self._fits(offset + len(chunk), size)
            target.write(offset, chunk)
            offset += len(chunk)
        return offset

    def _convert(self, form: str, target: Storage, size: int, algorithm: str, expected: str) -> int:
        tool = shutil.which("qemu-img")
        if tool is None:
            raise ImageError("ImageWriteError", f"{self._name}: {form} needs qemu-img, which is missing; "
                             "install qemu-utils or deploy a raw image")  # fmt: skip
        with tempfile.TemporaryDirectory(dir=self.scratch) as directory:
            source, raw = Path(directory, "image"), Path(directory, "image.raw")
            with source.open("wb") as file:
                for chunk in self._chunks(algorithm, expected):
                    file.write(chunk)
            with source.open("rb") as file:
                beginning = file.read(16)
            if not beginning.startswith(_CONVERTED[form]):
                raise ImageError("InvalidImage", f"{self._name}: disk_format is {form}, but it is not a {form} image")
            command = [tool, "convert", "-f", form, "-O", "raw", str(source), str(raw)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ImageError("ImageWriteError", f"{self._name}: qemu-img convert: {done.stderr.strip()}")
            self._fits(raw.stat().st_size, size)
            return self._copy(raw, target)

    def _copy(self, source: Path, target: Storage) -> int:
        offset = 0
        with source.open("rb") as file:
            while chunk := file.read(CHUNK):
                if self.stopped.is_set():
                    raise ImageError("ImageWriteError", f"{self._name}: the machine lost its power")
                target.write(offset, chunk)
                offset += len(chunk)
        return offset

    def _fits(self, length: int, size: int) -> None:
        if length > size:
            raise ImageError("ImageWriteError", f"{self._name}: it has at least {length} bytes, the disk has {size}")
