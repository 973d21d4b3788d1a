"""ingot-api: the API in a process of its own, beside conductors on RabbitMQ and a shared database."""

import os
import socket
import sys
import threading
from typing import NoReturn

from oslo_config import cfg

from ingot.api import assembly, server
from ingot.common import metrics, signals, systemd, telemetry, tracing, workers
from ingot.common.conf import start

_DESCRIPTION = (
    "The API of Ingot, bare-metal provisioning, in a process of its own. It needs conductors (ingot-conductor), "
    "RabbitMQ and a shared database; the command ingot is all in one process, without."
)

_PORT = "api_port"
"""The option that says where this process serves metrics."""

_SOCKET = "INGOT_API_SOCKET"
"""The environment variable with the descriptor of a socket that several processes share."""

_ALLOCATOR = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}
"""What makes glibc give back the memory of large answers (mallopt(3)), of which each thread would keep its largest."""


def main() -> int:
    """Run the API. Exit code 0 after an orderly stop; else one of :class:`ingot.common.conf.start.Exit`."""
    return start.run("ingot-api", _run)


def _run() -> int:
    stopped = threading.Event()
    begun = start.Start("ingot-api", into=cfg.CONF, description=_DESCRIPTION)
    given = begun.attempt(_take_socket)
    assembly.check(begun, given=given)
    begun.attempt(server.check, begun.conf, given)
    begun.attempt(telemetry.check, begun.conf, _PORT)
    conf = begun.finish()
    if (count := telemetry.count_api_processes(conf)) > 1:
        _supervise(conf, count, given)
    web = server.Server(conf, assembly.build(conf))
    watched = telemetry.Server(conf, metrics.Part.API, _PORT)
    watched.start()
    web.start(given)
    code = signals.wait_for_stop(stopped, conf, web.reload, {"event loop of the API": web.turned_at})
    web.stop()
    watched.stop()
    tracing.flush()
    return code


def _supervise(conf: cfg.ConfigOpts, count: int, given: socket.socket | None) -> NoReturn:
    """Become the supervisor of several processes that share one address.

    :param given: the socket of systemd's, if there is one, which keeps those who connect while this service restarts.
    :raises IngotError: none of them could start.
    """
    assembly.check_services(conf)
    listener = (given or server.listen(conf)).detach()
    memory = {name: os.environ.get(name, usual) for name, usual in _ALLOCATOR.items()}
    own = {**memory, "OS_API__API_WORKERS": "1", _SOCKET: str(listener)}
    each = {str(number + 1): {**own, **telemetry.describe_worker(conf, _PORT, number)} for number in range(count)}
    shared = workers.Shared(listener, lasts=given is not None)
    workers.supervise("API process", each, sys.argv, server.SHUTDOWN_SECONDS, shared)


def _take_socket() -> socket.socket | None:
    """Return the socket of the supervisor that has started this process, or systemd's; None if there is none.

    :raises ConfigurationError: systemd gives something else.
    """
    number = os.environ.pop(_SOCKET, None)
    return socket.socket(fileno=int(number)) if number else systemd.take_socket()
