"""Which interfaces a node may have: what the online conductors of its group have enabled for its driver.

The rules of driver composition (specification 004), on the tables that the conductors fill: no conductor is asked.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ingot.api.web.call import Call
from ingot.common import errors, interfaces
from ingot.db import conductors, models

Interfaces = Mapping[str, str | None]
"""By field name, e.g. ``boot_interface``."""


class Offer(NamedTuple):
    """What a hardware type offers in a conductor group.

    :param enabled: by kind, the interfaces that every conductor of the group has enabled, in order of preference. A
        node may move from one conductor to another, so all of them must know its interfaces.
    :param defaults: by kind, the calculated default.
    """

    driver: str
    enabled: Mapping[str, list[str]]
    defaults: Mapping[str, str]

    def settle(self, wanted: Interfaces) -> dict[str, str | None]:
        """All interfaces of a node.

        :param wanted: what is absent or None takes the default.
        :raises InterfaceNotFound: some are not enabled for the hardware type; the message has all of them.
        """
        settled: dict[str, str | None] = {}
        refusals = []
        for kind in interfaces.TYPES:
            name = wanted.get(interfaces.FIELD[kind])
            if name is None:
                name = self.defaults.get(kind, "(the default)")
            enabled = self.enabled.get(kind, [])
            settled[interfaces.FIELD[kind]] = name
            if name not in enabled:
                known = ", ".join(sorted(enabled)) or "none"
                refusals.append(
                    errors.InterfaceNotFound(interface_type=kind, name=name, driver=self.driver, enabled=known)
                )
        if refusals:
            raise errors.InterfaceNotFound(" ".join(refusal.message for refusal in refusals))
        return settled


def settle(call: Call, driver: str, group: str, kept: Interfaces, given: Interfaces) -> dict[str, str | None]:
    """The interface fields of a node with this driver in this conductor group: one statement, two for a classic driver.

    :param kept: what the node has; a classic driver drops it.
    :param given: what the request asks for.
    :raises InterfaceNotFound: interfaces are not enabled for the hardware type.
    :raises Invalid: the driver is a classic one, and the request asks for an interface.
    :raises ServiceUnavailable: those that have the driver enabled are silent at the moment.
    :raises NoConductor: no conductor of the group has it enabled.
    """
    timeout = call.conf.conductor.heartbeat_timeout
    rows = conductors.enabled_interfaces(call.db, timeout, [driver], group)
    if rows:
        return of_rows(driver, rows).settle({**kept, **given})
    if driver not in {name for _host, _group, name in conductors.classic_drivers(call.db, timeout, group)}:
        conductors.raise_if_lately_online(call.db, driver, group)
        raise errors.NoConductor(driver=driver, group=group)
    for name, value in given.items():
        if value is not None:
            raise errors.Invalid(
                field=name,
                value=value,
                allowed=f"Classic driver {driver} is a fixed composition: its nodes have no value here. Leave it out, "
                "or make a hardware type the driver in the same request.",
            )
    return dict.fromkeys(interfaces.FIELDS)


def of_rows(driver: str, rows: list[models.Record]) -> Offer:
    """The offer that rows of enabled interfaces, of one hardware type, amount to."""
    hosts = {row.hostname for row in rows}
    having: dict[tuple[str, str], set[str]] = {}
    defaults: dict[str, str] = {}
    for row in rows:
        having.setdefault((row.interface_type, row.interface_name), set()).add(row.hostname)
        if row.default:
            defaults.setdefault(row.interface_type, row.interface_name)
    enabled: dict[str, list[str]] = {}
    for (kind, name), where in having.items():
        if where == hosts:
            enabled.setdefault(kind, []).append(name)
    return Offer(driver, enabled, defaults)
