"""What an instance learns of its networks (``network_data.json``): the user's ports, as Neutron has them."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces.places import PortLike, list_members
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron.connection import Neutron


class _Part(NamedTuple):
    """What one port of Neutron adds."""

    links: list[Json]
    networks: list[Json]
    services: list[Json]


def build(task: Task, neutron: Neutron, connected: Mapping[str, PortLike]) -> Json:
    """Return links, networks and name servers; nothing for a machine without ports.

    :param connected: ports and portgroups by the uuids of their ports in Neutron.
    :raises NetworkError: one is gone.
    """
    if not connected:
        return {}
    parts: list[_Part] = []
    for ident, one in connected.items():
        parts.append(_describe(task, neutron, ident, one, first=sum(len(part.links) for part in parts)))
    services = [service for part in parts for service in part.services]
    return {
        "links": [link for part in parts for link in part.links],
        "networks": [network for part in parts for network in part.networks],
        "services": [service for number, service in enumerate(services) if service not in services[:number]],
    }


def _describe(task: Task, neutron: Neutron, ident: str, one: PortLike, first: int) -> _Part:
    """
    :param first: number of its first link: links have short names, because some systems name their cards so.
    """
    port = neutron.find_port(ident)
    if port is None:
        raise errors.NetworkError(f"Port {ident} of Neutron is gone, and the machine is to learn of it.")
    name = f"iface{first}"
    mtu = neutron.find_mtu(port)
    link = {"id": name, "type": "phy", "ethernet_mac_address": one.address or port["mac_address"]}
    link |= {"vif_id": ident, "mtu": mtu}
    links = [link]
    if isinstance(one, models.Portgroup):
        members = [
            {"id": f"iface{first + number}", "type": "phy", "ethernet_mac_address": member.address, "mtu": mtu}
            for number, member in enumerate(list_members(task, one), start=1)
        ]
        link |= {"type": "bond", "bond_links": [member["id"] for member in members], **_describe_bond(one)}
        links += members
    networks, services = [], []
    for address, subnet in neutron.list_subnets(port):
        networks.append(_describe_address(name, port, address, subnet))
        services += [{"type": "dns", "address": server} for server in subnet.get("dns_nameservers") or ()]
    return _Part(links, networks, services)


def _describe_bond(group: models.Portgroup) -> Json:
    mode = {"bond_mode": group.mode} if group.mode else {}
    policy = group.properties.get("xmit_hash_policy") or group.properties.get("bond_xmit_hash_policy")
    return {**mode, **({"bond_xmit_hash_policy": policy} if policy else {})}


def _describe_address(link: str, port: Json, address: str, subnet: Json) -> Json:
    network = ipaddress.ip_network(subnet["cidr"])
    return {
        "id": subnet["id"],
        "network_id": port["network_id"],
        "type": f"ipv{subnet['ip_version']}",
        "link": link,
        "ip_address": address,
        "netmask": str(network.netmask),
        "routes": list(_list_routes(subnet)),
    }


def _list_routes(subnet: Json) -> Iterator[Json]:
    if gateway := subnet.get("gateway_ip"):
        anywhere = "::" if subnet["ip_version"] == 6 else "0.0.0.0"  # noqa: S104  # a route, no address to listen on
        yield {"network": anywhere, "netmask": anywhere, "gateway": gateway}
    for route in subnet.get("host_routes") or ():
        to = ipaddress.ip_network(route["destination"])
        yield {"network": str(to.network_address), "netmask": str(to.netmask), "gateway": route["nexthop"]}
