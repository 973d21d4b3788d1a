"""VIFs of nodes without Neutron: networks that the operator lets users have, attached to ports and portgroups."""

from collections.abc import Iterator

from oslo_log import log

from ingot.common import errors, networks
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces.task import Task
from ingot.drivers.switch import vlans, wiring
from ingot.drivers.switch.orders import Connection
from ingot.drivers.switch.wiring import PortLike

LOG = log.getLogger(__name__)

_NOTE = networks.name_note(networks.TENANT)


def list_places(task: Task) -> list[PortLike]:
    """Return the ports and portgroups of the node."""
    return [*task.ports, *task.portgroups]


def list_attached(task: Task) -> dict[str, PortLike]:
    """Return what VIFs are attached to, by their ids."""
    attached = ((one.internal_info.get(_NOTE), one) for one in list_places(task))
    return {vif: one for vif, one in attached if vif}


def plan(task: Task, attached: dict[str, PortLike]) -> list[Connection]:
    """Return what connects the machine to its user's networks.

    Without VIFs these are the VLAN of instances, on all that is cabled to a switch.

    :raises Invalid: there is no VIF, and no such VLAN; or a port cannot be connected.
    """
    if attached:
        return [
            found
            for ident, one in attached.items()
            for found in wiring.connect(task, one, vlans.read_vif(task.conf, ident), networks.TENANT)
        ]
    vlan = vlans.find(task, networks.TENANT)
    if vlan is None:
        raise errors.Invalid(
            f"Node {task.node.uuid} has no VIF, so its instance would have no network. Attach one (openstack baremetal "
            "node vif attach), or set driver_info.tenant_vlan or [switch] tenant_vlan."
        )
    alone = [port for port in task.ports if port.portgroup_id is None and wiring.find_lack(task, port, vlan) is None]
    places: list[PortLike] = [*task.portgroups, *alone]
    found = [found for one in places for found in wiring.connect(task, one, vlan, networks.TENANT)]
    if not found:
        why = "; ".join(f"port {port.uuid}: {wiring.find_lack(task, port, vlan)}" for port in task.ports)
        raise errors.Invalid(f"Node {task.node.uuid} has no port that could be on VLAN {vlan}: {why or 'it has none'}.")
    return found


def attach(task: Task, vif: Json, connects: bool) -> None:
    """Attach a VIF as :meth:`NetworkInterface.attach_vif` says. It is noted last: a request can be sent again.

    :param connects: whether its user has the machine now.
    """
    ident, attached = str(vif["id"]), list_attached(task)
    if ident in attached:
        where = f"{_get_noun(attached[ident])} {attached[ident].uuid}"
        raise errors.Conflict(reason=f"VIF {ident} is attached already, to {where} of node {task.node.uuid}.")
    vlan = vlans.read_vif(task.conf, ident)
    chosen = _choose(task, vif, vlan)
    now = {**attached, ident: chosen}
    if connects:
        wiring.move(task, plan(task, now))
    _keep(task, now)
    LOG.info(
        "Node %s: VIF %s, VLAN %s, is attached to %s %s", task.node.uuid, ident, vlan, _get_noun(chosen), chosen.uuid
    )


def detach(task: Task, ident: str) -> None:
    """Undo :func:`attach`, also where the operator does not let users have the network any more.

    :raises Invalid: it is not attached.
    """
    attached = list_attached(task)
    if ident not in attached:
        known = f"Attached are: {', '.join(attached) or 'none'}."
        raise errors.Invalid(f"VIF {ident} is not attached to node {task.node.uuid}. {known}")
    one = attached.pop(ident)
    noted = wiring.list_noted(task.node)
    left = [found for found in noted if (found.port, found.purpose) != (one.uuid, networks.TENANT)]
    if left != noted:
        wiring.move(task, left)
    _keep(task, attached)
    LOG.info("Node %s: VIF %s is detached", task.node.uuid, ident)


def _keep(task: Task, attached: dict[str, PortLike]) -> None:
    task.keep_port_notes(_NOTE, {one.uuid: vif for vif, one in attached.items()})


def _choose(task: Task, vif: Json, vlan: int) -> PortLike:
    """Return what a VIF is attached to: portgroups, and ports that boot, come first.

    :raises Invalid: nothing is free for it; the message says of each port why.
    """
    lacks, places = dict(_list_lacks(task, vif, vlan)), list_places(task)
    free = [one for one in places if lacks[one.uuid] is None]
    if not free:
        why = "; ".join(f"{_get_noun(one)} {one.uuid}: {lacks[one.uuid]}" for one in places)
        raise errors.Invalid(
            f"VIF {vif['id']} cannot be attached to node {task.node.uuid}: no port or portgroup is free for it. "
            f"{why or 'The node has none'}."
        )
    return max(free, key=lambda one: (isinstance(one, models.Portgroup), getattr(one, "pxe_enabled", True)))


def _list_lacks(task: Task, vif: Json, vlan: int) -> Iterator[tuple[str, str | None]]:
    """Yield uuids of ports and portgroups with the reason why a VIF cannot be attached there; None: it can."""
    shared = {port.portgroup_id for port in task.ports if _NOTE in port.internal_info}
    for port in task.ports:
        lack = _find_vif(port) or wiring.find_lack(task, port, vlan)
        if vif.get("portgroup_uuid") or vif.get("port_uuid", port.uuid) != port.uuid:
            lack = "it was not asked for"
        elif port.portgroup_id is not None and port.portgroup_id not in shared:
            lack = lack or "it is in a portgroup"
        yield port.uuid, lack
    for group in task.portgroups:
        lack, members = _find_vif(group), wiring.list_members(task, group)
        if vif.get("port_uuid") or vif.get("portgroup_uuid", group.uuid) != group.uuid:
            lack = "it was not asked for"
        elif group.id in shared:
            lack = "a VIF is attached to one of its ports"
        elif not any(wiring.find_lack(task, port, vlan) is None for port in members):
            lack = lack or "none of its ports can be connected"
        yield group.uuid, lack


def _find_vif(one: PortLike) -> str | None:
    return f"it has VIF {one.internal_info[_NOTE]}" if _NOTE in one.internal_info else None


def _get_noun(one: PortLike) -> str:
    return type(one).__name__.lower()
