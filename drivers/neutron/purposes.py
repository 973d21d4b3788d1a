"""What conductors connect machines for: the networks of deployment, cleaning, rescue, inspection and service."""

from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors, networks
from ingot.common.conf import opts
from ingot.drivers.interfaces.task import Task


class Purpose(NamedTuple):
    """A network of the operator's.

    :param name: in the names of options, keys and notes.
    """

    name: str

    @property
    def option(self) -> str:
        """Name of the option, and of the key of driver_info that goes before it."""
        return f"{self.name}_network"

    @property
    def note(self) -> str:
        """See :func:`networks.name_note`."""
        return networks.name_note(self.name)

    @property
    def _words(self) -> str:
        return f"Ingot: {self.name} network"

    def describe(self, conf: cfg.ConfigOpts) -> str:
        """Return what ports on this network say of themselves: what for, and which Ingot has created them."""
        return f"{self._words} ({opts.agent_api_url(conf)})"

    def is_described(self, description: object) -> bool:
        """Return whether a port of Neutron says that it is on this network."""
        return str(description).startswith(self._words)

    def read_network(self, task: Task) -> tuple[str, str]:
        """Return what names the network, and uuid or name of it.

        :raises MissingParameter: nothing does.
        """
        own = task.node.driver_info.get(self.option)
        given = own or task.conf.neutron[self.option]
        if not given:
            raise errors.MissingParameter(
                where="network", names=f"[neutron] {self.option}, or driver_info.{self.option} of the node"
            )
        return (f"driver_info.{self.option}" if own else f"[neutron] {self.option}"), str(given)

    def read_security_groups(self, task: Task) -> tuple[str, list[str]]:
        """Return the name of the option that says which security groups ports get, and its value."""
        name = f"{self.option}_security_groups"
        return f"[neutron] {name}", task.conf.neutron[name]


BY_NAME = {name: Purpose(name) for name in networks.PURPOSES}
PROVISIONING, CLEANING, RESCUING, INSPECTION, SERVICING = BY_NAME.values()
