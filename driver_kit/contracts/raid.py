"""The contract of raid interfaces."""

import functools
from typing import Any

from ingot.common import errors, states
from ingot.driver_kit.contracts.base import ContractTest

MIRROR = {"raid_level": "1", "size_gb": 1, "is_root_volume": True, "volume_name": "system"}
STRIPES = {"raid_level": "5", "size_gb": 2, "number_of_physical_disks": 4}
WHOLE = {**MIRROR, "size_gb": "MAX"}


class RAIDCase(ContractTest):
    def request(self, *disks: dict[str, Any]) -> dict[str, Any]:
        """Have the node ask for arrays; return the configuration."""
        config = {"logical_disks": list(disks)}
        self.task.set(target_raid_config=config)
        return config

    def built(self) -> list[tuple[Any, ...]]:
        found = self.task.node.raid_config.get("logical_disks", ())
        return sorted((one["raid_level"], one["size_gb"]) for one in found)


class RAIDContract(RAIDCase):
    def test_arrays_are_built_and_deleted(self) -> None:
        self.request(MIRROR, STRIPES)
        self.step("raid", "create_configuration")
        self.assertEqual([("1", 1), ("5", 2)], self.built())
        self.assertEqual(states.POWER_OFF, self.task.driver.power.get_power_state(self.task))
        for _again in range(2):
            self.step("raid", "delete_configuration")
            self.assertEqual({}, self.task.node.raid_config)

    def test_a_deployment_gives_its_arrays_as_an_argument(self) -> None:
        for kind in ("deploy", "service"):
            self.step("raid", "apply_configuration", kind, raid_config={"logical_disks": [MIRROR]})
            self.assertEqual([("1", 1)], self.built())

    def test_no_step_needs_the_agent(self) -> None:
        for kind in ("clean", "service"):
            steps = self.task.driver.raid.declared_steps(kind)
            self.assertTrue(steps)
            self.assertEqual([], [step["step"] for step in steps if step["requires_ramdisk"]])

    def test_what_is_no_array_is_refused_by_its_number_and_key(self) -> None:
        validate = self.task.driver.raid.validate_raid_config
        for wrong, key in (
            ({"raid_level": "7"}, "raid_level"),
            ({"size_gb": 0}, "size_gb"),
            ({"size_gb": "much"}, "size_gb"),
            ({"colour": "red"}, "colour"),
        ):
            config = self.request(STRIPES, {**MIRROR, **wrong})
            self.assert_refused(functools.partial(validate, config), f"logical_disks[1].{key}")
        two_roots = self.request(MIRROR, MIRROR)
        self.assert_refused(lambda: validate(two_roots), "root volume")
        nothing: tuple[Any, ...] = ({}, {"logical_disks": []}, None, [])
        for none in nothing:
            self.assert_refused(functools.partial(validate, none), "logical_disks")


class ControllerContract(RAIDCase):
    """What those have besides whose arrays a controller builds of disks."""

    def test_the_root_volume_becomes_the_root_device(self) -> None:
        self.request(WHOLE)
        self.step("raid", "create_configuration")
        self.assertEqual([("1", 2)], self.built())
        root = self.task.node.properties["root_device"]
        self.assertTrue(root["wwn"].startswith("0x"), root)
        self.assertIn("last_updated", self.task.node.raid_config)
        self.step("raid", "delete_configuration")
        self.assertIsNone(self.task.node.properties.get("root_device"))

    def test_what_is_there_stays_unless_it_is_to_be_deleted(self) -> None:
        self.request(WHOLE, STRIPES)
        self.step("raid", "create_configuration")
        error = self.assertRaises(errors.StepFailed, self.step, "raid", "create_configuration")
        self.assertIn("free disks", error.message)
        self.step("raid", "create_configuration", delete_existing=True, create_nonroot_volumes=False)
        self.assertEqual([("1", 2)], self.built())

    def test_a_conductor_that_dies_anywhere_builds_and_deletes_once(self) -> None:
        self.request(WHOLE)
        self.finish_dying("raid", "create_configuration")
        self.assertEqual([("1", 2)], self.built())
        self.assertEqual(1, self.bench.count_log(": RAID1 of"))
        self.finish_dying("raid", "create_configuration", delete_existing=True)
        self.assertEqual((2, 1), (self.bench.count_log(": RAID1 of"), self.bench.count_log(" deleted")))

    def test_disks_are_chosen_by_hints(self) -> None:
        hints = {"physical_disks": {"model": "Simulated"}, "disk_type": "ssd"}
        self.request({"raid_level": "0", "size_gb": 1, "number_of_physical_disks": 2, **hints})
        self.step("raid", "create_configuration")
        (array,) = self.task.node.raid_config["logical_disks"]
        chosen = array["physical_disks"][:1]
        self.step("raid", "delete_configuration")
        self.request({"raid_level": "0", "size_gb": 1, "physical_disks": chosen, "controller": array["controller"]})
        self.step("raid", "create_configuration")
        self.assertEqual([chosen], [one["physical_disks"] for one in self.task.node.raid_config["logical_disks"]])

    def test_what_cannot_be_built_deletes_nothing(self) -> None:
        self.request(WHOLE)
        self.step("raid", "create_configuration")
        for wrong, part in (
            ({"disk_type": "hdd"}, "no controller has 2 free disks"),
            ({"size_gb": 9999}, "no controller has"),
            ({"controller": "other"}, "controllers:"),
            ({"number_of_physical_disks": 1}, "at least 2"),
        ):
            self.request({**WHOLE, **wrong})
            error = self.assertRaises(
                errors.StepFailed, self.step, "raid", "create_configuration", delete_existing=True
            )
            self.assertIn(part, error.message)
        for level in ({"raid_level": "JBOD"}, {"controller": "software"}):
            self.request({**WHOLE, **level})
            self.assertRaises(errors.Invalid, self.step, "raid", "create_configuration")
        self.assertEqual(0, self.bench.count_log(" deleted"))

    def test_a_task_that_fails_says_why(self) -> None:
        self.request(WHOLE)
        self.bench.fault("redfish_task_fails", "a disk has failed")
        error = self.assertRaises(errors.StepFailed, self.step, "raid", "create_configuration")
        self.assertIn("a disk has failed", error.message)

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        self.request(WHOLE)
        self.assert_silence_ends(lambda: self.step("raid", "create_configuration"))
