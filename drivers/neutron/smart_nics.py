"""Smart NICs: network cards that an agent of Neutron switches, which runs on them, and only while they have power."""

import time
from typing import Final

from ingot.common import errors
from ingot.common.waits import Wait
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron.connection import Neutron

_UNTIL: Final = "agents_until"
"""Key of ``task.memory``: when the agents have to run."""


def has_any(task: Task) -> bool:
    """Return whether the machine has ports on a smart NIC."""
    return any(port.is_smartnic for port in task.ports)


def wait(task: Task, neutron: Neutron) -> results.Result:
    """Wait until the agents of the machine's smart NICs run, as a phase.

    They are asked for every ``[agent] neutron_agent_status_retry_interval`` seconds, ``neutron_agent_max_attempts``
    times.

    :raises NetworkError: one does not run in time.
    """
    options = task.conf.agent
    patience = options.neutron_agent_max_attempts * options.neutron_agent_status_retry_interval
    until = task.memory.setdefault(_UNTIL, time.time() + patience)
    hosts = {str(port.local_link_connection.get("hostname")) for port in task.ports if port.is_smartnic}
    silent = sorted(host for host in hosts if not neutron.has_live_agent(host))
    left = until - time.time()
    if silent and left > 0:
        pause = min(options.neutron_agent_status_retry_interval, left)
        return results.PollAfter(pause, waits_for=Wait.PORTS, until=until)
    del task.memory[_UNTIL]
    if silent:
        raise errors.NetworkError(
            f"No agent of Neutron runs on {', '.join(silent)} after {patience} s ([agent] neutron_agent_max_attempts, "
            "neutron_agent_status_retry_interval). The smart NIC of the machine cannot be switched without it."
        )
    return results.DONE
