"""The network interfaces ``flat`` and ``neutron``.

With ``neutron`` each purpose has a network of its own, between which drivers of Neutron switch a machine's ports. With
``flat`` the machine stays on one network: it is deployed, rescued and serviced on its user's ports of Neutron.
"""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

from oslo_log import log
from oslo_utils import strutils

from ingot.common import context, errors, states
from ingot.common.json_types import Json
from ingot.drivers.interfaces import base, places, results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.periodic import Fleet, periodic
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import active_ports, connection, network_data, purpose_ports, purposes, smart_nics, vifs
from ingot.drivers.neutron.connection import Neutron
from ingot.drivers.neutron.purposes import Purpose

LOG = log.getLogger(__name__)

_STRICT = "fail_on_binding_failure"
"""Key of driver_info: whether a port that Neutron has not bound is an error."""


class NeutronInterface(NetworkInterface):
    """What both have in common.

    :cvar required: the purposes without whose network a node cannot do with the interface.
    :cvar needs_link: whether Neutron has to know what ports are cabled to.
    """

    required: ClassVar[tuple[Purpose, ...]]
    needs_link: ClassVar[bool]

    def check_enabled(self, enabled: Mapping[str, BaseInterface]) -> None:
        connection.check(self.conf, f"network interface {self.name}")

    def get_properties(self) -> dict[str, str]:
        networks = {
            one.option: f"Uuid or name of the network for {name}. Optional, default [neutron] {one.option}."
            for name, one in purposes.BY_NAME.items()
        }
        return {**networks, _STRICT: "Whether a port that Neutron has not bound is an error. Optional."}

    def validate(self, task: Task) -> None:
        self._is_strict(task)
        neutron = self.open(task.context)
        for purpose in self.required:
            neutron.find_network(*purpose.read_network(task))

    def open(self, ctx: context.RequestContext) -> Neutron:
        """Return Neutron as it is asked for a request."""
        return Neutron(self.conf, lambda: self._connection, ctx)

    @functools.cached_property
    def _connection(self) -> Any:
        return connection.connect(self.conf)

    def _is_strict(self, task: Task) -> bool:
        """
        :raises Invalid: driver_info says neither true nor false.
        """
        given = task.node.driver_info.get(_STRICT)
        try:
            return self._fails_unbound() if given is None else strutils.bool_from_string(given, strict=True)
        except ValueError as exc:
            raise errors.Invalid(field=f"driver_info.{_STRICT}", value=given, allowed="True or false.") from exc

    def _fails_unbound(self) -> bool:
        """Return whether an unbound port is an error on nodes that do not say."""
        return False

    def _enter(self, task: Task, purpose: Purpose) -> Answer:
        self._leave_all(task, but=purpose)
        return purpose_ports.enter(task, self.open(task.context), purpose, self.needs_link, self._is_strict(task))

    def _leave(self, task: Task, purpose: Purpose) -> None:
        purpose_ports.leave(task, self.open(task.context), purpose)

    def _leave_all(self, task: Task, but: Purpose | None = None) -> None:
        """Take the machine off the operator's networks: it may be left on one by what failed, or for fast track."""
        for purpose in purpose_ports.list_entered(task):
            if purpose != but:
                self._leave(task, purpose)

    def add_cleaning_network(self, task: Task) -> Answer:
        return self._enter(task, purposes.CLEANING)

    def remove_cleaning_network(self, task: Task) -> None:
        self._leave(task, purposes.CLEANING)

    def add_inspection_network(self, task: Task) -> Answer:
        return self._enter(task, purposes.INSPECTION)

    def remove_inspection_network(self, task: Task) -> None:
        self._leave(task, purposes.INSPECTION)

    def configure_tenant_networks(self, task: Task) -> Answer:
        neutron = self.open(task.context)
        if not active_ports.is_waiting(task):
            self._leave_all(task)
            vifs.bind_all(task, neutron, self._is_strict(task))
        return active_ports.wait(task, neutron, places.list_attached(task))

    def unconfigure_tenant_networks(self, task: Task) -> None:
        vifs.release_all(task, self.open(task.context))

    def needs_power(self, task: Task) -> bool:
        return smart_nics.has_any(task)

    def get_ready(self, task: Task) -> Answer:
        return smart_nics.wait(task, self.open(task.context))

    def get_instance_network_data(self, task: Task) -> Json:
        return network_data.build(task, self.open(task.context), places.list_attached(task))

    def get_agent_network_data(self, task: Task) -> Json:
        connected = purpose_ports.list_connected(task) or places.list_attached(task)
        found = network_data.build(task, self.open(task.context), connected)
        return found if found.get("networks") else {}

    def list_vifs(self, task: Task) -> list[Json]:
        return [{"id": ident} for ident in places.list_attached(task)]

    def attach_vif(self, task: Task, vif: Json) -> None:
        vifs.attach(
            task, self.open(task.context), vif, self.needs_link, binds=task.node.provision_state == states.ACTIVE
        )

    def detach_vif(self, task: Task, vif_id: str) -> None:
        vifs.detach(task, self.open(task.context), vif_id)

    def change_port(self, task: Task, uuid: str, address: str | None, client_id: str | None) -> None:
        is_bound = task.node.provision_state == states.ACTIVE
        vifs.change(task, self.open(task.context), uuid, address, client_id, is_bound)

    # Ports that are left behind

    @periodic(spacing=base.from_option(connection.GROUP, "port_sweep_interval"))
    def sweep_ports(self, fleet: Fleet) -> None:
        """Delete ports that no node needs: those of deleted nodes, and of nodes that are at rest."""
        neutron = self.open(fleet.context)
        by_node: dict[str, list[str]] = {}
        for port in neutron.list_ports(device_owner=connection.OWNER, description=self._list_descriptions()):
            by_node.setdefault(port["device_id"], []).append(port["id"])
        if not by_node:
            return
        for uuid in fleet.list_unknown(by_node):
            LOG.warning("Node %s is gone; ports in Neutron that are deleted, too: %s", uuid, by_node[uuid])
            for ident in by_node[uuid]:
                _try_to_delete(neutron, ident)
        for node in places.list_at_rest(fleet.nodes(), self.conf.deploy.fast_track):
            if node.uuid in by_node:
                fleet.change(node, "deleting ports that are left in Neutron", self._leave_at_rest)

    def _list_descriptions(self) -> list[str]:
        return [one.describe(self.conf) for one in purposes.BY_NAME.values()]

    def _leave_at_rest(self, task: Task) -> None:
        if places.list_at_rest([task.node], self.conf.deploy.fast_track):
            self._leave_all(task)


def _try_to_delete(neutron: Neutron, ident: str) -> None:
    """Delete a port; one that Neutron keeps does not stop the others."""
    try:
        neutron.delete_port(ident)
    except errors.NetworkError as exc:
        LOG.warning("A port of a node that is gone stays: %s", exc.message)


class FlatNetwork(NeutronInterface):
    """The network interface ``flat``."""

    required = (purposes.CLEANING,)
    needs_link = False

    def add_provisioning_network(self, task: Task) -> Answer:
        """Connect the machine to its user's network, which is that of deployments, like the others."""
        return self.configure_tenant_networks(task)

    def remove_provisioning_network(self, task: Task) -> None:
        self.unconfigure_tenant_networks(task)

    add_rescuing_network = add_servicing_network = add_provisioning_network
    remove_rescuing_network = remove_servicing_network = remove_provisioning_network


class NeutronNetwork(NeutronInterface):
    """The network interface ``neutron``."""

    required = (purposes.CLEANING, purposes.PROVISIONING)
    needs_link = True

    def validate(self, task: Task) -> None:
        if task.node.disable_power_off and not self.conf.neutron.allow_disabling_power_off:
            allowed = (
                "With the network interface neutron an instance has to be off while its machine is moved to another "
                "network: set it to false, or [neutron] allow_disabling_power_off to true."
            )
            raise errors.Invalid(field="disable_power_off", value=True, allowed=allowed)
        super().validate(task)

    def _fails_unbound(self) -> bool:
        return bool(self.conf.neutron.fail_on_port_binding_failure)

    def add_provisioning_network(self, task: Task) -> Answer:
        return self._enter(task, purposes.PROVISIONING)

    def remove_provisioning_network(self, task: Task) -> None:
        self._leave(task, purposes.PROVISIONING)

    def add_rescuing_network(self, task: Task) -> Answer:
        return self._enter(task, purposes.RESCUING)

    def remove_rescuing_network(self, task: Task) -> None:
        self._leave(task, purposes.RESCUING)

    def add_servicing_network(self, task: Task) -> Answer:
        return self._enter(task, purposes.SERVICING)

    def remove_servicing_network(self, task: Task) -> None:
        self._leave(task, purposes.SERVICING)

    @base.service_step(priority=0, requires_ramdisk=False, idempotent=True)
    def reattach_networking(self, task: Task) -> Answer:
        """Bind the user's ports anew, without a reboot of the machine."""
        return results.run_phases(task, self.unconfigure_tenant_networks, self.configure_tenant_networks)
