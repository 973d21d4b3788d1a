"""Waits until Neutron says that ports are connected (``ACTIVE``), where what binds them goes on after its answer.

Neutron's report (``POST /v1/events``) only has the conductor look now. It may be lost, come twice, or too early: the
port's status in Neutron decides, which is read at the start, at each report, and every few seconds.
"""

import time
from collections.abc import Collection
from typing import Final

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import bindings
from ingot.drivers.neutron.connection import Neutron

LOG = log.getLogger(__name__)

_UNTIL: Final = "ports_active_until"
"""Key of ``task.memory``: when ports have to be active."""

_PAUSE_S = 3.0
_ACTIVE, _BROKEN = "ACTIVE", "ERROR"
_NEVER_ACTIVE = frozenset(("unbound", "binding_failed"))


def is_waiting(task: Task) -> bool:
    """Return whether the phase has begun to wait in an earlier call."""
    return _UNTIL in task.memory


def wait(task: Task, neutron: Neutron, idents: Collection[str]) -> results.Result:
    """Wait for ports that were bound, as a phase; ``[neutron] port_active_timeout`` in all.

    :raises NetworkError: one is gone; or is not active in time, and that is an error.
    """
    timeout = task.conf.neutron.port_active_timeout
    if not timeout or not idents:
        return results.DONE
    until = task.memory.setdefault(_UNTIL, time.time() + timeout)
    waiting = _list_waiting(neutron, idents)
    left = until - time.time()
    if left > 0 and any(port["status"] != _BROKEN for port in waiting):
        return results.PollAfter(min(_PAUSE_S, left), waits_for=Wait.PORTS, until=until)
    del task.memory[_UNTIL]
    for port in waiting:
        _complain(port, timeout, bool(task.conf.neutron.fail_on_inactive_port))
    return results.DONE


def _list_waiting(neutron: Neutron, idents: Collection[str]) -> list[Json]:
    """Return the ports that are bound and not active; what nothing has bound, or its user has switched off, never is.

    :raises NetworkError: one was deleted.
    """
    found = neutron.list_ports(id=sorted(idents))
    if gone := sorted(set(idents) - {port["id"] for port in found}):
        raise errors.NetworkError(f"Port {', '.join(gone)} of Neutron was deleted while the machine waited for it.")
    return [
        port
        for port in found
        if port["status"] != _ACTIVE and port["admin_state_up"] and port[bindings.VIF_TYPE] not in _NEVER_ACTIVE
    ]


def _complain(port: Json, timeout: int, is_strict: bool) -> None:
    """
    :param is_strict: whether a port that is not active is an error. That of a smart NIC always is.
    """
    message = (
        f"Port {port['id']} on network {port['network_id']} is bound, but not connected: its status in Neutron is "
        f"{port['status']} after at most {timeout} s ([neutron] port_active_timeout). See the log of neutron-server."
    )
    if is_strict or port[bindings.TYPE] == bindings.SMART_NIC:
        raise errors.NetworkError(message)
    LOG.warning("%s", message)
