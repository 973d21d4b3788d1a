"""The application for a WSGI server: ``ingot.api.wsgi:application``.

Configuration files are named in the environment variable INGOT_CONFIG_FILES, separated by colons; without it they are
searched in the usual places, as ingot-api does.
"""

import atexit
import os
import sys

import flask
from oslo_config import cfg

from ingot.api import app, assembly
from ingot.common import errors, metrics, signals, telemetry, tracing
from ingot.common.conf import start


def _build() -> flask.Flask:
    """Return the application; end the process with a message if that is not possible."""
    named = [name for name in os.environ.get("INGOT_CONFIG_FILES", "").split(os.pathsep) if name]
    try:
        begun = start.Start("ingot-api", [], named or None, into=cfg.CONF)
        assembly.check(begun, own_server=False)
        begun.attempt(telemetry.check, begun.conf, "api_port")
        conf = begun.finish()
        built = assembly.build(conf)
        telemetry.Server(conf, metrics.Part.API, "api_port").start_anywhere()
    except errors.IngotError as exc:
        sys.exit(start.report("ingot-api", exc))
    signals.end_start()
    atexit.register(tracing.flush)
    for sender in app.SENDERS:
        atexit.register(built.extensions[sender].close)
    return built


application = _build()
