"""ingot-conductor: a conductor, or several, on RabbitMQ and a shared database; and the commands of operators."""

import os
import sys
import threading
import time

from oslo_config import cfg

from ingot.common import errors, metrics, signals, telemetry
from ingot.common.conf import broker, safety, start
from ingot.conductor import manager
from ingot.conductor.cmd import drain, workers
from ingot.conductor.cmd.witness import Witness
from ingot.conductor.inspection.hooks import loading
from ingot.conductor.membership import identify_process
from ingot.db import schema, secrets
from ingot.db.engine import Database
from ingot.drivers.loading import factory
from ingot.rpcapi import transport

_IN_TRANSIT = 1.0
"""Seconds that a question may be on its way."""

_LISTENS_WITHIN = 30.0
"""Seconds in which a broker that was there a moment ago takes what a conductor listens with; it may have gone since."""

_PORT = "conductor_port"
"""The option that says where this process serves metrics."""

_DESCRIPTION = (
    "A conductor of Ingot, bare-metal provisioning: works on machines, as the API (ingot-api) has written into the "
    "database that they share. RabbitMQ is between them. Also has conductors hand over their nodes, and lists them."
)


def main() -> int:
    """Run a conductor, or one of its commands.

    Exit code 0 after an orderly stop or when a command is done; 1 when its name was taken, or when a command failed;
    else one of :class:`ingot.common.conf.start.Exit`.
    """
    return start.run("ingot-conductor", _run)


def _run() -> int:
    begun = start.Start("ingot-conductor", cli_opts=drain.OPTIONS, into=cfg.CONF, description=_DESCRIPTION)
    if begun.conf.command in drain.COMMANDS:
        conf = begun.finish(quiet=True)
        drain.COMMANDS[conf.command](Database(conf), conf)
        return 0
    safety.check_hardware(begun)
    begun.attempt(safety.check_transport, begun.conf)
    begun.attempt(broker.address, begun.conf)
    hardware, db = begun.attempt(factory.Hardware, begun.conf), begun.attempt(Database, begun.conf)
    begun.attempt(loading.Hooks, begun.conf)
    begun.attempt(telemetry.check, begun.conf, _PORT)
    conf = begun.finish()
    assert hardware is not None and db is not None  # noqa: S101 - or something was refused
    if conf.conductor.workers > 1:
        _check_services(conf, db)
        db.dispose()
        workers.supervise(conf, sys.argv)
    return _serve(conf, db, hardware)


def _check_services(conf: cfg.ConfigOpts, db: Database) -> bool:
    """Find out whether the database can be used; return whether a broker is there.

    :raises IngotError: the database is away, has no schema, or one of another release, or something refuses Ingot.
    """
    schema.require_current(db)
    secrets.require_key(db, conf.host)
    return transport.check_brokers(conf)


def _serve(conf: cfg.ConfigOpts, db: Database, hardware: factory.Hardware) -> int:
    """Be one conductor until a signal stops it.

    :raises IngotError: it cannot start.
    """
    witness = Witness(identify_process(os.getpid()), sys.argv[1:])
    stopped = threading.Event()
    watched = telemetry.Server(conf, metrics.Part.CONDUCTOR, _PORT)
    try:
        reachable = _check_services(conf, db)
        conductor = manager.Conductor(conf, db, hardware)
        conductor.membership.on_name_conflict = stopped.set
        conductor.membership.claim_name()
        watched.start()
        bus = transport.OsloTransport(conf)
        server = bus.server(conf.host, conductor.endpoint)
        db.serve_gauges()
        conductor.start()
    except errors.IngotError:
        witness.dismiss()
        raise
    # Without a broker it tries for ever. Work that users have requested is found by sweeps meanwhile.
    listening = threading.Thread(target=server.start, name="rpc", daemon=True)
    listening.start()
    if reachable:
        listening.join(_LISTENS_WITHIN)
    code = signals.wait_for_stop(stopped, conf, parts=conductor.list_parts())
    patience = conf.hash_ring_reset_interval + _IN_TRANSIT  # with APIs that remember the ring of before
    signals.limit_stop(patience + conf.conductor.graceful_shutdown_timeout, code)
    conductor.leave()
    time.sleep(patience)
    if not listening.is_alive():
        server.stop()
    if not conductor.stop():
        signals.cut_off(code)
    witness.dismiss()
    if listening.is_alive():  # it never ends
        signals.cut_off(code)
    server.wait()
    bus.close()
    watched.stop()
    return code
