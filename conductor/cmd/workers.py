"""Several conductors on one host, each a process of its own, under a name of its own."""

from collections.abc import Sequence

from oslo_config import cfg

from ingot.common import workers


def names(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the conductors that a configuration runs: the first has the host's, as one alone has."""
    return [conf.host, *(f"{conf.host}-{number}" for number in range(2, conf.conductor.workers + 1))]


class Supervisor(workers.Supervisor):
    """Keeps the conductors of a configuration running until a signal stops it.

    :param command: starts one of them; its name and number are in the environment.
    """

    def __init__(self, conf: cfg.ConfigOpts, command: Sequence[str]) -> None:
        own = {name: {"OS_DEFAULT__HOST": name, "OS_CONDUCTOR__WORKERS": "1"} for name in names(conf)}
        limits = conf.conductor.graceful_shutdown_timeout + conf.hash_ring_reset_interval
        super().__init__("Conductor", own, command, limits)
