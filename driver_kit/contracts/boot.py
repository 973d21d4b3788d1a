"""The contracts of boot, deploy, rescue and console interfaces: each one that a node of the bench's type can have."""

import functools
from collections.abc import Iterator
from typing import Any

from ingot.common import errors, interfaces
from ingot.driver_kit import memory_task
from ingot.driver_kit.contracts.base import ContractTest

_DEVICES = {"redfish-https": "uefihttp", "redfish-virtual-media": "cdrom", "idrac-redfish-virtual-media": "cdrom"}
"""What the machine boots from with a boot interface; with all others, from the network."""


class EachCase(ContractTest):
    kind = ""

    def each(self) -> Iterator[memory_task.MemoryTask]:
        """Yield a task for each interface of the kind."""
        driver = self.bench.driver
        names = {
            one.interface_name
            for one in self.task.hardware.list_enabled()
            if (one.hardware_type, one.interface_type) == (driver, self.kind)
        }
        self.assertTrue(names)
        for name in sorted(names):
            columns = {**self.bench.columns, interfaces.FIELD[self.kind]: name}
            node = memory_task.node(driver=driver, driver_info=self.task.node.driver_info, **columns)
            task = memory_task.MemoryTask(self.task.conf, node)
            task.ports = self.task.ports
            self.assertEqual({}, task.missing)
            yield task


class BootContract(EachCase):
    kind = "boot"

    def test_the_agent_is_booted_once_and_the_instance_always(self) -> None:
        for task in self.each():
            boot, management = task.driver.boot, task.driver.management
            boot.validate(task)
            for _again in range(2):
                boot.prepare_ramdisk(task, {"ipa-debug": "1"})
                if boot.name != "fake":
                    expected = {"boot_device": _DEVICES.get(boot.name, "pxe"), "persistent": False}
                    self.assertEqual(expected, management.get_boot_device(task), boot.name)
                    if (seen := self.bench.seen_boot_device()) is not None:
                        self.assertEqual(tuple(expected.values()), seen, boot.name)
                    self.assertEqual("ramdisk", task.node.boot_config["target"])
            for _again in range(2):
                boot.clean_up_ramdisk(task)
                self.assertEqual({}, task.node.boot_config)
            for _again in range(2):
                boot.prepare_instance(task)
                if boot.name != "fake":
                    self.assertEqual({"boot_device": "disk", "persistent": True}, management.get_boot_device(task))
            for _again in range(2):
                boot.clean_up_instance(task)
                self.assertEqual({}, task.node.boot_config)

    def test_a_drive_is_empty_when_the_agent_is_no_longer_needed(self) -> None:
        for task in self.each():
            if _DEVICES.get(task.driver.boot.name) == "cdrom":
                task.driver.boot.prepare_ramdisk(task, {})
                inserted = [one["image"] for one in task.driver.management.get_virtual_media(task) if one["inserted"]]
                self.assertEqual(1, len(inserted))
                self.assertIn(task.node.uuid, inserted[0])
                task.driver.boot.clean_up_ramdisk(task)
                media = task.driver.management.get_virtual_media(task)
                self.assertEqual({False}, {bool(one["inserted"]) for one in media})

    def test_what_the_node_lacks_is_named(self) -> None:
        for task in self.each():
            info = {key: value for key, value in task.node.driver_info.items() if not key.startswith("deploy_")}
            task.set(driver_info=info)
            if task.driver.boot.name != "fake":
                self.assert_refused(functools.partial(task.driver.boot.validate, task), "deploy_kernel")

    def test_properties_are_described(self) -> None:
        for task in self.each():
            for name, text in task.driver.boot.get_properties().items():
                self.assertTrue(text.endswith("."), name)


class DeployContract(EachCase):
    kind = "deploy"

    def test_its_steps_can_be_repeated(self) -> None:
        for task in self.each():
            steps = {step["step"]: step for step in task.driver.deploy.declared_steps("deploy")}
            self.assertTrue(steps, task.driver.deploy.name)
            for name in ("deploy", "prepare_instance_boot", "boot_instance"):
                if name in steps:
                    self.assertTrue(steps[name]["idempotent"], f"{task.driver.deploy.name} {name}")

    def test_what_it_left_is_removed_any_time(self) -> None:
        for task in self.each():
            for _again in range(2):
                task.driver.deploy.clean_up(task)
                self.assertEqual({}, task.node.boot_config)

    def test_an_instance_that_cannot_be_is_refused(self) -> None:
        for task in self.each():
            if task.driver.deploy.name not in ("fake", "custom-agent"):  # these take any
                task.set(instance_info={"image_source": "http://192.0.2.1/one.raw\n", "kernel": 7, "boot_iso": ["x"]})
                self.assertRaises(errors.IngotError, task.driver.deploy.validate, task)


class RescueContract(EachCase):
    kind = "rescue"

    def test_what_it_left_is_removed_any_time(self) -> None:
        for task in self.each():
            for _again in range(2):
                task.driver.rescue.clean_up(task)
                self.assertEqual({}, task.node.boot_config)

    def test_a_machine_without_it_says_so(self) -> None:
        for task in self.each():
            if task.driver.rescue.name == "no-rescue":
                for call in (task.driver.rescue.validate, task.driver.rescue.unrescue):
                    error = self.assertRaises(errors.UnsupportedInterface, call, task)
                    self.assertIn("no-rescue (rescue)", error.message)


class ConsoleContract(EachCase):
    kind = "console"

    def test_it_starts_and_stops_any_time(self) -> None:
        for task in self.each():
            console = task.driver.console
            console.stop_console(task)
            if console.name == "no-console":
                for call in (console.validate, console.start_console, console.get_console):
                    error = self.assertRaises(errors.UnsupportedInterface, call, task)
                    self.assertIn("no-console (console)", error.message)
                continue
            try:
                console.validate(task)
            except errors.MissingParameter as exc:  # the node has no address for its protocol
                self.assertIn("driver_info", exc.message)
                self.assertRaises(errors.MissingParameter, console.start_console, task)
                continue
            for _again in range(2):
                console.start_console(task)
                found: Any = console.get_console(task)
                self.assertTrue(found["type"])
                self.assertTrue(found["url"])
            for _again in range(2):
                console.stop_console(task)
