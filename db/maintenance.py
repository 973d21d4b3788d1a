"""The holds of a node: who keeps it in maintenance, why, since when, and what is held back.

Any number of holds stand at a time, each with its own holder and removed on its own. They are a column of the node. The
columns ``maintenance``, ``maintenance_reason`` and ``fault`` follow from them and are written with them, so a query
that needs only the flag reads no more than that.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from ingot.common import clock, context, errors
from ingot.common.json_types import Hold
from ingot.db import models, nodes, outbox
from ingot.db.engine import Database, retry_transaction

NODES = nodes.NODES

FLAG = ("maintenance", "maintenance_reason", "fault", "maintenance_holds")
"""What must be known of a node to know its holds, and what changing them writes."""

Columns = dict[str, object]
Change = Callable[[models.Node], Columns]
"""What a change of the holds writes to a node, which is given with what :data:`FLAG` names."""


class Scope(NamedTuple):
    """What a hold holds back.

    :param flag: the node counts as in maintenance: nothing is deployed, rescued or allocated.
    :param pauses_sync: the machine gets no requests but those of users: its power state is not read, periodic methods
        of drivers leave it out.
    """

    flag: bool
    pauses_sync: bool


ALL, PROVISION, SYNC = "all", "provision", "sync"

SCOPES: Mapping[str, Scope] = {ALL: Scope(True, True), PROVISION: Scope(True, False), SYNC: Scope(False, True)}

POWER_FAULT = "power failure"

UNCONFIRMED = "database:restored"
"""The name of the hold of nodes in a restored database; no client can choose it, for it has a colon."""


def user_hold(ctx: context.RequestContext, reason: str | None, name: str | None = None, scope: str = ALL) -> Hold:
    """Return a new hold of a user.

    :param name: None: that of the flag. Each user has one of their own, which has a colon as no name from a client has.
    """
    hold = _new_hold(name or f"flag:{ctx.user_id or ''}", scope, reason)
    return {**hold, "user": ctx.user_id, "project": ctx.project_id}


def fault_hold(fault: str, reason: str | None, host: str | None) -> Hold:
    """Return a new hold of a fault.

    :param host: the conductor that found it.
    """
    # That the BMC answers again is found by reading the power state.
    scope = PROVISION if fault == POWER_FAULT else ALL
    return {**_new_hold(fault, scope, reason), "fault": fault, "conductor": host}


def _new_hold(name: str, scope: str, reason: str | None) -> Hold:
    return {
        "name": name,
        "scope": scope,
        "reason": reason,
        "since": clock.iso(clock.now()),
        "user": None,
        "project": None,
        "fault": None,
        "conductor": None,
    }


def raises_flag(hold: Hold) -> bool:
    """Return whether a node with this hold counts as in maintenance."""
    return SCOPES[hold["scope"]].flag


def read_holds(node: models.Node) -> list[Hold]:
    """Return the holds of a node; what was set last is last.

    Rows that release 0.1 wrote last have the other columns only. Where those are not what follows from the holds, they
    stand for the one hold that raises the flag, if any does; since when is not known.

    :param node: needs :data:`FLAG`.
    """
    holds = node.maintenance_holds
    if all(getattr(node, name) == value for name, value in hold_columns(holds).items()):
        return holds
    others = [hold for hold in holds if not raises_flag(hold)]
    if not node.maintenance:
        return others
    reason = node.maintenance_reason
    flag = fault_hold(node.fault, reason, None) if node.fault else user_hold(context.admin(), reason)
    return [*others, {**flag, "since": None}]


def has_fault(node: models.Node, fault: str) -> bool:
    """Return whether a node is held by a fault.

    :param node: needs :data:`FLAG`.
    """
    return any(hold["fault"] == fault for hold in read_holds(node))


def find_unconfirmed(node: models.Node) -> Hold | None:
    """Return the hold of a node of a restored database that no operator has confirmed; None: it has none.

    :param node: needs :data:`FLAG`.
    """
    return next((hold for hold in read_holds(node) if hold["name"] == UNCONFIRMED), None)


def pauses_sync(node: models.Node) -> bool:
    """Return whether a node's machine gets no requests but those of users.

    :param node: needs :data:`FLAG`.
    """
    return any(SCOPES[hold["scope"]].pauses_sync for hold in read_holds(node))


def hold_columns(holds: list[Hold]) -> Columns:
    """Return the columns of a node with these holds: the last one that raises the flag gives reason and fault."""
    last = next((hold for hold in reversed(holds) if raises_flag(hold)), None)
    reason, fault = (last["reason"], last["fault"]) if last else (None, None)
    return dict(zip(FLAG, (last is not None, reason, fault, holds), strict=True))


def add_hold(node: models.Node, hold: Hold) -> Columns:
    """Add a hold, or give that of its name the new scope and reason; it stands since it was added.

    :param node: needs :data:`FLAG`.
    :raises Conflict: the name is that of another holder's hold.
    """
    holds = {one["name"]: one for one in read_holds(node)}
    found = holds.pop(hold["name"], hold)
    if (found["user"], found["fault"]) != (hold["user"], hold["fault"]):
        raise errors.Conflict(
            reason=f"Hold {found['name']} is that of user {found['user']}, since {found['since']}: choose another name."
        )
    return hold_columns([*holds.values(), {**hold, "since": found["since"]}])


def end_holds(node: models.Node, which: Callable[[Hold], bool]) -> Columns:
    """Remove holds.

    :param node: needs :data:`FLAG`.
    """
    return hold_columns([hold for hold in read_holds(node) if not which(hold)])


def set_flag(node: models.Node, ctx: context.RequestContext, raised: bool, reason: str | None = None) -> Columns:
    """Set or clear the flag ``maintenance``: clients see it cleared then, so all holds that raise it are removed.

    :param node: needs :data:`FLAG`.
    :raises Conflict: it is to be cleared, and only an operator's confirmation of a restored database does that.
    """
    if raised:
        return add_hold(node, user_hold(ctx, reason))
    return remove_holds(node, raises_flag)


def remove_holds(node: models.Node, which: Callable[[Hold], bool]) -> Columns:
    """Remove holds that a client wants to be gone; parameters as of :func:`end_holds`.

    :raises Conflict: one of them only ends when an operator confirms the node of a restored database.
    """
    unconfirmed = find_unconfirmed(node)
    if unconfirmed and which(unconfirmed):
        raise errors.Conflict(reason=f"Maintenance is not cleared here. {unconfirmed['reason']}.")
    return end_holds(node, which)


@retry_transaction
def write_holds(db: Database, uuid: str, change: Change, revision: int | None = None) -> None:
    """Change the holds of a node whether it is locked or not: an operator who sees a machine burn cannot wait.

    :param revision: write only if the node is still as it was read.
    :raises NotFound: there is no such node.
    :raises ChangedMeanwhile: it is not as it was read.
    """
    own = NODES.c.uuid == uuid
    as_read = own if revision is None else sa.and_(own, NODES.c.revision == revision)
    with db.transaction() as connection:
        # From here on no other transaction can change them until this one ends.
        held = connection.execute(sa.update(NODES).where(as_read).values(revision=NODES.c.revision + 1)).rowcount
        if held:
            change_holds(uuid, change)(connection)
    if not held:
        raise errors.ChangedMeanwhile(node=nodes.get(db, uuid, ("uuid",)).uuid)


def change_holds(uuid: str, change: Change) -> nodes.ExtraWrite:
    """Return the write that changes the holds of a node, for a transaction that has written to its row before."""

    def write(connection: sa.Connection) -> None:
        own = NODES.c.uuid == uuid
        node = models.Node.first_of(connection.execute(sa.select(*models.columns(NODES, FLAG)).where(own)))
        if node is None:  # its row was written a moment ago
            raise errors.NotFound(noun="Node", ident=uuid)
        values = change(node)
        nodes.ALWAYS.execute(connection, values, outbox.build_events(values, vars(node)), {"own_uuid": uuid})

    return write
