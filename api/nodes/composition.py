"""Which interfaces a node may have: what the online conductors of its group have enabled for its driver.

The rules of driver composition (specification 004), on the tables that the conductors fill: no conductor is asked.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ingot.api.web.call import Call
from ingot.common import errors, interfaces
from ingot.db import conductors

Interfaces = Mapping[str, str | None]
"""By field name, e.g. ``boot_interface``."""


class InterfaceOffer(NamedTuple):
    """What a hardware type offers in a conductor group.

    :param enabled: by interface type, the interfaces that every conductor of the group has enabled, in order of
        preference. A node may move from one conductor to another, so all of them must know its interfaces.
    :param defaults: by interface type, the calculated default.
    """

    enabled: Mapping[str, list[str]]
    defaults: Mapping[str, str]


def build_offer(rows: Sequence[conductors.InterfaceOnline]) -> InterfaceOffer:
    """Return the offer that rows of enabled interfaces, of one hardware type, amount to."""
    hosts = {row.hostname for row in rows}
    hosts_with: dict[tuple[str, str], set[str]] = {}
    defaults: dict[str, str] = {}
    for row in rows:
        hosts_with.setdefault((row.interface_type, row.interface_name), set()).add(row.hostname)
        if row.default:
            defaults.setdefault(row.interface_type, row.interface_name)
    enabled: dict[str, list[str]] = {}
    for (interface_type, name), having in hosts_with.items():
        if having == hosts:
            enabled.setdefault(interface_type, []).append(name)
    return InterfaceOffer(enabled, defaults)


def compose(call: Call, driver: str, group: str, kept: Interfaces, given: Interfaces) -> Interfaces:
    """Return the interface fields of a node with this driver in this conductor group: one or two statements.

    :param kept: what the node has; a classic driver drops it. What is absent or None takes the default.
    :param given: what the request asks for.
    :raises InterfaceNotFound: interfaces are not enabled for the hardware type.
    :raises Invalid: the driver is a classic one, and the request asks for an interface.
    :raises ServiceUnavailable: the conductors that have the driver enabled are offline at the moment.
    :raises NoConductor: no conductor of the group has it enabled.
    """
    timeout = call.conf.conductor.heartbeat_timeout
    rows = conductors.enabled_interfaces(call.db, timeout, [driver], group)
    if rows:
        return _complete(driver, build_offer(rows), {**kept, **given})
    if driver not in {name for _host, _group, name in conductors.classic_drivers(call.db, timeout, group)}:
        conductors.raise_if_lately_online(call.db, driver, group)
        refusal = errors.NoConductor.template.format(driver=driver, group=group)
        raise errors.NoConductor(refusal + interfaces.advise(driver))
    for name, value in given.items():
        if value is not None:
            allowed = f"Classic driver {driver} is a fixed composition: its nodes have no value here. Leave it out, "
            allowed += "or make a hardware type the driver in the same request."
            raise errors.Invalid(field=name, value=value, allowed=allowed)
    return dict.fromkeys(interfaces.FIELDS)


def _complete(driver: str, offer: InterfaceOffer, requested: Interfaces) -> Interfaces:
    """Return all interfaces of a node.

    :raises InterfaceNotFound: some are not enabled for the hardware type; the message has all of them.
    """
    composed: dict[str, str | None] = {}
    refusals = []
    for interface_type, field in interfaces.FIELD.items():
        name = requested.get(field)
        if name is None:
            name = offer.defaults.get(interface_type, "(the default)")
        enabled = offer.enabled.get(interface_type, [])
        composed[field] = name
        if name not in enabled:
            known = ", ".join(sorted(enabled)) or "none"
            about = {"interface_type": interface_type, "name": name, "driver": driver, "enabled": known}
            refusals.append(errors.InterfaceNotFound(**about).message)
    if refusals:
        raise errors.InterfaceNotFound(" ".join(refusals))
    return composed
