"""The network interface: which networks a machine's ports are connected to in each phase of its life."""

from typing import Any

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class NetworkInterface(BaseInterface):
    """Flows call these; an implementation that changes nothing does nothing. All of them are safe to repeat."""

    kind = "network"

    def add_provisioning_network(self, task: Task) -> None:
        """Connects the machine to the network on which deployments run."""
        raise NotImplementedError

    def remove_provisioning_network(self, task: Task) -> None:
        """Undoes :meth:`add_provisioning_network`."""
        raise NotImplementedError

    def add_cleaning_network(self, task: Task) -> None:
        """Connects the machine to the network on which cleaning runs."""
        raise NotImplementedError

    def remove_cleaning_network(self, task: Task) -> None:
        """Undoes :meth:`add_cleaning_network`."""
        raise NotImplementedError

    def add_servicing_network(self, task: Task) -> None:
        """Connects the machine to the network on which it is serviced while an instance is on its disks. Without one
        of its own that is the network of cleaning: both run the operator's agent."""
        self.add_cleaning_network(task)

    def remove_servicing_network(self, task: Task) -> None:
        """Undoes :meth:`add_servicing_network`."""
        self.remove_cleaning_network(task)

    def add_inspection_network(self, task: Task) -> None:
        """Connects the machine to the network on which it is inspected; without one of its own as above."""
        self.add_cleaning_network(task)

    def remove_inspection_network(self, task: Task) -> None:
        """Undoes :meth:`add_inspection_network`."""
        self.remove_cleaning_network(task)

    def add_rescuing_network(self, task: Task) -> None:
        """Connects the machine to the network on which it boots for a rescue; without one of its own as above."""
        self.add_cleaning_network(task)

    def remove_rescuing_network(self, task: Task) -> None:
        """Undoes :meth:`add_rescuing_network`."""
        self.remove_cleaning_network(task)

    def configure_tenant_networks(self, task: Task) -> None:
        """Connects the machine to its user's networks."""
        raise NotImplementedError

    def unconfigure_tenant_networks(self, task: Task) -> None:
        """Undoes :meth:`configure_tenant_networks`."""
        raise NotImplementedError

    # The user's networks, a virtual interface (VIF) at a time; flows do not call these.

    def list_vifs(self, task: Task) -> list[dict[str, Any]]:
        """The VIFs that are attached to the machine: objects with ``id``."""
        raise NotImplementedError

    def attach_vif(self, task: Task, vif: dict[str, Any]) -> None:
        """Notes that a port of the machine shall be on a VIF's network, and connects it if its user has the machine.

        :param vif: ``id``, and what else the user sent: ``port_uuid`` or ``portgroup_uuid``, and anything that the
            network service understands.
        :raises Conflict: it is attached already.
        :raises Invalid: no port is free for it.
        """
        raise NotImplementedError

    def detach_vif(self, task: Task, vif_id: str) -> None:
        """Undoes :meth:`attach_vif`.

        :raises Invalid: it is not attached.
        """
        raise NotImplementedError
