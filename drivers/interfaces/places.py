"""Places: the ports and portgroups of a node, for network interfaces that connect them.

Which of them the agent boots from, to which ones VIFs are attached (that is noted in their ``internal_info``), and
where there is room for another one.
"""

from collections.abc import Callable, Iterable, Iterator

from oslo_log import log

from ingot.common import errors, networks, states
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

PortLike = models.Port | models.Portgroup

NOTE = networks.name_note(networks.TENANT)

FindLack = Callable[[models.Port], str | None]
FindObjection = Callable[[PortLike], str | None]
Rank = Callable[[PortLike], tuple[bool, ...]]


_AT_REST = frozenset((states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.ACTIVE))
"""States in which a machine is on no network of the operator's, unless an agent is left running for fast track."""


def list_at_rest(nodes: Iterable[models.Node], fast_track: bool) -> list[models.Node]:
    """Return the nodes at rest; with fast track only those of users, as an agent may be left running on others."""
    rest = {states.ACTIVE} if fast_track else _AT_REST
    return [node for node in nodes if node.provision_state in rest]


def list_places(task: Task) -> list[PortLike]:
    """Return the ports and portgroups of the node."""
    return [*task.ports, *task.portgroups]


def list_members(task: Task, group: models.Portgroup) -> list[models.Port]:
    """Return the ports of a portgroup."""
    return [port for port in task.ports if port.portgroup_id == group.id]


def list_booting(task: Task) -> list[models.Port]:
    """Return the ports with which the machine boots the agent."""
    has_all = not get_interface(task, BootInterface).boots_from_network
    return [port for port in task.ports if has_all or port.pxe_enabled]


def choose_ports(task: Task, asked: Iterable[models.Port], find_lack: FindLack, how: str) -> list[models.Port]:
    """Return those ports that can be connected for the agent; that others are left out is logged.

    :param how: they are to be connected, for the message.
    :raises Invalid: there are none; the message says of each why.
    """
    lacks = [(port, find_lack(port)) for port in asked]
    for port, lack in lacks:
        if lack:
            LOG.warning("Node %s: port %s is not connected: %s", task.node.uuid, port.uuid, lack)
    chosen = [port for port, lack in lacks if lack is None]
    if not chosen:
        why = "; ".join(f"port {port.uuid}: {lack}" for port, lack in lacks) or "it needs one with pxe_enabled"
        raise errors.Invalid(f"Node {task.node.uuid} has no port that could be {how}: {why}.")
    return chosen


# VIFs


def list_attached(task: Task) -> dict[str, PortLike]:
    """Return what VIFs are attached to, by their ids."""
    attached = ((one.internal_info.get(NOTE), one) for one in list_places(task))
    return {vif: one for vif, one in attached if vif}


def note(task: Task, attached: dict[str, PortLike]) -> None:
    """Write now what VIFs are attached to."""
    task.keep_port_notes(NOTE, {one.uuid: vif for vif, one in attached.items()})


def get_noun(one: PortLike) -> str:
    """Return what a place is called in messages."""
    return type(one).__name__.lower()


def refuse_attached(task: Task, ident: str) -> None:
    """
    :raises Conflict: the VIF is attached already.
    """
    if one := list_attached(task).get(ident):
        where = f"{get_noun(one)} {one.uuid}"
        raise errors.Conflict(reason=f"VIF {ident} is attached already, to {where} of node {task.node.uuid}.")


def split(task: Task, ident: str) -> tuple[PortLike, dict[str, PortLike]]:
    """Return what a VIF is attached to, and what the others are attached to.

    :raises Invalid: it is not attached.
    """
    attached = list_attached(task)
    if ident not in attached:
        known = f"Attached are: {', '.join(attached) or 'none'}."
        raise errors.Invalid(f"VIF {ident} is not attached to node {task.node.uuid}. {known}")
    return attached.pop(ident), attached


def choose(task: Task, vif: Json, find_lack: FindLack, find_objection: FindObjection, rank: Rank) -> PortLike:
    """Return what a VIF is attached to: of the places that are free, the first with the highest rank.

    :param vif: see :meth:`NetworkInterface.attach_vif`.
    :param find_lack: returns why a port cannot be connected; a portgroup needs one that can.
    :param find_objection: returns what else speaks against a place.
    :raises Invalid: nothing is free for it; the message says of each port why.
    """
    places, lacks = list_places(task), dict(_list_lacks(task, vif, find_lack, find_objection))
    free = [one for one in places if lacks[one.uuid] is None]
    if not free:
        why = "; ".join(f"{get_noun(one)} {one.uuid}: {lacks[one.uuid]}" for one in places)
        raise errors.Invalid(
            f"VIF {vif['id']} cannot be attached to node {task.node.uuid}: no port or portgroup is free for it. "
            f"{why or 'The node has none'}."
        )
    return max(free, key=rank)


def _list_lacks(
    task: Task, vif: Json, find_lack: FindLack, find_objection: FindObjection
) -> Iterator[tuple[str, str | None]]:
    """Yield uuids of ports and portgroups with the reason why a VIF cannot be attached there; None: it can."""
    named = vif.get("port_uuid") or vif.get("portgroup_uuid")
    shared = {port.portgroup_id for port in task.ports if NOTE in port.internal_info}
    for one in list_places(task):
        lack = _find_vif(one) or find_objection(one)
        if named not in (None, one.uuid):
            lack = "it was not asked for"
        elif isinstance(one, models.Port):
            alone = one.portgroup_id is None or one.portgroup_id in shared
            lack = lack or find_lack(one) or (None if alone else "it is in a portgroup")
        elif one.id in shared:
            lack = "a VIF is attached to one of its ports"
        elif all(find_lack(port) for port in list_members(task, one)):
            lack = lack or "it has no port that could be connected"
        yield one.uuid, lack


def _find_vif(one: PortLike) -> str | None:
    return f"it has VIF {one.internal_info[NOTE]}" if NOTE in one.internal_info else None
