"""What a sweep costs: it grows with the work that there is, not with the fleet."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, states
from ingot.conductor import manager
from ingot.db import nodes
from ingot.db.engine import Database
from tests import conductor_case, database, sql_counter

FLEET = 3000
PREPARED = {"sqlite": "ANALYZE", "mysql": "ANALYZE TABLE nodes", "postgresql": "ANALYZE nodes"}
PLAN = {"sqlite": "EXPLAIN QUERY PLAN ", "mysql": "EXPLAIN FORMAT=JSON ", "postgresql": "EXPLAIN "}
READS_ALL: Mapping[str, Callable[[str], bool]] = {
    "sqlite": lambda plan: "SCAN nodes" in plan,
    "mysql": lambda plan: '"access_type": "ALL"' in plan or '"access_type": "index"' in plan,
    "postgresql": lambda plan: "Seq Scan on nodes" in plan,
}
"""By backend, whether a plan reads the whole table of nodes."""


def plans(db: Database, backend: str, work: Callable[[], Any]) -> dict[str, str]:
    """Return the server's query plans by statement, for what is read of nodes meanwhile."""
    read: dict[str, Any] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT") and "FROM nodes" in statement:
            read[statement] = parameters

    sa.event.listen(db.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        sa.event.remove(db.engine, "before_cursor_execute", note)
    with db.single() as connection:
        return {
            statement: "\n".join(
                " ".join(map(str, row)) for row in connection.exec_driver_sql(PLAN[backend] + statement, parameters)
            )
            for statement, parameters in read.items()
        }


class SweepOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        conf = self.database.conf
        conf.set_override("host", "conductor-1")
        conf.set_override("hash_ring_reset_interval", 24 * 3600)
        conf.set_override("heartbeat_timeout", 24 * 3600, group="conductor")  # it writes one heartbeat
        conductor_case.fake_hardware(conf)
        self.conductor = manager.Conductor(conf, self.db)
        self.addCleanup(self.conductor.queues.stop, conductor_case.PATIENCE)
        self.conductor.membership.register()

    def enroll(self, count: int, **values: Any) -> list[str]:
        like = database.make_node(self.db, provision_state=states.ACTIVE, **values).as_dict()
        rows = [{**like, "uuid": str(uuid.uuid4())} for _ in range(count - 1)]
        for row in rows:
            del row["id"]
        if rows:
            with self.db.transaction() as connection:
                connection.execute(sa.insert(nodes.NODES), rows)
        return [like["uuid"], *(row["uuid"] for row in rows)]

    def swept(self) -> tuple[int, list[str]]:
        """Return how many statements a sweep needs, and the nodes that it wakes up for."""
        notified: list[str] = []
        self.conductor.queues.notify = lambda uuid, _why: notified.append(uuid)  # type: ignore[method-assign]
        with sql_counter.counting(self.db) as counted:
            self.conductor.sweeper.sweep()
        return len(counted), sorted(notified)

    def test_needs_as_many_statements_and_touches_only_scheduled_work_however_large_the_fleet(self) -> None:
        due = self.enroll(3, due_at=clock.now())
        self.swept()  # reads the ring
        alone = self.swept()
        self.assertEqual(sorted(due), alone[1])
        self.enroll(FLEET)
        self.enroll(5, due_at=clock.after(3600))
        self.assertEqual(alone, self.swept())

    def test_finds_scheduled_work_and_locks_by_an_index(self) -> None:
        self.enroll(FLEET)
        self.enroll(3, due_at=clock.now())
        self.enroll(3, reservation="conductor-1")
        with self.db.single() as connection:
            connection.exec_driver_sql(PREPARED[self.backend])
        found = plans(self.db, self.backend, self.swept)
        self.assertEqual(2, len(found), list(found))
        for statement, plan in found.items():
            self.assertFalse(READS_ALL[self.backend](plan), f"{statement}\n{plan}")
