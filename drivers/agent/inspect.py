"""Inspects machines in-band: the agent collects what its machine is made of and sends it to the API.

Ingot boots the agent. Where it cannot, and the operator has a network boot of his own, that boots it (``[inspector]
require_managed_boot``).
"""

from collections.abc import Iterator
from functools import partial

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, networks
from ingot.common.conf import opts
from ingot.db import agents
from ingot.drivers.agent import booting, client, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.inspect import InspectInterface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

MANAGED = "managed"
"""Key of ``task.memory``: whether the agent is booted by Ingot."""

_DEFAULT_FORCED = {"ipa-inspection-dhcp-all-interfaces": "1", "ipa-collect-lldp": "1"}


def build_parameters(conf: cfg.ConfigOpts, callback: str) -> dict[str, str]:
    """Return the kernel parameters of an agent that inspects.

    :param callback: where it sends what it finds.
    """
    extra = dict(word.split("=", 1) for word in conf.inspector.extra_kernel_params.split())
    return {
        "ipa-inspection-collectors": ",".join(conf.inspector.collectors),
        **(_DEFAULT_FORCED if conf.inspector.force_dhcp else {}),
        **extra,
        "ipa-inspection-callback-url": callback,
    }


class AgentInspect(booting.AgentBooter, InspectInterface):
    """The inspect interface ``agent``."""

    requires_managed_boot = True
    """Whether the agent must be booted by Ingot where the operator does not say."""

    def validate(self, task: Task) -> None:
        if self._must_boot():
            super().validate(task)
        else:
            client.read_authorities(task)

    def _must_boot(self) -> bool:
        given: bool | None = self.conf.inspector.require_managed_boot
        return self.requires_managed_boot if given is None else given

    def can_boot(self, task: Task) -> bool:
        """Return whether the agent is booted by Ingot.

        :raises IngotError: it cannot be, and has to be.
        """
        try:
            get_interface(task, BootInterface).validate(task)
        except errors.IngotError as exc:
            if self._must_boot():
                raise
            LOG.info("Node %s: the boot of its agent is left to others: %s", task.node.uuid, exc.message)
            return False
        return True

    def inspect_hardware(self, task: Task) -> results.Result:
        if MANAGED not in task.memory:
            task.memory[MANAGED] = self.can_boot(task)
        if task.memory[MANAGED]:
            boot = (power_control.power_off, self._prepare, booting.boot)
        else:
            boot = (power_control.power_off, _expect_foreign_boot, power_control.power_on)
        return results.run_phases(task, *boot, _wait_for_inventory, *self.end(task))

    def _prepare(self, task: Task) -> results.Answer:
        """Boot the agent. The URL names the node: whatever network cards the agent finds, it speaks of this machine."""
        callback = f"{opts.agent_api_url(self.conf)}/v1/continue_inspection?node_uuid={task.node.uuid}"
        return booting.prepare(task, enter_network, build_parameters(self.conf, callback))

    def end(self, task: Task) -> tuple[results.Phase, ...]:
        """Return what follows when the inventory is there; an agent that is left running may be used by fast track."""
        if self.conf.inspector.power_off:
            return (power_control.power_off, _leave)
        keeps_agent = bool(self.conf.deploy.fast_track)
        return (partial(_leave, keeps_agent=keeps_agent),)

    def clean_up(self, task: Task) -> None:
        try:  # first, because an agent that no flow waits for must not stay because a network does
            if task.driver.power is not None and not power_control.stays_on(task):
                power_control.switch_off(task)
        finally:
            _leave(task)


def _wait_for_inventory(task: Task) -> results.Result:
    return results.WaitForAgent() if task.inventory() is None else results.DONE


def enter_network(task: Task) -> results.Answer:
    """Forget the agent before, and connect the machine for the next one."""
    session.forget(task)
    return booting.reconnect(task, get_interface(task, NetworkInterface).add_inspection_network)


def _expect_foreign_boot(task: Task) -> results.Answer:
    """Have the machine boot from the network, where the operator's own boot environment has the agent."""
    entered = enter_network(task)
    if isinstance(entered, results.PollAfter):
        return entered
    found = sorted(set(_list_bmc_addresses(task)))
    task.set(driver_internal_info={**task.node.driver_internal_info, agents.BMC_ADDRESSES: found})
    get_interface(task, ManagementInterface).set_boot_device(task, "pxe", persistent=False)
    task.save()  # before the machine starts: its agent is known by this
    return results.DONE


def _list_bmc_addresses(task: Task) -> Iterator[str]:
    """Yield the addresses of the node's BMCs; names of hosts are not looked up."""
    for name, value in task.node.driver_info.items():
        if name.endswith("_address") and isinstance(value, str):
            address = networks.read_address(value)
            if address is not None:
                yield str(address)


def _leave(task: Task, keeps_agent: bool = False) -> None:
    """Forget the agent and what it was booted with.

    :param keeps_agent: it goes on running, and is used by the next flow.
    """
    left = {key: value for key, value in task.node.driver_internal_info.items() if key != agents.BMC_ADDRESSES}
    task.set(driver_internal_info=left)
    if keeps_agent:
        get_interface(task, BootInterface).clean_up_ramdisk(task)
    else:
        booting.forget_agent(task)
    get_interface(task, NetworkInterface).remove_inspection_network(task)
