"""The network interface: which networks a machine's ports are connected to in each phase of its life.

What connects a machine is called again until it answers done, like the phase of a step: ports may take a while. So is
what disconnects it, except after an inspection and a rescue, which may have failed: these have to be over when they
return.
"""

from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class NetworkInterface(BaseInterface):
    """Flows call these; an implementation that changes nothing does nothing. All of them are safe to repeat."""

    interface_type = "network"

    def add_provisioning_network(self, task: Task) -> Answer:
        """Connect the machine to the network on which deployments run."""
        raise NotImplementedError

    def remove_provisioning_network(self, task: Task) -> Answer:
        """Undo :meth:`add_provisioning_network`."""
        raise NotImplementedError

    def add_cleaning_network(self, task: Task) -> Answer:
        """Connect the machine to the network on which cleaning runs."""
        raise NotImplementedError

    def remove_cleaning_network(self, task: Task) -> Answer:
        """Undo :meth:`add_cleaning_network`."""
        raise NotImplementedError

    def add_servicing_network(self, task: Task) -> Answer:
        """Connect the machine to the network on which it is serviced while an instance is on its disks.

        Without one of its own that is the network of cleaning: both run the operator's agent.
        """
        return self.add_cleaning_network(task)

    def remove_servicing_network(self, task: Task) -> Answer:
        """Undo :meth:`add_servicing_network`."""
        return self.remove_cleaning_network(task)

    def add_inspection_network(self, task: Task) -> Answer:
        """Connect the machine to the network on which it is inspected; without one of its own as above."""
        return self.add_cleaning_network(task)

    def remove_inspection_network(self, task: Task) -> None:
        """Undo :meth:`add_inspection_network`."""
        self.remove_cleaning_network(task)

    def add_rescuing_network(self, task: Task) -> Answer:
        """Connect the machine to the network on which it boots for a rescue; without one of its own as above."""
        return self.add_cleaning_network(task)

    def remove_rescuing_network(self, task: Task) -> None:
        """Undo :meth:`add_rescuing_network`."""
        self.remove_cleaning_network(task)

    def configure_tenant_networks(self, task: Task) -> Answer:
        """Connect the machine to its user's networks."""
        raise NotImplementedError

    def unconfigure_tenant_networks(self, task: Task) -> Answer:
        """Undo :meth:`configure_tenant_networks`."""
        raise NotImplementedError

    def needs_power(self, task: Task) -> bool:
        """Return whether the machine has to be on while its connections are changed; see ``booting.reconnect``."""
        return False

    def get_ready(self, task: Task) -> Answer:
        """Wait until a machine that was switched on for that can be connected."""
        return None

    # What is known of networks, as ``network_data.json``; nothing: what starts there asks DHCP

    def get_instance_network_data(self, task: Task) -> Json:
        """Return what the instance learns of its user's networks."""
        return {}

    def get_agent_network_data(self, task: Task) -> Json:
        """Return what the agent learns of the network on which it runs."""
        return {}

    # The user's networks, a virtual interface (VIF) at a time; flows do not call these.

    def list_vifs(self, task: Task) -> list[Json]:
        """Return the VIFs that are attached to the machine: objects with ``id``."""
        raise NotImplementedError

    def attach_vif(self, task: Task, vif: Json) -> None:
        """Note that a port of the machine is to be on a VIF's network, and connect it if its user has the machine.

        :param vif: ``id``, and what else the user sent: ``port_uuid``, ``portgroup_uuid``, keys of the network service.
        :raises Conflict: it is attached already.
        :raises Invalid: no port is free for it.
        """
        raise NotImplementedError

    def detach_vif(self, task: Task, vif_id: str) -> None:
        """Undo :meth:`attach_vif`.

        :raises Invalid: it is not attached.
        """
        raise NotImplementedError

    def change_port(self, task: Task, uuid: str, address: str | None, client_id: str | None) -> None:
        """Carry a change of a port or portgroup to the VIF that is attached to it, before the change is written.

        :param address: the new one; None: it stays.
        :param client_id: of DHCP; None: it stays, and empty: there is none.
        """
