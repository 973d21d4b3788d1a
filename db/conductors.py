"""Queries on conductors and on the hardware interfaces they have enabled (specification 004)."""

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import listing, models, nodes, outbox
from ingot.db.engine import Database, retry_transaction

DRAIN_ASKED, DRAIN_FOLLOWED = "asked", "followed"
"""Values of a conductor's ``drain``; none: it is not drained."""

CONDUCTORS = models.table(models.Conductor)
INTERFACES = models.table(models.ConductorHardwareInterface)

_ONLINE, _STOPPED = "online", "stopped"

_RESTART_S = 300
"""Seconds within which a conductor that was stopped may be expected back."""


class EnabledInterface(NamedTuple):
    """One implementation that a conductor has enabled for a hardware type."""

    hardware_type: str
    interface_type: str
    interface_name: str
    default: bool


class Conductor(models.Conductor):
    """A conductor, whether it is online (it gave a heartbeat lately), and its enabled drivers."""

    alive: bool
    drivers: list[str]


SOURCE = listing.Source("Conductor", Conductor, key="hostname")


class InterfaceOnline(models.ConductorHardwareInterface):
    """An interface that an online conductor has enabled."""

    hostname: str
    conductor_group: str


class RingMember(NamedTuple):
    """An online conductor and a driver that it has enabled.

    :param driver: a hardware type or a classic driver; both stand in the same field of a node (specification 004).
    """

    hostname: str
    conductor_group: str
    driver: str


class Entry(NamedTuple):
    """A conductor's entry, for as long as no other process makes it its own.

    :param process: which one registered, in its own words.
    """

    id: int
    process: str | None

    @property
    def is_own(self) -> sa.ColumnElement[bool]:
        """The condition that the entry is still this process's."""
        return sa.and_(CONDUCTORS.c.id == self.id, CONDUCTORS.c.process == self.process)


def _online(timeout: float) -> sa.ColumnElement[bool]:
    limit = clock.after(-timeout)
    return sa.and_(CONDUCTORS.c.online.is_(True), CONDUCTORS.c.heartbeat_at > limit)


def _in_group(group: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if group is None else CONDUCTORS.c.conductor_group == group


# What a conductor writes about itself


@retry_transaction
def register(
    db: Database, hostname: str, values: Mapping[str, object], interfaces: Iterable[EnabledInterface]
) -> Entry:
    """Add a conductor, or refresh the entry of an earlier life; its enabled interfaces too, unless it is drained.

    :param values: conductor_group, process, release, rpc_version, and classic_drivers if it has any.
    """
    alive = {"online": True, "heartbeat_at": clock.now(), "announced": _ONLINE}
    fresh = {"process": None, "classic_drivers": [], **values, **alive}
    with db.transaction() as connection:
        known = sa.select(CONDUCTORS.c.id).where(CONDUCTORS.c.hostname == hostname)
        conductor_id = connection.execute(known).scalar()
        if conductor_id is None:
            connection.execute(sa.insert(CONDUCTORS).values(hostname=hostname, **fresh))
            conductor_id = connection.execute(known).scalar_one()
        else:
            connection.execute(sa.update(CONDUCTORS).where(CONDUCTORS.c.id == conductor_id).values(fresh))
            connection.execute(sa.delete(INTERFACES).where(INTERFACES.c.conductor_id == conductor_id))
        rows = [{"conductor_id": conductor_id, **entry._asdict()} for entry in interfaces]
        if rows:
            connection.execute(sa.insert(INTERFACES), rows)
        own = CONDUCTORS.c.id == conductor_id
        if connection.execute(sa.select(CONDUCTORS.c.drain).where(own)).scalar() is not None:
            _leave_rings(connection, own, drain=DRAIN_FOLLOWED)
        _announce(connection, own, _ONLINE)
    process = values.get("process")
    return Entry(conductor_id, None if process is None else str(process))


def touch(db: Database, entry: Entry) -> bool:
    """Write a heartbeat; False if the entry is another process's by now, or gone."""
    return db.write(sa.update(CONDUCTORS).where(entry.is_own).values(heartbeat_at=clock.now(), online=True)) == 1


def note_death(db: Database, hostname: str, process: str, timeout: float) -> bool:
    """Write that a conductor is silent because its process has died; False if the name is another process's by now.

    :param timeout: seconds without heartbeat after which a conductor counts as dead.
    """
    own = sa.and_(CONDUCTORS.c.hostname == hostname, CONDUCTORS.c.process == process)
    return db.write(sa.update(CONDUCTORS).where(own).values(heartbeat_at=clock.after(-timeout))) == 1


@retry_transaction
def withdraw(db: Database, entry: Entry) -> None:
    """Begin an orderly stop: on no ring any more, but alive; its locks are its own.

    Nothing happens to an entry that another process has by now.
    """
    with db.transaction() as connection:
        _leave_rings(connection, entry.is_own)
        _announce(connection, entry.is_own, "leaving")


@retry_transaction
def unregister(db: Database, entry: Entry) -> None:
    """End an orderly stop: offline at once, and without interfaces; as :func:`withdraw`."""
    with db.transaction() as connection:
        _leave_rings(connection, entry.is_own, online=False, announced=_STOPPED)
        _announce(connection, entry.is_own, _STOPPED)


def _announce(connection: sa.Connection, which: sa.ColumnElement[bool], state: str) -> None:
    """Leave the event of a conductor, if there is one, in the transaction that writes what has become of it."""
    columns = (CONDUCTORS.c.hostname.label("conductor"), CONDUCTORS.c.conductor_group)
    for about in connection.execute(sa.select(*columns).where(which)).mappings().all():
        outbox.add(connection, "conductor", {**about, "state": state})


def _leave_rings(connection: sa.Connection, which: sa.ColumnElement[bool], **values: object) -> None:
    """Remove what a conductor has enabled, which is what rings are made of; other releases know no other way."""
    one = sa.update(CONDUCTORS).where(which).values(classic_drivers=[], **values)
    if connection.execute(one).rowcount == 1:
        own = sa.select(CONDUCTORS.c.id).where(which).scalar_subquery()
        connection.execute(sa.delete(INTERFACES).where(INTERFACES.c.conductor_id == own))


def is_drained(db: Database, entry: Entry) -> bool:
    """Return whether an operator has drained a conductor."""
    with db.single() as connection:
        return connection.execute(sa.select(CONDUCTORS.c.drain).where(entry.is_own)).scalar() is not None


@retry_transaction
def confirm_drain(db: Database, entry: Entry) -> None:
    """Note that a conductor begins nothing any more since it was drained, and that it is off the rings."""
    with db.transaction() as connection:
        drained = sa.and_(entry.is_own, CONDUCTORS.c.drain.is_not(None))
        _leave_rings(connection, drained, drain=DRAIN_FOLLOWED)
        _announce(connection, drained, "drained")


# What an operator writes


@retry_transaction
def drain(db: Database, hostname: str) -> None:
    """Take a conductor off all rings until :func:`undrain`, however often it is started.

    :raises NotFound: none of that name ever registered.
    """
    named = CONDUCTORS.c.hostname == hostname
    with db.transaction() as connection:
        known = connection.execute(sa.select(CONDUCTORS.c.drain).where(named)).one_or_none()
        if known is None:
            raise errors.NotFound(noun="Conductor", ident=hostname)
        _leave_rings(connection, named, drain=known.drain or DRAIN_ASKED)
        if known.drain is None:
            _announce(connection, named, "draining")


@retry_transaction
def undrain(db: Database, hostname: str) -> None:
    """Let a conductor come back to the rings; it does so at its next heartbeat.

    :raises NotFound: none of that name ever registered.
    """
    named = CONDUCTORS.c.hostname == hostname
    with db.transaction() as connection:
        drained = sa.and_(named, CONDUCTORS.c.drain.is_not(None))
        if connection.execute(sa.update(CONDUCTORS).where(drained).values(drain=None)).rowcount == 1:
            _announce(connection, named, "undrained")
        elif connection.execute(sa.select(CONDUCTORS.c.id).where(named)).first() is None:
            raise errors.NotFound(noun="Conductor", ident=hostname)


@retry_transaction
def end_all(db: Database) -> None:
    """Note that no conductor runs, and none is on a ring; drains stay."""
    with db.transaction() as connection:
        connection.execute(sa.update(CONDUCTORS).values(online=False, process=None, classic_drivers=[]))
        connection.execute(sa.delete(INTERFACES))


@retry_transaction
def forget(db: Database, hostname: str, timeout: float) -> int:
    """Remove the entry of a conductor that is gone for good, and give back its locks.

    Both happen at once: it may come back a moment later, and lock anew.

    :param timeout: seconds without heartbeat after which it counts as offline.
    :returns: how many locks there were.
    :raises NotFound: none of that name ever registered.
    :raises Conflict: it is online.
    """
    named = CONDUCTORS.c.hostname == hostname
    stale = sa.update(nodes.NODES).where(nodes.NODES.c.reservation == hostname)
    with db.transaction() as connection:
        own = sa.select(CONDUCTORS.c.id).where(named).scalar_subquery()
        gone = sa.and_(named, sa.not_(_online(timeout)))
        offline = connection.execute(sa.select(sa.func.count()).select_from(CONDUCTORS).where(gone)).scalar()
        if offline:
            _announce(connection, gone, "removed")
            connection.execute(sa.delete(INTERFACES).where(INTERFACES.c.conductor_id == own))
            freed = connection.execute(stale.values(**nodes.FREE, lock_epoch=nodes.NODES.c.lock_epoch + 1)).rowcount
            if not connection.execute(sa.delete(CONDUCTORS).where(gone)).rowcount:  # it came back meanwhile
                raise _online_error(hostname)
            return freed
    get(db, hostname, timeout)
    raise _online_error(hostname)


def _online_error(hostname: str) -> errors.Conflict:
    return errors.Conflict(reason=f"Conductor {hostname} is online: stop it first.")


# Reading


def list_all(db: Database, timeout: float) -> list[Conductor]:
    """Return all conductors that ever registered, by hostname."""
    statement = sa.select(*CONDUCTORS.c, _online(timeout).label("alive")).order_by(CONDUCTORS.c.hostname)
    return db.read_all(Conductor, statement)


def get(db: Database, hostname: str, timeout: float) -> Conductor:
    """Return a conductor by hostname.

    :raises NotFound: none of that name ever registered.
    """
    statement = sa.select(*CONDUCTORS.c, _online(timeout).label("alive")).where(CONDUCTORS.c.hostname == hostname)
    conductor = db.read_first(Conductor, statement)
    if conductor is None:
        raise errors.NotFound(noun="Conductor", ident=hostname)
    return conductor


def online_hosts(db: Database, timeout: float) -> set[str]:
    """Return the hostnames of conductors whose last heartbeat is younger than ``timeout`` seconds."""
    return set(db.read_column(sa.select(CONDUCTORS.c.hostname).where(_online(timeout))))


def list_versions(db: Database, timeout: float) -> list[models.Conductor]:
    """Return hostname, release and rpc_version of each online conductor."""
    statement = sa.select(*models.columns(CONDUCTORS, ("hostname", "release", "rpc_version"))).where(_online(timeout))
    return db.read_all(models.Conductor, statement.order_by(CONDUCTORS.c.id))


def ring_members(db: Database, timeout: float) -> list[RingMember]:
    """Return what hash rings are made of: all online conductors, each with each of its drivers."""
    return _list_members(db, _online(timeout))


def raise_if_lately_online(db: Database, driver: str, group: str | None = None) -> None:
    """Raise when no online conductor has a driver enabled, but one may be back soon: the user made no mistake.

    A conductor that did not stop in order is only unreachable: after a time without database all are, until their next
    heartbeats. And while a release is rolled out all stop; their successors may have the driver.

    :param group: only conductors of this group count; None for all.
    :raises ConductorAway: there is such a conductor.
    """
    members = _list_members(db, CONDUCTORS.c.online.is_(True))
    able = (one for one in members if one.driver == driver and group in (None, one.conductor_group))
    if hosts := sorted({one.hostname for one in able}):
        raise errors.ConductorAway(
            what=f"Driver {driver}",
            reason=f"no heartbeat lately from conductors that have it enabled, {', '.join(hosts)}",
        )
    since = clock.after(-_RESTART_S)
    lately = sa.select(CONDUCTORS.c.hostname).where(CONDUCTORS.c.heartbeat_at > since, _in_group(group))
    if gone := sorted(set(db.read_column(lately)) - {member.hostname for member in members}):
        raise errors.ConductorAway(
            what=f"Driver {driver}",
            reason="no conductor has it enabled; maybe one of those that stop or have just stopped, when it is back: "
            f"{', '.join(gone)}",
        )


def _list_members(db: Database, which: sa.ColumnElement[bool]) -> list[RingMember]:
    types = sa.select(INTERFACES.c.conductor_id, INTERFACES.c.hardware_type).distinct().subquery()
    columns = models.columns(CONDUCTORS, ("hostname", "conductor_group", "classic_drivers"))
    statement = sa.select(*columns, types.c.hardware_type).outerjoin(types, types.c.conductor_id == CONDUCTORS.c.id)
    members: dict[RingMember, None] = {}
    with db.single() as connection:
        for row in connection.execute(statement.where(which)):
            drivers = row.classic_drivers if row.hardware_type is None else [*row.classic_drivers, row.hardware_type]
            members |= dict.fromkeys(RingMember(row.hostname, row.conductor_group, driver) for driver in drivers)
    return list(members)


def classic_drivers(db: Database, timeout: float, group: str | None = None) -> list[RingMember]:
    """Return the classic drivers of online conductors.

    :param group: only conductors of this group; None for all.
    """
    columns = models.columns(CONDUCTORS, ("hostname", "conductor_group", "classic_drivers"))
    statement = sa.select(*columns).where(_online(timeout), CONDUCTORS.c.classic_drivers.is_not(None))
    found = db.read_all(models.Conductor, statement.where(_in_group(group)))
    return [RingMember(one.hostname, one.conductor_group, name) for one in found for name in one.classic_drivers]


def enabled_interfaces(
    db: Database, timeout: float, hardware_types: Collection[str] | None = None, group: str | None = None
) -> list[InterfaceOnline]:
    """Return the enabled interfaces of online conductors, without ids.

    :param hardware_types: only these; None for all.
    :param group: only conductors of this group; None for all.
    """
    limits: dict[str, object] = {"since": clock.after(-timeout)}
    if hardware_types is not None:
        limits["types"] = [*hardware_types]
    if group is not None:
        limits["group"] = group
    return db.read_all(InterfaceOnline, _select_enabled(*limits), **limits)


@functools.cache
def _select_enabled(*limits: str) -> sa.Select[Any]:
    """Return the statement with these parameters."""
    conditions = {
        "since": sa.and_(CONDUCTORS.c.online.is_(True), CONDUCTORS.c.heartbeat_at > sa.bindparam("since")),
        "types": INTERFACES.c.hardware_type.in_(sa.bindparam("types", expanding=True)),
        "group": CONDUCTORS.c.conductor_group == sa.bindparam("group"),
    }
    columns = models.columns(INTERFACES, EnabledInterface._fields)
    return (
        sa.select(CONDUCTORS.c.hostname, CONDUCTORS.c.conductor_group, *columns)
        .join(INTERFACES, INTERFACES.c.conductor_id == CONDUCTORS.c.id)
        .where(*(conditions[name] for name in limits))
        .order_by(INTERFACES.c.id)
    )


def drivers_by_host(db: Database) -> dict[str, list[str]]:
    """Return the sorted hardware types and classic drivers that conductors have enabled, by hostname."""
    found: dict[str, list[str]] = {}
    for member in _list_members(db, sa.true()):
        found.setdefault(member.hostname, []).append(member.driver)
    return {hostname: sorted(names) for hostname, names in found.items()}
