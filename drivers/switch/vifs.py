"""VIFs of nodes without Neutron: networks that the operator lets users have, attached to ports and portgroups."""

from oslo_log import log

from ingot.common import errors, networks
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces import places
from ingot.drivers.interfaces.places import PortLike
from ingot.drivers.interfaces.task import Task
from ingot.drivers.switch import vlans, wiring
from ingot.drivers.switch.orders import Connection

LOG = log.getLogger(__name__)


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
    cabled: list[PortLike] = [*task.portgroups, *alone]
    found = [found for one in cabled for found in wiring.connect(task, one, vlan, networks.TENANT)]
    if not found:
        why = "; ".join(f"port {port.uuid}: {wiring.find_lack(task, port, vlan)}" for port in task.ports)
        raise errors.Invalid(f"Node {task.node.uuid} has no port that could be on VLAN {vlan}: {why or 'it has none'}.")
    return found


def attach(task: Task, vif: Json, connects: bool) -> None:
    """Attach a VIF as :meth:`NetworkInterface.attach_vif` says. It is noted last: a request can be sent again.

    :param connects: whether its user has the machine now.
    """
    ident = str(vif["id"])
    places.refuse_attached(task, ident)
    vlan = vlans.read_vif(task.conf, ident)
    chosen = _choose(task, vif, vlan)
    attached = {**places.list_attached(task), ident: chosen}
    if connects:
        wiring.move(task, plan(task, attached))
    places.note(task, attached)
    where = f"{places.get_noun(chosen)} {chosen.uuid}"
    LOG.info("Node %s: VIF %s, VLAN %s, is attached to %s", task.node.uuid, ident, vlan, where)


def detach(task: Task, ident: str) -> None:
    """Undo :func:`attach`, also where the operator does not let users have the network any more.

    :raises Invalid: it is not attached.
    """
    one, others = places.split(task, ident)
    noted = wiring.list_noted(task.node)
    left = [found for found in noted if (found.port, found.purpose) != (one.uuid, networks.TENANT)]
    if left != noted:
        wiring.move(task, left)
    places.note(task, others)
    LOG.info("Node %s: VIF %s is detached", task.node.uuid, ident)


def _choose(task: Task, vif: Json, vlan: int) -> PortLike:
    """Return what a VIF is attached to: portgroups, and ports that boot, come first.

    :raises Invalid: see :func:`places.choose`.
    """

    def find_lack(port: models.Port) -> str | None:
        return wiring.find_lack(task, port, vlan)

    def rank(one: PortLike) -> tuple[bool, bool]:
        return isinstance(one, models.Portgroup), isinstance(one, models.Portgroup) or one.pxe_enabled

    return places.choose(task, vif, find_lack, lambda _one: None, rank)
