"""ingot-conductor: a conductor, or several, on RabbitMQ and a shared database; and the commands of operators."""

import sys
import threading
import time

from oslo_config import cfg

from ingot.common import errors
from ingot.common.conf import opts
from ingot.conductor import manager
from ingot.conductor.cmd import drain, signals, workers
from ingot.db import schema, secrets
from ingot.db.engine import Database
from ingot.rpcapi import transport

_IN_TRANSIT = 1.0
"""Seconds that a question may be on its way."""


def main() -> int:
    """Run a conductor, or one of its commands.

    Exit code 0 after an orderly stop or when a command is done; 1 when it cannot start or its name was taken, or when a
    command failed.
    """
    try:
        conf = opts.load(sys.argv[1:], prog="ingot-conductor", cli_opts=drain.OPTIONS, into=cfg.CONF)
        opts.set_up_logging(conf)
        if conf.command in drain.COMMANDS:
            drain.COMMANDS[conf.command](Database(conf), conf)
            return 0
        return workers.Supervisor(conf, sys.argv).run() if conf.conductor.workers > 1 else _run(conf)
    except errors.IngotError as exc:
        print(f"ingot-conductor: {exc.message}", file=sys.stderr)
        return 1


def _run(conf: cfg.ConfigOpts) -> int:
    """Be one conductor until a signal stops it.

    :raises IngotError: it cannot start.
    """
    stopped = threading.Event()
    db = Database(conf)
    schema.require_current(db)
    secrets.require_key(db, conf.host)
    conductor = manager.Conductor(conf, db)
    conductor.membership.on_name_conflict = stopped.set
    conductor.membership.claim_name()
    bus = transport.OsloTransport(conf)
    server = bus.server(conf.host, conductor.endpoint)
    conductor.start()
    server.start()
    code = signals.wait_for_stop(stopped, conf)
    patience = conf.hash_ring_reset_interval + _IN_TRANSIT  # with APIs that remember the ring of before
    signals.limit_stop(patience + conf.conductor.graceful_shutdown_timeout, code)
    conductor.leave()
    time.sleep(patience)
    server.stop()
    if not conductor.stop():
        signals.cut_off(code)
    server.wait()
    bus.close()
    return code
