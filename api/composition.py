"""Which interfaces a node may have: what the online conductors of its group have enabled for its hardware type.

The rules of driver composition (specification 004), on the table that the conductors fill: no conductor is asked.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ingot.api.call import Call
from ingot.common import errors, interfaces
from ingot.db import conductors, records


class Offer(NamedTuple):
    """What a hardware type offers in a conductor group.

    :param enabled: by kind, the interfaces that every conductor of the group has enabled, in order of preference. A
        node may move from one conductor to another, so all of them must know its interfaces.
    :param defaults: by kind, the calculated default.
    """

    driver: str
    enabled: Mapping[str, list[str]]
    defaults: Mapping[str, str]

    def settle(self, wanted: Mapping[str, str | None]) -> dict[str, str]:
        """All interfaces of a node.

        :param wanted: by field name (``boot_interface``); absent or None takes the default.
        :raises InterfaceNotFound: one is not enabled for the hardware type.
        """
        return {
            interfaces.field(kind): self._one(kind, wanted.get(interfaces.field(kind))) for kind in interfaces.KINDS
        }

    def _one(self, kind: str, name: str | None) -> str:
        enabled = self.enabled.get(kind, [])
        if name is None:
            name = self.defaults.get(kind, "(the default)")
        if name not in enabled:
            raise errors.InterfaceNotFound(
                kind=kind, name=name, driver=self.driver, enabled=", ".join(sorted(enabled)) or "none"
            )
        return name


def offer(call: Call, driver: str, group: str) -> Offer:
    """What a hardware type offers in a conductor group now: one statement.

    :raises NoConductor: no online conductor of the group has the hardware type enabled.
    """
    rows = conductors.enabled_interfaces(call.db, call.conf.conductor.heartbeat_timeout, [driver], group)
    if not rows:
        raise errors.NoConductor(driver=driver, group=group)
    return of_rows(driver, rows)


def of_rows(driver: str, rows: list[records.Record]) -> Offer:
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
