"""Requests to other servers that end in time, however these answer (used by api, conductor, drivers).

The time limit of a socket begins anew with each byte, so that a server that drips one now and then is read for ever.
Here all that a request does, from the first connection to the last byte, ends at one moment. Proxies, passwords and
certificates of the process's environment are not used: they are not meant for what users name.
"""

import contextlib
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import requests
import urllib3
from oslo_config import cfg
from oslo_utils import strutils
from requests import adapters
from urllib3.util import connection, ssl_

from ingot.common import errors
from ingot.common.networks import ANYWHERE, Networks

_MOST_REDIRECTS = 5
_LONGEST_REFUSAL = 16 * 1024
_TOO_FAR = f"it leads from one URL to the next more than {_MOST_REDIRECTS} times"
_CHUNK = 64 * 1024
_SHORTEST = 0.001  # seconds: 0 would mean not to wait at all


class FetchError(errors.IngotError):
    """What a URL names cannot be had; the message says why, and has nothing of the URL but its host."""


class NotThere(FetchError):
    """A server has answered that it has nothing at a URL."""


class Answer(NamedTuple):
    """What a server has answered.

    :param content: as it was sent, in whatever encoding; empty where it was not asked for.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class _Limits(threading.local):
    """What holds for the requests of this thread at the moment."""

    until: float | None = None
    networks = ANYWHERE

    def count_left(self) -> float | None:
        """Return the seconds that are left; None: there is no limit.

        :raises TimeoutError: there are none.
        """
        if self.until is None:
            return None
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long")
        return max(left, _SHORTEST)


_limits = _Limits()


@contextlib.contextmanager
def limit(seconds: float, networks: Networks = ANYWHERE) -> Iterator[None]:
    """End all that sessions of :func:`open_session` do in this block, and in this thread, in time.

    A limit inside of another one cannot end later than that.
    """
    before = _limits.until, _limits.networks
    ends = [until for until in (before[0], time.monotonic() + seconds) if until is not None]
    _limits.until, _limits.networks = min(ends), networks
    try:
        yield
    finally:
        _limits.until, _limits.networks = before


class _Timed(socket.socket):
    """A socket with its own timeout that never waits for longer than the limit of its thread's request allows."""

    _pause: float | None = None

    def settimeout(self, value: float | None) -> None:
        self._pause = value
        super().settimeout(value)

    def _limit_wait(self) -> None:
        waits = [wait for wait in (self._pause, _limits.count_left()) if wait is not None]
        super().settimeout(min(waits, default=None))


class _Socket(_Timed):
    def recv_into(self, *args: Any) -> int:
        self._limit_wait()
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        self._limit_wait()
        super().sendall(*args)


class _TLSSocket(ssl.SSLSocket, _Timed):
    def recv_into(self, *args: Any) -> int:
        self._limit_wait()
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        self._limit_wait()
        return super().send(*args)


def _connect(conn: urllib3.connection.HTTPConnection) -> socket.socket:
    """Connect to one of the addresses of a host: of those that were checked, and no others."""
    try:
        found = socket.getaddrinfo(conn.host, conn.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as exc:
        raise urllib3.exceptions.NameResolutionError(conn.host, conn, socket.gaierror(str(exc))) from exc
    addresses = list(dict.fromkeys(str(place[-1][0]) for place in found))
    permitted = [address for address in addresses if _limits.networks.permit(address)]
    if not permitted:
        raise FetchError(f"{conn.host} has the address {addresses[0]}, which may not be reached")
    error = OSError("no address")
    for address in permitted:
        try:
            return _connect_to(conn, address)
        except OSError as exc:
            error = exc
    if isinstance(error, TimeoutError):
        raise urllib3.exceptions.ConnectTimeoutError(conn, f"{conn.host} takes no connection in time") from error
    raise urllib3.exceptions.NewConnectionError(conn, str(error)) from error


def _connect_to(conn: urllib3.connection.HTTPConnection, address: str) -> socket.socket:
    left = _limits.count_left()
    own = conn.timeout if isinstance(conn.timeout, int | float) else left
    pause = min(filter(None, (own, left)), default=None)
    made = connection.create_connection(
        (address, conn.port), pause, source_address=conn.source_address, socket_options=conn.socket_options
    )
    sock = _Socket(fileno=made.detach())
    sock.settimeout(pause)
    return sock


class _Connection(urllib3.connection.HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connect(self)


class _TLSConnection(urllib3.connection.HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connect(self)


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


class Adapter(adapters.HTTPAdapter):
    """Sends requests by connections that know of :func:`limit`.

    :param context: the TLS context to verify servers with; by default the well-known authorities decide.
    """

    def __init__(self, context: ssl.SSLContext | None = None, retries: urllib3.Retry | int = 0) -> None:
        self._context = context or ssl_.create_urllib3_context()
        self._context.sslsocket_class = _TLSSocket
        self._has_own_authorities = context is not None
        super().__init__(max_retries=retries)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, ssl_context=self._context, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, ssl_context=self._context, **options)
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
        return manager

    def cert_verify(self, conn: object, url: str, verify: bool | str, cert: object) -> None:
        """Leave the authorities of a context of one's own alone: the base class would add the well-known ones."""
        if not verify:
            self._context.check_hostname = False  # a context cannot do this without verifying
        if not self._has_own_authorities:
            super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]


class _Session(requests.Session):
    def get_redirect_target(self, _response: object) -> None:
        """Know of no redirects: the base class reads all that comes with one, and unpacks it."""


def open_session(adapter: Adapter | None = None) -> requests.Session:
    """Return a session whose requests obey :func:`limit`."""
    session = _Session()
    session.trust_env = False
    session.headers["Accept-Encoding"] = "identity"  # what is packed may be of any size when it is unpacked
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter or Adapter())
    return session


def request(session: requests.Session, method: str, url: str, most: int | None, **options: Any) -> Answer:
    """Send a request; it follows no redirect. To be called inside of :func:`limit`.

    :param most: bytes of the answer that are read; None: none is read.
    :param options: as those of ``session.request``.
    :raises RequestException: it cannot be sent, or its answer is cut off or not in time.
    :raises FetchError: the answer has more bytes, or the server's address may not be reached.
    """
    with session.request(method, url, stream=True, allow_redirects=False, **options) as response:
        try:
            content = b"" if most is None else _read(response.raw, most)
        except urllib3.exceptions.HTTPError as exc:
            raise requests.ConnectionError(exc) from exc
        return Answer(response.status_code, response.reason, response.headers, content)


def _read(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    content = bytearray()
    while chunk := response.read(_CHUNK, decode_content=False):
        content += chunk
        if len(content) > most:
            raise FetchError(f"the answer is longer than {most} bytes")
    return bytes(content)


def open_pool(url: str, context: ssl.SSLContext | None) -> urllib3.HTTPConnectionPool:
    """Return the connections to one server that is asked again and again, which obey :func:`limit`.

    A session of ``requests`` takes as long for what is not needed here as for the request.

    :param context: the TLS context to verify it with, which only such servers have; None: without TLS.
    :raises LocationParseError: the URL has no host or port that there can be.
    """
    parts = urllib3.util.parse_url(url)
    if context is None:
        return _Pool(str(parts.host), parts.port, maxsize=4)
    context.sslsocket_class = _TLSSocket
    return _TLSPool(str(parts.host), parts.port, maxsize=4, ssl_context=context)


def ask(pool: urllib3.HTTPConnectionPool, method: str, path: str, most: int, **options: Any) -> Answer:
    """Send a request to a server of :func:`open_pool`; as :func:`request`.

    :param options: as those of ``pool.urlopen``.
    :raises HTTPError: of urllib3: it cannot be sent, or its answer is cut off or not in time.
    :raises FetchError: the answer has more bytes.
    """
    response = pool.urlopen(method, path, retries=False, redirect=False, preload_content=False, **options)
    try:
        return Answer(response.status, str(response.reason), response.headers, _read(response, most))
    except BaseException:
        response.close()
        raise
    finally:
        response.release_conn()


def fetch(url: str, most: int, seconds: float, networks: Networks, verify: bool | str = True) -> bytes:
    """Return what a URL of a user names.

    Redirects lead to URLs of http and https only; each is checked as the first one is.

    :param verify: whether to verify servers, or the file with the authorities to do it with.
    :raises FetchError: it cannot be had within ``seconds``, has more than ``most`` bytes, or is where it may not be.
    """
    answer = _get(url, most, seconds, networks, verify=verify)
    if answer.status != requests.codes.ok:
        raise FetchError(f"it answers HTTP {answer.status}")
    return answer.content


def probe(url: str, seconds: float, networks: Networks, verify: bool | str = True) -> None:
    """Find out whether a URL can be fetched, without its content; redirects and parameters as in :func:`fetch`.

    It asks for the first byte, as addresses that are signed for GET refuse HEAD.

    :raises NotThere: its server says that there is nothing.
    :raises FetchError: it cannot be had from here, whatever others may.
    """
    answer = _get(url, None, seconds, networks, verify=verify, headers={"Range": "bytes=0-0"})
    if answer.status in (requests.codes.not_found, requests.codes.gone):
        raise NotThere(f"it answers HTTP {answer.status}")
    if answer.status not in (requests.codes.ok, requests.codes.partial_content):
        raise FetchError(f"it answers HTTP {answer.status}")


def find_refusal(url: str, seconds: float, verify: bool | str = True) -> str:
    """Return why the API refuses what it serves at a URL, in its own words; empty if it serves it.

    :raises NotThere: it has nothing there.
    :raises FetchError: it cannot be reached from here, or something else answers.
    """
    answer = _get(url, _LONGEST_REFUSAL, seconds, ANYWHERE, verify=verify, headers={"Range": "bytes=0-0"})
    if answer.status == requests.codes.partial_content:
        return ""
    if answer.status == requests.codes.not_found:
        raise NotThere("it answers HTTP 404")
    try:
        return str(json.loads(json.loads(answer.content)["error_message"])["faultstring"])
    except (ValueError, TypeError, KeyError):
        raise FetchError(f"it answers HTTP {answer.status}") from None


def open_stream(
    url: str, seconds: float, networks: Networks, verify: bool | str, headers: Mapping[str, str]
) -> requests.Response:
    """Return the beginning of an answer, to read and close; redirects are followed as in :func:`fetch`.

    A header ``Authorization`` is for the host that the URL names, and no other.

    :param seconds: for the beginning, and for each pause of what follows.
    :raises FetchError: there is none in time, or it is where it may not be.
    """
    sent, origin = dict(headers), urllib.parse.urlsplit(url)[:2]
    with explain_errors(seconds), limit(seconds, networks):
        session = open_session()
        for _ in range(_MOST_REDIRECTS + 1):
            check_scheme(url)
            answer = session.get(url, stream=True, allow_redirects=False, verify=verify, headers=sent, timeout=seconds)
            if not leads_on(answer.status_code, answer.headers):
                return answer
            answer.close()
            url = urllib.parse.urljoin(url, answer.headers["Location"])
            if urllib.parse.urlsplit(url)[:2] != origin:
                sent.pop("Authorization", None)
        raise FetchError(_TOO_FAR)


def read_on(answer: requests.Response) -> Iterator[bytes]:
    """Yield what comes after the beginning of an answer; to be used inside of :func:`limit`.

    :raises FetchError: it is cut off, or not there in time.
    """
    while True:
        try:
            chunk = answer.raw.read(_CHUNK, decode_content=False)
        except urllib3.exceptions.HTTPError as exc:
            raise FetchError("its answer breaks off, or takes too long") from exc
        if not chunk:
            return
        yield chunk


def read_verify(conf: cfg.ConfigOpts, own: str | None = None) -> bool | str:
    """Return what ``[DEFAULT] webserver_verify_ca`` means: true, false, or the file with authorities.

    :param own: another option of that meaning, which goes before it where it is set.
    """
    value: str = conf.webserver_verify_ca if own is None else own
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError:
        return value


def _get(url: str, most: int | None, seconds: float, networks: Networks, **options: Any) -> Answer:
    with explain_errors(seconds), limit(seconds, networks), open_session() as session:
        return _follow(session, url, most, options)


@contextlib.contextmanager
def explain_errors(seconds: float) -> Iterator[None]:
    """Raise what goes wrong with a request as a FetchError.

    :param seconds: that it may take, for the message.
    """
    try:
        yield
    except requests.Timeout:
        raise FetchError(f"it was not there within {seconds:g} s") from None
    except (requests.RequestException, ValueError) as exc:
        is_late = any(isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError) for cause in exc.args)
        reason = f"it was not there within {seconds:g} s" if is_late else f"it cannot be fetched: {_name_cause(exc)}"
        raise FetchError(reason) from None


def _name_cause(exc: Exception) -> str:
    cause = getattr(exc.args[0], "reason", None) if exc.args else None
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        return "the name of its host is not known"
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        return "its host takes no connection"
    return type(exc).__name__


def _follow(session: requests.Session, url: str, most: int | None, options: Mapping[str, Any]) -> Answer:
    for _ in range(_MOST_REDIRECTS + 1):
        check_scheme(url)
        answer = request(session, "GET", url, most, **options)
        if not leads_on(answer.status, answer.headers):
            return answer
        url = urllib.parse.urljoin(url, answer.headers["Location"])
    raise FetchError(_TOO_FAR)


def check_scheme(url: str) -> None:
    """
    :raises FetchError: a URL is neither http nor https.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise FetchError("it leads to a URL that is neither http nor https")


def leads_on(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is a redirect."""
    return status in requests.models.REDIRECT_STATI and "Location" in headers
