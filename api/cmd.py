"""ingot-api: the API in a process of its own, beside conductors on RabbitMQ and a shared database."""

import signal
import sys
import threading

from oslo_config import cfg
from oslo_log import log

from ingot.api import server, service
from ingot.common import errors
from ingot.common.conf import loader


def main() -> int:
    """Entry point. Exit code 0 after an orderly stop, 1 when it cannot start."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        conf = loader.load(sys.argv[1:], prog="ingot-api", into=cfg.CONF)
        log.setup(conf, "ingot")
        web = server.Server(conf, service.build(conf))
        web.start()
    except errors.IngotError as exc:
        sys.stderr.write(f"ingot-api cannot start: {exc.message}\n")
        return 1
    stopped.wait()
    web.stop()
    return 0
