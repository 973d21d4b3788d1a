"""What becomes of a database that was restored from a backup: it says how machines were then, not how they are now.

Machines may have been deployed, undeployed, moved or switched since. So nothing may happen to any of them
that is not requested anew: flows are not resumed, power states are not restored, and nothing is wiped. Each node gets a
hold that keeps conductors and new deployments away from its machine, until an operator has looked and confirms it.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from ingot.common import clock, context, errors, states
from ingot.common.json_types import Hold
from ingot.db import allocations, conductors, events, maintenance, models, nodes, outbox
from ingot.db.engine import Database, retry_transaction

_REASON = (
    "The database was restored from a backup: compare this node with its machine, correct it, and confirm it with "
    "ingot-dbsync confirm"
)
_INTERRUPTED = (
    "The database was restored from a backup in which this node was in state '{state}'. What has become of that since "
    "is not known, and it does not go on. Look at the machine before you repeat it."
)
_BATCH = 200
"""Nodes that are written in one transaction."""

_FORGOTTEN: Mapping[str, object] = {
    # locks and flows
    **dict.fromkeys(("reservation", "lock_purpose", "locked_at", "flow", "run_id", "due_at")),
    **{"lock_attempts": 0, "abort_requested": False, "request": {}},
    "lock_epoch": nodes.Computed(nodes.NODES.c.lock_epoch + 1),
    **dict.fromkeys(("step_state", "step_started_at", "step_deadline", "step_heard")),
    **{"step_attempt": 0, "step_memory": {}},
    # what the machine runs, boots and does: the power state is read anew, and not restored
    **dict.fromkeys(("power_state", "target_power_state", "boot_script_at", "boot_ticket", "boot_address", "health")),
    **{"power_request": {}, "boot_config": {}, "console_enabled": False},
    **dict.fromkeys(("agent_url", "agent_token_at", "agent_address", "agent_version", "agent_verify_ca")),
    **dict.fromkeys(("agent_status", "agent_last_heartbeat")),
}
"""What a node loses."""

_READ = ("id", "uuid", "name", "provision_state", "target_provision_state", "last_error", "driver_internal_info")


class Interrupted(NamedTuple):
    """A node whose flow is given up.

    :param state: in the backup.
    :param now: its state now.
    """

    uuid: str
    name: str | None
    state: str
    now: str


class Report(NamedTuple):
    """What was done, or would be.

    :param held: how many nodes wait for a confirmation.
    :param allocations: names or UUIDs of those that are given up.
    :param conductors: names of those that were there.
    """

    held: int
    interrupted: Sequence[Interrupted]
    allocations: Sequence[str]
    conductors: Sequence[str]


def check_alone(db: Database, timeout: float) -> None:
    """Refuse to change what conductors work with.

    :param timeout: seconds without heartbeat after which a conductor counts as offline.
    :raises Conflict: some are online, or were when the backup was made, a moment ago.
    """
    if online := sorted(conductors.online_hosts(db, timeout)):
        raise errors.Conflict(
            reason=f"Conductors are online: {', '.join(online)}. Stop all services of Ingot first. If they are "
            f"stopped, the backup is that young: try again {timeout:.0f} seconds after it was made."
        )


def restore(db: Database, dry_run: bool = False) -> Report:
    """Hold all nodes, and give up what was under way.

    It may be repeated: nodes that an operator has confirmed meanwhile are held again.

    :param dry_run: write nothing.
    """
    every = db.read_all(models.Node, sa.select(*models.columns(nodes.NODES, (*_READ, *maintenance.FLAG))))
    interrupted = [
        Interrupted(node.uuid, node.name, node.provision_state, end)
        for node in every
        if (end := _find_end(node.provision_state)) is not None
    ]
    searching = [found for uuid in allocations.list_waiting(db, _ALL) if (found := allocations.find_waiting(db, uuid))]
    known = [one.hostname for one in conductors.list_all(db, 0)]
    if not dry_run:
        for first in range(0, len(every), _BATCH):
            _hold(db, every[first : first + _BATCH])
        for allocation in searching:
            allocations.fail(db, allocation, "The database was restored from a backup while a node was searched")
        conductors.end_all(db)
        events.renumber(db)
    return Report(len(every), interrupted, [one.name or one.uuid for one in searching], known)


def list_held(db: Database) -> list[models.Node]:
    """Return the nodes that wait for a confirmation, by name and UUID."""
    columns = models.columns(nodes.NODES, ("uuid", "name", *maintenance.FLAG))
    found = db.read_all(models.Node, sa.select(*columns).order_by(nodes.NODES.c.name, nodes.NODES.c.uuid))
    return [node for node in found if maintenance.find_unconfirmed(node)]


def confirm(db: Database, uuids: Collection[str]) -> None:
    """Remove the hold from nodes.

    :raises NotFound: there is no such node.
    """
    for uuid in uuids:
        maintenance.write_holds(db, uuid, lambda node: maintenance.end_holds(node, _is_ours))


_ALL = 1_000_000


def _is_ours(hold: Hold) -> bool:
    return hold["name"] == maintenance.UNCONFIRMED


def _find_end(state: str) -> str | None:
    """Return the state in which a flow is given up; None: there is none in this state."""
    if state in states.STABLE | states.FAILED:
        return None
    # Of the states in which a flow is held, some know an abort only.
    return states.next_state(state, "fail") or states.next_state(state, "abort")


@retry_transaction
def _hold(db: Database, batch: Iterable[models.Node]) -> None:
    with db.transaction() as connection:
        for node in batch:
            values, entry = _build_write(node)
            nodes.ALWAYS.execute(connection, values, outbox.build_events(values, vars(node)), {"own_uuid": node.uuid})
            nodes.add_history(connection, node.id, [entry])


def _build_write(node: models.Node) -> tuple[dict[str, object], dict[str, object]]:
    """Return the columns that are written to a node, and the entry of its history."""
    hold = maintenance.user_hold(context.admin(), _REASON, maintenance.UNCONFIRMED)
    facts = {name: fact for name, fact in node.driver_internal_info.items() if name != "agent"}
    # No machine knows the token: until Ingot boots an agent, none gets another one.
    values = {**_FORGOTTEN, "agent_token": secrets.token_urlsafe(32), "driver_internal_info": facts}
    values |= maintenance.add_hold(node, hold)
    end, message = _find_end(node.provision_state), _REASON
    if end is not None:
        message = _INTERRUPTED.format(state=node.provision_state)
        target = states.TARGETS.get(end)
        values |= {"provision_state": end, "target_provision_state": target, "last_error": message}
        values |= {"provision_updated_at": clock.now()}
    entry = {
        "created_at": clock.now(),
        "severity": "INFO" if end is None else "ERROR",
        "event_type": "maintenance" if end is None else "provisioning",
        "event": message,
        "state": end or node.provision_state,
        "target_provision_state": values.get("target_provision_state", node.target_provision_state),
    }
    return values, entry
