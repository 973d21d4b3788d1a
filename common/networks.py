"""Networks in options: whether an address is in one of them, and what those of Neutron are for."""

import ipaddress
import socket
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oslo_config import cfg, types

PURPOSES: Mapping[str, str] = {
    "provisioning": "deployments run",
    "cleaning": "cleaning runs",
    "rescuing": "machines boot for a rescue",
    "inspection": "inspections run",
    "servicing": "machines are serviced",
}
"""Networks of Neutron that conductors connect machines to: what they are called, and what is done there."""

TENANT = "tenant"


def name_note(purpose: str) -> str:
    """Return the key of a port's ``internal_info`` with the port of Neutron that it has for a purpose, or for its user.

    :param purpose: one of :data:`PURPOSES`, or :data:`TENANT`.
    """
    return f"{purpose}_vif_port_id"


VIF_NOTES = tuple(map(name_note, (*PURPOSES, TENANT)))
"""The keys of all of them: while there is one of the operator's, it is what the machine is connected to."""

ASK_NEUTRON = frozenset(("flat", "neutron"))
"""Network interfaces with which Neutron connects a node's ports."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NetworkType(types.ConfigType):
    """The type of an option whose value is a network, such as 10.0.0.0/8; an address is a network of one."""

    def __init__(self) -> None:
        super().__init__(type_name="network")

    def __call__(self, value: object) -> Network:
        return ipaddress.ip_network(str(value).strip())

    def _formatter(self, value: object) -> str:
        return str(value)

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__

    __hash__ = None  # type: ignore[assignment]


def build_option(name: str, default: Sequence[str], **about: Any) -> cfg.Opt:
    """Return an option that is a list of networks."""
    return cfg.Opt(name, type=types.List(NetworkType()), default=list(default), **about)


class Networks(NamedTuple):
    """Where one may go.

    :param denied: never there.
    :param allowed: only there; empty: everywhere else.
    """

    denied: Sequence[Network] = ()
    allowed: Sequence[Network] = ()

    def permit(self, host: str) -> bool:
        """Return whether an address may be reached; that of a name is not known here, so a name may."""
        found = _parse_address(host.partition("%")[0])
        if found is None:
            return True
        return not _is_in(self.denied, found) and (not self.allowed or _is_in(self.allowed, found))


def contain(networks: Sequence[Network], host: str) -> bool:
    """Return whether an address is in one of the networks; what is no address is in none."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return _is_in(networks, found)


def _is_in(networks: Sequence[Network], address: _Address) -> bool:
    """Return whether an address is in one of the networks; one of IPv4 may be written as one of IPv6."""
    plain = address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
    return any(plain in network for network in networks)


def read_address(place: str) -> _Address | None:
    """Return the address in a host, in a host with a port, or in a URL; None where that has a name."""
    try:
        host = urllib.parse.urlsplit(place if "://" in place else f"//{place}").hostname or place
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(place)  # of IPv6, without brackets
    except ValueError:
        return None


ANYWHERE = Networks()


def _parse_address(host: str) -> _Address | None:
    """Return an address in any form that connections take, such as 127.1; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):  # the latter for what no name has, such as NUL
        return None
