"""Firmware and arrays over Redfish against the rack's BMCs: tasks, reboots, and conductors that die in between."""

import copy
import json
import time
from typing import Any

from ingot.common import errors, states
from ingot.drivers.interfaces import results
from ingot.drivers.redfish import connection, firmware
from tests import patience
from tests.functional.drivers.base import DriverRackTest
from tests.functional.drivers.test_redfish_rack import RedfishRackCase

GIB = 1024**3
IMAGES = {"bios": "bios-2.1.0.bin", "bmc": "bmc-3.0.1.bin", "nic:1": "nic-22.5.7.bin"}
MIRROR = {"raid_level": "1", "size_gb": "MAX", "is_root_volume": True, "volume_name": "system"}


class ChangesCase(RedfishRackCase):
    def setUp(self) -> None:
        self.settings = {**self.settings, "disks": 6, "disk_size": "2G", "bmc_restart_time": 0.5}  # type: ignore[misc]
        super().setUp()
        task, url = self.task, self.service.url
        ramdisk = {"deploy_kernel": f"{url}/kernel", "deploy_ramdisk": f"{url}/initrd"}
        task.set(raid_interface="redfish", driver_info={**task.node.driver_info, **ramdisk})
        task.driver, task.missing = task.hardware.compose(task.node)
        self.service.files |= {f"/{image}": b"firmware" for image in IMAGES.values()}
        for option in ("firmware_update_overall_timeout", "raid_config_timeout", "bmc_restart_timeout"):
            self.task.conf.set_override(option, int(patience.seconds(60)), "redfish")

    def log(self, part: str) -> int:
        """Return how often the machine's log has a text."""
        return sum(part in line for line in self.rack.control.log(self.name))

    def finish_dying(self, interface: str, name: str, **args: Any) -> int:
        """Run a clean step; each call but the last is made twice, the first time by a conductor that dies after it.

        What it knew is lost then: the second call has the memory of the answer before.
        """
        step = {"interface": interface, "step": name, "args": args}
        link, calls = getattr(self.task.driver, interface), 0
        deadline = time.monotonic() + patience.seconds(120)
        memory: dict[str, Any] = {}
        while time.monotonic() < deadline:
            for _times in range(2):
                self.task.memory = copy.deepcopy(memory)
                answer = results.parse_result(link.execute_clean_step(self.task, step), "under test")
            calls += 1
            memory = json.loads(json.dumps(self.task.memory))
            if isinstance(answer, results.Done):
                return calls
            assert isinstance(answer, results.PollAfter)
            time.sleep(min(answer.after, 0.3))
        raise AssertionError("never done")


class FirmwareCase(ChangesCase):
    vendor = "generic"

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": self.vendor}  # type: ignore[misc]
        super().setUp()
        self.adapter = next(
            one["component"]
            for one in connection.call(self.task, firmware._read_components)
            if one["component"].startswith("nic:")
        )

    def versions(self) -> dict[str, Any]:
        return {one["component"]: one["current_version"] for one in self.task.firmware}

    def updates(self, *names: str) -> list[dict[str, Any]]:
        return [
            {"component": self.adapter if name == "nic:1" else name, "url": f"{self.service.url}/{IMAGES[name]}"}
            for name in names
        ]


class FirmwareTest(FirmwareCase):
    def test_versions_are_read_and_each_component_is_updated(self) -> None:
        self.task.driver.firmware.cache_firmware_components(self.task)
        self.assertEqual({"bios": "1.0.0", "bmc": "1.0.0", self.adapter: "1.0.0"}, self.versions())
        self.step("firmware", "update", settings=self.updates("bios", "bmc", "nic:1"))
        self.assertEqual({"bios": "2.1.0", "bmc": "3.0.1", self.adapter: "22.5.7"}, self.versions())
        last = {one["component"]: one.get("last_version_flashed") for one in self.task.firmware}
        self.assertEqual("22.5.7", last[self.adapter])
        self.assertEqual("off", self.power(), "as before the update")

    def test_a_conductor_that_dies_anywhere_updates_once(self) -> None:
        self.rack.control.order_fault(self.name, "redfish_slow_tasks", {"seconds": 1.5})
        self.assertLess(3, self.finish_dying("firmware", "update", settings=self.updates("bios")))
        self.assertEqual("2.1.0", self.versions()["bios"])
        self.assertEqual(1, self.log("Update of BIOS"))


class DellFirmwareTest(FirmwareTest):
    """Its BIOS is updated by a job that waits for the next boot."""

    vendor = "dell"


class FirmwareRefusalsTest(FirmwareCase):
    def test_what_the_bmc_says_of_a_failure_ends_the_step(self) -> None:
        self.rack.control.order_fault(self.name, "redfish_task_fails", "the image is damaged")
        error = self.assertRaises(errors.StepFailed, self.step, "firmware", "update", settings=self.updates("bios"))
        for part in ("update of bios", "Exception", "the image is damaged"):
            self.assertIn(part, error.message)

    def test_a_task_that_never_ends_ends_the_step(self) -> None:
        self.task.conf.set_override("firmware_update_overall_timeout", 2, "redfish")
        self.rack.control.order_fault(self.name, "redfish_task_stuck")
        error = self.assertRaises(errors.StepFailed, self.step, "firmware", "update", settings=self.updates("bmc"))
        self.assertIn("firmware_update_overall_timeout", error.message)

    def test_updates_that_cannot_be_made_are_refused_before_any_is(self) -> None:
        good = self.updates("bios")
        for wrong in (
            [],
            {},
            [*good, {"component": "bios"}],
            [*good, {"component": "gpu", "url": "http://x/y"}],
            [*good, {"component": "bmc", "url": "file:///y"}],
            [*good, {"component": "bmc", "url": "http://x/y", "source": "local"}],
            [*good, {"component": "bmc", "url": "http://x/y", "wait": -1}],
            [*good, {"component": "bmc", "url": "http://x/y", "more": 1}],
        ):
            self.assertRaises(errors.Invalid, self.step, "firmware", "update", settings=wrong)
        self.assertEqual(0, self.log("Update of"))


class RaidTest(ChangesCase):
    vendor = "generic"

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": self.vendor}  # type: ignore[misc]
        super().setUp()

    def target(self, *disks: dict[str, Any]) -> None:
        self.task.set(target_raid_config={"logical_disks": list(disks)})

    def built(self) -> list[tuple[Any, ...]]:
        found = self.task.node.raid_config.get("logical_disks", ())
        return sorted((one["raid_level"], one["size_gb"], len(one["physical_disks"])) for one in found)

    def test_arrays_are_built_and_deleted(self) -> None:
        raid5 = {"raid_level": "5", "size_gb": 2, "number_of_physical_disks": 4}
        self.target(MIRROR, raid5)
        self.step("raid", "create_configuration")
        self.assertEqual([("1", 2, 2), ("5", 2, 4)], self.built())
        root = self.task.node.properties["root_device"]
        self.assertTrue(root["wwn"].startswith("0x"), root)
        self.assertIn("last_updated", self.task.node.raid_config)
        self.assertEqual("off", self.power())
        error = self.assertRaises(errors.StepFailed, self.step, "raid", "create_configuration")
        self.assertIn("free disks", error.message)
        self.step("raid", "create_configuration", delete_existing=True, create_nonroot_volumes=False)
        self.assertEqual([("1", 2, 2)], self.built())
        self.step("raid", "delete_configuration")
        self.assertEqual(({}, None), (self.task.node.raid_config, self.task.node.properties.get("root_device")))

    def test_a_conductor_that_dies_anywhere_builds_and_deletes_once(self) -> None:
        self.target(MIRROR)
        self.finish_dying("raid", "create_configuration")
        self.assertEqual([("1", 2, 2)], self.built())
        self.assertEqual(1, self.log(": RAID1 of"))
        self.finish_dying("raid", "create_configuration", delete_existing=True)
        self.assertEqual((2, 1), (self.log(": RAID1 of"), self.log(" deleted")))


class HpeRaidTest(RaidTest):
    """Its arrays are built at the next start."""

    vendor = "ilo"


class DellRaidTest(RaidTest):
    vendor = "dell"


class RaidRefusalsTest(ChangesCase):
    def test_disks_are_chosen_by_name_and_by_hints(self) -> None:
        task = self.task
        disks = connection.call(task, lambda machine: machine.read_members(f"{machine.system_path}/Storage"))
        first = connection.call(task, lambda machine: machine.read(disks[0]["Drives"][4]["@odata.id"]))
        named = {"raid_level": "0", "size_gb": 1, "physical_disks": [first["Id"]], "controller": disks[0]["Id"]}
        hinted = {"raid_level": "0", "size_gb": 1, "physical_disks": {"model": "Simulated"}, "disk_type": "ssd"}
        task.set(target_raid_config={"logical_disks": [hinted, named]})
        self.step("raid", "create_configuration")
        self.assertIn([first["Name"]], [one["physical_disks"] for one in task.node.raid_config["logical_disks"]])

    def test_what_cannot_be_built_deletes_nothing(self) -> None:
        self.task.set(target_raid_config={"logical_disks": [MIRROR]})
        self.step("raid", "create_configuration")
        for wrong, part in (
            ({"disk_type": "hdd"}, "no controller has 2 free disks"),
            ({"size_gb": 9999}, "no controller has"),
            ({"controller": "other"}, "controllers:"),
            ({"number_of_physical_disks": 1}, "at least 2"),
        ):
            config = {"logical_disks": [{**MIRROR, **wrong}]}
            self.task.set(target_raid_config=config)
            error = self.assertRaises(
                errors.StepFailed, self.step, "raid", "create_configuration", delete_existing=True
            )
            self.assertIn(part, error.message)
        for wrong in ({"raid_level": "JBOD"}, {"controller": "software"}):
            self.task.set(target_raid_config={"logical_disks": [{**MIRROR, **wrong}]})
            self.assertRaises(errors.Invalid, self.step, "raid", "create_configuration")
        self.assertEqual(0, self.log(" deleted"))

    def test_a_task_that_fails_says_why(self) -> None:
        self.task.set(target_raid_config={"logical_disks": [MIRROR]})
        self.rack.control.order_fault(self.name, "redfish_task_fails", "a disk has failed")
        error = self.assertRaises(errors.StepFailed, self.step, "raid", "create_configuration")
        self.assertIn("a disk has failed", error.message)
        self.assertEqual(states.POWER_OFF, self.task.driver.power.get_power_state(self.task))

    def test_the_step_of_deployments_takes_its_arrays_as_an_argument(self) -> None:
        step = {
            "interface": "raid",
            "step": "apply_configuration",
            "args": {"raid_config": {"logical_disks": [MIRROR]}},
        }
        DriverRackTest.finish(self, lambda task: task.driver.raid.execute_deploy_step(task, step))
        self.assertEqual(["1"], [one["raid_level"] for one in self.task.node.raid_config["logical_disks"]])
