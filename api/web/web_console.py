"""The files of the web console: what is built of ``console/`` at the root of the repository, served as it is.

They are no resources of the API and have no route. All of them are in memory, by the names that a URL may have, so
that no name leads out of their folder. A path without a file is a place in the console, which its first page finds.
"""

import gzip
import hashlib
import json
import mimetypes
import pathlib
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from oslo_config import cfg
from oslo_log import log

from ingot.api.web.call import Reply
from ingot.common import errors

LOG = log.getLogger(__name__)

ROOT = "console"
HOME = f"/{ROOT}"
PREFIX = f"{HOME}/"

FOLDER = pathlib.Path(__file__).parents[1] / ROOT

_FIRST = "index.html"
_ASSETS = "assets/"
"""Files whose names change with their content."""

_REPORTS = "csp"
"""Where browsers say what the policy for content has kept from being done."""

_POLICY = {
    "default-src": "'none'",
    **dict.fromkeys(("script-src", "style-src", "connect-src", "font-src"), "'self'"),
    "img-src": "'self' data:",
    **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
    "report-uri": f"{PREFIX}{_REPORTS}",
}
_SAFE = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
"""Headers of all answers here, beside those that every answer has."""

_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_TEXTS = ("text/", "application/json", "image/svg")
_LEAST_PACKED = 1024  # bytes
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2", ".map": "application/json"}

_LONGEST_REPORT = 16 * 1024
_MOST_REPORTS = 10  # that are logged within a minute
_MINUTE_S = 60.0

_NOT_BUILT = (
    "This installation has no web console: its files were not built. Packages have them; in the repository, "
    "console/README.md says how they are built.\n"
)
_OFF = "There is no web console here: [console] enabled is off.\n"


class File(NamedTuple):
    """A file of the console.

    :param packed: its content for clients that take gzip, if that is shorter.
    :param tag: of the content.
    """

    content: bytes
    packed: bytes | None
    media: str
    tag: str
    cache: str


class ConsoleFiles:
    """Answers requests for what is below ``/console/``, and sends browsers there that ask for ``/``.

    Files that were built anew are read anew.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._folder = FOLDER
        self._lock = threading.Lock()
        self._files: Mapping[str, File] = {}
        self._built_at: int | None = None
        self._reports = 0
        self._reports_since = 0.0

    def answer(self, method: str, path: str, environ: Mapping[str, Any]) -> Reply | None:
        """Return the answer to a request; None if it is for the API: for its root, by a client that is no browser.

        :raises MethodNotAllowed: files can be read, and nothing else.
        """
        if path == "/":
            asks = method in ("GET", "HEAD") and "text/html" in environ.get("HTTP_ACCEPT", "")
            return _redirect() if asks and self._conf.console.enabled and self._read() else None
        if not self._conf.console.enabled:
            return _say(_OFF)
        name = path.removeprefix(PREFIX)
        if name == _REPORTS and method == "POST":
            return self._take_report(environ)
        if method not in ("GET", "HEAD"):
            raise errors.MethodNotAllowed(method=method[:20], allowed="GET, HEAD")
        if path == HOME:
            return _redirect()
        files = self._read()
        if not files:
            return _say(_NOT_BUILT)
        if name not in files and name.startswith(_ASSETS):
            return _say(f"The web console has no such file. It begins at {PREFIX}.\n")
        return _send(files.get(name, files[_FIRST]), environ)

    def _read(self) -> Mapping[str, File]:
        """Return all files; none if they were not built."""
        try:
            built_at = (self._folder / _FIRST).stat().st_mtime_ns
        except OSError:
            return {}
        with self._lock:
            if built_at != self._built_at:
                found = (path for path in self._folder.rglob("*") if path.is_file() and path.suffix != ".py")
                self._files = {path.relative_to(self._folder).as_posix(): _load(path) for path in found}
                self._built_at = built_at
            return self._files

    def _take_report(self, environ: Mapping[str, Any]) -> Reply:
        """Log what a browser has kept a page of the console from doing: a defect, or an attack."""
        length = environ.get("CONTENT_LENGTH", "")
        text = environ["wsgi.input"].read(min(int(length), _LONGEST_REPORT)) if length.isdecimal() else b""
        now = time.monotonic()
        with self._lock:
            if now - self._reports_since >= _MINUTE_S:
                self._reports_since, self._reports = now, 0
            self._reports += 1
            counts = self._reports <= _MOST_REPORTS
        if counts:
            LOG.warning("A browser reports that the console was kept from %s", _describe_report(text))
        return Reply(b"", 204, {**_SAFE, "Cache-Control": "no-store"})


def _describe_report(text: bytes) -> str:
    try:
        report = json.loads(text)["csp-report"]
        names = ("effective-directive", "violated-directive", "blocked-uri", "source-file", "line-number")
        return ", ".join(f"{name} {str(report[name])[:200]!r}" for name in names if report.get(name))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "something, but the report cannot be read"


def _load(path: pathlib.Path) -> File:
    content = path.read_bytes()
    media = _MEDIA.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    is_text = media.startswith(_TEXTS)
    packed = gzip.compress(content, mtime=0) if is_text and len(content) >= _LEAST_PACKED else None
    tag = hashlib.blake2b(content, digest_size=12).hexdigest()
    cache = _FOR_EVER if path.parent.name == _ASSETS.rstrip("/") else _ASK_AGAIN
    return File(content, packed, f"{media}; charset=utf-8" if is_text else media, tag, cache)


def _send(file: File, environ: Mapping[str, Any]) -> Reply:
    """Return a file as the client takes it: whole, packed, or not at all if it has it."""
    packs = file.packed is not None and _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
    tag = f'"{file.tag}-gzip"' if packs else f'"{file.tag}"'
    headers = {**_SAFE, "Cache-Control": file.cache, "ETag": tag, "Vary": "Accept-Encoding"}
    known = {given.strip().removeprefix("W/") for given in environ.get("HTTP_IF_NONE_MATCH", "").split(",")}
    if tag in known or "*" in known:
        return Reply(b"", 304, headers)
    headers["Content-Type"] = file.media
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Reply(file.packed if packs else file.content, 200, headers)


def _takes_gzip(given: str) -> bool:
    """Return whether a client takes gzip (RFC 9110, 12.5.3); browsers name it without a weight."""
    parts = (part.replace(" ", "").lower().partition(";") for part in given.split(","))
    return any(name in ("gzip", "x-gzip") and weight not in ("q=0", "q=0.0") for name, _, weight in parts)


def _redirect() -> Reply:
    """Return the way to the first page; it is relative: a proxy may have been asked for another host than this one."""
    return Reply(b"", 302, {**_SAFE, "Location": PREFIX[1:], "Cache-Control": "no-store", "Vary": "Accept"})


def _say(text: str) -> Reply:
    headers = {**_SAFE, "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    return Reply(text.encode(), 404, headers)
