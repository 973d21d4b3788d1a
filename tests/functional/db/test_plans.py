"""Which lists of nodes a database finds by an index, however many nodes there are.

What counts is how many rows it reads, not how long that takes: for a page of a hundred it must not read the fleet.
"""

import sqlalchemy as sa

from benchmarks import stock
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.node_fields import TABLE
from ingot.common import clock, interfaces
from ingot.db import node_lists, nodes, triage
from tests import api_case, plans

FLEET = 20_000
LIMIT = 100
MOST_ROWS = 10 * LIMIT + 2 * FLEET // plans.GROUPS
"""A page, and twice what one value in :data:`plans.GROUPS` has: an order may be sorted within that."""

UNKNOWN = "11111111-1111-1111-1111-111111111111"

FILTERS = {
    "associated": "true",
    "maintenance": "true",
    "retired": "true",
    "instance_uuid": UNKNOWN,
    "provision_state": "clean failed",
    "driver": "ipmi",
    "resource_class": "resource_class-3",
    "fault": "power failure",
    "conductor_group": "conductor_group-3",
    "owner": "owner-3",
    "lessee": "lessee-1",
    "project": "owner-3",
    "shard": "shard-3,shard-4",
    "sharded": "false",
    "parent_node": UNKNOWN,
    "include_children": "true",
    "instance_name": "database-7",
}
"""Filters by which a database must find nodes with an index, and values that few nodes have."""

READS_ALL = {"description_contains", *interfaces.FIELD.values()}
"""Filters for which it reads the fleet: no index knows parts of a text, and thirteen more would burden enrolment."""

OF_ANOTHER_TABLE = {"chassis_uuid", "conductor"}
"""Filters that have tests of their own."""

SORTS = (
    *("uuid", "name", "maintenance", "provision_state", "driver", "instance_name", "reservation", "resource_class"),
    *("fault", "conductor_group", "owner", "retired", "lessee", "shard"),
)
"""Orders that come from an index; for the others the fleet is sorted."""


class PlansOnMySQL(api_case.ApiCase):
    backend = "mysql"

    def setUp(self) -> None:
        super().setUp()
        stock.fill(self.db, 500)
        plans.multiply(self.db, FLEET)

    def check(self, path: str, most: int = MOST_ROWS) -> None:
        """Send a request for which the database must not read the fleet."""
        found = plans.readings(self.db, lambda: self.good("GET", path))
        self.assertNotEqual([], found, path)
        for reading in found:
            self.assertLessEqual(reading.rows, most, f"{path}\n{reading.plan}\n{reading.statement}")

    def test_every_filter_is_listed(self) -> None:
        known = {param.name for param in api_nodes.FILTERS}
        self.assertEqual(known, {*FILTERS, *READS_ALL, *OF_ANOTHER_TABLE})

    def test_filters_find_nodes_by_an_index(self) -> None:
        for name, value in FILTERS.items():
            self.check(f"/v1/nodes?limit={LIMIT}&{name}={value}")
        chassis = self.good("POST", "/v1/chassis", {})["uuid"]
        self.check(f"/v1/nodes?limit={LIMIT}&chassis_uuid={chassis}")

    def test_the_nodes_of_a_conductor_are_looked_for_in_its_groups(self) -> None:
        self.register("conductor-3", api_case.enabled("fake-hardware"), group="conductor_group-3")
        self.check(f"/v1/nodes?limit={LIMIT}&conductor=conductor-3")

    def test_orders_come_from_an_index_on_every_page(self) -> None:
        sortable = {field.name for field in TABLE.fields.values() if field.sortable}
        self.assertLessEqual({*SORTS}, sortable)
        for name in ("id", *SORTS):
            for direction in ("asc", "desc"):
                query = f"limit={LIMIT}&sort_dir={direction}" + (f"&sort_key={name}" if name != "id" else "")
                self.check(f"/v1/nodes?{query}")
                for marker in self.markers(name, direction == "desc"):
                    self.check(f"/v1/nodes?{query}&marker={marker}")

    def markers(self, column: str, with_value: bool) -> list[str]:
        """Return some nodes from all over the fleet.

        :param with_value: those that have one; downwards, the others come last, and MariaDB sorts them.
        """
        chosen = sa.select(nodes.NODES.c.uuid).where(nodes.NODES.c.id % (FLEET // 20) == FLEET // 40)
        if with_value:
            chosen = chosen.where(nodes.NODES.c[column].is_not(None))
        return self.db.read_column(chosen)[::9]

    def test_a_conductor_reads_the_nodes_of_its_group(self) -> None:
        group, drivers = "conductor_group-3", ["fake-hardware"]

        def ask() -> None:
            node_lists.list_for_power_sync(self.db, group, drivers)
            node_lists.list_of_drivers(self.db, group, drivers, ("uuid",))
            node_lists.list_to_check(self.db, clock.now(), LIMIT, group, drivers)
            node_lists.list_locked(self.db)

        for reading in plans.readings(self.db, ask):
            self.assertLessEqual(reading.rows, 2 * FLEET // plans.GROUPS, f"{reading.plan}\n{reading.statement}")

    def test_what_the_fleet_needs_is_found_by_indexes(self) -> None:
        """But for the counts, which read of each node what it is counted by."""
        found = plans.readings(self.db, lambda: triage.read_overview(self.db, self.conf, []))
        self.assertEqual(2, len(found))
        for reading in found:
            self.assertLessEqual(reading.rows, MOST_ROWS, f"{reading.plan}\n{reading.statement}")


class PlansOnPostgreSQL(PlansOnMySQL):
    backend = "postgresql"

    def markers(self, column: str, with_value: bool) -> list[str]:
        """Leave out pages among or before those without a value: PostgreSQL reads all pages before them, in order."""
        optional = bool(nodes.NODES.c[column].nullable)
        return [] if optional and with_value else super().markers(column, with_value or optional)
