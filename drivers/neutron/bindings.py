"""How a port or portgroup of a machine looks in Neutron: what binds a port of Neutron to it, in the words of its API.

What must not change of a user's port, because the user or Nova has set it, is not in here.
"""

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces import places
from ingot.drivers.interfaces.places import PortLike
from ingot.drivers.interfaces.task import Task

BAREMETAL, SMART_NIC = "baremetal", "smart-nic"
"""Types of virtual network cards (``binding:vnic_type``)."""

HOST, PROFILE, TYPE, VIF_TYPE = "binding:host_id", "binding:profile", "binding:vnic_type", "binding:vif_type"

UNBOUND: Json = {HOST: "", PROFILE: {}}

CLIENT_ID = "client-id"
"""Key of ``extra`` of InfiniBand ports, and the option of DHCP that says the same."""

_SMART_NIC_LINK = frozenset(("port_id", "hostname"))


def find_physical_network(task: Task, one: PortLike) -> str | None:
    """Return the physical network of a port; of a portgroup, that of its ports."""
    if isinstance(one, models.Port):
        return one.physical_network
    return next((port.physical_network for port in places.list_members(task, one)), one.physical_network)


def find_lack(port: models.Port, needs_link: bool) -> str | None:
    """Return what a port lacks to be connected; None: nothing.

    :param needs_link: whether Neutron has to know the other end of its cable. An InfiniBand port's is found otherwise.
    """
    link = port.local_link_connection
    if port.is_smartnic and not link.keys() >= _SMART_NIC_LINK:
        return "it is of a smart NIC, so local_link_connection needs port_id and hostname"
    if not port.is_smartnic and link.keys() == _SMART_NIC_LINK:
        return "its local_link_connection is of a smart NIC: set is_smartnic, too"
    if needs_link and not link and not port.extra.get(CLIENT_ID):
        return "its local_link_connection is empty, which says what it is cabled to"
    return None


def describe(task: Task, one: PortLike) -> Json:
    """Return what binds a port of Neutron to a port or portgroup of the machine.

    :raises Invalid: a smart NIC does not say its host.
    """
    profile: Json
    if isinstance(one, models.Portgroup):
        links = [port.local_link_connection for port in places.list_members(task, one)]
        profile = {"local_link_information": links, "local_group_information": _describe_group(one)}
    else:
        profile = {"local_link_information": [one.local_link_connection]}
    if network := find_physical_network(task, one):
        profile["physical_network"] = network
    attributes: Json = {HOST: task.node.uuid, TYPE: BAREMETAL, PROFILE: profile}
    if isinstance(one, models.Port) and one.is_smartnic:
        attributes |= {HOST: _read_host(one), TYPE: SMART_NIC}
    if one.address:  # that of a portgroup is optional
        attributes["mac_address"] = one.address
    if client := one.extra.get(CLIENT_ID):
        attributes["extra_dhcp_opts"] = [{"opt_name": CLIENT_ID, "opt_value": client}]
    return attributes


def _read_host(port: models.Port) -> str:
    host = port.local_link_connection.get("hostname")
    if not host:
        allowed = "The port of a smart NIC needs the hostname of its agent there."
        raise errors.Invalid(field=f"port {port.uuid}: local_link_connection", value=host, allowed=allowed)
    return str(host)


def _describe_group(group: models.Portgroup) -> Json:
    """Return a portgroup as drivers of switches expect it: its options begin with ``bond``, as the kernel's do."""
    options = {key if key.startswith("bond") else f"bond_{key}": value for key, value in group.properties.items()}
    return {"id": group.uuid, "name": group.name, "bond_mode": group.mode, "bond_properties": options}
