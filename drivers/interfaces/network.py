"""The network interface: which networks a machine's ports are connected to in each phase of its life."""

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

    def configure_tenant_networks(self, task: Task) -> None:
        """Connects the machine to its user's networks."""
        raise NotImplementedError

    def unconfigure_tenant_networks(self, task: Task) -> None:
        """Undoes :meth:`configure_tenant_networks`."""
        raise NotImplementedError
