"""The contracts of management interfaces: how the machine boots, its lights, its drives, the BMC itself."""

import datetime
import functools
import json
from typing import Any

from ingot.common import states
from ingot.driver_kit.bench import service
from ingot.driver_kit.contracts.base import ContractTest
from ingot.drivers.interfaces import power_control
from ingot.drivers.interfaces.management import BOOT_DEVICES
from ingot.drivers.interfaces.sensors import HEALTH, KINDS, THRESHOLDS, Sensor

_ALL_MEDIA = ["cdrom", "floppy", "disk"]


class ManagementContract(ContractTest):
    def setUp(self) -> None:
        super().setUp()
        self.management = self.task.driver.management

    def devices(self) -> list[str]:
        """Return the devices that the machine has, of those that the interface knows."""
        return [one for one in self.management.get_supported_boot_devices(self.task) if one not in self.bench.missing]

    def assert_boot_device(self, device: str, persistent: bool) -> None:
        expected = {"boot_device": device, "persistent": persistent}
        self.assertEqual(expected, self.management.get_boot_device(self.task))
        if (seen := self.bench.seen_boot_device()) is not None:
            self.assertEqual((self.bench.own_drives.get(device, device), persistent), seen)

    # How the machine boots

    def test_each_boot_device_is_set_for_all_boots(self) -> None:
        self.assertLessEqual({"pxe", "disk", "cdrom"}, set(self.devices()))
        for device in self.devices():
            for _again in range(2):
                self.management.set_boot_device(self.task, device, persistent=True)
                self.assert_boot_device(device, True)

    def test_each_boot_device_is_set_for_one_boot(self) -> None:
        for device in self.devices():
            for _again in range(2):
                self.management.set_boot_device(self.task, device)
                self.assert_boot_device(device, False)

    def test_a_boot_device_that_there_is_not_is_refused_with_those_that_are(self) -> None:
        self.management.set_boot_device(self.task, "disk", persistent=True)
        unknown = sorted(set(BOOT_DEVICES) - set(self.management.get_supported_boot_devices(self.task)))
        for device in ("tape", "", *self.bench.missing, *unknown):
            self.assert_refused(
                functools.partial(self.management.set_boot_device, self.task, device),
                *("boot_device", repr(device), *self.devices()),
            )
        self.assert_boot_device("disk", True)

    def test_the_boot_mode_changes_and_the_device_stays(self) -> None:
        for mode in ("uefi", "bios", "uefi"):
            for device in ("pxe", "disk"):
                self.management.set_boot_device(self.task, device, persistent=True)
                for _again in range(2):
                    self.management.set_boot_mode(self.task, mode)
                    self.assert_boot_device(device, True)
                if (seen := self.bench.seen_boot_mode()) is not None:
                    self.assertEqual(mode, seen)

    def test_a_change_bears_what_passes(self) -> None:
        devices = ["pxe", "disk"] * 4

        def change() -> None:
            device = devices.pop(0)
            self.management.set_boot_device(self.task, device, persistent=True)
            self.assert_boot_device(device, True)

        self.assert_borne(change)

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        task, management = self.task, self.management
        self.assert_silence_ends(
            lambda: management.set_boot_device(task, "pxe"),
            lambda: management.get_boot_device(task),
            lambda: management.set_boot_mode(task, "uefi"),
        )
        management.set_boot_device(task, "pxe")

    # Beside it

    def test_an_interrupt_arrives(self) -> None:
        self.finish(power_control.power_on)
        self.management.inject_nmi(self.task)
        self.assertEqual(1, self.bench.count_log("non-maskable interrupt"))
        self.assertEqual(states.POWER_ON, self.bench.seen_power())

    def test_each_light_has_each_of_its_states(self) -> None:
        lights = self.management.get_supported_indicators(self.task)
        self.assertEqual(len(lights), len({(light.component, light.name) for light in lights}))
        for light in (light for light in lights if not light.readonly):
            self.assertLessEqual({"on", "off"}, set(light.states))
            for state in (*light.states, light.states[-1]):
                self.management.set_indicator_state(self.task, light, state)
                self.assertEqual(state, self.management.get_indicator_state(self.task, light))
        self.assertTrue(lights)

    def test_each_step_ends_well_and_may_be_run_again(self) -> None:
        arguments: dict[str, dict[str, Any]] = {
            "set_bmc_clock": {"target_datetime": datetime.datetime.now(datetime.UTC).isoformat()},
        }
        declared = self.management.declared_steps("clean")
        self.assertEqual([], [step["step"] for step in declared if step["requires_ramdisk"]], "the BMC does them")
        steps = [step["step"] for step in declared]
        self.assertTrue(steps)
        for name in steps:
            for _again in range(1 if name == "reset_bmc" else 2):  # a BMC that is not seen away is waited for long
                self.step("management", name, **arguments.get(name, {}))
        self.assertEqual(states.POWER_OFF, self.task.driver.power.get_power_state(self.task))

    def test_a_restart_of_the_bmc_is_waited_for(self) -> None:
        self.step("management", "reset_bmc")
        self.assertLessEqual(1, self.bench.count_log("the BMC restarts"))
        self.finish(power_control.power_on)

    def test_a_moment_that_is_none_is_refused(self) -> None:
        for wrong in ("tomorrow", 7):
            self.assert_refused(
                functools.partial(self.step, "management", "set_bmc_clock", target_datetime=wrong), "target_datetime"
            )


class SensorsContract(ContractTest):
    def test_sensors_have_one_form(self) -> None:
        found = self.task.driver.management.get_sensors(self.task)
        self.assertLessEqual({"temperature", "fan"}, {one["kind"] for one in found})
        self.assertEqual(len(found), len({one["id"] for one in found}))
        for one in json.loads(json.dumps(found, allow_nan=False)):
            self.assertEqual(set(Sensor.__annotations__), set(one))
            self.assertIn(one["kind"], KINDS)
            self.assertLessEqual(set(one["thresholds"]), set(THRESHOLDS))
            self.assertIn(one["health"], (None, *HEALTH))

    def test_air_that_is_too_hot_is_seen_and_a_drive_that_has_failed(self) -> None:
        for fault in ("too_hot", "drive_failed"):
            self.bench.fault(fault)
        found = self.task.driver.management.get_sensors(self.task)
        (inlet,) = [one for one in found if one["name"] == "Inlet Temp"]
        self.assertEqual(("temperature", 99.0, "°C", "Critical", 42.0),
                         (*(inlet[key] for key in ("kind", "reading", "unit", "health")),
                          inlet["thresholds"]["upper_critical"]))  # fmt: skip
        self.assertIn("Critical", {one["health"] for one in found if one["kind"] == "drive"})
        self.bench.clear()
        found = self.task.driver.management.get_sensors(self.task)
        self.assertEqual({"OK"}, {one["health"] for one in found})

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        self.assert_silence_ends(lambda: self.task.driver.management.get_sensors(self.task))


class SecureBootContract(ContractTest):
    def test_it_is_switched_and_read(self) -> None:
        management = self.task.driver.management
        for mode, enabled in (("uefi", True), ("bios", False), ("uefi", False)):
            management.set_boot_mode(self.task, mode)
            for _again in range(2):
                management.set_secure_boot(self.task, enabled)
            self.step("management", "read_boot_mode", "verify")
            self.assertEqual((mode, enabled), (self.task.node.boot_mode, self.task.node.secure_boot))


class VirtualMediaContract(ContractTest):
    def setUp(self) -> None:
        super().setUp()
        self.management = self.task.driver.management
        self.images = [f"{service().url}/{name}" for name in ("image.iso", "other.iso")]

    def list_inserted(self) -> list[str]:
        return [one["image"] for one in self.management.get_virtual_media(self.task) if one["inserted"]]

    def test_media_are_inserted_replaced_and_ejected(self) -> None:
        first, second = self.images
        for _again in range(2):
            self.management.attach_virtual_media(self.task, "cdrom", first, None)
            self.assertEqual([first], self.list_inserted())
        self.management.attach_virtual_media(self.task, "cdrom", second, "http")
        self.assertEqual(sorted([first, second][-self.bench.cd_drives :]), sorted(self.list_inserted()))
        for _again in range(2):
            self.management.detach_virtual_media(self.task, _ALL_MEDIA)
            self.assertEqual([], self.list_inserted())

    def test_a_machine_boots_from_the_virtual_drive_that_has_an_image(self) -> None:
        self.management.attach_virtual_media(self.task, "cdrom", self.images[0], None)
        self.assertEqual([self.images[0]], self.list_inserted())
        for device in ("cdrom", "disk", "cdrom"):
            self.management.set_boot_device(self.task, device, persistent=True)
            found = self.management.get_boot_device(self.task)
            self.assertEqual({"boot_device": device, "persistent": True}, found)
            self.assertEqual((device, True), self.bench.seen_boot_device())

    def test_media_that_the_bmc_cannot_fetch_are_refused(self) -> None:
        for wrong in ("file:///etc/shadow", "nowhere", "ftp://192.0.2.1/x.iso", ""):
            self.assert_refused(
                functools.partial(self.management.attach_virtual_media, self.task, "cdrom", wrong, None), "image_url"
            )
        self.assert_refused(
            lambda: self.management.attach_virtual_media(self.task, "cdrom", self.images[0], "swift"),
            *("image_download_source", "http"),
        )
        self.assertEqual([], self.list_inserted())

    def test_a_drive_that_there_is_not_is_refused_with_those_that_are(self) -> None:
        present = {kind for one in self.management.get_virtual_media(self.task) for kind in one["media_types"]}
        if "USBStick" in present:
            self.management.attach_virtual_media(self.task, "disk", self.images[0], None)
            self.assertEqual([self.images[0]], self.list_inserted())
        else:
            self.assert_refused(
                lambda: self.management.attach_virtual_media(self.task, "disk", self.images[0], None),
                *("device_type", "cdrom"),
            )

    def test_a_change_bears_what_passes(self) -> None:
        images = self.images * 4

        def change() -> None:
            self.management.attach_virtual_media(self.task, "cdrom", image := images.pop(0), None)
            self.assertIn(image, self.list_inserted())
            self.management.detach_virtual_media(self.task, _ALL_MEDIA)

        self.assert_borne(change)

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        task, management = self.task, self.management
        self.assert_silence_ends(
            lambda: management.attach_virtual_media(task, "cdrom", self.images[0], None),
            lambda: management.detach_virtual_media(task, _ALL_MEDIA),
            lambda: management.get_virtual_media(task),
        )

    def test_passwords_in_addresses_are_not_shown(self) -> None:
        address = self.images[0].replace("http://", "http://user:opensesame@")
        self.management.attach_virtual_media(self.task, "cdrom", address, None)
        self.assertNotIn("opensesame", str(self.management.get_virtual_media(self.task)))
