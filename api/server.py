"""The web server inside ingot-api and ingot: uvicorn, on a thread of its own.

uvicorn parses HTTP on one event loop, that of uvloop. :mod:`ingot.api.connections` limits what a client may do there,
and :mod:`ingot.api.bridge` gives each request that has arrived to a thread that runs the application.
"""

import asyncio
import contextlib
import errno
import os
import pathlib
import resource
import socket
import ssl
import stat
import threading
import time
from concurrent import futures
from typing import Any, cast

import flask
import uvicorn
import uvloop
from oslo_config import cfg
from oslo_log import log

from ingot.api.app import BODY_LIMIT, CONSOLES, FEED, SENDERS
from ingot.api.bridge import Bridge
from ingot.api.connections import Connection, Guests, Limits
from ingot.common import errors, metrics, telemetry, workers

LOG = log.getLogger(__name__)

SHUTDOWN_SECONDS = 10
"""How long running requests may take to end when the server stops."""

_ACCEPTING_S = 0.1
"""Seconds in which a server that stops still takes connections that have begun before."""

_GRACE_S = 1.0
"""Seconds in which a server that stops still answers what comes on connections that are idle."""

_STANDS_STILL_S = 10.0
"""Seconds without a turn of the event loop after which this process is not ready."""

_PART = "api"
"""What the health of a process calls its web server."""

_TICK_S = 1.0
"""Seconds between two looks at the clock, for the Date of answers."""

_IDLE_SECONDS = 75
"""How long a connection may be idle: longer than clients wait between two requests. A client whose request meets the
closing of the connection gets no answer, and cannot know whether a POST was received."""

_BACKLOG = 2048
"""How many connections may wait to be taken."""

_MOST_FILES = 65_536
"""How many files a process may open, and half as many connections, wherever more are allowed."""

_LASTING_THREADS = 8
"""Threads that fetch what answers that last send next; each is free again when it has some."""

_TLS_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class _Uvicorn(uvicorn.Server):
    """Stops without losing a request: clients learn by an answer, or by a refused connection, that it goes."""

    def __init__(self, config: uvicorn.Config, guests: Guests) -> None:
        super().__init__(config)
        self._guests = guests
        self._stopping = asyncio.Event()
        self.turned_at = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Wait for the stop. The Date of answers follows the clock meanwhile, for which once a second is enough."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            self.turned_at = time.monotonic()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_S)

    def ask_to_stop(self) -> None:
        """Have the server stop soon; for other threads."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listener, then what has stayed idle, and wait for what is still being served."""
        self._guests.announce_end()
        await asyncio.sleep(_ACCEPTING_S)
        for listener in self.servers:
            listener.close()
        until = time.monotonic() + _GRACE_S
        while self._guests and time.monotonic() < until:
            await asyncio.sleep(_ACCEPTING_S / 2)
        await super().shutdown(sockets)


class Server:
    """Serves the application, with ``[api] api_threads`` threads for requests.

    :param conf: the group [api].
    :raises ConfigurationError: TLS cannot be used as it is configured.
    """

    def __init__(self, conf: cfg.ConfigOpts, app: flask.Flask) -> None:
        self._conf = conf
        self._app = app
        self._tls = _load_tls(conf)
        limits = Limits(
            head=conf.api.max_header_size * 1024,
            seconds=conf.api.request_timeout,
            from_address=conf.api.max_connections_per_address,
            at_all=_raise_file_limit() // 2,
            unlimited=conf.api.trusted_proxies,
        )
        self._bridge = Bridge(app, conf.api.api_threads, app.extensions[BODY_LIMIT], limits.seconds)
        self._guests = Guests(limits)
        config = uvicorn.Config(
            self._bridge,
            http=cast(type[asyncio.Protocol], self._connect),
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            log_level="critical",  # what there is to say is said here
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self._server = _Uvicorn(config, self._guests)
        self._thread = threading.Thread(target=self._serve, name="api", daemon=True)

    def _connect(self, *given: Any, **named: Any) -> Connection:
        return Connection(self._guests, lambda: self._tls, *given, **named)

    def start(self, listener: socket.socket | None = None) -> None:
        """Start to listen; return when requests are accepted.

        :param listener: a socket that listens already, which others may share, and which outlives this server.
        :raises ConfigurationError: the address cannot be used.
        """
        self._is_alone = listener is None
        self._listener = listener or listen(self._conf)
        self._bridge.start()
        self._thread.start()
        metrics.ask("api", self._collect)
        telemetry.add_check(_PART, self._find_lack)
        LOG.info("The API listens on %s", describe_address(self._listener, bool(self._tls)))

    def _find_lack(self) -> str | None:
        still = time.monotonic() - self.turned_at()
        return None if still < _STANDS_STILL_S else f"its event loop has stood still for {still:.0f} s"

    def _collect(self) -> list[metrics.Metric]:
        busy, most, waiting = self._bridge.read_load()
        return [
            metrics.API_THREADS([(("busy",), busy), (("most",), most)]),
            metrics.API_WAITING([((), waiting)]),
            metrics.API_CONNECTIONS([((), len(self._guests))]),
            metrics.API_CONSOLES([((), len(self._app.extensions[CONSOLES]))]),
        ]

    def turned_at(self) -> float:
        """Return when the event loop turned last, by the monotonic clock: it does so each second."""
        return self._server.turned_at

    def _serve(self) -> None:
        uvloop.run(self._run())

    async def _run(self) -> None:
        lasting = futures.ThreadPoolExecutor(_LASTING_THREADS, "lasting")
        asyncio.get_running_loop().set_default_executor(lasting)
        await self._server.serve([self._listener])

    def reload(self) -> None:
        """Read certificate, key and authorities again, for new connections. What cannot be used changes nothing."""
        try:
            self._tls = _load_tls(self._conf)
        except errors.ConfigurationError as exc:
            LOG.error("TLS stays as it was: %s", exc.message)  # noqa: TRY400 - the message is complete
        else:
            if self._tls:
                LOG.info("The certificate of the API was read again")

    def stop(self) -> None:
        """Stop listening, end streams of events, and wait for running requests."""
        if self._thread.is_alive() and self._is_alone:
            workers.turn_away(self._listener)
        self._app.extensions[FEED].close()
        self._app.extensions[CONSOLES].close()
        self._server.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(_GRACE_S + SHUTDOWN_SECONDS + 1)
        self._bridge.stop()
        telemetry.remove_check(_PART)
        for sender in SENDERS:
            self._app.extensions[sender].close()


def _raise_file_limit() -> int:
    """Let this process have as many files, and connections, as it is allowed; by default they are 1,024 at first.

    :returns: how many. Where there is no limit, as in many containers, it is one of memory that counts.
    """
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files


def describe_address(listener: socket.socket, has_tls: bool) -> str:
    """Return where the API listens, for messages."""
    if listener.family == socket.AF_UNIX:
        return str(listener.getsockname())
    host, port, *_ = listener.getsockname()
    return f"{'https' if has_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def check(conf: cfg.ConfigOpts, given: socket.socket | None = None) -> None:
    """Refuse TLS and an address that cannot be used. One that is in use may be free when it is needed.

    :param given: a socket that listens already.
    :raises ConfigurationError: one of them, or both.
    """
    refusals = errors.Refusals()
    with refusals.collect():
        _load_tls(conf)
    if given is None:
        with refusals.collect(), contextlib.suppress(errors.Occupied):
            listen(conf).close()
    refusals.finish()


def listen(conf: cfg.ConfigOpts) -> socket.socket:
    """Return a socket that listens where the configuration says.

    :raises ConfigurationError: the address cannot be used.
    """
    path, host = conf.api.unix_socket, str(conf.api.host_ip)
    try:
        if path:
            return _listen_on_file(pathlib.Path(path), int(conf.api.unix_socket_mode, 8))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, conf.api.port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # head and body of an answer are two writes
        return listener
    except OSError as exc:
        in_use = exc.errno == errno.EADDRINUSE
        allowed = f"Cannot listen there: {exc}.{' Is another server running?' if in_use else ''}"
        option, value = ("unix_socket", path) if path else ("host_ip and port", f"{host}:{conf.api.port}")
        refusal = errors.Occupied if in_use else errors.ConfigurationError
        raise refusal(option=f"[api] {option}", value=value, allowed=allowed) from exc


def _listen_on_file(path: pathlib.Path, mode: int) -> socket.socket:
    """Return a socket that listens at a path. What a server has left there that is gone is removed."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise FileExistsError(errno.EEXIST, "there is a file that is no socket")
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
                    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            path.unlink()
        listener.bind(str(path))
        path.chmod(mode)  # no client can connect before it listens
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _load_tls(conf: cfg.ConfigOpts) -> ssl.SSLContext | None:
    """Return the settings of TLS; None if there is to be none.

    :raises ConfigurationError: a file or a cipher cannot be used.
    """
    if not conf.api.enable_ssl_api:
        return None
    for option in ("cert_file", "key_file"):
        file = conf.api[option]
        if not file or not os.access(file, os.R_OK):
            allowed = "enable_ssl_api needs it, in PEM, readable for this service."
            raise errors.ConfigurationError(option=f"[api] {option}", value=file, allowed=allowed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _TLS_VERSIONS[conf.api.server_tls_minimum_version]
    for option, use in (
        ("cert_file", lambda given: context.load_cert_chain(given, conf.api.key_file, password=lambda: "")),
        ("ca_file", context.load_verify_locations),
        ("server_tls_ciphers", context.set_ciphers),
    ):
        given = conf.api[option]
        try:
            if given:
                use(given)
        except OSError as exc:
            pair = f" with key_file {conf.api.key_file}" if option == "cert_file" else ""
            allowed = f"It cannot be used{pair}: {exc}. Files are in PEM."
            raise errors.ConfigurationError(option=f"[api] {option}", value=given, allowed=allowed) from exc
    if conf.api.ca_file:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
