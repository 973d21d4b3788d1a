"""What nodes that were deleted have left outside of themselves."""

from ingot.db import left_behind, node_crud
from tests import database


class LeftBehindTest(database.TestCase):
    """It is kept with the deletion, until it is taken back."""

    def test_notes_outlive_their_node(self) -> None:
        notes = {"settled": True, "connections": [{"port_id": "eth1"}]}
        node = database.make_node(self.db, driver_internal_info={"switch_ports": notes, "agent_url": "http://a"})
        other = database.make_node(self.db, driver_internal_info={"agent_url": "http://switch_ports"})
        self.assertEqual([notes], left_behind.list_notes(self.db, "switch_ports"))
        self.assertEqual([], left_behind.list_left(self.db, "switch_ports"))
        node_crud.delete(self.db, node)
        node_crud.delete(self.db, other)
        self.assertEqual([], left_behind.list_notes(self.db, "switch_ports"))
        (left,) = left_behind.list_left(self.db, "switch_ports")
        self.assertEqual((node.uuid, notes), (left.node_uuid, left.notes))
        left_behind.forget(self.db, left)
        self.assertEqual([], left_behind.list_left(self.db, "switch_ports"))
