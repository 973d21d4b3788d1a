"""Ports of switches that nodes had on VLANs when they were deleted."""

from collections.abc import Sequence

from oslo_log import log

from ingot.common import errors, leftovers
from ingot.db import models
from ingot.drivers.interfaces.periodic import Fleet
from ingot.drivers.switch import orders, settings, wiring
from ingot.drivers.switch.orders import Order

LOG = log.getLogger(__name__)


def take_back(fleet: Fleet) -> None:
    """Take these ports off their VLANs; what is not done is done in the next round, by any conductor."""
    left = fleet.list_left(leftovers.SWITCH_PORTS)
    if not left:
        return
    known, silent = settings.read(fleet.conf), set[str]()
    for one in left:
        names = {connection.switch for connection in wiring.read(one.notes)}
        if names & silent:
            continue
        if unknown := names - known.keys():
            LOG.info("Node %s is gone; other conductors know its switches: %s", one.node_uuid, ", ".join(unknown))
            continue
        try:
            _take_back(fleet, one)
        except errors.IngotError as exc:
            silent |= names
            LOG.warning("Node %s is gone, and a port that it was cabled to stays: %s", one.node_uuid, exc.message)


def _take_back(fleet: Fleet, left: models.LeftBehind) -> None:
    def confirm(asked: Sequence[Order]) -> Sequence[Order]:
        """Leave out, now that no other changes the switch, what others have done, and ports that other nodes have."""
        if left.id not in {one.id for one in fleet.list_left(leftovers.SWITCH_PORTS)}:
            return ()
        noted = [one for notes in fleet.list_notes(leftovers.SWITCH_PORTS) for one in wiring.read(notes)]
        taken = {(one.switch, one.port_id) for one in noted}
        return [one for one in asked if (one.connection.switch, one.connection.port_id) not in taken]

    asked = [Order(one, plugs=False) for one in wiring.read(left.notes)]
    LOG.warning("Node %s is gone; ports of switches that leave their VLAN: %s", left.node_uuid, len(asked))
    orders.carry_out_of(fleet, left.node_uuid, asked, patience=0, confirm=confirm)
    fleet.forget_left(left)
