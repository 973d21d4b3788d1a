"""Volume targets are an instance's: they end with it, and those of other machines stay."""

from ingot.common import states
from ingot.db import volumes
from tests import scripted


class Targets(scripted.ScriptedCase):
    def test_they_are_deleted_with_their_instance(self) -> None:
        node, other = self.machine(), self.machine()
        for one in (node, other):
            target = {"node_id": one.id, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0}
            volumes.TARGETS.create(self.db, target)
        self.asked(node, "delete", states.DELETING)
        self.assertEqual(states.AVAILABLE, self.take_turns(node).provision_state)
        left = [len(volumes.TARGETS.list_of_node(self.db, one.id)) for one in (node, other)]
        self.assertEqual([0, 1], left)
