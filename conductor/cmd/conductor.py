"""ingot-conductor: a conductor on RabbitMQ and a shared database."""

import sys
import threading

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors
from ingot.common.conf import loader
from ingot.conductor import manager
from ingot.conductor.cmd import signals
from ingot.db import schema
from ingot.db.engine import Database
from ingot.rpcapi import transport


def main() -> int:
    """Entry point. Exit code 0 after an orderly stop, 1 when it cannot start or its name was taken."""
    conf = loader.load(sys.argv[1:], prog="ingot-conductor", into=cfg.CONF)
    log.setup(conf, "ingot")
    stopped = threading.Event()
    try:
        db = Database(conf)
        schema.require(db)
        conductor = manager.Conductor(conf, db)
        conductor.on_namesake = stopped.set
        conductor.claim_name()
        bus = transport.OsloTransport(conf)
        server = bus.server(conf.host, conductor.endpoint)
        server.start()
        conductor.start()
    except errors.IngotError as exc:
        print(f"ingot-conductor cannot start: {exc.message}", file=sys.stderr)
        return 1
    code = signals.wait_for_stop(stopped)
    server.stop()
    conductor.stop()
    server.wait()
    bus.close()
    return code
