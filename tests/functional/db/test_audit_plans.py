"""The audit trail is searched by indexes, however long it is."""

import datetime
import functools
from collections.abc import Callable

from ingot.common import clock
from ingot.db import audit
from tests import database, plans

EVENTS = 10_000
KINDS = 200
"""Users, targets, projects ... of the events."""

LIMIT = 50
MOST_ROWS = 10 * LIMIT + 2 * EVENTS // KINDS


class AuditPlansOnMySQL(database.TestCase):
    backend = "mysql"

    def setUp(self) -> None:
        super().setUp()
        self.began = clock.now() - datetime.timedelta(days=2)
        for first in range(0, EVENTS, 1000):
            audit.add(self.db, [self._event(first + number) for number in range(1000)])
        with self.db.own_connection() as connection:
            table = "TABLE audit_events" if self.backend == "mysql" else "audit_events"
            connection.exec_driver_sql(f"ANALYZE {table}")
            connection.commit()

    def _event(self, number: int) -> dict[str, object]:
        own = number % KINDS
        named = {
            "user_id": "user",
            "project_id": "project",
            "target_id": "target",
            "owner": "owner",
            "lessee": "lessee",
        }
        return {
            **{column: f"{name}-{own}" for column, name in named.items()},
            **{"uuid": f"00000000-0000-0000-0000-{number:012}", "action": "baremetal:node:update", "status": 200},
            **{"outcome": "success", "method": "PATCH", "path": "/v1/nodes/n", "target_type": "node", "detail": {}},
            "request_id": f"req-{number}",
            "created_at": self.began + datetime.timedelta(seconds=number),
        }

    def check(self, ask: Callable[[], object]) -> None:
        """Ask for what must be found without reading the whole trail."""
        found = plans.readings(self.db, ask, "audit_events")
        self.assertNotEqual([], found)
        for reading in found:
            self.assertLessEqual(reading.rows, MOST_ROWS, f"{reading.plan}\n{reading.statement}")

    def test_nothing_reads_the_whole_trail(self) -> None:
        middle = f"00000000-0000-0000-0000-{EVENTS // 2:012}"
        since = self.began + datetime.timedelta(seconds=EVENTS // 2)
        span = since, since + datetime.timedelta(seconds=10)
        named = {"user_id": "user-7", "project_id": "project-7", "target_id": "target-7", "request_id": "req-17"}
        self.check(lambda: audit.read_page(self.db, {}, limit=LIMIT))
        self.check(lambda: audit.read_page(self.db, {}, marker=middle, limit=LIMIT))
        self.check(lambda: audit.read_page(self.db, {}, span=span, limit=LIMIT))
        for column, value in named.items():
            self.check(functools.partial(audit.read_page, self.db, {column: value}, limit=LIMIT))
        for project in ("owner-7", "stranger"):
            self.check(functools.partial(audit.read_page, self.db, {}, project=project, limit=LIMIT))


class AuditPlansOnPostgreSQL(AuditPlansOnMySQL):
    backend = "postgresql"
