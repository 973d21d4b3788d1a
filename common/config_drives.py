"""Finished config drives, gzip in base64, as users give them and agents take them (used by api, drivers)."""

import base64
import binascii
import zlib

GZIP_MAGIC = b"\x1f\x8b"

_AS_GZIP = 16 + zlib.MAX_WBITS
_MOST_MEMBERS = 100
"""Parts of an archive, each with an end of its own: one is usual, and many would take long."""


def is_url(drive: str) -> bool:
    """Return whether a text is the URL of a config drive."""
    return drive.lower().startswith(("http://", "https://"))


def decode(text: str | bytes) -> bytes:
    """Return what base64 holds, with or without line ends in it.

    :raises ValueError: it is not base64.
    """
    joined = "".join(text.split()).encode() if isinstance(text, str) else b"".join(text.split())
    try:
        return base64.b64decode(joined, validate=True)
    except binascii.Error as exc:
        raise ValueError(f"it is neither a URL nor base64: {exc}") from None


def check(packed: bytes, most: int) -> None:
    """Check what an archive unpacks to, unpacking no more than ``most`` bytes of it.

    :raises ValueError: it is no gzip, is cut off, or unpacks to more.
    """
    size = 0
    for _ in range(_MOST_MEMBERS):
        unpacker = zlib.decompressobj(wbits=_AS_GZIP)
        try:
            size += len(unpacker.decompress(packed, most + 1 - size))
        except zlib.error as exc:
            raise ValueError(f"what base64 holds is not gzip: {exc}") from None
        if size > most:
            raise ValueError(f"it is larger than {most} bytes ([deploy] configdrive_max_size)")
        if not unpacker.eof:
            raise ValueError("the gzip in it is cut off")
        packed = unpacker.unused_data.lstrip(b"\0")
        if not packed:
            return
    raise ValueError(f"the gzip in it has more than {_MOST_MEMBERS} parts")
