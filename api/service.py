"""Puts the application together from a configuration, as a process of its own: for ingot-api and for WSGI servers."""

import flask
from oslo_config import cfg

from ingot.api import app
from ingot.common import errors
from ingot.db import schema
from ingot.db.engine import Database
from ingot.rpcapi import client, transport, versions


def build(conf: cfg.ConfigOpts) -> flask.Flask:
    """Return the application, connected to database and message bus.

    :raises ConfigurationError: an option cannot be used.
    :raises IngotError: the database has no schema, or one of another release.
    """
    if conf.rpc_transport != "oslo":
        raise errors.ConfigurationError(
            option="rpc_transport",
            value=conf.rpc_transport,
            allowed="An API in a process of its own reaches conductors with oslo; the command ingot is both in one.",
        )
    versions.pinned_release(conf)  # a pin that this release does not know is refused now, not by each request
    db = Database(conf)
    schema.require_current(db)
    return app.create_app(conf, db, client.ConductorClient(conf, db, transport.OsloTransport(conf)))
