"""Other ways to write an image than the agent's own: by iSCSI, from this computer."""

import testtools

from ingot.rack import ports
from tests.gate.real_machine.bench import Bench


class WaysTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        self.portal = ports.tcp()
        options = {
            "DEFAULT": {"enabled_deploy_interfaces": "direct,iscsi"},
            "deploy": {"url_denied_networks": ""},  # this computer has the image, and writes it
            "iscsi": {"portal_port": self.portal},
        }
        rack = {"forwarded_ports": [self.portal]}
        self.bench = self.useFixture(Bench("ways", disk_sizes=("1G", "2G"), rack=rack, options=options))

    def test_ways(self) -> None:
        self.uuid = self.bench.enroll("uefi", automated_clean=False, deploy_interface="iscsi")
        self.bench.ask(self.uuid, "manage", "manageable")
        self.bench.ask(self.uuid, "provide", "available")
        self.deploy_by_iscsi()

    def deploy_by_iscsi(self) -> None:
        self.bench.choose_image(self.uuid, "image.qcow2", image_source=self.image_here("image.qcow2"))
        self.bench.ask(self.uuid, "active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "real"}})
        self.bench.check_facts(self.bench.wait_for_image(), self.uuid, "uefi")

    def image_here(self, name: str) -> str:
        """Return the address of an image as this computer sees it: the machine would not get it from there."""
        return f"http://127.0.0.1:{self.bench.files.port}/image/{name}"
