"""The contract of firmware interfaces."""

import time
from typing import Any

from ingot.common import errors, states
from ingot.driver_kit.bench import service
from ingot.driver_kit.contracts.base import ContractTest

IMAGES = {"bios": "bios-2.1.0.bin", "bmc": "bmc-3.0.1.bin", "nic": "nic-22.5.7.bin"}


class FirmwareCase(ContractTest):
    def setUp(self) -> None:
        super().setUp()
        service().files |= {f"/{image}": b"firmware" for image in IMAGES.values()}

    def versions(self) -> dict[str, Any]:
        return dict(self.columns(self.task.firmware, "component", "current_version"))

    def read_versions(self) -> dict[str, Any]:
        return {one["component"]: one.get("last_version_flashed") for one in self.task.firmware}

    def update(self, component: str) -> dict[str, Any]:
        return {"component": component, "url": f"{service().url}/{IMAGES[component.partition(':')[0]]}"}


class FirmwareContract(FirmwareCase):
    def test_each_component_is_updated(self) -> None:
        self.step("firmware", "cache_firmware_components", "verify")
        before = self.versions()
        self.assertLessEqual({"bios", "bmc"}, set(before))
        self.step("firmware", "update", settings=[self.update(component) for component in before])
        after = self.versions()
        self.assertEqual(set(before), set(after))
        self.assertEqual([], [one for one in before if before[one] == after[one]])
        self.assertEqual(after, self.read_versions())
        self.assertEqual(states.POWER_OFF, self.task.driver.power.get_power_state(self.task), "as before the update")

    def test_the_step_is_one_of_all_flows_and_needs_no_agent(self) -> None:
        for kind in ("clean", "deploy", "service"):
            (step,) = self.task.driver.firmware.declared_steps(kind)
            self.assertEqual(("update", 0, False), (step["step"], step["priority"], step["requires_ramdisk"]))
        self.assertRaises(errors.MissingParameter, self.step, "firmware", "update")


class UpdatesContract(FirmwareCase):
    """What those have besides whose images a BMC installs."""

    def test_a_component_has_the_version_of_its_image(self) -> None:
        self.step("firmware", "update", settings=[self.update("bios"), self.update("bmc")])
        found = self.versions()
        self.assertEqual(("2.1.0", "3.0.1"), (found["bios"], found["bmc"]))

    def test_a_conductor_that_dies_anywhere_updates_once(self) -> None:
        self.bench.fault("redfish_slow_tasks", {"seconds": 1.5})
        self.assertLess(3, self.finish_dying("firmware", "update", settings=[self.update("bios")]))
        self.assertEqual("2.1.0", self.versions()["bios"])
        self.assertEqual(1, self.bench.count_log("Update of BIOS"))

    def test_what_the_bmc_says_of_a_failure_ends_the_step(self) -> None:
        self.bench.fault("redfish_task_fails", "the image is damaged")
        error = self.assertRaises(errors.StepFailed, self.step, "firmware", "update", settings=[self.update("bios")])
        for part in ("update of bios", "the image is damaged"):
            self.assertIn(part, error.message)

    def test_a_task_that_never_ends_ends_the_step(self) -> None:
        self.task.conf.set_override("firmware_update_overall_timeout", 2, "redfish")
        self.bench.fault("redfish_task_stuck")
        began = time.monotonic()
        error = self.assertRaises(errors.StepFailed, self.step, "firmware", "update", settings=[self.update("bmc")])
        self.assertIn("firmware_update_overall_timeout", error.message)
        self.assertGreater(time.monotonic() - began, 2)

    def test_updates_that_cannot_be_made_are_refused_before_any_is(self) -> None:
        good = self.update("bios")
        settings: tuple[Any, ...] = (
            [],
            {},
            [good, {"component": "bios"}],
            [good, {"component": "gpu", "url": "http://x/y"}],
            [good, {"component": "bmc", "url": "file:///y"}],
            [good, {"component": "bmc", "url": "http://x/y", "source": "local"}],
            [good, {"component": "bmc", "url": "http://x/y", "wait": -1}],
            [good, {"component": "bmc", "url": "http://x/y", "more": 1}],
        )
        for wrong in settings:
            self.assertRaises(errors.Invalid, self.step, "firmware", "update", settings=wrong)
        self.assertEqual(0, self.bench.count_log("Update of"))

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        self.assert_silence_ends(
            lambda: self.task.driver.firmware.cache_firmware_components(self.task),
            lambda: self.step("firmware", "update", settings=[self.update("bios")]),
        )
