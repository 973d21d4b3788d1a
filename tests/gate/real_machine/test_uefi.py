"""In UEFI: from a machine of which nothing is known to a system on a RAID-1, and back."""

import pathlib
import warnings

import requests
import testtools
import urllib3

from tests.gate.real_machine import traces
from tests.gate.real_machine.bench import PLACE, Bench


class UefiTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        # The agent of the inspection goes on running, and cleans and deploys the machine.
        self.bench = self.useFixture(Bench("uefi", options={"inspector": {"power_off": False}}))
        self.disks = [self.bench.disk(number) for number in range(2)]
        self.paths = [disk["path"] for disk in self.disks]

    def test_inspected_cleaned_deployed_on_a_mirror_and_cleaned_again(self) -> None:
        self.uuid = self.bench.enroll("uefi")
        self.bench.ask(self.uuid, "manage", "manageable")
        self.inspect()
        self.check_access()
        self.provide()
        self.deploy_on_a_mirror()
        self.undeploy()
        self.refuse_a_disk_that_is_not_there()

    @property
    def boots(self) -> int:
        """How often the machine was booted."""
        boots: int = self.bench.rack.control.machine(self.bench.name)["boots"]
        return boots

    def inspect(self) -> None:
        """Inspect the machine, with the partition table of an earlier user."""
        with pathlib.Path(self.paths[1]).open("r+b") as file:
            file.write((PLACE / "image" / "image.raw").read_bytes()[: 2**20])
        self.assertTrue(traces.has_partition_table(self.paths[1]))
        self.bench.ask(self.uuid, "inspect", "manageable")
        found = self.bench.user.get(f"/v1/nodes/{self.uuid}/inventory")["inventory"]
        self.assertEqual(
            sorted((disk["serial"], disk["wwn"], disk["size"]) for disk in self.disks),
            sorted((disk["serial"], disk["wwn"], disk["size"]) for disk in found["disks"]),
        )
        self.assertEqual(self.bench.machine["macs"], [card["mac_address"] for card in found["interfaces"]])
        self.assertEqual("uefi", found["boot"]["current_boot_mode"])
        self.assertEqual("rack", found["system_vendor"]["product_name"])

    def provide(self) -> None:
        """Provide the machine; check that the partition table of an earlier user is gone."""
        self.bench.ask(self.uuid, "provide", "available")
        self.assertFalse(traces.has_partition_table(self.paths[1]), "cleaning left a partition table")

    def check_access(self) -> None:
        """Check that the agent takes TLS commands only with its token, and Ingot heartbeats only with it."""
        url = self.bench.agent(self.uuid)
        self.assertRegex(url, "^https://")
        with requests.Session() as stranger, warnings.catch_warnings():
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
            stranger.trust_env = False
            self.assertRaises(requests.exceptions.SSLError, stranger.get, url, timeout=60)
            for token in ({}, {"agent_token": "not it"}):
                answer = stranger.get(f"{url}/v1/commands/", params=token, verify=False, timeout=60)
                self.assertEqual(401, answer.status_code)
        heartbeat = {"callback_url": url, "agent_token": "not it", "agent_version": "13.0.0"}
        refused = self.bench.user.request("POST", f"/v1/heartbeat/{self.uuid}", heartbeat)
        self.assertEqual(400, refused.status_code)
        self.assertIn("Invalid or missing agent token", refused.text)

    def refuse_a_disk_that_is_not_there(self) -> None:
        """Check that the agent of the cleaning refuses a missing disk, says why, and writes nothing."""
        before = [traces.digest(path) for path in self.paths]
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/properties/root_device": {"serial": "no such"}})
        self.bench.choose_image(self.uuid, "image.raw")
        boots = self.boots
        failed = self.bench.ask(self.uuid, "active", "deploy failed")
        self.assertIn("no such", failed["last_error"])
        self.assertEqual(before, [traces.digest(path) for path in self.paths])
        self.assertEqual(boots, self.boots, "it was booted again")
        log = self.bench.agent_logs(self.uuid)[-1]
        self.assertEqual("deploy", log["flow"])
        self.assertIn("no such", self.bench.text_of(self.uuid, log))

    def deploy_on_a_mirror(self) -> None:
        bench, uuid = self.bench, self.uuid
        bench.request_mirror(uuid)
        bench.choose_image(uuid, "image.qcow2", traits=[bench.MIRROR])
        node = bench.ask(uuid, "active", "active", configdrive={"meta_data": {"uuid": uuid, "name": "real"}})
        self.assertEqual("1", node["raid_config"]["logical_disks"][0]["raid_level"])
        system = bench.wait_for_image()
        bench.check_facts(system, uuid, "uefi")
        bench.check_mirror(system)
        self.assertEqual(2, self.boots, "once to inspect, clean and deploy, once into the system")

    def undeploy(self) -> None:
        """Delete the instance; check that no trace of partitions or a RAID is left.

        The RAID is deleted first, as erasing the metadata of its disks erases what is on the RAID.
        """
        for path in self.paths:
            self.assertTrue(traces.has_partition_table(path))
            self.assertNotEqual([], traces.array_members(path))
        node = self.bench.ask(self.uuid, "deleted", "available")
        self.assertEqual({}, node["raid_config"])
        for path in self.paths:
            self.assertFalse(traces.has_partition_table(path), path)
            self.assertEqual([], traces.array_members(path), path)
