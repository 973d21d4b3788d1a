"""ingot: API and conductor in one process, on SQLite, without a message bus. For a laptop, a rack, an appliance."""

import sys
import threading

from ingot.api import app, server
from ingot.common import errors
from ingot.common.conf import opts
from ingot.conductor import manager
from ingot.conductor.cmd import signals
from ingot.db import schema, secrets
from ingot.db.engine import Database
from ingot.rpcapi import client, transport


def main() -> int:
    """Run API and conductor in one process.

    Creates or upgrades its database. Exit code 0 after an orderly stop, 1 when it cannot start or its name was taken.
    """
    conf = opts.load(sys.argv[1:], prog="ingot")
    opts.set_up_logging(conf)
    stopped = threading.Event()
    try:
        db = Database(conf)
        schema.ensure_current(db)
        secrets.prepare_alone(db, conf.host)
        conductor = manager.Conductor(conf, db)
        conductor.membership.on_name_conflict = stopped.set
        conductor.membership.claim_name()
        bus = transport.LocalTransport()
        bus.serve(conf.host, conductor.endpoint)
        web = server.Server(conf, app.create_app(conf, db, client.ConductorClient(conf, db, bus)))
        conductor.start()
        try:
            web.start()
        except errors.IngotError:
            conductor.stop()
            raise
    except errors.IngotError as exc:
        print(f"ingot cannot start: {exc.message}", file=sys.stderr)
        return 1
    code = signals.wait_for_stop(stopped, conf)
    signals.limit_stop(conf.conductor.graceful_shutdown_timeout, code)
    web.stop()
    if not conductor.stop():
        signals.cut_off(code)
    return code
