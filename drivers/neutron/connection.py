"""The way to Neutron, by openstacksdk, a library of its own (``pip install ingot[neutron]``).

Everything that is asked ends within ``[neutron] request_timeout``, and every error says of what network or port it is,
in Neutron's own words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot.common import errors, later, metrics
from ingot.common.json_types import Json
from ingot.drivers.openstack import service
from ingot.drivers.openstack.service import show

if TYPE_CHECKING:
    import openstack.exceptions as openstack_errors
else:
    openstack_errors = later.Module("openstack.exceptions")

GROUP = "neutron"

_GONE = (204, 404)

OWNER = "baremetal:none"
"""``device_owner`` of ports that a conductor has created."""

SERVICE = service.Service(
    name="Neutron",
    group=GROUP,
    kind="network",
    requests=metrics.NETWORK_REQUESTS,
    unavailable=errors.NetworkServiceUnavailable,
    refused=errors.NetworkError,
)

check = SERVICE.check
connect = SERVICE.connect


class Neutron(service.Client):
    """Neutron, for one piece of work."""

    service = SERVICE

    # Networks

    def find_network(self, field: str, given: str) -> Json:
        """Return a network by its uuid or name.

        :param field: what names it, for messages.
        :raises Invalid: there is none, or there are several of that name.
        :raises IngotError: Neutron does not answer, or refuses; see :meth:`service.Client._ask`, as all methods.
        """
        with self._ask(f"Network {given} ({field})"):
            found = show(self._proxy.networks(id=given)) or show(self._proxy.networks(name=given))
        if len(found) != 1:
            many = (
                f"{len(found)} networks have this name, give the uuid of one: {', '.join(one['id'] for one in found)}."
            )
            allowed = many if found else "Neutron has no network with this uuid or name that Ingot may use."
            raise errors.Invalid(field=field, value=given, allowed=allowed)
        return found[0]

    def find_physical_networks(self, port: Json) -> set[str]:
        """Return the physical networks that a port can be on; none: any.

        Where its network has several segments, an address says which of them it is.
        """
        with self._ask(f"Network {port['network_id']} of port {port['id']}"):
            (network,) = show(self._proxy.networks(id=port["network_id"])) or ({},)
            segments = network.get("segments") or [network]
            if len(segments) > 1:
                segments = self._list_segments(port) or segments
        names = (one.get("provider:physical_network") or one.get("physical_network") for one in segments)
        return {name for name in names if name}

    def _list_segments(self, port: Json) -> list[Json]:
        """Return the segments that the addresses of a port are in."""
        addresses = port.get("fixed_ips") or ()
        subnets = [subnet for address in addresses for subnet in show(self._proxy.subnets(id=address["subnet_id"]))]
        idents = {subnet["segment_id"] for subnet in subnets if subnet.get("segment_id")}
        found = [self._proxy.find_segment(ident, ignore_missing=True) for ident in idents]
        return show(one for one in found if one)

    def find_mtu(self, port: Json) -> int | None:
        """Return the largest frame of a port's network; None: it is not said."""
        with self._ask(f"Network {port['network_id']} of port {port['id']}"):
            (network,) = show(self._proxy.networks(id=port["network_id"])) or ({},)
        mtu: int | None = network.get("mtu")
        return mtu

    def list_subnets(self, port: Json) -> list[tuple[str, Json]]:
        """Return the addresses of a port, each with its subnet."""
        addresses = port.get("fixed_ips") or []
        if not addresses:
            return []
        with self._ask(f"Subnets of port {port['id']}"):
            found = show(self._proxy.subnets(id=[address["subnet_id"] for address in addresses]))
        by_id = {subnet["id"]: subnet for subnet in found}
        return [(one["ip_address"], by_id[one["subnet_id"]]) for one in addresses if one["subnet_id"] in by_id]

    def check_security_groups(self, option: str, groups: Sequence[str]) -> None:
        """
        :param option: what names them.
        :raises Invalid: one is not there.
        """
        if not groups:
            return
        with self._ask(f"Security groups of {option}"):
            known = {group["id"] for group in show(self._proxy.security_groups(id=list(groups)))}
        if missing := sorted(set(groups) - known):
            allowed = "Neutron has no security groups with these uuids."
            raise errors.Invalid(field=option, value=", ".join(missing), allowed=allowed)

    def has_stateful_addresses(self, port: Json) -> bool:
        """Return whether a port's addresses are of stateful DHCPv6."""
        subnets = [address["subnet_id"] for address in port["fixed_ips"] if ":" in address["ip_address"]]
        with self._ask(f"Subnets of port {port['id']}"):
            found = [subnet for ident in subnets[:1] for subnet in show(self._proxy.subnets(id=ident))]
        return any(subnet.get("ipv6_address_mode") == "dhcpv6-stateful" for subnet in found)

    def has_live_agent(self, host: str) -> bool:
        """Return whether an agent of Neutron runs on a host."""
        with self._ask(f"Agents of host {host}"):
            return any(agent.get("alive") for agent in show(self._proxy.agents(host=host)))

    # Ports

    def list_ports(self, **having: object) -> list[Json]:
        """Return the ports with these values."""
        with self._ask(f"Ports with {', '.join(f'{name} {value}' for name, value in having.items())}"):
            return show(self._proxy.ports(**having))

    def find_port(self, ident: str) -> Json | None:
        """Return a port by its uuid; None if it is not there."""
        with self._ask(f"Port {ident}"):
            return next(iter(show(self._proxy.ports(id=ident))), None)

    def create_port(self, attributes: Json) -> Json:
        """Create a port, complete or not at all."""
        with self._ask(f"A port for {attributes['mac_address']} on network {attributes['network_id']}"):
            return show([self._proxy.create_port(**attributes)])[0]

    def update_port(self, ident: str, attributes: Json) -> Json | None:
        """Change a port and return it; None if it is not there."""
        with self._ask(f"Port {ident}"):
            try:
                return show([self._proxy.update_port(ident, **attributes)])[0]
            except openstack_errors.NotFoundException:
                return None

    def delete_port(self, ident: str) -> None:
        """Delete a port, if it is there."""
        with self._ask(f"Port {ident}"):
            answer = self._proxy.delete(f"/ports/{ident}")  # delete_port takes a proxy's page for a yes
            if answer.status_code not in _GONE:
                openstack_errors.raise_from_response(answer)
                raise ValueError(f"HTTP {answer.status_code} for the deletion of a port")
