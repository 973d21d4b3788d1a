"""Other ways to write an image than the agent's own: by iSCSI from this computer, and by playbooks."""

import testtools

from ingot.rack import ports
from tests.gate.real_machine import traces
from tests.gate.real_machine.bench import Bench


class WaysTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        self.portal, self.ssh = ports.tcp(), ports.tcp()
        options = {
            "DEFAULT": {"enabled_deploy_interfaces": "direct,iscsi,ansible"},
            "deploy": {"url_denied_networks": ""},  # this computer has the image, and writes it
            "iscsi": {"portal_port": self.portal},
            "ansible": {"ssh_port": self.ssh},
        }
        rack = {"forwarded_ports": [self.portal, self.ssh]}
        self.bench = self.useFixture(Bench("ways", disk_sizes=("1G", "2G"), rack=rack, options=options))
        self.disks = [self.bench.disk(number) for number in range(2)]

    def test_ways(self) -> None:
        root = {"serial": self.disks[1]["serial"]}
        self.uuid = self.bench.enroll("uefi", automated_clean=False, deploy_interface="iscsi")
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/properties/root_device": root})
        self.bench.ask(self.uuid, "manage", "manageable")
        self.bench.ask(self.uuid, "provide", "available")
        self.deploy("image.qcow2", f"http://127.0.0.1:{self.bench.files.port}/image/image.qcow2")
        self.bench.ask(self.uuid, "deleted", "available")
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/deploy_interface": "ansible"})
        self.deploy("image.raw", self.bench.url("image/image.raw"))
        log = (self.bench.directory / "ingot.log").read_text()
        self.assertNotIn("PRIVATE KEY", log)

    def deploy(self, name: str, source: str) -> None:
        """Deploy an image.

        :param source: its address: as this computer sees it, which the machine could not use, or the machine.
        """
        self.bench.choose_image(self.uuid, name, image_source=source)
        self.bench.ask(self.uuid, "active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "real"}})
        self.bench.check_facts(self.bench.wait_for_image(), self.uuid, "uefi")
        self.assertEqual([False, True], [traces.has_partition_table(disk["path"]) for disk in self.disks])
