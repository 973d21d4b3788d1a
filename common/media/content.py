"""What the files of an image hold: bytes of this process, or a file of this host. They are read while it is sent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ingot.common import errors

CHUNK = 256 * 1024
"""Bytes that are read at once."""


class Source(Protocol):
    """A file that an image has in it."""

    def measure(self) -> int:
        """Return how many bytes it has.

        :raises IngotError: it cannot be read.
        """

    def read(self, start: int, length: int) -> Iterator[bytes]:
        """Yield some of its bytes; closing the iterator ends the connection.

        :raises IngotError: it cannot be read, or ends too early.
        """


class Content:
    """Bytes that are there already."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def measure(self) -> int:
        return len(self._content)

    def read(self, start: int, length: int) -> Iterator[bytes]:
        view = memoryview(self._content)[start : start + length]
        for at in range(0, len(view), CHUNK):
            yield bytes(view[at : at + CHUNK])


class LocalFile:
    """A file of this host.

    :param name: what names it, for messages. :param whose: for messages too, which host that is.
    """

    def __init__(self, name: str, path: Path, whose: str = "") -> None:
        self._name = name
        self._path = path
        self._shown = f"{path} {whose}".rstrip()

    def measure(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError as exc:
            raise self._unreadable_error(exc) from exc

    def read(self, start: int, length: int) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                while length and (chunk := file.read(min(CHUNK, length))):
                    length -= len(chunk)
                    yield chunk
        except OSError as exc:
            raise self._unreadable_error(exc) from exc
        check_end(self._name, length)

    def _unreadable_error(self, exc: OSError) -> errors.ImageError:
        return errors.ImageError(f"{self._name}: {self._shown}: {exc.strerror}")


def check_end(name: str, missing: int) -> None:
    """:raises ImageError: what was read ended before all of it was there."""
    if missing:
        raise errors.ImageError(f"{name}: it ends {missing} bytes too early")
