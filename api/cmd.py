"""ingot-api: the API in a process of its own, beside conductors on RabbitMQ and a shared database."""

import threading

from oslo_config import cfg

from ingot.api import assembly, server
from ingot.common import signals
from ingot.common.conf import start

_DESCRIPTION = (
    "The API of Ingot, bare-metal provisioning, in a process of its own. It needs conductors (ingot-conductor), RabbitMQ "
    "and a shared database; the command ingot is all in one process, without."
)


def main() -> int:
    """Run the API. Exit code 0 after an orderly stop; else one of :class:`ingot.common.conf.start.Exit`."""
    return start.run("ingot-api", _run)


def _run() -> int:
    stopped = threading.Event()
    begun = start.Start("ingot-api", into=cfg.CONF, description=_DESCRIPTION)
    assembly.check(begun)
    conf = begun.finish()
    web = server.Server(conf, assembly.build(conf))
    web.start()
    code = signals.wait_for_stop(stopped, conf, web.reload)
    web.stop()
    return code
