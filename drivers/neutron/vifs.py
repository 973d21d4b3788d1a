"""VIFs: a user's ports of Neutron, attached to ports and portgroups of a machine, and bound while it is theirs."""

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces import places
from ingot.drivers.interfaces.places import PortLike
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import bindings, purpose_ports
from ingot.drivers.neutron.connection import Neutron

LOG = log.getLogger(__name__)

_SUBPORT = "trunk:subport"
_READ_ALL = frozenset(("admin", "service"))
"""Roles with which Neutron itself shows ports of other projects."""


# Attaching


def attach(task: Task, neutron: Neutron, vif: Json, needs_link: bool, binds: bool) -> None:
    """Attach a VIF to a port or portgroup that is free for it, as :meth:`NetworkInterface.attach_vif` says.

    It is noted first: nothing would release what is bound without a note. What fails is taken back.

    :param needs_link: see :func:`bindings.find_lack`.
    :param binds: whether its user has the machine now.
    """
    ident = vif["id"]
    if binds and _is_bound_now(task, neutron, ident):
        return
    places.refuse_attached(task, ident)
    port = _read_vif(task, neutron, ident)
    chosen = _choose(task, vif, neutron.find_physical_networks(port), needs_link)
    attributes = bindings.describe(task, chosen)
    if not binds:  # the host alone lets Neutron choose addresses, where it has put that off
        attributes[bindings.PROFILE] = {}
    places.note(task, {**places.list_attached(task), ident: chosen})
    try:
        _unbind(neutron, port, None)  # Neutron changes no MAC address of a port that is bound
        if _bind(task, neutron, ident, attributes, is_strict=False) is None:
            raise _unknown_error(ident)
    except errors.IngotError:
        _take_back(task, neutron, ident, chosen)
        raise
    LOG.info("Node %s: VIF %s is attached to %s %s", task.node.uuid, ident, places.get_noun(chosen), chosen.uuid)


def _is_bound_now(task: Task, neutron: Neutron, ident: str) -> bool:
    """Bind a VIF that was noted, but not bound because a conductor died in between; its user asks again.

    :returns: whether it was one.
    """
    one = places.list_attached(task).get(ident)
    if one is None or _read_vif(task, neutron, ident)[bindings.HOST]:
        return False
    if _bind(task, neutron, ident, bindings.describe(task, one), is_strict=False) is None:
        raise _unknown_error(ident)
    LOG.info("Node %s: VIF %s was attached to %s, and is bound now", task.node.uuid, ident, one.uuid)
    return True


def _take_back(task: Task, neutron: Neutron, ident: str, one: PortLike) -> None:
    """Release a VIF that was not attached; it stays noted, and can be detached, where Neutron does not do that."""
    try:
        _release(task, neutron, ident, one)
    except errors.IngotError as also:
        LOG.warning("Node %s: VIF %s may be bound, so it stays attached: %s", task.node.uuid, ident, also.message)
    else:
        places.note(task, places.split(task, ident)[1])


def _read_vif(task: Task, neutron: Neutron, ident: str) -> Json:
    """Return the port of Neutron that is to be attached.

    The user with which Ingot asks Neutron sees more than the task's user may.

    :raises Invalid: it is not there, is another project's, or is no port that can be attached.
    """
    port, project = neutron.find_port(ident), task.context.project_id
    may_see = project is None or bool(_READ_ALL & set(task.context.roles))
    if port is None or not (may_see or port["project_id"] == project):
        raise _unknown_error(ident)
    if port["device_owner"] == _SUBPORT:
        allowed = "It is a subport of a trunk: attach the trunk's parent port, and Neutron connects its subports."
        raise errors.Invalid(field="VIF", value=ident, allowed=allowed)
    return port


def _unknown_error(ident: str) -> errors.Invalid:
    return errors.Invalid(field="VIF", value=ident, allowed="Neutron has no port with this uuid that you may use.")


def _choose(task: Task, vif: Json, physical_networks: set[str], needs_link: bool) -> PortLike:
    """Return what a VIF is attached to: on its physical network, portgroups, and ports that boot, come first.

    :raises Invalid: see :func:`places.choose`.
    """

    def find_objection(one: PortLike) -> str | None:
        own = bindings.find_physical_network(task, one)
        if own is not None and physical_networks and own not in physical_networks:
            return f"it is on physical network {own}, and the VIF's is {', '.join(sorted(physical_networks))}"
        return None

    def rank(one: PortLike) -> tuple[bool, bool, bool]:
        is_there = bindings.find_physical_network(task, one) in physical_networks
        if isinstance(one, models.Portgroup):
            return is_there, True, True
        return is_there, False, one.pxe_enabled

    def find_lack(port: models.Port) -> str | None:
        return bindings.find_lack(port, needs_link)

    return places.choose(task, vif, find_lack, find_objection, rank)


# Detaching


def detach(task: Task, neutron: Neutron, ident: str) -> None:
    """Undo :func:`attach`. A port that is gone in Neutron is detached, too.

    :raises Invalid: it is not attached.
    """
    one, others = places.split(task, ident)
    _release(task, neutron, ident, one)
    places.note(task, others)
    LOG.info("Node %s: VIF %s is detached", task.node.uuid, ident)


# The networks of the user


def bind_all(task: Task, neutron: Neutron, is_strict: bool) -> None:
    """Connect the machine to its user's networks.

    :param is_strict: whether a port that Neutron has not bound is an error.
    :raises Invalid: no VIF is attached.
    """
    attached = places.list_attached(task)
    if not attached:
        raise errors.Invalid(
            f"Node {task.node.uuid} has no VIF, so its instance would have no network. Attach one, a port of Neutron: "
            "openstack baremetal node vif attach."
        )
    for ident, one in attached.items():
        if _bind(task, neutron, ident, bindings.describe(task, one), is_strict) is None:
            allowed = "Neutron does not have this port anymore: detach it, and attach another one."
            raise errors.Invalid(field="VIF", value=ident, allowed=allowed)
    LOG.info("Node %s: on the networks of its user with VIFs %s", task.node.uuid, ", ".join(attached))


def release_all(task: Task, neutron: Neutron) -> None:
    """Disconnect the machine from its user's networks; the VIFs stay attached."""
    for ident, one in places.list_attached(task).items():
        _release(task, neutron, ident, one)


# Changes of the machine's ports


def change(task: Task, neutron: Neutron, uuid: str, address: str | None, client_id: str | None, is_bound: bool) -> None:
    """Carry what is about to change of a port or portgroup to the VIF that is attached to it.

    :param address: its new address; None: it stays.
    :param client_id: of DHCP; None: it stays, and empty: there is none.
    :param is_bound: whether its user has the machine now, so that the VIF is to be bound.
    """
    attached = places.list_attached(task)
    ident, one = next((found for found in attached.items() if found[1].uuid == uuid), (None, None))
    port = neutron.find_port(ident) if ident else None
    if port is None or one is None or _is_elsewhere(task, port, one):
        return
    attributes: Json = {} if address is None else {"mac_address": address}
    if client_id is not None:
        attributes["extra_dhcp_opts"] = [{"opt_name": bindings.CLIENT_ID, "opt_value": client_id or None}]
    if address is not None and (port[bindings.HOST] or is_bound):
        _change_bound(task, neutron, port, attributes, port if port[bindings.HOST] else bindings.describe(task, one))
    else:
        neutron.update_port(port["id"], attributes)
    LOG.info("Node %s: VIF %s is changed with port %s", task.node.uuid, ident, uuid)


def _change_bound(task: Task, neutron: Neutron, port: Json, attributes: Json, binding: Json) -> None:
    """Change a port whose MAC address Neutron does not change while it is bound; it is bound afterwards in any case.

    :param binding: has what binds it. The port itself has it no more if a conductor died here.
    """
    bound = {name: binding[name] for name in (bindings.HOST, bindings.PROFILE)}
    if port[bindings.HOST]:
        neutron.update_port(port["id"], bindings.UNBOUND)
    try:
        neutron.update_port(port["id"], attributes | bound)
    except errors.IngotError:
        try:
            neutron.update_port(port["id"], bound)
        except errors.IngotError as also:
            LOG.warning("Node %s: VIF %s may be without its network: %s", task.node.uuid, port["id"], also.message)
        raise


def _bind(task: Task, neutron: Neutron, ident: str, attributes: Json, is_strict: bool) -> Json | None:
    purpose_ports.require_agent(neutron, attributes)
    port = neutron.update_port(ident, attributes)
    if port is not None and attributes[bindings.PROFILE]:
        purpose_ports.check_bound(port, attributes, is_strict)
    return port


def _release(task: Task, neutron: Neutron, ident: str, one: PortLike) -> None:
    port = neutron.find_port(ident)
    if port is None:
        LOG.info("Node %s: VIF %s is gone in Neutron", task.node.uuid, ident)
        return
    if _is_elsewhere(task, port, one):
        LOG.warning(
            "Node %s: VIF %s is left to host %s, to which it is bound", task.node.uuid, ident, port[bindings.HOST]
        )
        return
    purpose_ports.require_agent(neutron, bindings.describe(task, one))
    _unbind(neutron, port, one.address)


def _is_elsewhere(task: Task, port: Json, one: PortLike) -> bool:
    """Return whether a VIF is bound to another machine: its user has attached it there, too."""
    described = bindings.describe(task, one)
    is_smart = described[bindings.TYPE] == bindings.SMART_NIC  # whose host its operator may have renamed
    return bool(port[bindings.HOST]) and not is_smart and port[bindings.HOST] != described[bindings.HOST]


def _unbind(neutron: Neutron, port: Json, address: str | None) -> None:
    """Give a port back as its user has made it.

    :param address: of the machine, which other ports may need: one that has it gets another.
    """
    if port[bindings.HOST] or port[bindings.PROFILE]:
        neutron.update_port(port["id"], bindings.UNBOUND)
    if address and port["mac_address"] == address:  # on its own: that of a bound port cannot be changed
        neutron.update_port(port["id"], {"mac_address": None})
