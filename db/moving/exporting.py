"""The way back: making an Ironic's database say what Ingot's says.

Nodes are changed where they differ, so that Ironic finds what only its own code understands. Of all else the rows are
replaced: they have the same ids and uuids in both databases.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, errors, keyring
from ingot.db import models
from ingot.db.engine import Database
from ingot.db.moving import nodes, peer, rows, schema
from ingot.db.moving.report import Report

_BATCH = 500
_EXAMPLES = 5

_NODES = models.table(models.Node)
_AGENT = ("agent_token", "agent_version", "agent_url", "agent_last_heartbeat", "configdrive")
"""Columns of a node that Ironic keeps in JSON."""

_UNIQUE = ("name", "instance_uuid")
"""Columns of a node, besides its uuid, that no two nodes of Ironic have the same value in."""

_MOST_BYTES = 65_535
"""Of a text in Ironic's databases on MySQL."""


class Giver:
    """Makes rows of Ironic from those of Ingot.

    :param target: Ironic's database.
    :param replaced: what the import replaced.
    :param report: gets what Ironic's release has no place for.
    """

    def __init__(self, target: peer.Peer, replaced: nodes.Replacements, report: Report) -> None:
        self._target = target
        self._replaced = replaced
        self.report = report

    def give(self, noun: schema.Noun, batch: Sequence[schema.Kept]) -> list[rows.Row]:
        """Return the rows of Ironic for some of Ingot that are no nodes."""
        table = self._target.table(noun)
        return [self._place(noun, table, _read(noun, row)) for row in batch]

    def give_nodes(self, noun: schema.Noun, batch: Sequence[schema.Kept]) -> Iterator[tuple[rows.Row, bool]]:
        """Yield the nodes of Ironic that are to be written, and whether each is new there."""
        table = self._target.table(noun)
        ids = [row["id"] for row in batch]
        found = self._target.connection.execute(sa.select(table).where(table.c.id.in_(ids))).mappings()
        there = {(row["id"], row["uuid"]): row for row in found}
        for row in batch:
            theirs = there.get((row["id"], row["uuid"]))
            own = _read(noun, row) | {name: row[name] for name in _AGENT}
            node = self._place(noun, table, nodes.give(own, theirs, self._replaced))
            if theirs is None or _is_different(noun, theirs, node):
                yield node, theirs is None

    def _place(self, noun: schema.Noun, table: sa.TableClause, row: rows.Row) -> rows.Row:
        """Return a row with the columns that this release of Ironic has."""
        for name in row.keys() - table.c.keys():
            if row[name] != rows.fill(noun.columns[name]):
                self.report.add("no place", f"{table.name}.{name}", str(row.get("uuid") or row.get("id")))
        placed = {name: _fit(value) for name, value in row.items() if name in table.c}
        if "version" in table.c:
            placed["version"] = noun.version(self._target.release)
        if placed.get("created_at") is None and "created_at" in table.c:
            placed["created_at"] = clock.now().replace(microsecond=0)
        return placed


def _is_different(noun: schema.Noun, theirs: schema.Kept, node: rows.Row) -> bool:
    """Return whether Ironic's row says something else; what it left empty is what Ingot fills it with."""
    known = {name: rows.take_value(theirs[name], column) for name, column in noun.columns.items() if name in theirs}
    known = {**theirs, **known}
    return any(_fit(known[name]) != node[name] for name in node if name != "version")


def _read(noun: schema.Noun, row: schema.Kept) -> rows.Row:
    """Return a row under the names of Ironic's columns, with its secrets in plain, as Ironic keeps them."""
    return {name: keyring.open_all(row[column.name]) for name, column in noun.columns.items()}


def _fit(value: Any) -> Any:
    """Return a value as Ironic's column can hold it: whole seconds, texts that are not too long."""
    if hasattr(value, "microsecond"):
        return value.replace(microsecond=0)
    if isinstance(value, str) and len(value.encode()) > _MOST_BYTES:
        return value.encode()[:_MOST_BYTES].decode(errors="ignore")
    return value


def give_back(db: Database, target: peer.Peer, giver: Giver, deletes: bool, writes: bool) -> int:
    """Write all rows of Ingot into Ironic's database; the caller commits.

    :param deletes: whether nodes may be deleted there that are not here any more.
    :param writes: False: only find out what would be done.
    :returns: how many nodes are new, different or gone.
    :raises Conflict: nodes would be deleted and may not.
    """
    (of_nodes,) = (noun for noun in schema.NOUNS if noun.table is _NODES)
    others = [noun for noun in schema.NOUNS if noun is not of_nodes and target.has(noun)]
    with db.own_connection() as source:
        gone = _find_gone(source, target.connection, target.table(of_nodes), deletes)
        if writes:
            _make_room(target, others, [number for number, _uuid in gone])
            _free_names(source, target.connection, target.table(of_nodes))
        changed = len(gone)
        for batch in _read_batches(source, _NODES):
            giver.report.rows[of_nodes.name] += len(batch)
            changed += _write_nodes(target, of_nodes, list(giver.give_nodes(of_nodes, batch)), writes)
        for noun in others:
            for batch in _read_batches(source, noun.table):
                found = giver.give(noun, batch)
                giver.report.rows[noun.name] += len(found)
                if writes:
                    target.connection.execute(sa.insert(target.table(noun)), found)
        source.rollback()
    if writes:
        _link_allocations(target)
    return changed


def _read_batches(source: sa.Connection, table: sa.Table) -> Iterator[Sequence[sa.RowMapping]]:
    result = source.execute(sa.select(table).order_by(*table.primary_key), execution_options={"yield_per": _BATCH})
    yield from result.mappings().partitions()


def _find_gone(
    source: sa.Connection, target: sa.Connection, table: sa.TableClause, deletes: bool
) -> list[tuple[int, str]]:
    """Return id and uuid of the nodes that are not here; one that was enrolled again under its uuid has another id.

    :raises Conflict: there are some, and they may not be deleted.
    """
    here = set(source.execute(sa.select(_NODES.c.id, _NODES.c.uuid)).tuples())
    gone = sorted(set(target.execute(sa.select(table.c.id, table.c.uuid)).tuples()) - here)
    if gone and not deletes:
        examples = ", ".join(f"{uuid} (id {number})" for number, uuid in gone[:_EXAMPLES])
        raise errors.Conflict(
            reason=f"Ironic's database has {len(gone)} nodes that Ingot has not: {examples}. "
            "Nothing was changed. If they were deleted in Ingot, say --delete, and they are deleted there, too; "
            "otherwise this is another fleet's database."
        )
    return gone


def _make_room(target: peer.Peer, others: Sequence[schema.Noun], gone: Sequence[int]) -> None:
    """Delete what is written anew, and the nodes that are gone."""
    connection = target.connection
    if connection.dialect.name == "mysql":
        # Nodes refer to rows that are back under the same ids before this transaction ends.
        connection.exec_driver_sql("SET SESSION foreign_key_checks = 0")
    for noun in reversed(others):
        connection.execute(sa.delete(target.table(noun)))
    table = sa.table("nodes", sa.column("id"))
    for start in range(0, len(gone), _BATCH):
        connection.execute(sa.delete(table).where(table.c.id.in_(gone[start : start + _BATCH])))


def _free_names(source: sa.Connection, target: sa.Connection, table: sa.TableClause) -> None:
    """Take from Ironic's nodes what is unique and is not theirs here: a node that is written first may have it."""
    for name in _UNIQUE:
        here = set(source.execute(sa.select(_NODES.c.id, _NODES.c[name])).tuples())
        found = target.execute(sa.select(table.c.id, table.c[name]).where(table.c[name].is_not(None))).tuples()
        other = [row[0] for row in found if tuple(row) not in here]
        for start in range(0, len(other), _BATCH):
            own = table.c.id.in_(other[start : start + _BATCH])
            target.execute(sa.update(table).where(own).values({name: None}))


def _write_nodes(target: peer.Peer, noun: schema.Noun, found: Sequence[tuple[rows.Row, bool]], writes: bool) -> int:
    """Write nodes that are new or different, and return how many these are."""
    table = target.table(noun)
    new, other = [node for node, is_new in found if is_new], [node for node, is_new in found if not is_new]
    if writes and new:
        target.connection.execute(sa.insert(table), new)
    if writes and other:
        values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in other[0] if name not in ("id", "uuid")}
        own = table.c.uuid == sa.bindparam("new_uuid")
        given = [{f"new_{name}": value for name, value in node.items()} for node in other]
        target.connection.execute(sa.update(table).where(own).values(values), given)
    return len(found)


def _link_allocations(target: peer.Peer) -> None:
    """Have each node of Ironic name its allocation."""
    table = sa.table("nodes", sa.column("id"), sa.column("allocation_id"))
    allocations = sa.table("allocations", sa.column("id"), sa.column("node_id"))
    own = sa.select(sa.func.max(allocations.c.id)).where(allocations.c.node_id == table.c.id).scalar_subquery()
    target.connection.execute(sa.update(table).values(allocation_id=own))
