"""A machine boots from a volume of a real Cinder, which a real target exports."""

import shutil

import testtools
from testtools import content

from tests.gate import cloud, targets, volumes
from tests.gate.real_machine import traces
from tests.gate.real_machine.bench import HOST, PLACE, Bench

_INITIATOR = "iqn.2026-01.org.example:machine"


class VolumeTest(testtools.TestCase):
    """No agent runs: the only boot is that of the system on the volume."""

    def setUp(self) -> None:
        super().setUp()
        self.target = self.useFixture(targets.Target())
        keystone = self.useFixture(cloud.Keystone())
        self.cinder = self.useFixture(volumes.Cinder(keystone, volumes.Shelf(HOST, self.target)))
        keystone.publish(f"{self.cinder.url}/v3", "block-storage", "cinder")
        self.addOnException(self.tell)
        options = self.cinder.options()
        self.bench = self.useFixture(Bench("volume", disk_sizes=("1G", "1G"), options=options))

    def test_it_boots_from_its_volume_until_it_is_given_back(self) -> None:
        user, volume = self.bench.user, self.create_volume()
        uuid = self.enroll()
        target = {"node_uuid": uuid, "volume_type": "iscsi", "volume_id": volume, "boot_index": 0}
        user.post("/v1/volume/targets", target)
        self.assertEqual("", self.target.show())
        self.bench.ask(uuid, "active", "active")
        self.assertEqual("bios", self.bench.wait_for_image().facts["firmware"])
        self.assertEqual([False, False], [traces.has_partition_table(self.bench.disk(n)["path"]) for n in range(2)])
        shown = self.target.show()
        for part in (f"volume-{volume}", f"Initiator: {_INITIATOR}", "Connection: 0", volumes.USERNAME):
            self.assertIn(part, shown)
        self.assertEqual("in-use", self.cinder.volume(volume)["status"])
        self.assertEqual({(volume, uuid): _INITIATOR}, self.cinder.exports())
        self.bench.ask(uuid, "deleted", "available")
        self.assertEqual("", self.target.show())
        self.assertEqual((0, 0), self.cinder.count())
        self.assertEqual("available", self.cinder.volume(volume)["status"])
        self.assertEqual([], user.get(f"/v1/nodes/{uuid}/volume/targets")["targets"])
        self.assertNotIn(volumes.PASSWORD, (self.bench.directory / "ingot.log").read_text())

    def tell(self, _error: object) -> None:
        self.addDetail("cinder.log", content.text_content(self.cinder.last_words()))

    def create_volume(self) -> str:
        """Return a volume that has the test image."""
        volume = self.cinder.create_volume()
        file = self.cinder.file(volume)
        size = file.stat().st_size
        shutil.copyfile(PLACE / "image" / "image.raw", file)
        with file.open("r+b") as disk:
            disk.truncate(size)
        return volume

    def enroll(self) -> str:
        """Return the uuid of the machine's node, which reaches volumes and is available."""
        uuid = self.bench.enroll(
            "bios",
            storage_interface="cinder",
            automated_clean=False,
            properties={"capabilities": "boot_mode:bios,iscsi_boot:true"},
        )
        connector = {"node_uuid": uuid, "type": "iqn", "connector_id": _INITIATOR}
        self.bench.user.post("/v1/volume/connectors", connector)
        self.bench.ask(uuid, "manage", "manageable")
        self.bench.ask(uuid, "provide", "available")
        return uuid
