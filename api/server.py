"""The web server inside ingot-api and ingot: cheroot, a threaded server made for production."""

import logging
import socket
import threading

import flask
from cheroot import server, wsgi
from oslo_config import cfg
from oslo_log import log

from ingot.api.app import FEED
from ingot.common import errors

LOG = log.getLogger(__name__)

_SHUTDOWN_SECONDS = 10
"""How long running requests may take to end when the server stops."""

_IDLE_SECONDS = 75
"""How long a connection may be idle: longer than clients wait between two requests. A client whose request meets the
closing of the connection gets no answer, and cannot know whether a POST was received."""

_IDLE_CONNECTIONS = 500
"""How many connections may be idle; more are closed with their answers. They cost a file descriptor and no thread."""

_SENDING_SECONDS = 10
"""How long a client may pause in the middle of a request: meanwhile it keeps a thread."""


class _Connection(server.HTTPConnection):
    """A connection that may be idle for longer than it may keep a thread waiting."""

    def __init__(self, web: server.HTTPServer, sock: socket.socket, *more: object) -> None:
        sock.settimeout(_SENDING_SECONDS)
        super().__init__(web, sock, *more)


class _Server(wsgi.Server):
    """cheroot's server, writing its messages into the service's log."""

    keep_alive_conn_limit = _IDLE_CONNECTIONS
    ConnectionClass = _Connection

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        LOG.log(level, "Web server: %s", msg, exc_info=traceback)


class Server:
    """Serves the application on a thread of its own, with ``[api] api_threads`` threads for requests, and as many for
    streams of events and downloads of images as there may be: they never take one from requests.

    :param conf: [api] host_ip, port, api_threads, max_event_streams and max_image_downloads.
    """

    def __init__(self, conf: cfg.ConfigOpts, app: flask.Flask) -> None:
        self._app = app
        self._address = (str(conf.api.host_ip), conf.api.port)
        self._server = _Server(
            self._address,
            app,
            numthreads=conf.api.api_threads + conf.api.max_event_streams + conf.api.max_image_downloads,
            request_queue_size=128,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            server_name="ingot",
            timeout=_IDLE_SECONDS,
        )
        self._thread = threading.Thread(target=self._server.serve, name="api", daemon=True)

    def start(self) -> None:
        """Start to listen; return when requests are accepted.

        :raises ConfigurationError: the address cannot be used.
        """
        try:
            self._server.prepare()
        except OSError as exc:
            value = ":".join(map(str, self._address))
            allowed = f"Cannot listen there: {exc}. Is another server running?"
            raise errors.ConfigurationError(option="[api] host_ip and port", value=value, allowed=allowed) from exc
        self._thread.start()
        LOG.info("The API listens on http://%s:%d", *self._address)

    def stop(self) -> None:
        """Stop listening, end streams of events, and wait for running requests."""
        self._app.extensions[FEED].close()
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(_SHUTDOWN_SECONDS)
