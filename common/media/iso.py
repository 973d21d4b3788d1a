"""Lays out ISO 9660 images whose large files stay where they are.

Only the structure is written, some kilobytes: what the files hold is read while the image is sent.
"""

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from ingot.common import errors, later
from ingot.common.media.content import Content, Source

if TYPE_CHECKING:
    import pycdlib
else:
    pycdlib = later.Module("pycdlib")

_BLOCK = 2048
_PIECE = 1024 * 1024
_ESP = "/boot/esp.img"
_CATALOG = "/boot/boot.cat"
_EFI = 0xEF
_LARGEST = 2**32 - _BLOCK
"""Bytes of a file, whose length such a file system knows in 32 bits; no server may have more laid out."""


class _Part(NamedTuple):
    """A part of an image.

    :param source: None: zeros.
    """

    start: int
    length: int
    source: Source | None


class Image:
    """An image as its parts.

    :ivar size: in bytes.
    """

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts
        self.size = parts[-1].start + parts[-1].length

    def read(self, start: int, length: int) -> Iterator[bytes]:
        """Yield some of its bytes.

        :raises IngotError: a source cannot be read.
        """
        end = start + length
        for part in self._parts:
            first, last = max(start, part.start), min(end, part.start + part.length)
            if first >= last:
                continue
            if part.source is not None:
                yield from part.source.read(first - part.start, last - first)
                continue
            for at in range(first, last, _PIECE):
                yield bytes(min(_PIECE, last - at))


class _Void(bytes):
    """Bytes of a file whose content is not written."""


class _Hole(io.RawIOBase):
    """A file of a known length, the content of which plays no part."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        rest = self._size - self._at
        length = rest if size < 0 else min(size, rest)
        self._at += length
        return _Void(length)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


class _Sketch(io.RawIOBase):
    """Takes what is written, but nothing of holes."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, bytearray] = {}
        self.size = 0
        self._at = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if not isinstance(data, _Void) and any(data):
            for at in range(self._at - self._at % _BLOCK, self._at + len(data), _BLOCK):
                block = self.blocks.setdefault(at, bytearray(_BLOCK))
                first, last = max(at, self._at), min(at + _BLOCK, self._at + len(data))
                block[first - at : last - at] = data[first - self._at : last - self._at]
        self._at += len(data)
        self.size = max(self.size, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = (0, self._at, self.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True


def lay_out(files: Mapping[str, Source], esp: Source | None, label: str) -> Image:
    """Return an image with files, given by their paths.

    :param esp: the file system with the loader that firmware starts; None: the image boots nothing.
    :raises IngotError: a file cannot be measured, or is too large.
    """
    contents = {**files, **({_ESP: esp} if esp is not None else {})}
    sizes = {path: source.measure() for path, source in contents.items()}
    for path, size in sizes.items():
        if size > _LARGEST:
            raise errors.ImageError(f"{path} has {size} bytes; a file on a boot medium has at most {_LARGEST}")
    disk = pycdlib.PyCdlib()
    disk.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=label)
    try:
        for folder in _list_folders(contents):
            disk.add_directory(folder, rr_name=folder.rpartition("/")[2], joliet_path=folder)
        for path, size in sizes.items():
            disk.add_fp(cast(BinaryIO, _Hole(size)), size, path, rr_name=path.rpartition("/")[2], joliet_path=path)
        if esp is not None:
            disk.add_eltorito(_ESP, _CATALOG, "boot.cat", _CATALOG, platform_id=_EFI)
        sketch = _Sketch()
        disk.write_fp(cast(BinaryIO, sketch), blocksize=_PIECE)
        starts = {path: disk.get_record(iso_path=path).extent_location() * _BLOCK for path in sizes}
    finally:
        disk.close()
    placed = [_Part(starts[path], size, contents[path]) for path, size in sizes.items() if size]
    return Image(_join(placed, sketch))


def _list_folders(paths: Mapping[str, Source]) -> list[str]:
    """Return the folders of some files, each after the one that it is in."""
    found = set[str]()
    for path in paths:
        names = path.strip("/").split("/")[:-1]
        found |= {"/" + "/".join(names[: depth + 1]) for depth in range(len(names))}
    return sorted(found)


def _join(placed: list[_Part], sketch: _Sketch) -> list[_Part]:
    """Return the files and the structure around them, without a gap."""
    parts, at = [], 0
    for part in [*sorted(placed), _Part(sketch.size, 0, None)]:
        while at < part.start:
            end = min(part.start, at + _BLOCK - at % _BLOCK)
            parts.append(_take(sketch, at, end))
            at = end
        if part.length:
            parts.append(part)
            at = part.start + part.length
    return list(_merge(parts))


def _take(sketch: _Sketch, start: int, end: int) -> _Part:
    block = sketch.blocks.get(start - start % _BLOCK)
    offset = start % _BLOCK
    return _Part(start, end - start, Content(bytes(block[offset : offset + end - start])) if block else None)


def _merge(parts: list[_Part]) -> Iterator[_Part]:
    """Yield parts, with neighbors that are zeros joined."""
    waiting: _Part | None = None
    for part in parts:
        if waiting is not None and waiting.source is None and part.source is None:
            waiting = waiting._replace(length=waiting.length + part.length)
            continue
        if waiting is not None:
            yield waiting
        waiting = part
    if waiting is not None:
        yield waiting
