"""Where the large files of an image are: http(s), Glance, or a file of this host. They are read while they are sent."""

import contextlib
import os
import re
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg

from ingot.common import errors, later, masking
from ingot.common.media.content import CHUNK, LocalFile, Source, check_end
from ingot.common.networks import ANYWHERE, Networks

if TYPE_CHECKING:
    import requests
    import urllib3

    from ingot.common import fetching, glance
else:
    requests = later.Module("requests")
    urllib3 = later.Module("urllib3")
    fetching, glance = later.Module("ingot.common.fetching"), later.Module("ingot.common.glance")

_AHEAD = 1024 * 1024
_FILE = "file://"
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", re.ASCII)
_SIZE = re.compile(r"\d{1,18}", re.ASCII)


class _Remote:
    """What a server sends; those that know no ranges send all, and what is not needed is thrown away.

    BMCs read an image in small blocks, one after the other: a part of the file that was read last is kept for the next.

    :param seconds: within which each part of it has to be there, however slowly its bytes arrive.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._size: int | None = None
        self._guard = threading.Lock()
        self._kept = (0, b"")

    def _ask(self, part: str) -> "requests.Response":
        """Return the beginning of the answer to a request for a range.

        :raises IngotError: there is none.
        """
        raise NotImplementedError

    def measure(self) -> int:
        if self._size is None:
            self._size = self._ask_size()
        return self._size

    def _ask_size(self) -> int:
        with contextlib.closing(self._ask("bytes=0-0")) as answer:
            if found := _RANGE.fullmatch(answer.headers.get("Content-Range", "")):
                return int(found[2])
            size = answer.headers.get("Content-Length", "")
            if answer.status_code != requests.codes.ok or not _SIZE.fullmatch(size):
                raise errors.ImageError(f"{self._name}: its server does not say how large it is")
            return int(size)

    def read(self, start: int, length: int) -> Iterator[bytes]:
        if length >= _AHEAD:
            yield from self._fetch(start, length)
            return
        while length:
            part = self._read_ahead(start)[start % _AHEAD :][:length]
            if not part:
                check_end(self._name, length)
            yield part
            start, length = start + len(part), length - len(part)

    def _read_ahead(self, start: int) -> bytes:
        """Return the part of the file in which a position is."""
        start -= start % _AHEAD
        with self._guard:
            first, kept = self._kept
            if first != start or not kept:
                with fetching.limit(self._seconds):
                    kept = b"".join(self._fetch(start, min(_AHEAD, self.measure() - start)))
                self._kept = (start, kept)
            return kept

    def _fetch(self, start: int, length: int) -> Iterator[bytes]:
        with contextlib.closing(self._ask(f"bytes={start}-{start + length - 1}")) as answer:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            surplus = start - (int(found[1]) if found else 0)
            if surplus < 0:
                raise errors.ImageError(f"{self._name}: its server sends another part than it is asked for")
            while length and (chunk := self._take(answer)):
                part = chunk[surplus : surplus + length] if surplus < len(chunk) else b""
                surplus = max(0, surplus - len(chunk))
                length -= len(part)
                if part:
                    yield part
        check_end(self._name, length)

    def _take(self, answer: "requests.Response") -> bytes:
        """Return the next bytes of an answer as they were sent: unpacked, they could be of any size."""
        try:
            with fetching.limit(self._seconds):
                return bytes(answer.raw.read(CHUNK, decode_content=False))
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            raise errors.ImageError(f"{self._name}: {type(exc).__name__} while it was read") from exc


class _Web(_Remote):
    def __init__(self, conf: cfg.ConfigOpts, name: str, url: str, networks: Networks) -> None:
        super().__init__(name, conf.webserver_connection_timeout)
        self._conf, self._url, self._networks = conf, url, networks

    def _ask(self, part: str) -> "requests.Response":
        verify, seconds = fetching.read_verify(self._conf), self._seconds
        try:
            answer = fetching.open_stream(self._url, seconds, self._networks, verify, {"Range": part})
        except fetching.FetchError as exc:
            raise errors.ImageError(f"{self._name}: {masking.mask_text(self._url)}: {exc.message}") from exc
        _check_status(f"{self._name}: {masking.mask_text(self._url)}", answer)
        return answer


class _Glance(_Remote):
    def __init__(self, conf: cfg.ConfigOpts, name: str, ident: str) -> None:
        super().__init__(name, conf.webserver_connection_timeout)
        self._image = glance.Image(conf, name, ident)

    def _ask(self, part: str) -> "requests.Response":
        answer = self._image.content({"Range": part})
        _check_status(self._name, answer)
        return answer


def find(conf: cfg.ConfigOpts, name: str, given: str, of_user: bool) -> Source:
    """Return the source of a file.

    :param name: what names it, for messages.
    :param given: URL of http, https or file, or id in Glance.
    :param of_user: whether a user names it, and no option, which may lead anywhere.
    :raises Invalid: nothing of this host may be read there, or Glance is not configured.
    """
    if given.startswith(_FILE):
        return _find_file(conf, name, given)
    if not given.startswith(("http://", "https://")):
        return _Glance(conf, name, given)
    options = conf.deploy
    own = Networks(options.url_denied_networks, options.url_allowed_networks) if of_user else ANYWHERE
    return _Web(conf, name, given, own)


def _find_file(conf: cfg.ConfigOpts, name: str, url: str) -> LocalFile:
    allowed = [os.path.realpath(place) for place in conf.deploy.file_url_allowed_paths]
    given = urllib.parse.unquote(url.removeprefix(_FILE))
    path = Path(os.path.realpath(given.replace("\0", "")))
    if "\0" in given or not any(path.is_relative_to(place) for place in allowed):
        raise errors.Invalid(field=name, value=url, allowed="A file in [deploy] file_url_allowed_paths.")
    return LocalFile(name, path, "of this host of the API")


def _check_status(what: str, answer: "requests.Response") -> None:
    if answer.status_code not in (requests.codes.ok, requests.codes.partial_content):
        answer.close()
        raise errors.ImageError(f"{what}: its server answers HTTP {answer.status_code}")
