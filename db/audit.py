"""Queries on the audit trail: it is written in batches, read newest first, and shortened by age and number."""

import datetime
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import models
from ingot.db.engine import Database, retry_transaction

_EVENTS = models.table(models.AuditEvent)

_DAY_S = 24 * 3600
_BATCH = 1000


@retry_transaction
def add(db: Database, events: Sequence[Mapping[str, object]]) -> None:
    """Add events: all of them, or none."""
    with db.transaction() as connection:  # some drivers send a statement for each row
        connection.execute(sa.insert(_EVENTS), [*events])


def read_page(
    db: Database,
    equal: Mapping[str, object],
    project: str | None = None,
    span: tuple[datetime.datetime | None, datetime.datetime | None] = (None, None),
    marker: str | None = None,
    limit: int = 100,
) -> list[models.AuditEvent]:
    """Return some events, newest first.

    :param equal: values of columns.
    :param project: only what is about nodes that it owned or had on lease.
    :param span: from when on, and until when.
    :param marker: uuid of the event that the page follows.
    :raises Invalid: there is no such event.
    """
    since, until = span
    where = [_EVENTS.c[name] == value for name, value in equal.items()]
    if project is not None:
        where.append(sa.or_(_EVENTS.c.owner == project, _EVENTS.c.lessee == project))
    if since is not None:
        where.append(_EVENTS.c.created_at >= since)
    if until is not None:
        where.append(_EVENTS.c.created_at < until)
    if marker is not None:
        where.append(_follows(db, marker))
    newest_first = (_EVENTS.c.created_at.desc(), _EVENTS.c.id.desc())
    return db.read_all(models.AuditEvent, sa.select(_EVENTS).where(*where).order_by(*newest_first).limit(limit))


def _follows(db: Database, marker: str) -> sa.ColumnElement[bool]:
    found = db.read_first(models.AuditEvent, sa.select(_EVENTS).where(_EVENTS.c.uuid == marker))
    if found is None:
        raise errors.Invalid(field="marker", value=marker, allowed="Send the id of the last event of the page before.")
    moment = _EVENTS.c.created_at
    # The first half is what PostgreSQL finds in an index.
    return sa.and_(moment <= found.created_at, sa.or_(moment < found.created_at, _EVENTS.c.id < found.id))


def prune(db: Database, keep: int, days: int) -> int:
    """Delete the oldest events.

    :param keep: how many are kept; 0: any number.
    :param days: how old they may be; 0: of any age.
    :returns: how many were deleted.
    """
    limits = []
    if days:
        limits.append(clock.after(-days * _DAY_S))
    if keep:
        newest_first = sa.select(_EVENTS.c.created_at).order_by(_EVENTS.c.created_at.desc(), _EVENTS.c.id.desc())
        beyond = db.read_column(newest_first.offset(keep).limit(1))
        limits += [moment + datetime.timedelta(microseconds=1) for moment in beyond]
    deleted = 0
    oldest = sa.select(_EVENTS.c.id).where(_EVENTS.c.created_at < max(limits, default=datetime.datetime.min))
    # Two statements, because MySQL does not delete from a table that a subquery reads.
    while ids := db.read_column(oldest.order_by(_EVENTS.c.created_at).limit(_BATCH)):
        deleted += db.write(sa.delete(_EVENTS).where(_EVENTS.c.id.in_(ids)))
    return deleted
