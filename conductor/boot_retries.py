"""Restarts machines that were to boot the agent from the network, and whose agent has never called.

Firmware that missed DHCP, a loader that lost its server: a second boot often does what the first has not. Each restart
is a change of power like a user's, so no thread waits for it; the flow's own time limit stays what it was.
"""

import datetime
import functools
from collections.abc import Callable

from oslo_log import log

from ingot.common import clock, context, errors, metrics, states
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.db import models, node_lists
from ingot.drivers.agent import session
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface

LOG = log.getLogger(__name__)

_RETRIED = "boot_retried_at"
"""Key of ``driver_internal_info``: when the machine was restarted last."""

_PURPOSE = "restart of a machine whose agent has not called"


class BootRetrier:
    """Finds such machines.

    :param owns: whether a node is this conductor's.
    """

    def __init__(self, services: Services, queues: NodeQueues, owns: Callable[[models.Node], bool]) -> None:
        self._services = services
        self._queues = queues
        self._owns = owns

    def retry_boots(self) -> None:
        """Have the machines restarted that have waited for [pxe] boot_retry_timeout."""
        services = self._services
        before = clock.after(-services.conf.pxe.boot_retry_timeout)
        for node in node_lists.list_silent(services.db, services.group, services.hardware.drivers, before):
            if self._owns(node) and _is_late(node, before):
                self._queues.submit(node.uuid, functools.partial(self._restart, node.uuid, before))

    def _restart(self, uuid: str, before: datetime.datetime) -> None:
        services = self._services
        try:
            with task_manager.acquire(services, context.admin(), uuid, _PURPOSE) as task:
                if _is_waiting(task.node) and _is_late(task.node, before):
                    request_restart(task)
        except (errors.NodeLocked, errors.NotFound):
            return  # it is looked at again in the next round
        except errors.IngotError as exc:
            LOG.warning("Node %s: its agent has not called, and it cannot be restarted: %s", uuid, exc.message)
            return
        self._queues.notify(uuid, "boot retry")


def request_restart(task: Task) -> None:
    """Have the machine of a node boot from the network once more, and its agent get a token of its own.

    :raises HardwareError: the BMC refuses the boot device, or does not answer.
    """
    node = task.node
    LOG.warning(
        "Node %s: its agent has not called for %s s ([pxe] boot_retry_timeout); the machine is restarted",
        *(node.uuid, task.conf.pxe.boot_retry_timeout),
    )
    get_interface(task, BootInterface).repeat_network_boot(task)
    metrics.BOOT_RETRIES.inc()
    session.forget_connection(task)
    task.set(
        driver_internal_info={**task.node.driver_internal_info, _RETRIED: clock.iso(clock.now())},
        power_request={"target": states.REBOOT, "keeps_error": True, "asked_by": node.request.get("asked_by", {})},
        target_power_state=states.POWER_ON,
    )


def _is_waiting(node: models.Node) -> bool:
    """Return whether a node still waits for an agent that has never called."""
    waits = node.provision_state in states.WAITING and node.step_state == states.StepState.WAITING
    return waits and node.agent_url is None and not node.power_request


def _is_late(node: models.Node, before: datetime.datetime) -> bool:
    """Return whether a node's wait for its first agent began before a moment, and no restart has followed since.

    A flow that has met an agent boots the next one in a step, and the firmware may flash meanwhile.
    """
    boots_agent = node.boot_config.get("target") == "ramdisk" and "media" not in node.boot_config
    has_met_agent = "offered" in session.read_facts_of(node.driver_internal_info)
    retried = str(node.driver_internal_info.get(_RETRIED, ""))
    return (
        boots_agent
        and not has_met_agent
        and node.provision_updated_at is not None
        and node.provision_updated_at < before
        and (retried < str(clock.iso(before)))
    )
