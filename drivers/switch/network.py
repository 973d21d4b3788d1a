"""The network interface ``switch``: each purpose has a VLAN, between which ports of switches are moved."""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from oslo_log import log

from ingot.common import errors, networks, states
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.db import models
from ingot.drivers.interfaces import base, places, results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.periodic import Fleet, periodic
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task
from ingot.drivers.switch import deleted, orders, settings, vifs, vlans, wiring
from ingot.drivers.switch.orders import Connection

LOG = log.getLogger(__name__)

_TURN_UNTIL: Final = "turn_until"
"""Key of ``task.memory``: until when others may be changing the switch."""

_PAUSE_S = 2.0

_PROVISIONING, _CLEANING, _RESCUING, _INSPECTION, _SERVICING = networks.PURPOSES
_REQUIRED = (_CLEANING, _PROVISIONING)
_UNKNOWN_YET = frozenset((states.ENROLL, states.VERIFYING))
"""States in which nothing may be known of a node's cables."""


class SwitchNetwork(NetworkInterface):
    """The network interface ``switch``."""

    def check_enabled(self, enabled: Mapping[str, BaseInterface]) -> None:
        settings.check(self.conf, f"network interface {self.name}")
        vlans.check(self.conf)

    def get_properties(self) -> dict[str, str]:
        purposes = (*networks.PURPOSES, networks.TENANT)
        return {f"{one}_vlan": f"VLAN for {one}. Optional, default [switch] {one}_vlan." for one in purposes}

    def validate(self, task: Task) -> None:
        for purpose in _REQUIRED:
            vlans.read(task, purpose)
        for purpose in (*networks.PURPOSES, networks.TENANT):
            vlans.find(task, purpose)
        for ident in places.list_attached(task):
            vlans.read_vif(task.conf, ident)
        if task.node.provision_state in _UNKNOWN_YET:
            return
        lacks = {port.uuid: wiring.find_lack(task, port) for port in places.list_booting(task)}
        if wrong := [f"port {uuid}: {lack}" for uuid, lack in lacks.items() if lack]:
            raise errors.Invalid(f"Node {task.node.uuid} has ports that cannot be connected: {'; '.join(wrong)}.")

    def _enter(self, task: Task, purpose: str) -> Answer:
        return self._connect(task, wiring.plan_purpose(task, purpose), f"on the VLAN for {purpose}")

    def _connect(self, task: Task, expected: Sequence[Connection], where: str) -> Answer:
        """Have the machine on VLANs; while others change the switch no thread waits.

        :param where: it is then, for the log.
        """
        until = task.memory.pop(_TURN_UNTIL, time.time() + task.conf.switch.turn_timeout)
        try:
            wiring.move(task, expected, patience=0)
        except orders.SwitchBusy:
            left = until - time.time()
            if left <= 0:
                raise
            task.memory[_TURN_UNTIL] = until
            return results.PollAfter(min(_PAUSE_S, left), waits_for=Wait.SWITCH, until=until)
        LOG.info("Node %s: %s", task.node.uuid, where)
        return results.DONE

    def _leave(self, task: Task, purpose: str) -> Answer:
        left = _list_others(task, purpose)
        if left is None:
            return results.DONE
        return self._connect(task, left, f"off the VLAN for {purpose}")

    def _leave_now(self, task: Task, purpose: str) -> None:
        """Do as :meth:`_leave`, for those who do not ask again."""
        left = _list_others(task, purpose)
        if left is not None:
            wiring.move(task, left)

    def add_provisioning_network(self, task: Task) -> Answer:
        return self._enter(task, _PROVISIONING)

    def remove_provisioning_network(self, task: Task) -> Answer:
        return self._leave(task, _PROVISIONING)

    def add_cleaning_network(self, task: Task) -> Answer:
        return self._enter(task, _CLEANING)

    def remove_cleaning_network(self, task: Task) -> Answer:
        return self._leave(task, _CLEANING)

    def add_rescuing_network(self, task: Task) -> Answer:
        return self._enter(task, _RESCUING)

    def remove_rescuing_network(self, task: Task) -> None:
        self._leave_now(task, _RESCUING)

    def add_servicing_network(self, task: Task) -> Answer:
        return self._enter(task, _SERVICING)

    def remove_servicing_network(self, task: Task) -> Answer:
        return self._leave(task, _SERVICING)

    def add_inspection_network(self, task: Task) -> Answer:
        """Connect the machine for its inspection; while nothing is known of its cables, it stays where it is."""
        if not any(port.local_link_connection for port in task.ports):
            LOG.info(
                "Node %s: inspected on the VLAN on which its switch has it: its cables are not known", task.node.uuid
            )
            return results.DONE
        return self._enter(task, _INSPECTION)

    def remove_inspection_network(self, task: Task) -> None:
        self._leave_now(task, _INSPECTION)

    def configure_tenant_networks(self, task: Task) -> Answer:
        return self._connect(task, vifs.plan(task, places.list_attached(task)), "on the networks of its user")

    def unconfigure_tenant_networks(self, task: Task) -> Answer:
        return self._leave(task, networks.TENANT)

    def list_vifs(self, task: Task) -> list[Json]:
        return [{"id": ident} for ident in places.list_attached(task)]

    def attach_vif(self, task: Task, vif: Json) -> None:
        vifs.attach(task, vif, connects=task.node.provision_state == states.ACTIVE)

    def detach_vif(self, task: Task, vif_id: str) -> None:
        vifs.detach(task, vif_id)

    @base.service_step(priority=0, requires_ramdisk=False, idempotent=True)
    def reattach_networking(self, task: Task) -> Answer:
        """Set the VLANs of the user anew, without a reboot of the machine."""
        return self.configure_tenant_networks(task)

    # Changes that were cut off

    @periodic(spacing=base.from_option("switch", "sweep_interval"))
    def sweep_ports(self, fleet: Fleet) -> None:
        """Have nodes at rest on the VLANs that their state asks for, where a change was cut off.

        Ports of nodes that were deleted leave theirs.
        """
        deleted.take_back(fleet)
        left = _list_left(fleet.nodes("driver_internal_info"), fleet.conf.deploy.fast_track)
        random.shuffle(left)  # so that no node is always behind one that is locked
        by_switch: dict[str, list[models.Node]] = {}
        for node in left:
            name = next((one.switch for one in wiring.list_noted(node)), "")
            by_switch.setdefault(name, []).append(node)
        for nodes in by_switch.values():
            self._settle_in_turn(fleet, nodes)

    def _settle_in_turn(self, fleet: Fleet, nodes: Sequence[models.Node]) -> None:
        """Settle nodes of a switch one after the other. If it does not answer, the others wait for the next round."""
        if not nodes:
            return

        def work(task: Task) -> None:
            rest = nodes[1:]
            try:
                self._settle(task)
            except errors.SwitchUnavailable:
                rest = ()
                raise
            finally:
                self._settle_in_turn(fleet, rest)

        fleet.change(nodes[0], "ending a change of its switch ports", work)

    def _settle(self, task: Task) -> None:
        if not _list_left([task.node], task.conf.deploy.fast_track):
            return
        LOG.warning("Node %s: a change of its switch ports was cut off; it is done again", task.node.uuid)
        attached, has_user = places.list_attached(task), task.node.provision_state == states.ACTIVE
        has_network = has_user and (attached or vlans.find(task, networks.TENANT) is not None)
        wiring.move(task, vifs.plan(task, attached) if has_network else [])


def _list_others(task: Task, purpose: str) -> list[Connection] | None:
    """Return what the node has noted for other purposes; None if it has noted nothing for this one."""
    noted = wiring.list_noted(task.node)
    left = [one for one in noted if one.purpose != purpose]
    return None if left == noted else left


def _list_left(nodes: Iterable[models.Node], fast_track: bool) -> list[models.Node]:
    """Return the nodes at rest that are not on the VLANs that their state asks for, or may not be."""
    return [node for node in places.list_at_rest(nodes, fast_track) if _is_left(node)]


def _is_left(node: models.Node) -> bool:
    expected = {networks.TENANT} if node.provision_state == states.ACTIVE else set()
    return not wiring.is_settled(node) or any(one.purpose not in expected for one in wiring.list_noted(node))
