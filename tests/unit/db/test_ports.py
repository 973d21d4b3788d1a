"""Ports that join a portgroup at once are on one physical network."""

import threading
import uuid

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import ports
from tests import database


class PortsOnSQLite(database.TestCase):
    def test_of_many_that_join_at_once_only_those_of_one_network_do(self) -> None:
        node = database.make_node(self.db)
        group = ports.PORTGROUPS.create(self.db, {"node_id": node.id, "uuid": str(uuid.uuid4())})
        start = threading.Barrier(6)
        refused: list[str] = []
        broken: list[Exception] = []

        def join(number: int) -> None:
            db = self.database.another()
            port = {"node_id": node.id, "portgroup_id": group, "address": f"52:54:00:00:00:0{number}"}
            start.wait()
            try:
                ports.PORTS.create(db, {**port, "physical_network": f"net{number % 2}"})
            except errors.Conflict as exc:
                refused.append(exc.message)
            except Exception as exc:  # noqa: BLE001 - it is checked below
                broken.append(exc)

        threads = [threading.Thread(target=join, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with self.db.single() as connection:
            joined = list(connection.execute(sa.select(ports.PORTS.source.table.c.physical_network)).scalars())
        self.assertEqual(([], 3, 3, 1), (broken, len(joined), len(refused), len(set(joined))), refused)
