"""What Neutron's DHCP servers say to a machine that boots from the network: options of the ports that it has there."""

import ipaddress
from collections.abc import Iterator, Mapping

from oslo_utils import netutils

from ingot.common import errors
from ingot.common.networks import VIF_NOTES
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.places import list_places
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron.network import NeutronInterface

_Options = Mapping[str, str | None]
"""Values by the names of options; None: it is taken away."""

_SERVER = ("66", "150", "server-ip-address")
"""Names of the option with the TFTP server: each is what some firmware reads."""

_LOADER, _SCRIPT = "tag:!ipxe,67", "tag:ipxe,67"
"""Neutron's dnsmasq marks requests of iPXE with a tag."""

_LOADER_6, _SCRIPT_6 = "tag:!ipxe6,59", "tag:ipxe6,59"
"""The same for DHCPv6, where a URL names server and file (RFC 5970)."""


def check(task: Task) -> None:
    """Refuse a node that has no ports in Neutron.

    :raises Invalid: its network interface makes none.
    """
    _get_interface(task)


def _get_interface(task: Task) -> NeutronInterface:
    interface = get_interface(task, NetworkInterface)
    if not isinstance(interface, NeutronInterface):
        allowed = "With [dhcp] dhcp_provider = neutron a node needs flat or neutron."
        raise errors.Invalid(field="network_interface", value=interface.name, allowed=allowed)
    return interface


def write(task: Task, loader: str, script: str) -> None:
    """Have the machine started by a loader, and by a script when iPXE runs.

    :param loader: name of a file of the TFTP server.
    """
    server = task.conf.pxe.tftp_server
    by_version: dict[int, _Options] = {
        4: {**dict.fromkeys(_SERVER, server), _LOADER: loader, _SCRIPT: script},
        6: {_LOADER_6: f"tftp://{netutils.escape_ipv6(server)}/{loader}", _SCRIPT_6: script},
    }
    _update(task, {version: by_version[version] for version in _list_versions(server)})


def _list_versions(server: str) -> tuple[int, ...]:
    """Return the versions of IP by which a server is reached. One address in an option of the other ends dnsmasq."""
    try:
        return (ipaddress.ip_address(server).version,)
    except ValueError:  # a name
        return 4, 6


def erase(task: Task) -> None:
    """Take the options away from ports that stay: those of the user. Neutron forgets those of ports that go."""
    _update(task, {4: dict.fromkeys((*_SERVER, _LOADER, _SCRIPT)), 6: dict.fromkeys((_LOADER_6, _SCRIPT_6))})


def _update(task: Task, by_version: Mapping[int, _Options]) -> None:
    """
    :param by_version: the options of each version of IP.
    """
    options = [
        {"opt_name": name, "opt_value": value, "ip_version": version}
        for version, values in by_version.items()
        for name, value in values.items()
    ]
    neutron = _get_interface(task).open(task.context)
    for ident in _list_ports(task):
        neutron.update_port(ident, {"extra_dhcp_opts": options})


def _list_ports(task: Task) -> Iterator[str]:
    for one in list_places(task):
        found = (one.internal_info[note] for note in VIF_NOTES if note in one.internal_info)
        yield from list(found)[:1]
