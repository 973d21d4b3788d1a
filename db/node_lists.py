"""Lists of nodes: for the API with its filters, for the hash ring, for what conductors do to many."""

import datetime
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from ingot.common import states
from ingot.db import listing, maintenance, models, nodes
from ingot.db.engine import Database

Selected = sa.Select[Any]

_NODES = nodes.NODES

SOURCE = listing.Source("Node", nodes.ShownNode, nodes.COMPUTED)


def _select(*names: str) -> Selected:
    return sa.select(*models.columns(_NODES, names))


def _read(db: Database, statement: Selected) -> list[models.Node]:
    return db.read_all(models.Node, statement)


def find_named(db: Database, idents: Collection[str]) -> list[models.Node]:
    """Return UUID, name, owner and lessee of the nodes that have one of these as UUID or as name."""
    named = sa.or_(_NODES.c.uuid.in_(idents), _NODES.c.name.in_(idents))
    return _read(db, _select("uuid", "name", "owner", "lessee").where(named))


def list_children(db: Database, parent: str) -> list[models.Node]:
    """Return the child nodes of a node, in order of creation, with what accepting work for them needs.

    :param parent: its uuid.
    """
    names = ("id", "uuid", "name", "revision", "driver", "conductor_group", "provision_state", "reservation", "flow")
    more = ("maintenance", "maintenance_reason", "owner", "lessee", "request", "driver_internal_info")
    return _read(db, _select(*names, *more).where(_NODES.c.parent_node == parent).order_by(_NODES.c.id))


def count_shards(db: Database) -> list[tuple[str | None, int]]:
    """Return the shards by name with the number of their nodes; first, under None, the nodes that are in no shard."""
    statement = sa.select(_NODES.c.shard, sa.func.count()).group_by(_NODES.c.shard)
    with db.single() as connection:
        found = [(name, count) for name, count in connection.execute(statement)]
    return sorted(found, key=lambda shard: (shard[0] is not None, shard[0] or ""))


def list_places(db: Database, where: Iterable[listing.Condition | listing.Either]) -> list[models.Node]:
    """Return what nodes are counted by: uuid, driver, conductor_group, provision_state, resource_class.

    :param where: conditions of lists of nodes.
    """
    columns = _select("uuid", "driver", "conductor_group", "provision_state", "resource_class")
    return _read(db, columns.where(*(condition.clause(SOURCE) for condition in where)))


# What conductors ask


def list_ring_keys(
    db: Database, uuids: Collection[str] | None = None, groups: Collection[str] | None = None
) -> list[models.Node]:
    """Return what the hash ring needs to know of nodes.

    :param uuids: of which nodes; None for every one.
    :param groups: of which conductor groups; None for all.
    """
    statement = _select("uuid", "driver", "conductor_group")
    if uuids is not None:
        statement = statement.where(_NODES.c.uuid.in_(uuids))
    if groups is not None:
        statement = statement.where(_NODES.c.conductor_group.in_(groups))
    return _read(db, statement)


def read_power_states(db: Database, instances: Collection[str]) -> dict[str, str | None]:
    """Return the power states of nodes by their ``instance_uuid``, of those that have one of these."""
    found = _read(db, _select("instance_uuid", "power_state").where(_NODES.c.instance_uuid.in_(instances)))
    return {str(node.instance_uuid): node.power_state for node in found}


def list_to_check(
    db: Database, moment: datetime.datetime, limit: int, group: str, drivers: Collection[str]
) -> list[models.Node]:
    """Return unlocked nodes whose next check is due, longest overdue first: uuid, driver, conductor_group, due_at.

    Only those of a conductor's group and hardware types: nodes without a conductor must not crowd out the others. The
    index on due_at holds only nodes with work, so the cost grows with the work and not with the fleet.
    """
    waiting = (
        _NODES.c.due_at <= moment,
        _NODES.c.reservation.is_(None),
        _NODES.c.conductor_group == group,
        _NODES.c.driver.in_(list(drivers)),
    )
    columns = ("uuid", "driver", "conductor_group", "due_at")
    return _read(db, _select(*columns).where(*waiting).order_by(_NODES.c.due_at).limit(limit))


def list_silent(db: Database, group: str, drivers: Collection[str], before: datetime.datetime) -> list[models.Node]:
    """Return nodes of a group with these drivers whose flow waits, since before a moment, for an agent's first call.

    Of each: uuid, driver, conductor_group, boot_config, driver_internal_info, step_state, provision_updated_at.
    """
    silent = (
        _NODES.c.provision_state.in_(states.WAITING),
        _NODES.c.agent_url.is_(None),
        _NODES.c.step_state == states.StepState.WAITING,
        _NODES.c.provision_updated_at < before,
        _NODES.c.reservation.is_(None),
        _NODES.c.conductor_group == group,
        _NODES.c.driver.in_(list(drivers)),
        _NODES.c.maintenance.is_(False),
    )
    names = ("uuid", "driver", "conductor_group", "boot_config", "driver_internal_info")
    return _read(db, _select(*names, "step_state", "provision_updated_at").where(*silent))


def list_locked(db: Database) -> list[models.Node]:
    """Return all nodes that are locked now: uuid, driver, conductor_group, reservation, due_at."""
    # As "is not null", for which SQLite would read the whole table.
    return _read(
        db, _select("uuid", "driver", "conductor_group", "reservation", "due_at").where(_NODES.c.reservation > "")
    )


def list_unlocked(db: Database, uuids: Collection[str]) -> list[models.Node]:
    """Return those of the nodes that are not locked now, with all that a task needs of them."""
    return _read(db, sa.select(*nodes.USUAL).where(_NODES.c.uuid.in_(uuids), _NODES.c.reservation.is_(None)))


def list_for_power_sync(db: Database, group: str, drivers: Collection[str]) -> list[models.Node]:
    """Return nodes of a group with these drivers whose power state may be read: uuid, driver, conductor_group.

    They are unlocked, in a stable or failed state, without a next check, and no hold forbids it.
    """
    names = ("uuid", "driver", "conductor_group", *maintenance.FLAG)
    found = _read(
        db,
        _select(*names).where(
            _NODES.c.conductor_group == group,
            _NODES.c.driver.in_(list(drivers)),
            _NODES.c.reservation.is_(None),
            _NODES.c.due_at.is_(None),
            _NODES.c.provision_state.in_((states.STABLE | states.FAILED) - {states.ENROLL}),
        ),
    )
    return [node for node in found if not maintenance.pauses_sync(node)]


def list_of_drivers(db: Database, group: str, drivers: Collection[str], names: Collection[str]) -> list[models.Node]:
    """Return the named columns of all nodes of a group with one of these drivers."""
    return _read(db, _select(*names).where(_NODES.c.conductor_group == group, _NODES.c.driver.in_(drivers)))


def list_with_console(db: Database, group: str, drivers: Collection[str], uuids: Collection[str]) -> list[models.Node]:
    """Return nodes of a group with these drivers whose console is enabled, and some others by uuid.

    Of each: uuid, driver, conductor_group, console_enabled, and what its version is made of.
    """
    names = ("uuid", "driver", "conductor_group", "console_enabled", "revision", "created_at")
    asked = sa.or_(_NODES.c.console_enabled.is_(True), _NODES.c.uuid.in_(uuids))
    of_group = (_NODES.c.conductor_group == group, _NODES.c.driver.in_(list(drivers)))
    return _read(db, _select(*names).where(*of_group, asked))
