"""How the first bytes of an image are read, wherever it is: to be used inside of ``fetching.limit``."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import requests

from ingot.common import errors, fetching, glance
from ingot.common.networks import Networks
from ingot.drivers.images.formats import MOST, Content

_CHUNK = 64 * 1024
_WHOLE = re.compile(r"bytes \d+-\d+/(\d{1,18})")
_FIRST = {"Accept-Encoding": "identity", "Range": f"bytes=0-{MOST - 1}"}


@contextlib.contextmanager
def open_web(
    url: str, seconds: float, networks: Networks, verify: bool | str, authorization: str | None = None
) -> Iterator[Content]:
    """Open an image of a web server; most of it stays there, whether or not the server knows of ranges.

    :raises NotThere: the server says that there is nothing.
    :raises FetchError: it cannot be had from here.
    """
    own = {"Authorization": authorization} if authorization else {}

    def read_end(length: int) -> bytes:
        """Return the last bytes; none from a server that gives no parts."""
        if size is None or answer.status_code != requests.codes.partial_content:
            return b""
        asked = {**own, **_FIRST, "Range": f"bytes={max(0, size - length)}-{size - 1}"}
        with fetching.open_stream(url, seconds, networks, verify, asked) as end:
            if end.status_code != requests.codes.partial_content:
                return b""
            return _join(fetching.read_on(end), length)

    with fetching.open_stream(url, seconds, networks, verify, {**own, **_FIRST}) as answer:
        if answer.status_code in (requests.codes.not_found, requests.codes.gone):
            raise fetching.NotThere(f"it answers HTTP {answer.status_code}")
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            raise errors.ImageError("it is empty")
        if answer.status_code not in (requests.codes.ok, requests.codes.partial_content):
            raise fetching.FetchError(f"it answers HTTP {answer.status_code}")
        size = read_size(answer.status_code, answer.headers)
        yield Content(fetching.read_on(answer), size, read_end)


@contextlib.contextmanager
def open_glance(image: glance.Image) -> Iterator[Content]:
    """Open an image of Glance.

    :raises IngotError: it cannot be had.
    """

    def read_end(length: int) -> bytes:
        if size is None or answer.status_code != requests.codes.partial_content:
            return b""
        with image.content({"Range": f"bytes={max(0, size - length)}-{size - 1}"}) as end:
            return _join(fetching.read_on(end), length)

    with image.content({"Range": _FIRST["Range"]}) as answer:
        size = read_size(answer.status_code, answer.headers)
        yield Content(fetching.read_on(answer), size, read_end)


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[Content]:
    """Open an image that is a file of this host.

    :raises ImageError: it cannot be read.
    """

    def read_end(length: int) -> bytes:
        file.seek(max(0, size - length))
        return file.read(length)

    try:
        if not path.is_file():  # a device or a pipe might never end
            raise errors.ImageError(f"there is no file {path} on this conductor's host")
        with path.open("rb") as file:
            size = path.stat().st_size
            yield Content(iter(lambda: file.read(_CHUNK), b""), size, read_end)
    except OSError as exc:
        raise errors.ImageError(f"{path} cannot be read: {exc.strerror}") from exc


def read_size(status: int, headers: Mapping[str, str]) -> int | None:
    """Return the bytes of what an answer is the whole of, or a part; None: its server does not say."""
    if status == requests.codes.partial_content:
        found = _WHOLE.fullmatch(headers.get("Content-Range", ""))
        return int(found[1]) if found else None
    length = headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"\d{1,18}", length) else None


def _join(chunks: Iterator[bytes], length: int) -> bytes:
    """Return no more bytes than were asked for, whatever a server sends."""
    joined = b""
    for chunk in chunks:
        joined += chunk
        if len(joined) >= length:
            break
    return joined[:length]
