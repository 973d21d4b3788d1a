"""Initial ramdisks: cpio archives in the "newc" format (Linux: Documentation/driver-api/early-userspace)."""

import gzip
import stat
from collections.abc import Mapping

_MAGIC = "070701"
_TRAILER = "TRAILER!!!"


def ramdisk(directories: tuple[str, ...], programs: Mapping[str, bytes]) -> bytes:
    """Return a gzipped archive of directories and executable files; the same arguments give the same bytes.

    :param directories: without a leading slash, parents before children.
    :param programs: content by path without a leading slash.
    """
    entries = [(path, stat.S_IFDIR | 0o755, b"") for path in directories]
    entries += [(path, stat.S_IFREG | 0o755, content) for path, content in programs.items()]
    entries.append((_TRAILER, 0, b""))
    return gzip.compress(b"".join(_entry(number, *entry) for number, entry in enumerate(entries, 1)), mtime=0)


def _entry(inode: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device and its node (4 numbers), length of the name, checksum
    numbers = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = (_MAGIC + "".join(f"{number:08x}" for number in numbers)).encode() + name
    return _pad(head) + _pad(content)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
