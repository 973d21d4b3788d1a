"""Queries on allocations. An allocation and the node that it got are written together or not at all."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import errors, states
from ingot.db import listing, models, node_lists, node_refusals, nodes, outbox, rows
from ingot.db.engine import Database, retry_transaction

_NODES = nodes.NODES
ALLOCATIONS = models.table(models.Allocation)
_TRAITS = models.table(models.NodeTrait)

ALLOCATING = "allocating"
"""The state of an allocation that a conductor still has to find a node for."""

ACTIVE, ERROR = "active", "error"


class AllocationOfNode(models.Allocation):
    """An allocation, with what is shown of its node."""

    node_uuid: str | None


class Candidate(models.Node):
    """A node that fits an allocation, and whether no conductor works on it."""

    free: bool


SOURCE = listing.Source(
    "Allocation",
    AllocationOfNode,
    {"node_uuid": sa.select(_NODES.c.uuid).where(_NODES.c.id == ALLOCATIONS.c.node_id).scalar_subquery()},
)

_REMOVABLE = states.UPDATE_ALLOWED - {states.ACTIVE}
"""States of a node that lose nothing when its allocation goes."""

_FREE = sa.and_(_NODES.c.reservation.is_(None), _NODES.c.flow.is_(None))
"""No conductor works on the node."""

_UNUSED = sa.and_(
    _NODES.c.provision_state == states.AVAILABLE,
    _NODES.c.instance_uuid.is_(None),
    _NODES.c.maintenance.is_(False),
    _NODES.c.power_state.is_not(None),  # without one it is not known whether the machine can be reached
)

_ROWS = rows.Rows(SOURCE)

create = _ROWS.create
update = _ROWS.update


@retry_transaction
def backfill(db: Database, values: Mapping[str, object], node: models.Node) -> None:
    """Add an active allocation for a node that is in use already; see :meth:`rows.Rows.insert`.

    :param node: as read before; needs id, uuid, revision.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    """
    with db.transaction() as connection:
        is_as_read = _change_node(connection, node, {"instance_uuid": values["uuid"]})
        if is_as_read:
            _ROWS.insert(connection, {**values, "node_id": node.id, "state": ACTIVE})
    if not is_as_read:
        raise nodes.refused_write_error(db, node.uuid)


@retry_transaction
def delete(db: Database, allocation: models.Allocation) -> None:
    """Remove an allocation; its node is free again.

    :raises NodeLocked: a conductor works on its node.
    :raises Conflict: its node is in use.
    :raises ChangedMeanwhile: it was changed since it was read; it may have got a node.
    """
    with db.transaction() as connection:
        if allocation.node_id is not None:
            _free_node(connection, allocation)
        _ROWS.remove(connection, allocation)


_IF_IDLE = nodes.Update(
    sa.and_(
        _NODES.c.id == sa.bindparam("own_id"),
        _NODES.c.instance_uuid == sa.bindparam("own"),
        _NODES.c.reservation.is_(None),
        sa.or_(_NODES.c.maintenance, _NODES.c.provision_state.in_(_REMOVABLE)),
    )
)


def _free_node(connection: sa.Connection, allocation: models.Allocation) -> None:
    values, known = {"instance_uuid": None}, {"own_id": allocation.node_id, "own": allocation.uuid}
    if _IF_IDLE.execute(connection, values, outbox.build_events(values), known):
        return
    own = _NODES.c.id == allocation.node_id
    names = ("uuid", "provision_state", "maintenance", "reservation", "lock_purpose", "locked_at", "instance_uuid")
    node = models.Node.first_of(connection.execute(sa.select(*models.columns(_NODES, names)).where(own)))
    if node is None:
        return
    if node.reservation is not None:
        raise node_refusals.locked_error(node)
    _refuse_in_use(node, allocation.uuid)
    if node.instance_uuid == allocation.uuid:
        raise errors.ChangedMeanwhile(node=node.uuid)


def _refuse_in_use(node: models.Node, uuid: str | None) -> None:
    """Refuse to take an allocation away from a node that is in use.

    :param node: needs uuid, provision_state, maintenance.
    :param uuid: of its allocation.
    :raises Conflict: the node is in use.
    """
    if not node.maintenance and node.provision_state not in _REMOVABLE:
        raise errors.Conflict(
            reason=f"Cannot remove allocation {uuid} for node {node.uuid}, because the node is in state "
            f"{node.provision_state} and not in maintenance. Undeploy the node, which removes the allocation."
        )


@retry_transaction
def detach(db: Database, node: models.Node, values: Mapping[str, object]) -> None:
    """Write what a request changes of a node whose instance it takes away.

    It writes as :func:`nodes.compare_and_set` does; the allocation that brought the instance goes with it.

    :raises Conflict: there is one, and the node is in use.
    """
    with db.transaction() as connection:
        is_as_read = _change_node(connection, node, values)
        own = sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.node_id == node.id)
        if is_as_read and connection.execute(own).rowcount:
            _refuse_in_use(node, node.instance_uuid)
    if not is_as_read:
        raise nodes.refused_write_error(db, node.uuid)


def forget(db: Database, node_id: int) -> None:
    """Remove the allocation of a node whose instance is gone."""
    db.write(sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.node_id == node_id))


# What a conductor asks and writes


def list_waiting(db: Database, limit: int) -> list[str]:
    """Return the uuids of the allocations that wait for a node, those that wait longest first."""
    own = sa.select(ALLOCATIONS.c.uuid).where(ALLOCATIONS.c.state == ALLOCATING).order_by(ALLOCATIONS.c.id)
    return db.read_column(own.limit(limit))


def find_waiting(db: Database, uuid: str) -> models.Allocation | None:
    """Return an allocation that waits for a node; None if it does not, or is gone."""
    own = sa.select(*ALLOCATIONS.c).where(ALLOCATIONS.c.uuid == uuid, ALLOCATIONS.c.state == ALLOCATING)
    return db.read_first(models.Allocation, own)


def list_candidates(db: Database, allocation: models.Allocation, limit: int) -> list[Candidate]:
    """Return nodes that fit an allocation: id, uuid, name, free.

    Free ones come first, and of those the one with the allocation's name.
    """
    free = sa.case((_FREE, 1), else_=0)
    same_name = sa.case((_NODES.c.name == (allocation.name or ""), 1), else_=0)
    columns = (*models.columns(_NODES, ("id", "uuid", "name")), free.label("free"))
    statement = sa.select(*columns).where(_UNUSED, *_requirements(allocation))
    statement = statement.order_by(free.desc(), same_name.desc(), _NODES.c.id).limit(limit)
    return db.read_all(Candidate, statement)


def _requirements(allocation: models.Allocation) -> list[sa.ColumnElement[bool]]:
    """Return what an allocation requires of a node, as conditions."""
    conditions = [_NODES.c.resource_class == allocation.resource_class]
    if allocation.owner is not None:
        conditions.append(sa.or_(_NODES.c.owner == allocation.owner, _NODES.c.lessee == allocation.owner))
    if allocation.candidate_nodes:
        conditions.append(_NODES.c.uuid.in_(allocation.candidate_nodes))
    if allocation.traits:
        having = sa.select(_TRAITS.c.node_id).where(_TRAITS.c.trait.in_(allocation.traits))
        every = having.group_by(_TRAITS.c.node_id).having(sa.func.count() == len(set(allocation.traits)))
        conditions.append(_NODES.c.id.in_(every))
    return conditions


@retry_transaction
def assign(db: Database, allocation: models.Allocation, node: models.Node) -> bool:
    """Give a node to an allocation if both are still free: one transaction, so nothing is ever half done.

    :param node: one of the candidates.
    :returns: whether the allocation has it now.
    :raises ChangedMeanwhile: the allocation was changed or deleted, or has got another node.
    :raises Conflict: another node has an instance of the allocation's uuid.
    """
    own = _NODES.c.id == node.id
    with db.transaction() as connection:
        # The requirements are checked again: a class or an owner may have changed since the candidates were read.
        still = sa.and_(own, _UNUSED, _FREE, *_requirements(allocation))
        columns = models.columns(_NODES, ("id", "uuid", "instance_info", "revision"))
        found = models.Node.first_of(connection.execute(sa.select(*columns).where(still)))
        if found is None:
            return False
        # Deploy templates are found by the traits that the instance asks for.
        traits = {"traits": sorted(allocation.traits)} if allocation.traits else {}
        info = {name: value for name, value in found.instance_info.items() if name != "traits"} | traits
        instance = {"instance_uuid": allocation.uuid, "instance_info": info}
        if not _change_node(connection, found, instance):
            return False
        _ROWS.write(connection, allocation, {"node_id": node.id, "state": ACTIVE, "last_error": None})
    return True


@retry_transaction
def fail(db: Database, allocation: models.Allocation, reason: str) -> None:
    """End the search for a node.

    :param reason: what the user reads as last_error.
    :raises ChangedMeanwhile: the allocation was changed or deleted since it was read.
    """
    with db.single() as connection:
        _ROWS.write(connection, allocation, {"state": ERROR, "last_error": reason})


def count_matching(db: Database, allocation: models.Allocation) -> tuple[int, int]:
    """Return how many nodes have the allocation's resource class, and how many of them are not in use."""
    unused = sa.func.coalesce(sa.func.sum(sa.case((_UNUSED, 1), else_=0)), 0)
    statement = sa.select(sa.func.count(), unused).where(_NODES.c.resource_class == allocation.resource_class)
    with db.single() as connection:
        every, idle = connection.execute(statement).one()
    return int(every), int(idle)


def _change_node(connection: sa.Connection, node: models.Node, values: Mapping[str, object]) -> bool:
    try:
        return nodes.IF_UNCHANGED.execute(
            connection, values, outbox.build_events(values, vars(node)), nodes.as_read(node)
        )
    except db_exc.DBDuplicateEntry as exc:
        raise node_refusals.duplicate_error(exc, values, node.uuid) from exc


def resolve_candidates(db: Database, idents: Collection[str], project: str | None = None) -> dict[str, str]:
    """Return the uuids of nodes by what a user calls them, a uuid or a name; unknown ones are absent.

    :param project: only of nodes that it owns or leases; None for all.
    """
    found = node_lists.find_named(db, idents)
    own = [node for node in found if project is None or project in (node.owner, node.lessee)]
    known = {node.name: node.uuid for node in own if node.name is not None} | {node.uuid: node.uuid for node in own}
    return {ident: known[ident] for ident in idents if ident in known}
