"""Several conductors on one host, each a process of its own, under a name of its own."""

from collections.abc import Sequence
from typing import NoReturn

from oslo_config import cfg

from ingot.common import telemetry, workers


def names(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the conductors that a configuration runs: the first has the host's, as one alone has."""
    return [conf.host, *(f"{conf.host}-{number}" for number in range(2, conf.conductor.workers + 1))]


def supervise(conf: cfg.ConfigOpts, command: Sequence[str]) -> NoReturn:
    """Become the supervisor of the conductors of a configuration.

    :param command: starts one of them; its name and number are in the environment.
    """
    own = {
        name: {
            "OS_DEFAULT__HOST": name,
            "OS_CONDUCTOR__WORKERS": "1",
            **telemetry.describe_worker(conf, "conductor_port", number),
            **({"OS_CONSOLE__PORT": str(conf.console.port + number)} if conf.console.port else {}),
        }
        for number, name in enumerate(names(conf))
    }
    limits = conf.conductor.graceful_shutdown_timeout + conf.hash_ring_reset_interval
    workers.supervise("Conductor", own, command, limits)
