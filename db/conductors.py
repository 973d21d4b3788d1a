"""Queries on conductors and on the hardware interfaces they have enabled (specification 004)."""

import datetime
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import models, records
from ingot.db.engine import Database, retried

DRAIN_ASKED, DRAIN_FOLLOWED = "asked", "followed"
"""Values of a conductor's ``drain``; none: it is not drained."""

CONDUCTORS = models.table(models.Conductor)
INTERFACES = models.table(models.ConductorHardwareInterface)

_RESTART_S = 300
"""Seconds within which a conductor that was stopped may be expected back."""


class EnabledInterface(NamedTuple):
    """One implementation that a conductor has enabled for a hardware type."""

    hardware_type: str
    interface_type: str
    interface_name: str
    default: bool


class Entry(NamedTuple):
    """A conductor's entry, for as long as no other process makes it its own.

    :param process: which one registered, in the words of whoever did.
    """

    id: int
    process: str | None

    @property
    def is_own(self) -> sa.ColumnElement[bool]:
        """The condition that the entry is still this process's."""
        return sa.and_(CONDUCTORS.c.id == self.id, CONDUCTORS.c.process == self.process)


def _online(timeout: float, moment: datetime.datetime | None = None) -> sa.ColumnElement[bool]:
    limit = (moment or clock.now()) - datetime.timedelta(seconds=timeout)
    return sa.and_(CONDUCTORS.c.online.is_(True), CONDUCTORS.c.heartbeat_at > limit)


@retried
def register(db: Database, hostname: str, values: Mapping[str, Any], interfaces: Iterable[EnabledInterface]) -> Entry:
    """Enters a conductor, or refreshes the entry of an earlier life, with its enabled interfaces; without, if it is
    drained.

    :param values: conductor_group, process, release, rpc_version, and classic_drivers if it has any.
    """
    fresh = {"process": None, "classic_drivers": [], **values, "online": True, "heartbeat_at": clock.now()}
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
            _off_the_rings(connection, own, drain=DRAIN_FOLLOWED)
    return Entry(conductor_id, fresh["process"])


@retried
def touch(db: Database, entry: Entry) -> bool:
    """A sign of life; False if the entry is another process's, or nobody's, by now."""
    alive = {"heartbeat_at": clock.now(), "online": True}
    with db.single() as connection:
        return connection.execute(sa.update(CONDUCTORS).where(entry.is_own).values(alive)).rowcount == 1


@retried
def withdraw(db: Database, entry: Entry) -> None:
    """The beginning of an orderly stop: on no ring any more, but alive; its locks are its own. Nothing happens to an
    entry that another process has by now."""
    with db.transaction() as connection:
        _off_the_rings(connection, entry.is_own)


@retried
def unregister(db: Database, entry: Entry) -> None:
    """An orderly stop: offline at once, and its interfaces are not on offer any more; as :func:`withdraw`."""
    with db.transaction() as connection:
        _off_the_rings(connection, entry.is_own, online=False)


def _off_the_rings(connection: sa.Connection, which: sa.ColumnElement[bool], **values: Any) -> None:
    """Takes away what a conductor has enabled, which is what rings are made of; other releases know no other way."""
    one = sa.update(CONDUCTORS).where(which).values(classic_drivers=[], **values)
    if connection.execute(one).rowcount == 1:
        own = sa.select(CONDUCTORS.c.id).where(which).scalar_subquery()
        connection.execute(sa.delete(INTERFACES).where(INTERFACES.c.conductor_id == own))


@retried
def drain(db: Database, hostname: str) -> None:
    """Takes a conductor off all rings, until :func:`undrain`, however often it is started.

    :raises NotFound: none of that name ever registered.
    """
    named = CONDUCTORS.c.hostname == hostname
    with db.transaction() as connection:
        known = connection.execute(sa.select(CONDUCTORS.c.drain).where(named)).one_or_none()
        if known is None:
            raise errors.NotFound(noun="Conductor", ident=hostname)
        _off_the_rings(connection, named, drain=known.drain or DRAIN_ASKED)


@retried
def undrain(db: Database, hostname: str) -> None:
    """Lets a conductor come back to the rings; it does so at its next sign of life.

    :raises NotFound: none of that name ever registered.
    """
    with db.single() as connection:
        own = sa.update(CONDUCTORS).where(CONDUCTORS.c.hostname == hostname)
        if connection.execute(own.values(drain=None)).rowcount != 1:
            raise errors.NotFound(noun="Conductor", ident=hostname)


def is_drained(db: Database, entry: Entry) -> bool:
    """Whether an operator has drained a conductor."""
    with db.single() as connection:
        return connection.execute(sa.select(CONDUCTORS.c.drain).where(entry.is_own)).scalar() is not None


@retried
def confirm_drain(db: Database, entry: Entry) -> None:
    """Notes that a conductor begins nothing any more since it was drained, and that it is off the rings."""
    with db.transaction() as connection:
        _off_the_rings(connection, sa.and_(entry.is_own, CONDUCTORS.c.drain.is_not(None)), drain=DRAIN_FOLLOWED)


def every(db: Database, timeout: float) -> list[records.Record]:
    """All conductors that ever registered, by hostname, with ``alive``."""
    statement = sa.select(*CONDUCTORS.c, _online(timeout).label("alive")).order_by(CONDUCTORS.c.hostname)
    with db.single() as connection:
        return records.many(connection.execute(statement))


def online_hosts(db: Database, timeout: float) -> set[str]:
    """Hostnames of conductors whose last sign of life is younger than ``timeout`` seconds."""
    with db.single() as connection:
        return set(connection.execute(sa.select(CONDUCTORS.c.hostname).where(_online(timeout))).scalars())


def ring_members(db: Database, timeout: float) -> list[tuple[str, str, str]]:
    """(hostname, conductor group, driver) of all online conductors: what hash rings are made of. A driver is a
    hardware type or a classic driver; both stand in the same field of a node (specification 004)."""
    return _members(db, _online(timeout))


def raise_if_silent(db: Database, driver: str, group: str | None = None) -> None:
    """To be called when no online conductor has a driver enabled, before that is called the user's mistake.

    :param group: only conductors of this group count; None for all.
    :raises ServiceUnavailable: some have it that did not stop in order. After a time without database all are silent,
        until each has given its next sign of life. Or others stopped lately, as all do while a release is rolled: who
        comes after them may have it.
    """
    members = _members(db, CONDUCTORS.c.online.is_(True))
    hosts = sorted({host for host, where, name in members if name == driver and group in (None, where)})
    if hosts:
        raise errors.ServiceUnavailable(
            what=f"Driver {driver}", reason=f"no sign of life lately from who has it enabled, {', '.join(hosts)}"
        )
    if gone := sorted(_seen_lately(db, group) - {host for host, _where, _name in members}):
        raise errors.ServiceUnavailable(
            what=f"Driver {driver}",
            reason=f"no conductor has it enabled; maybe one of those that stop or have just "
            f"stopped, when it is back: {', '.join(gone)}",
        )


def _seen_lately(db: Database, group: str | None) -> set[str]:
    seen = sa.select(CONDUCTORS.c.hostname).where(
        CONDUCTORS.c.heartbeat_at > clock.now() - datetime.timedelta(seconds=_RESTART_S),
        CONDUCTORS.c.conductor_group == group if group is not None else sa.true(),
    )
    with db.single() as connection:
        return set(connection.execute(seen).scalars())


def _members(db: Database, which: sa.ColumnElement[bool]) -> list[tuple[str, str, str]]:
    types = sa.select(INTERFACES.c.conductor_id, INTERFACES.c.hardware_type).distinct().subquery()
    statement = (
        sa.select(
            CONDUCTORS.c.hostname, CONDUCTORS.c.conductor_group, CONDUCTORS.c.classic_drivers, types.c.hardware_type
        )
        .outerjoin(types, types.c.conductor_id == CONDUCTORS.c.id)
        .where(which)
    )
    members: dict[tuple[str, str, str], None] = {}
    with db.single() as connection:
        for hostname, group, classic, hardware_type in connection.execute(statement):
            drivers = classic if hardware_type is None else [*classic, hardware_type]
            members |= dict.fromkeys((hostname, group, driver) for driver in drivers)
    return list(members)


def classic_drivers(db: Database, timeout: float, group: str | None = None) -> list[tuple[str, str, str]]:
    """(hostname, conductor group, classic driver) of online conductors.

    :param group: only conductors of this group; None for all.
    """
    having = (CONDUCTORS.c.hostname, CONDUCTORS.c.conductor_group, CONDUCTORS.c.classic_drivers)
    statement = sa.select(*having).where(_online(timeout), CONDUCTORS.c.classic_drivers.is_not(None))
    if group is not None:
        statement = statement.where(CONDUCTORS.c.conductor_group == group)
    with db.single() as connection:
        return [(host, where, name) for host, where, names in connection.execute(statement) for name in names]


def versions(db: Database, timeout: float) -> list[records.Record]:
    """hostname, release and rpc_version of each online conductor."""
    columns = records.columns(CONDUCTORS, ("hostname", "release", "rpc_version"))
    with db.single() as connection:
        return records.many(connection.execute(sa.select(*columns).where(_online(timeout)).order_by(CONDUCTORS.c.id)))


def enabled_interfaces(
    db: Database, timeout: float, hardware_types: Collection[str] | None = None, group: str | None = None
) -> list[records.Record]:
    """Enabled interfaces of online conductors: hostname, conductor_group, hardware_type, interface_type,
    interface_name, default.

    :param hardware_types: only these; None for all.
    :param group: only conductors of this group; None for all.
    """
    statement = (
        sa.select(
            CONDUCTORS.c.hostname,
            CONDUCTORS.c.conductor_group,
            INTERFACES.c.hardware_type,
            INTERFACES.c.interface_type,
            INTERFACES.c.interface_name,
            INTERFACES.c.default,
        )
        .join(INTERFACES, INTERFACES.c.conductor_id == CONDUCTORS.c.id)
        .where(_online(timeout))
        .order_by(INTERFACES.c.id)
    )
    if hardware_types is not None:
        statement = statement.where(INTERFACES.c.hardware_type.in_(hardware_types))
    if group is not None:
        statement = statement.where(CONDUCTORS.c.conductor_group == group)
    with db.single() as connection:
        return records.many(connection.execute(statement))


def get(db: Database, hostname: str, timeout: float) -> records.Record:
    """A conductor by hostname, with ``alive``.

    :raises NotFound: none of that name ever registered.
    """
    statement = sa.select(*CONDUCTORS.c, _online(timeout).label("alive")).where(CONDUCTORS.c.hostname == hostname)
    with db.single() as connection:
        conductor = records.one(connection.execute(statement))
    if conductor is None:
        raise errors.NotFound(noun="Conductor", ident=hostname)
    return conductor
