"""Who keeps a node in maintenance, why, since when, and what is held back: the holds of a node.

Any number of holds stand at a time, each of its own holder and taken away by itself. They are a column of the node, and
the columns ``maintenance``, ``maintenance_reason`` and ``fault`` follow from them and are written with them, so whoever
asks only whether a node is in maintenance reads no more than before.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ingot.common import clock, context, errors
from ingot.db import models, nodes
from ingot.db.engine import Database, retry_transaction

NODES = nodes.NODES

FLAG = ("maintenance", "maintenance_reason", "fault", "maintenance_holds")
"""What must be known of a node to tell its holds, and what changing them writes."""

Hold = dict[str, Any]
"""``name``, ``scope``, ``reason``, ``since``; and whose it is: of ``user`` with ``project``, or of a ``fault`` that
``conductor`` found."""

Columns = dict[str, Any]
Change = Callable[[models.Node], Columns]
"""What a change of the holds writes to a node, which is given with what :data:`FLAG` names."""


class Scope(NamedTuple):
    """What a hold holds back.

    :param flag: the node counts as in maintenance: nothing is deployed, rescued or allocated.
    :param pauses_sync: the machine is asked nothing that no user asks for: its power state is not read, periodic methods of
        drivers leave it out.
    """

    flag: bool
    pauses_sync: bool


ALL, PROVISION, SYNC = "all", "provision", "sync"

SCOPES: Mapping[str, Scope] = {ALL: Scope(True, True), PROVISION: Scope(True, False), SYNC: Scope(False, True)}

POWER_FAULT = "power failure"


def user_hold(ctx: context.RequestContext, reason: str | None, name: str | None = None, scope: str = ALL) -> Hold:
    """
    :param name: None: that of the flag. Everybody has one of his own, which has a colon as no name from a client has.
    """
    who = {"user": ctx.user_id, "project": ctx.project_id}
    return _hold(name or f"flag:{ctx.user_id or ''}", scope, reason, **who)


def fault_hold(fault: str, reason: str | None, host: str | None) -> Hold:
    """
    :param host: the conductor that found it.
    """
    # That the BMC answers again is found by reading the power state.
    scope = PROVISION if fault == POWER_FAULT else ALL
    return _hold(fault, scope, reason, fault=fault, conductor=host)


def _hold(name: str, scope: str, reason: str | None, **whose: str | None) -> Hold:
    nobody = dict.fromkeys(("user", "project", "fault", "conductor"))
    return {"name": name, "scope": scope, "reason": reason, "since": clock.iso(clock.now()), **nobody, **whose}


def raises_flag(hold: Hold) -> bool:
    return SCOPES[hold["scope"]].flag


def read_holds(node: models.Node) -> list[Hold]:
    """The holds of a node; what was set last is last.

    Release 0.1 writes the other columns only. Where they are not what follows from the holds it wrote last, and they
    stand for the one hold that raises the flag, if any does; since when is not known.

    :param node: needs :data:`FLAG`.
    """
    holds: list[Hold] = node.maintenance_holds
    if all(getattr(node, name) == value for name, value in hold_columns(holds).items()):
        return holds
    others = [hold for hold in holds if not raises_flag(hold)]
    if not node.maintenance:
        return others
    nobody, reason = context.admin(), node.maintenance_reason
    told = fault_hold(node.fault, reason, None) if node.fault else user_hold(nobody, reason)
    return [*others, {**told, "since": None}]


def has_fault(node: models.Node, fault: str) -> bool:
    """
    :param node: needs :data:`FLAG`.
    """
    return any(hold["fault"] == fault for hold in read_holds(node))


def pauses_sync(node: models.Node) -> bool:
    """Whether a node is asked nothing but what users ask for.

    :param node: needs :data:`FLAG`.
    """
    return any(SCOPES[hold["scope"]].pauses_sync for hold in read_holds(node))


def hold_columns(holds: list[Hold]) -> Columns:
    """The columns of a node with these holds: of those that raise the flag, the last tells reason and fault."""
    raised = [hold for hold in holds if raises_flag(hold)]
    last = raised[-1] if raised else {"reason": None, "fault": None}
    return dict(zip(FLAG, (bool(raised), last["reason"], last["fault"], holds), strict=True))


def add_hold(node: models.Node, hold: Hold) -> Columns:
    """Adds a hold, or gives that of its name the new scope and reason; it stands since it was added.

    :param node: needs :data:`FLAG`.
    :raises Conflict: the name is that of somebody else's hold.
    """
    holds = {one["name"]: one for one in read_holds(node)}
    found = holds.pop(hold["name"], hold)
    if (found["user"], found["fault"]) != (hold["user"], hold["fault"]):
        told = f"Hold {found['name']} is that of user {found['user']}, since {found['since']}: choose another name."
        raise errors.Conflict(reason=told)
    return hold_columns([*holds.values(), {**hold, "since": found["since"]}])


def end_holds(node: models.Node, which: Callable[[Hold], bool]) -> Columns:
    """Takes holds away.

    :param node: needs :data:`FLAG`.
    """
    return hold_columns([hold for hold in read_holds(node) if not which(hold)])


def set_flag(node: models.Node, ctx: context.RequestContext, raised: bool, reason: str | None = None) -> Columns:
    """What setting or clearing the flag ``maintenance`` means: clients see it cleared then, so all that raise it go.

    :param node: needs :data:`FLAG`.
    """
    return add_hold(node, user_hold(ctx, reason)) if raised else end_holds(node, raises_flag)


@retry_transaction
def write_holds(db: Database, uuid: str, change: Change, revision: int | None = None) -> None:
    """Changes the holds of a node, whoever holds its lock: an operator who sees a machine burn does not wait for its
    step to end.

    :param revision: write only if the node is still as it was read.
    :raises NotFound: there is no such node.
    :raises ChangedMeanwhile: it is not as it was read.
    """
    own = NODES.c.uuid == uuid
    as_read = own if revision is None else sa.and_(own, NODES.c.revision == revision)
    with db.transaction() as connection:
        # From here on nobody else can change them until the transaction ends.
        held = connection.execute(sa.update(NODES).where(as_read).values(revision=NODES.c.revision + 1)).rowcount
        if held:
            change_holds(uuid, change)(connection)
    if not held:
        raise errors.ChangedMeanwhile(node=nodes.get(db, uuid, ("uuid",)).uuid)


def change_holds(uuid: str, change: Change) -> nodes.ExtraWrite:
    """Changes the holds of a node in a transaction that has written to its row before."""

    def write(connection: sa.Connection) -> None:
        own = NODES.c.uuid == uuid
        node = models.Node.first_of(connection.execute(sa.select(*models.columns(NODES, FLAG)).where(own)))
        if node is None:  # its row was written a moment ago
            raise errors.NotFound(noun="Node", ident=uuid)
        values = change(node)
        told = nodes.outbox_columns(nodes.build_events(values, vars(node)))
        connection.execute(sa.update(NODES).where(own).values(**values, **told))

    return write
