"""From power off to a booted system, over the real agent."""

import pathlib
import warnings

import requests
import testtools
import urllib3

from tests.gate.real_machine.bench import PLACE, Bench, System, starts_with_a_partition_table

TEMPLATE = "CUSTOM_MIRROR"
MIRROR = {
    "interface": "raid",
    "step": "apply_configuration",
    "priority": 90,
    "args": {
        "raid_config": {
            "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]
        },
        "delete_existing": True,
    },
}


class DeploymentTest(testtools.TestCase):
    def bench(self, name: str) -> Bench:
        return self.useFixture(Bench(name))

    def properties(self, boot_mode: str, **root_device: str) -> dict[str, object]:
        return {"capabilities": f"boot_mode:{boot_mode}", "root_device": root_device}

    def make_available(self, bench: Bench, uuid: str) -> None:
        """Puts a partition table on a disk, which cleaning must remove."""
        disk = pathlib.Path(bench.disk(1)["path"])
        with disk.open("r+b") as file:
            file.write((PLACE / "image" / "image.raw").read_bytes()[: 2**20])
        self.assertTrue(starts_with_a_partition_table(str(disk)))
        bench.ask(uuid, "manage", "manageable")
        bench.start(uuid, "provide")
        self.check_who_may_talk(bench, uuid)
        bench.reach(uuid, "available")
        self.assertFalse(starts_with_a_partition_table(str(disk)), "cleaning left a partition table")

    def check_who_may_talk(self, bench: Bench, uuid: str) -> None:
        """The agent takes commands over TLS from who has its token, and Ingot heartbeats from who has it."""
        url = bench.agent(uuid)
        self.assertRegex(url, "^https://")
        with requests.Session() as stranger, warnings.catch_warnings():
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
            stranger.trust_env = False
            self.assertRaises(requests.exceptions.SSLError, stranger.get, url, timeout=60)
            for token in ({}, {"agent_token": "not it"}):
                answer = stranger.get(f"{url}/v1/commands/", params=token, verify=False, timeout=60)
                self.assertEqual(401, answer.status_code)
        heartbeat = {"callback_url": url, "agent_token": "not it", "agent_version": "13.0.0"}
        refused = bench.user.request("POST", f"/v1/heartbeat/{uuid}", heartbeat)
        self.assertEqual(400, refused.status_code)
        self.assertIn("Invalid or missing agent token", refused.text)

    def config_drive(self, uuid: str) -> dict[str, object]:
        return {"meta_data": {"uuid": uuid, "name": "real"}}

    def check_system(self, bench: Bench, uuid: str, firmware: str) -> System:
        """The deployed system runs, from the image that was asked for and with the config drive."""
        system = bench.wait_for_image()
        expected = {"firmware": firmware, "marker": bench.image["marker"], "instance": uuid}
        self.assertEqual(expected, {name: system.facts.get(name) for name in expected})
        return system

    def test_bios_one_disk_streamed(self) -> None:
        bench = self.bench("bios")
        uuid = bench.enroll("bios", properties=self.properties("bios", serial=bench.disk(1)["serial"]))
        self.make_available(bench, uuid)
        bench.choose_image(uuid, "image.raw")
        bench.ask(uuid, "active", "active", configdrive=self.config_drive(uuid))
        system = self.check_system(bench, uuid, "bios")
        self.assertEqual({}, system.arrays)
        self.assertEqual(
            [False, True], [starts_with_a_partition_table(bench.disk(number)["path"]) for number in range(2)]
        )
        bench.check_what_was_said()

    def test_what_is_refused_before_anything_is_written(self) -> None:
        bench = self.bench("errors")
        uuid = bench.enroll("bios", automated_clean=False, properties=self.properties("bios", serial="no such"))
        bench.ask(uuid, "manage", "manageable")
        bench.ask(uuid, "provide", "available")
        self.refuse_an_agent_without_tls(bench, uuid)
        bench.choose_image(uuid, "image.raw")
        failed = bench.ask(uuid, "active", "deploy failed")
        self.assertIn("no such", failed["last_error"])
        self.assertEqual([0, 0], [bench.disk(number)["used"] for number in range(2)])
        bench.check_what_was_said()

    def refuse_an_agent_without_tls(self, bench: Bench, uuid: str) -> None:
        """An agent that takes Ingot for one from before TLS does not use it, and is never listened to."""
        arguments = "/driver_info/kernel_append_params"
        bench.user.patch(f"/v1/nodes/{uuid}", {arguments: f"{bench.kernel_arguments} ipa-ironic-api-version=1.67"})
        bench.choose_image(uuid, "image.raw")
        bench.start(uuid, "active")
        bench.eventually(lambda: bench.has_said("TLS is required by configuration"), "the agent was refused")
        node = bench.user.node(uuid)
        self.assertEqual(
            ("wait call-back", None), (node["provision_state"], node["driver_internal_info"].get("agent_url"))
        )
        bench.ask(uuid, "deleted", "available")
        bench.user.patch(f"/v1/nodes/{uuid}", {arguments: bench.kernel_arguments})

    def test_uefi_mirror_by_a_template(self) -> None:
        bench = self.bench("uefi")
        uuid = bench.enroll("uefi")
        self.make_available(bench, uuid)
        bench.user.post("/v1/deploy_templates", {"name": TEMPLATE, "steps": [MIRROR]})
        bench.user.put(f"/v1/nodes/{uuid}/traits/{TEMPLATE}", None)
        bench.choose_image(uuid, "image.qcow2", traits=[TEMPLATE])
        node = bench.ask(uuid, "active", "active", configdrive=self.config_drive(uuid))
        system = self.check_system(bench, uuid, "uefi")
        mirror = system.arrays[system.facts["root"].rpartition("p")[0]]
        serials = sorted(bench.disk(number)["serial"] for number in range(2))
        self.assertEqual(("raid1", "2", "0"), (mirror["level"], mirror["disks"], mirror["degraded"]))
        self.assertEqual(serials, sorted(mirror["members"].split(",")))
        self.assertEqual("1", node["raid_config"]["logical_disks"][0]["raid_level"])
        bench.check_what_was_said()
