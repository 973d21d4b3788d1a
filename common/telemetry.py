"""What a process tells those who watch it: ``GET /metrics`` and ``GET /healthcheck``, at a port of its own.

The port is not that of the API, whose clients may be anyone: it is for operators. Requests are answered by threads that
have nothing else to do, so that a busy process shows that it is busy.
"""

import contextlib
import http.server
import importlib.metadata
import json
import os
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, metrics

LOG = log.getLogger(__name__)

_REQUEST_S = 10.0
"""Seconds that a request may take, from the connection to the end of its answer."""

_MOST_AT_A_TIME = 8
"""Connections that are served at a time; one more is closed at once."""

_PORTS_TO_TRY = 64

_MOST_API_PROCESSES = 4
"""Where [api] api_workers leaves it to the number of CPUs."""

Check = Callable[[], str | None]
"""Returns why a process is not ready; None: it is. It must be fast, and ask nothing that may be away."""

_checks: dict[str, Check] = {}


def add_check(name: str, check: Check) -> None:
    """Have ``GET /healthcheck`` ask a part of this process whether it is ready.

    :param name: of the part; another one of the same name takes its place.
    """
    _checks[name] = check


def remove_check(name: str) -> None:
    """Ask a part no more: it has stopped in order."""
    _checks.pop(name, None)


def read_health() -> Mapping[str, str | None]:
    """Return for each part why it is not ready; None: it is."""
    health: dict[str, str | None] = {}
    for name, ask in list(_checks.items()):
        try:
            health[name] = ask()
        except errors.IngotError as exc:
            health[name] = exc.message
    return health


def _collect_health() -> list[metrics.Metric]:
    return [metrics.READY(((name,), float(why is None)) for name, why in read_health().items())]


def _collect_build() -> list[metrics.Metric]:
    return [metrics.BUILD([((importlib.metadata.version("ingot"),), 1)])]


def count_api_processes(conf: cfg.ConfigOpts) -> int:
    """Return how many processes ingot-api has."""
    return int(conf.api.api_workers or min(os.cpu_count() or 1, _MOST_API_PROCESSES))


def describe_worker(conf: cfg.ConfigOpts, option: str, number: int) -> Mapping[str, str]:
    """Return what the environment of one of several processes says of its port.

    :param option: ``api_port`` or ``conductor_port``.
    :param number: of the process, from 0.
    """
    first: int = conf.metrics[option]
    return {f"OS_METRICS__{option.upper()}": str(first + number)} if first else {}


def count_ports(conf: cfg.ConfigOpts) -> Mapping[str, range]:
    """Return the ports that each service of a configuration takes, by the name of its option."""
    processes = {
        "api_port": count_api_processes(conf),
        "conductor_port": conf.conductor.workers,
    }
    return {
        name: range(conf.metrics[name], conf.metrics[name] + count if conf.metrics[name] else 0)
        for name, count in processes.items()
    }


def check(conf: cfg.ConfigOpts, option: str) -> None:
    """Refuse a port and files of TLS that cannot be used. A port that is in use may be free when it is needed.

    :param option: of the service that starts: ``api_port`` or ``conductor_port``.
    :raises ConfigurationError: one of them.
    """
    ports = count_ports(conf)
    if shared := set(ports["api_port"]).intersection(ports["conductor_port"]):
        raise errors.ConfigurationError(
            option="[metrics] conductor_port",
            value=conf.metrics.conductor_port,
            allowed=f"The processes of ingot-api take ports up to {max(ports['api_port'])}, of which {min(shared)} is "
            "one. Leave as many ports between the two as there are processes.",
        )
    if conf.metrics[option]:
        with contextlib.suppress(errors.Occupied):
            _Server(conf, metrics.Part.ALL, conf.metrics[option]).server_close()


_NOT_READY: Mapping[str, str | None] = {"service": "it starts, or stops"}
"""The health of a process in which no part runs yet, or any more."""


class Server:
    """Serves metrics and health of this process, if an option gives it a port.

    :param part: whose metrics.
    :param option: that gives the port: ``api_port`` or ``conductor_port``.
    """

    def __init__(self, conf: cfg.ConfigOpts, part: metrics.Part, option: str) -> None:
        self._conf = conf
        self._part = part
        self._port: int = conf.metrics[option]
        self._server: _Server | None = None

    def start(self) -> None:
        """Start to listen.

        :raises ConfigurationError: the address cannot be used.
        """
        if self._port:
            self._serve(_Server(self._conf, self._part, self._port))

    def start_anywhere(self) -> None:
        """Start to listen at the first port that is free, for processes that do not know how many they are.

        :raises ConfigurationError: none can be used.
        """
        refusal: errors.Occupied | None = None
        for port in range(self._port, self._port + _PORTS_TO_TRY) if self._port else ():
            try:
                self._serve(_Server(self._conf, self._part, port))
            except errors.Occupied as exc:
                refusal = exc
            else:
                return
        if refusal is not None:
            raise refusal

    @property
    def port(self) -> int:
        """The port that it listens at; 0 if it does not."""
        return self._server.server_address[1] if self._server else 0

    def _serve(self, server: "_Server") -> None:
        self._server = server
        metrics.ask("health", _collect_health)
        metrics.ask("build", _collect_build)
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        LOG.info("Metrics and health are served at %s, port %d", *server.server_address[:2])

    def stop(self) -> None:
        """Stop to listen."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """:raises ConfigurationError: address or files of TLS cannot be used."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, conf: cfg.ConfigOpts, part: metrics.Part, port: int) -> None:
        self.part = part
        self._options = conf.metrics
        self._slots = threading.BoundedSemaphore(_MOST_AT_A_TIME)
        self._load_tls()
        host = str(conf.metrics.host_ip)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as exc:
            raise errors.Occupied(
                option="[metrics] host_ip and port",
                value=f"{host}:{port}",
                allowed=f"Cannot listen there: {exc}. Each service on a host needs ports of its own.",
            ) from exc

    def _load_tls(self) -> ssl.SSLContext | None:
        """Return the settings of TLS; None if there is to be none.

        :raises ConfigurationError: a file cannot be used.
        """
        options = self._options
        if not options.cert_file and not options.ca_file:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(options.cert_file or "", options.key_file, password=lambda: "")
            if options.ca_file:
                context.load_verify_locations(options.ca_file)
                context.verify_mode = ssl.CERT_REQUIRED
        except OSError as exc:
            names = "cert_file, key_file and ca_file"
            value = ", ".join(str(options[name]) for name in ("cert_file", "key_file", "ca_file"))
            allowed = f"They cannot be used: {exc}. A certificate and its key are needed, in PEM."
            raise errors.ConfigurationError(option=f"[metrics] {names}", value=value, allowed=allowed) from exc
        return context

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, unless too many are served already."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # this process may have no thread more
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and let another one have its place then."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a request, in time; speak TLS first where it is asked for."""
        request.settimeout(_REQUEST_S)
        if context := self._load_tls():
            # The socket of TLS takes the other's place: it is the one to cut, also during its handshake.
            with (
                context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as secured,
                _cut_in_time(secured),
            ):
                secured.do_handshake()
                super().finish_request(secured, client_address)
        else:
            with _cut_in_time(request):
                super().finish_request(request, client_address)

    def handle_error(self, _request: object, client_address: object) -> None:
        """Log what a connection ended with; mostly its client has gone, or does not speak TLS as it should."""
        exc = sys.exception()
        if isinstance(exc, errors.ConfigurationError):  # files of TLS that have changed since the start
            LOG.error("Metrics and health cannot be served: %s", exc.message)
            return
        LOG.info("A connection from %s for metrics ended", client_address, exc_info=LOG.isEnabledFor(log.DEBUG))


@contextlib.contextmanager
def _cut_in_time(connection: socket.socket) -> Iterator[None]:
    """End a connection, whatever its client sends, when its time is over."""
    end = threading.Timer(_REQUEST_S, _cut, [connection])
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would forget its state, which is in use


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    server_version = "Ingot"
    sys_version = ""
    timeout = _REQUEST_S

    def do_GET(self) -> None:
        """Answer one of the two paths."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, metrics.CONTENT_TYPE, metrics.render(self.server.part))
        elif path == "/healthcheck":
            health = read_health() or _NOT_READY
            status = HTTPStatus.SERVICE_UNAVAILABLE if any(health.values()) else HTTPStatus.OK
            body = {name: why or "OK" for name, why in health.items()}
            self._answer(status, "application/json", json.dumps(body).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"There are /metrics and /healthcheck.\n")

    def _answer(self, status: HTTPStatus, media: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, form: str, *values: object) -> None:
        LOG.debug(f"Metrics: {form}", *values)
