"""What a row belongs to may be deleted between the moment it was looked up and the moment the row is written."""

import uuid

from ingot.common import errors, states
from ingot.db import listing, node_crud, nodes, ports
from tests import database

GONE = 4711


class ReferencesOnSQLite(database.TestCase):
    def test_a_new_port_whose_node_is_gone(self) -> None:
        refusal = self.assertRaises(errors.ChangedMeanwhile, ports.PORTS.create, self.db, self.port(GONE))
        self.assertIn("port", refusal.message)

    def test_a_port_that_moves_to_a_node_that_is_gone(self) -> None:
        ports.PORTS.create(self.db, self.port(database.make_node(self.db).id))
        port = listing.page(
            self.db, ports.PORTS.source, ("uuid", "updated_at", "node_uuid", "portgroup_id"), listing.Page()
        )[0]
        self.assertRaises(errors.ChangedMeanwhile, ports.PORTS.update, self.db, port, {"node_id": GONE})

    def test_a_new_node_whose_chassis_is_gone(self) -> None:
        chassis_id = node_crud.CHASSIS.create(self.db, {})
        node = {"uuid": str(uuid.uuid4()), "driver": "fake-hardware", "provision_state": states.ENROLL}
        node_crud.create(self.db, {**node, "chassis_id": chassis_id})
        again = {**node, "uuid": str(uuid.uuid4()), "chassis_id": GONE}
        refusal = self.assertRaises(errors.ChangedMeanwhile, node_crud.create, self.db, again)
        self.assertIn("chassis", refusal.message)

    def test_a_node_that_goes_to_a_chassis_that_is_gone(self) -> None:
        node = database.make_node(self.db)
        refusal = self.assertRaises(errors.ChangedMeanwhile, nodes.compare_and_set, self.db, node, {"chassis_id": GONE})
        self.assertIn("chassis", refusal.message)

    @staticmethod
    def port(node_id: int) -> dict[str, object]:
        return {"node_id": node_id, "address": "52:54:00:00:00:01"}
