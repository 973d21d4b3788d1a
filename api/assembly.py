"""Puts an API together that is a process of its own, for whatever web server serves it."""

import socket

import flask
from oslo_config import cfg

from ingot.api import app
from ingot.api.agents import boot_kernel
from ingot.api.auth import identity
from ingot.api.web import cadf, cross_origin, health_backends
from ingot.common.conf import broker, safety, start
from ingot.db import census, drivers, schema, secrets
from ingot.db.engine import Database
from ingot.rpcapi import client, transport, versions


def check(begun: start.Start, own_server: bool = True, given: socket.socket | None = None) -> None:
    """Find out what an API cannot start with.

    :param own_server: whether it listens itself, as [api] host_ip says.
    :param given: a socket of systemd's on which it listens instead.
    """
    safety.check_api(begun, own_server, given)
    begun.attempt(safety.check_transport, begun.conf)
    begun.attempt(broker.address, begun.conf)
    begun.attempt(versions.pinned_release, begun.conf)  # one that is not known is refused now, not by each request
    begun.attempt(drivers.parse_url, begun.conf.database.connection)
    begun.attempt(boot_kernel.check, begun.conf)
    for part in (cadf, cross_origin, health_backends):
        begun.attempt(part.check, begun.conf)
    begun.complete(identity.check_strategy, begun.conf)


def check_services(conf: cfg.ConfigOpts) -> None:
    """Find out whether database, brokers and the users' authority can be used, before there are processes that do.

    :raises IngotError: the database is away, has no schema, or one of another release, or something refuses Ingot.
    """
    _open_database(conf).dispose()
    transport.check_brokers(conf)
    identity.check_strategy(conf)


def _open_database(conf: cfg.ConfigOpts) -> Database:
    db = Database(conf)
    schema.require_current(db)
    secrets.require_key(db, conf.host)
    return db


def build(conf: cfg.ConfigOpts) -> flask.Flask:
    """Return the application, connected to database and message bus.

    :raises ConfigurationError: an option cannot be used.
    :raises IngotError: the database has no schema, or one of another release.
    """
    db = _open_database(conf)
    db.serve_gauges()
    census.Census(db, conf).serve()
    transport.check_brokers(conf)
    return app.create_app(conf, db, client.ConductorClient(conf, db, transport.OsloTransport(conf)))
