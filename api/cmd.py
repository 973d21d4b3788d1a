"""ingot-api: the API in a process of its own, beside conductors on RabbitMQ and a shared database."""

import signal
import sys
import threading

import flask
from oslo_config import cfg

from ingot.api import app, server
from ingot.common import errors
from ingot.common.conf import opts
from ingot.db import schema, secrets
from ingot.db.engine import Database
from ingot.rpcapi import client, transport, versions


def main() -> int:
    """Run the API. Exit code 0 after an orderly stop, 1 when it cannot start."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        conf = opts.load(sys.argv[1:], prog="ingot-api", into=cfg.CONF)
        opts.set_up_logging(conf)
        web = server.Server(conf, build(conf))
        web.start()
    except errors.IngotError as exc:
        sys.stderr.write(f"ingot-api cannot start: {exc.message}\n")
        return 1
    stopped.wait()
    web.stop()
    return 0


def build(conf: cfg.ConfigOpts) -> flask.Flask:
    """Return the application, connected to database and message bus.

    :raises ConfigurationError: an option cannot be used.
    :raises IngotError: the database has no schema, or one of another release.
    """
    if conf.rpc_transport != "oslo":
        allowed = "An API in a process of its own reaches conductors with oslo; the command ingot is both in one."
        raise errors.ConfigurationError(option="rpc_transport", value=conf.rpc_transport, allowed=allowed)
    versions.pinned_release(conf)  # a pin that this release does not know is refused now, not by each request
    db = Database(conf)
    schema.require_current(db)
    secrets.require_key(db, conf.host)
    return app.create_app(conf, db, client.ConductorClient(conf, db, transport.OsloTransport(conf)))
