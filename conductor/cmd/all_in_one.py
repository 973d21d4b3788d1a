"""ingot: API and conductor in one process, on SQLite, without a message bus. For a laptop, a rack, an appliance."""

import threading

from ingot.api import app, server
from ingot.api.agents import boot_kernel
from ingot.api.auth import identity
from ingot.api.web import cadf, cross_origin, health_backends
from ingot.common import errors, metrics, signals, systemd, telemetry
from ingot.common.conf import safety, start
from ingot.conductor import manager
from ingot.conductor.inspection.hooks import loading
from ingot.db import census, migrate, secrets
from ingot.db.engine import Database
from ingot.drivers.loading import factory
from ingot.rpcapi import client, transport

_DESCRIPTION = (
    "Ingot, bare-metal provisioning: API and conductor in one process, by default with an SQLite database that it "
    "creates and upgrades on its own. Clients of an API that runs, in a terminal: ingot top shows what the fleet needs "
    "and does, ingot explain NODE why a node is where it is; each has --help."
)


def main() -> int:
    """Run API and conductor in one process.

    Creates or upgrades its database. Exit code 0 after an orderly stop, 1 when its name was taken; else one of
    :class:`ingot.common.conf.start.Exit`.
    """
    return start.run("ingot", _run)


def _run() -> int:
    begun = start.Start("ingot", description=_DESCRIPTION)
    given = begun.attempt(systemd.take_socket)
    safety.check_api(begun, given=given)
    safety.check_hardware(begun)
    hardware, db = begun.attempt(factory.Hardware, begun.conf), begun.attempt(Database, begun.conf)
    begun.attempt(loading.Hooks, begun.conf)
    begun.attempt(server.check, begun.conf, given)
    begun.attempt(boot_kernel.check, begun.conf)
    for part in (cadf, cross_origin, health_backends):
        begun.attempt(part.check, begun.conf)
    begun.attempt(telemetry.check, begun.conf, "api_port")
    begun.complete(identity.check_strategy, begun.conf)
    conf = begun.finish()
    assert hardware is not None and db is not None  # noqa: S101 - or something was refused
    stopped = threading.Event()
    bus = transport.LocalTransport()
    web = server.Server(conf, app.create_app(conf, db, client.ConductorClient(conf, db, bus)))
    migrate.ensure_current(db)
    secrets.prepare_alone(db, conf.host)
    conductor = manager.Conductor(conf, db, hardware)
    conductor.membership.on_name_conflict = stopped.set
    conductor.membership.claim_name()
    bus.serve(conf.host, conductor.endpoint)
    db.serve_gauges()
    census.Census(db, conf).serve()
    watched = telemetry.Server(conf, metrics.Part.ALL, "api_port")
    conductor.start()
    try:
        watched.start()
        web.start(given)
    except errors.IngotError:
        conductor.stop()
        raise
    parts = {"event loop of the API": web.turned_at, **conductor.list_parts()}
    code = signals.wait_for_stop(stopped, conf, web.reload, parts)
    signals.limit_stop(server.SHUTDOWN_SECONDS + conf.conductor.graceful_shutdown_timeout, code)
    web.stop()
    watched.stop()
    if not conductor.stop():
        signals.cut_off(code)
    return code
