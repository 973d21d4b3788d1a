"""Rows of one database as those of the other: what all tables have in common, and what is special of some."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ingot.db import models
from ingot.db import rows as db_rows
from ingot.db.moving import nodes, schema
from ingot.db.moving.report import Report

Row = dict[str, Any]

_UNKNOWN = datetime.datetime(1970, 1, 1)
"""When a row was created that does not say so."""

_REFERRED = frozenset(table for noun in schema.NOUNS for table in noun.refers.values())

_EMPTY: Sequence[tuple[type[sa.types.TypeEngine[Any]], object]] = (
    (sa.Boolean, False),
    (sa.Integer, 0),
    (sa.DateTime, _UNKNOWN),
    (sa.String, ""),
)
"""What a column holds that Ironic may leave empty and Ingot may not, unless it has a default."""


class Taker:
    """Makes rows of Ingot from those of Ironic.

    :param report: gets what does not carry over.
    :param replaced: by field of a node and former value, the new one.
    :param offers: what is enabled here.
    :param volume_boots: ids of nodes with a volume that a machine may boot from.
    """

    def __init__(
        self, report: Report, replaced: nodes.Replacements, offers: nodes.Offers, volume_boots: frozenset[int]
    ) -> None:
        self._report = report
        self._replaced = replaced
        self._offers = offers
        self._volume_boots = volume_boots
        self._ids: defaultdict[str, set[int]] = defaultdict(set)
        self._allocated: dict[int, int] = {}
        self._runbooks: dict[int, str] = {}
        self._special: Mapping[str, Callable[[schema.Kept, Row], Row]] = {
            "nodes": self._take_node,
            "allocations": self._take_allocation,
            "inspection_rules": self._take_rule,
            "runbooks": self._take_runbook,
        }

    def take(self, noun: schema.Noun, batch: Iterable[schema.Kept]) -> list[Row]:
        """Return the rows of Ingot for some of Ironic; those that belong to nothing are left out."""
        found = []
        special = self._special.get(noun.theirs)
        columns, empty = noun.columns, db_rows.json_defaults(noun.table)
        for theirs in batch:
            row: Row = empty | {column.name: take_value(theirs.get(name), column) for name, column in columns.items()}
            if self._belongs(noun, row):
                row = special(theirs, row) if special else row
                found.append(row)
                if noun.name in _REFERRED:
                    self._ids[noun.name].add(row["id"])
        self._report.rows[noun.name] += len(found)
        return found

    def derive(self, noun: schema.Noun) -> list[Row]:
        """Return the rows of a table that this release of Ironic does not have, from what it has instead."""
        found: list[Row] = []
        if noun.theirs == "runbook_traits":  # a runbook was for the nodes that have its name as a trait
            found = [{"runbook_id": own_id, "trait": name} for own_id, name in self._runbooks.items()]
        self._report.rows[noun.name] += len(found)
        return found

    def _belongs(self, noun: schema.Noun, row: Row) -> bool:
        """Return whether what a row cannot be without is there; forget what is not there and need not be."""
        for name, table in noun.refers.items():
            if row[name] not in self._ids[table]:
                if not noun.table.c[name].nullable:
                    self._report.add("no node", noun.theirs, str(row.get("uuid") or row.get("id") or row[name]))
                    return False
                row[name] = None
        return True

    def _take_node(self, theirs: schema.Kept, row: Row) -> Row:
        if theirs["allocation_id"] is not None:
            self._allocated[theirs["allocation_id"]] = theirs["id"]
        row = nodes.take(theirs, row, self._report, self._replaced, self._offers)
        target = nodes.find_network_boot(theirs, row, has_volume=theirs["id"] in self._volume_boots)
        if target:
            self._report.add("network boot", target, row["uuid"])
            row["boot_config"] = {"target": target}
        return row

    def _take_allocation(self, theirs: schema.Kept, row: Row) -> Row:
        # Of Ironic's two references that of the node is the one that nodes are shown by.
        own = self._allocated.get(theirs["id"])
        if theirs["node_id"] not in (None, own):
            self._report.add("allocation", f"state {row['state']}", row["uuid"])
        return row | {"node_id": own}

    def _take_runbook(self, _theirs: schema.Kept, row: Row) -> Row:
        self._runbooks[row["id"]] = row["name"]
        return row

    def _take_rule(self, theirs: schema.Kept, row: Row) -> Row:
        if theirs.get("scope"):
            self._report.add("scope", theirs["scope"], row["uuid"])
        return row


def take_value(value: Any, column: sa.Column[Any]) -> Any:
    """Return what a column of Ingot holds, where Ironic left its own empty or has none."""
    return fill(column) if value is None else value


def fill(column: sa.Column[Any]) -> object:
    """Return what a column holds that nothing was written into."""
    if column.nullable and not isinstance(column.type, models.JsonText):
        return None
    if isinstance(column.type, models.JsonText):
        return column.type.empty() if column.type.empty else None
    default = getattr(column.default, "arg", None)
    if default is not None and not callable(default):
        return default
    return next(value for kind, value in _EMPTY if isinstance(column.type, kind))
