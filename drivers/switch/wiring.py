"""To which ports of switches a node's ports are cabled, and on which VLANs these are.

What may be on a VLAN is noted in the node before a switch is changed: whatever dies in between, it is found there, and
done again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from oslo_log import log

from ingot.common import errors, leftovers
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces import places
from ingot.drivers.interfaces.places import PortLike, list_members
from ingot.drivers.interfaces.task import Task
from ingot.drivers.switch import orders, settings, vlans
from ingot.drivers.switch.orders import Connection, Order

LOG = log.getLogger(__name__)

_NOTED: Final = leftovers.SWITCH_PORTS
"""Key of ``driver_internal_info``: what may be on a VLAN, and whether the last change has come to its end."""

_LACP = ("802.3ad", "4")
"""Modes of portgroups whose ports a switch has as one bond."""


# What is cabled to what


def find_lack(task: Task, port: models.Port, vlan: int | None = None) -> str | None:
    """Return why a port of the node cannot be connected; None: it can.

    :param vlan: on which it is to be.
    """
    link, switches = port.local_link_connection, settings.read(task.conf)
    if port.is_smartnic:
        return "it is of a smart NIC, which no switch is in front of"
    if not link:
        return "its local_link_connection is empty, which says what it is cabled to"
    if not link.get("port_id"):
        return "its local_link_connection has no port_id"
    switch = settings.find(switches, link)
    if switch is None:
        given = " and ".join(f"{key} {link[key]}" for key in ("switch_id", "switch_info") if link.get(key)) or "nothing"
        return (
            f"no switch has what its local_link_connection says: {given}. Known are: {settings.describe(switches)}; "
            "switch_id is an ngs_mac_address, switch_info the name of a section"
        )
    return switch.find_objection(str(link["port_id"]), vlan)


def connect(task: Task, one: PortLike, vlan: int, purpose: str) -> list[Connection]:
    """Return what connects a port or portgroup to a VLAN; none of a portgroup whose ports lack something."""
    is_group = isinstance(one, models.Portgroup)
    members = list_members(task, one) if isinstance(one, models.Portgroup) else [one]
    is_bond = isinstance(one, models.Portgroup) and str(one.mode) in _LACP
    switches, found = settings.read(task.conf), []
    for port in members:
        lack = find_lack(task, port, vlan)
        switch = settings.find(switches, port.local_link_connection)
        if lack or switch is None:
            if is_group:
                LOG.warning("Node %s: port %s is not connected: %s", task.node.uuid, port.uuid, lack)
                continue
            raise errors.Invalid(f"Port {port.uuid} of node {task.node.uuid} cannot be connected: {lack}.")
        port_id = str(port.local_link_connection["port_id"])
        found.append(Connection(switch.name, port_id, vlan, is_bond, one.uuid, purpose))
    return list(dict.fromkeys(found))


def plan_purpose(task: Task, purpose: str) -> list[Connection]:
    """Return what connects the machine to a VLAN of the operator's; ports that lack something are left out.

    :raises Invalid: all of them do; the message says of each why.
    """
    vlan = vlans.read(task, purpose)

    def find_lack_of(port: models.Port) -> str | None:
        return find_lack(task, port, vlan)

    chosen = places.choose_ports(task, places.list_booting(task), find_lack_of, f"on VLAN {vlan} ({purpose})")
    return [found for port in chosen for found in connect(task, port, vlan, purpose)]


# What is noted, and changed


def list_noted(node: models.Node) -> list[Connection]:
    """Return what may be on a VLAN."""
    return read(_read_notes(node))


def read(notes: Json) -> list[Connection]:
    """Return what may be on a VLAN, of what a node has noted."""
    return [Connection(**one) for one in notes.get("connections", ())]


def is_settled(node: models.Node) -> bool:
    """Return whether the last change has come to its end."""
    return bool(_read_notes(node).get("settled", True))


def _read_notes(node: models.Node) -> Json:
    return node.driver_internal_info.get(_NOTED) or {}


def _note(task: Task, connections: Iterable[Connection], settled: bool) -> None:
    noted = [one._asdict() for one in connections]
    left = {key: value for key, value in task.node.driver_internal_info.items() if key != _NOTED}
    if noted or not settled:
        left[_NOTED] = {"settled": settled, "connections": noted}
    if left != task.node.driver_internal_info:
        task.set(driver_internal_info=left)
        task.save()


def move(task: Task, expected: Sequence[Connection], patience: float | None = None) -> None:
    """Have the machine on these VLANs and on no others; ports that are there already are set again.

    :param patience: see :func:`orders.carry_out`; by default ``[switch] turn_timeout``.
    :raises IngotError: a switch does not answer, or refuses. What may have changed stays noted.
    """
    before = list_noted(task.node)
    todo = list(_list_orders(before, expected))
    if not todo:
        return
    _note(task, dict.fromkeys([*before, *expected]), settled=False)  # before there is a change
    orders.carry_out(task, todo, task.conf.switch.turn_timeout if patience is None else patience)
    _note(task, expected, settled=True)


def _list_orders(before: Sequence[Connection], expected: Sequence[Connection]) -> Iterator[Order]:
    """Yield what is to be done: a port has one VLAN, so that it leaves the old ones first."""
    yield from (Order(one, plugs=False) for one in before if one not in expected)
    yield from (Order(one, plugs=True) for one in expected)
