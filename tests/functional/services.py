"""The broker of the functional tests, as devstack/services.py provides it (databases: tests/database.py).

The gate always provides the servers. Without them (`stestr` by hand) the tests that need one are skipped, and
the reason says what to do.
"""

import os
import secrets
import shlex
import subprocess
import unittest

from tests import patience

RABBIT = "INGOT_TEST_RABBIT_URL"
RABBIT_TLS = "INGOT_TEST_RABBIT_TLS_URL"
"""The same broker, where it speaks TLS with a certificate that it made itself, for 127.0.0.1."""

CONTROL_S = patience.seconds(30)


def broker_url(variable: str = RABBIT) -> str:
    """Return the `transport_url` of the test broker, for oslo.messaging; skip the test or class without one.

    Every test shares the broker with the others: it takes a `control_exchange` of its own (`unique_name`).
    """
    if url := os.environ.get(variable):
        return url
    raise unittest.SkipTest(f"{variable} is not set: run under devstack/services.py run -- COMMAND")


def control_broker(*words: str) -> str:
    """Return what ``rabbitmqctl`` prints for the test broker.

    :raises subprocess.CalledProcessError: it failed.
    """
    command = [*shlex.split(os.environ["INGOT_TEST_RABBIT_CONTROL"]), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=CONTROL_S).stdout


def unique_name(prefix: str) -> str:
    """Return a name that is unique on a shared server."""
    return f"{prefix}-{secrets.token_hex(6)}"
