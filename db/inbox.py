"""Queries on the inbox: machines that were discovered, and what becomes of them."""

import datetime
import hashlib
from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.db import inventory, listing, models, node_crud, nodes, outbox, ports, rows
from ingot.db.engine import Database, retry_transaction

_INBOX = models.table(models.InboxEntry)
_INVENTORY = models.table(models.NodeInventory)

_DAY_S = 24 * 3600

_WRITTEN_EVERY_S = 30
"""Seconds: no machine can have the database write without end, or keep its entry from being accepted."""


class _Entries(rows.Rows[models.InboxEntry]):
    @retry_transaction
    def delete(self, db: Database, row: models.InboxEntry) -> None:
        with db.transaction() as connection:
            if self.remove(connection, row):
                _announce(connection, row.uuid, "deleted")


ENTRIES = _Entries(listing.Source("Inbox entry", models.InboxEntry))


def name_machine(addresses: Collection[str]) -> str:
    """Return what stands for a machine with these MAC addresses, in whichever order it names them."""
    return hashlib.sha256(",".join(sorted(set(addresses))).encode()).hexdigest()


def _announce(connection: sa.Connection, uuid: str | None, change: str) -> None:
    """Leave the event of an entry; without uuid, of several."""
    outbox.add(connection, "inbox", {"entry_uuid": uuid, "change": change})


def record(db: Database, addresses: Collection[str], found: Mapping[str, object], most: int) -> str:
    """Write what was found in a machine, in place of what was found in it before, unless that was a moment ago.

    :param found: client_address, facts, inventory and plugin_data.
    :param most: entries that there may be.
    :returns: the uuid of the entry.
    :raises Conflict: there are as many already.
    """
    key = name_machine(addresses)
    try:
        return _record(db, key, found, most)
    except db_exc.DBDuplicateEntry:  # the machine has sent it twice at once
        return _record(db, key, found, most)


@retry_transaction
def _record(db: Database, key: str, found: Mapping[str, object], most: int) -> str:
    own, now = _INBOX.c.mac_key == key, clock.now()
    with db.transaction() as connection:
        seen = {**found, "seen_at": now, "seen_count": _INBOX.c.seen_count + 1, "updated_at": now}
        is_old = _INBOX.c.seen_at < clock.after(-_WRITTEN_EVERY_S)
        updated = connection.execute(sa.update(_INBOX).where(own, is_old).values(seen)).rowcount
        known = connection.execute(sa.select(_INBOX.c.uuid).where(own)).scalar_one_or_none()
        if known is not None:
            if updated:
                _announce(connection, known, "updated")
            return str(known)
        if connection.execute(sa.select(sa.func.count(_INBOX.c.id))).scalar_one() >= most:
            raise errors.Conflict(reason=f"The inbox is full: it has {most} machines ([auto_discovery] max_entries).")
        uuid = uuidutils.generate_uuid()
        new = {**found, "uuid": uuid, "mac_key": key, "seen_at": now, "seen_count": 1, "created_at": now}
        connection.execute(sa.insert(_INBOX).values(new))
        _announce(connection, uuid, "created")
        return uuid


@retry_transaction
def accept(
    db: Database,
    entry: models.InboxEntry,
    values: Mapping[str, object],
    new_ports: Iterable[Mapping[str, object]],
    chassis_uuid: str | None,
) -> nodes.ShownNode:
    """Make a node of an entry, with ports and inventory; all of it, or nothing.

    :param values: the node's columns; its uuid is the entry's, by which the machine's agent knows it.
    :raises ChangedMeanwhile: the machine has called again, or another request has accepted or deleted the entry.
    :raises Duplicate: another node has the name, or a port of one a MAC address.
    """
    with db.transaction() as connection:
        if not ENTRIES.remove(connection, entry):
            raise errors.NotFound(noun="Inbox entry", ident=entry.uuid)
        node = node_crud.insert(connection, values, chassis_uuid)
        node_id = connection.execute(sa.select(nodes.NODES.c.id).where(nodes.NODES.c.uuid == entry.uuid)).scalar_one()
        for port in new_ports:
            ports.PORTS.insert(connection, {**port, "node_id": node_id})
        kept = {"inventory": entry.inventory, "plugin_data": entry.plugin_data, "inspected_at": entry.seen_at}
        connection.execute(sa.insert(_INVENTORY).values(node_id=node_id, **kept))
        _announce(connection, entry.uuid, "accepted")
        return node


def prune(db: Database, days: int) -> int:
    """Delete the machines that have not called for some days, or have become nodes'; return how many there were.

    A machine may call while it is accepted, and ports may be made by hand: either leaves an entry that is of no use.
    """
    oldest = clock.now() - datetime.timedelta(seconds=days * _DAY_S)
    silent = _delete_all(db, _INBOX.c.seen_at < oldest)
    entries = db.read_all(models.InboxEntry, sa.select(_INBOX.c.id, _INBOX.c.facts))
    known = [one.id for one in entries if inventory.find_foreign_addresses(db, None, one.facts["addresses"])]
    return silent + (_delete_all(db, _INBOX.c.id.in_(known)) if known else 0)


@retry_transaction
def _delete_all(db: Database, which: sa.ColumnElement[bool]) -> int:
    with db.transaction() as connection:
        deleted = connection.execute(sa.delete(_INBOX).where(which)).rowcount
        if deleted:
            _announce(connection, None, "deleted")
    return deleted
