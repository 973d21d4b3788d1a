"""What a conductor writes into volume targets: how they are reached, and that they are gone."""

from ingot.db import volumes
from tests import database


class VolumeWritesTest(database.TestCase):
    def test_properties_are_kept_and_targets_are_removed(self) -> None:
        node = database.make_node(self.db)
        about = {"node_id": node.id, "volume_type": "iscsi", "volume_id": "v"}
        for index in range(2):
            volumes.TARGETS.create(self.db, {**about, "boot_index": index})
        first, second = volumes.TARGETS.list_of_node(self.db, node.id)
        kept = {"target_lun": 1, "auth_password": "sesame"}
        with self.db.single() as connection:
            volumes.build_properties(node.id, {first.uuid: kept, "gone": {}})(connection)
        first, second = volumes.TARGETS.list_of_node(self.db, node.id)
        self.assertEqual((kept, {}), (first.properties, second.properties))
        with self.db.single() as connection:
            volumes.build_removal_of_targets(node.id)(connection)
        self.assertEqual([], volumes.TARGETS.list_of_node(self.db, node.id))
