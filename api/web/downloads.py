"""Images of Glance on their way to machines: read while they are sent, so that nothing of them lies on any disk."""

import threading
from collections.abc import Iterator

import requests
from oslo_config import cfg
from werkzeug.datastructures import Headers

from ingot.common import errors, glance

_CHUNK = 256 * 1024
_ANSWER_HEADERS = ("Accept-Ranges", "Content-Length", "Content-Range")


class Downloads:
    """The downloads of one process, each in a thread; at most ``[api] max_image_downloads`` at once."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._slots = threading.Semaphore(conf.api.max_image_downloads)

    def open(self, ident: str, headers: Headers) -> "Download":
        """Start a download; the caller closes it.

        :param headers: of the request; a range is passed on.
        :raises ServiceUnavailable: there are as many as there may be.
        :raises IngotError: Glance does not give the image; see :class:`ingot.common.glance.Image`.
        """
        if not self._slots.acquire(blocking=False):
            raise errors.ServiceUnavailable(
                what="Another download of an image",
                reason="this process has as many already as [api] max_image_downloads allows",
            )
        try:
            passed = {"Range": headers["Range"]} if "Range" in headers else {}
            return Download(glance.Image(self._conf, "image", ident).content(passed), self._slots)
        except BaseException:
            self._slots.release()
            raise


class Download:
    """
    :param answer: Glance's.
    :param slots: where one is given back at the end.
    :ivar status: that of the answer.
    :ivar headers: what a client must know of it.
    """

    def __init__(self, answer: requests.Response, slots: threading.Semaphore) -> None:
        self._answer = answer
        self._slots: threading.Semaphore | None = slots
        self.status = answer.status_code
        self.headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}

    def __iter__(self) -> Iterator[bytes]:
        """Return the content. If Glance stops before its end, so does this, and the connection.

        The machine sees by the Content-Length that something is missing.
        """
        yield from self._answer.iter_content(_CHUNK)

    def close(self) -> None:
        """End it; safe to repeat."""
        slots, self._slots = self._slots, None
        self._answer.close()
        if slots:
            slots.release()
