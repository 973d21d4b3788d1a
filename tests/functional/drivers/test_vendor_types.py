"""The hardware types idrac and ilo, on BMCs of the rack that have those makers' habits: what only they have."""

from ingot.common import errors
from ingot.drivers.redfish import connection, firmware, virtual_media
from tests.functional.drivers.test_redfish_rack import RedfishRackCase


class IDRACTest(RedfishRackCase):
    driver = "idrac"

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": "dell", "bmc_restart_time": 0.5}  # type: ignore[misc]
        super().setUp()

    def jobs(self) -> list[str]:
        """Return the states of the BMC's jobs."""
        path = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs"
        jobs = connection.call(self.task, lambda machine: machine.read_members(path))
        return [str(one["JobState"]) for one in jobs]

    def order_update(self) -> None:
        """Have a job wait for a boot."""
        url = f"{self.service.url}/bios-2.0.bin"
        connection.call(self.task, lambda machine: firmware._send(machine, "bios", url))

    def test_its_own_interfaces_come_first_and_those_of_redfish_are_there(self) -> None:
        task = self.task
        names = {
            kind: getattr(task.driver, kind).name for kind in ("bios", "firmware", "management", "power", "vendor")
        }
        self.assertEqual({"idrac-redfish"}, set(names.values()))
        redfish = {f"{kind}_interface": "redfish" for kind in (*names, "inspect", "raid")}
        task.set(**redfish)
        task.driver, missing = task.hardware.compose(task.node)
        self.assertEqual(({}, "redfish"), (missing, task.driver.inspect.name))

    def test_a_reset_waits_for_the_controller_and_jobs_are_deleted(self) -> None:
        self.order_update()
        self.assertEqual(["Scheduled"], self.jobs())
        self.step("management", "clear_job_queue")
        self.assertEqual([], self.jobs())
        self.step("management", "reset_idrac")
        self.order_update()
        self.step("management", "known_good_state")
        self.assertEqual([], self.jobs())
        self.assertEqual(2, sum("the BMC restarts" in line for line in self.rack.control.log(self.name)))


class IDRAC10Test(RedfishRackCase):
    driver = "idrac"

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": "idrac10"}  # type: ignore[misc]
        super().setUp()

    def test_images_go_into_its_first_drive_and_nothing_goes_beside_them(self) -> None:
        management, image = self.task.driver.management, f"{self.service.url}/kernel"
        management.attach_virtual_media(self.task, "cdrom", image, None)
        self.assertIn(f"virtual drive 1: {image}", "\n".join(self.rack.control.log(self.name)))
        error = self.assertRaises(
            errors.HardwareError,
            connection.call,
            self.task,
            lambda machine: virtual_media.insert_second(machine, f"{image}2"),
        )
        self.assertIn("beside the drive that boots", error.message)
        shown = [one["image"] for one in management.get_virtual_media(self.task) if one["inserted"]]
        self.assertEqual([image], shown)

    def test_a_job_that_fails_is_named(self) -> None:
        management = self.task.driver.management
        management.attach_virtual_media(self.task, "cdrom", f"{self.service.url}/kernel", None)
        self.rack.control.order_fault(self.name, "redfish_task_fails", "LC099", times=1)
        error = self.assertRaises(errors.HardwareError, management.set_boot_device, self.task, "cdrom")
        for part in ("Choosing the virtual drive", "JID_", "LC099"):
            self.assertIn(part, error.message)
        management.set_boot_device(self.task, "cdrom")
        self.assertEqual("cdrom", self.rack.control.machine(self.name)["boot_device"]["device"])


class OtherMakersTest(RedfishRackCase):
    driver = "idrac"

    def test_what_only_dell_has_is_missed_by_name(self) -> None:
        error = self.assertRaises(errors.HardwareError, self.step, "management", "clear_job_queue")
        self.assertIn("DellJobService", error.message)


class ILOTest(RedfishRackCase):
    driver = "ilo"

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": "ilo", "bmc_restart_time": 0.5}  # type: ignore[misc]
        super().setUp()

    def list_marks(self) -> dict[str, bool]:
        """Return by each virtual drive whether the machine is to boot from it at its next start."""
        path = "/redfish/v1/Managers/1/VirtualMedia"
        drives = connection.call(self.task, lambda machine: machine.read_members(path))
        return {one["Id"]: one["Oem"]["Hpe"]["BootOnNextServerReset"] for one in drives}

    def test_a_drive_with_an_image_is_marked_for_the_next_boot(self) -> None:
        management = self.task.driver.management
        self.assertEqual("ilo", management.name)
        management.attach_virtual_media(self.task, "cdrom", f"{self.service.url}/kernel", None)
        for device, persistent, marked in (("cdrom", False, True), ("disk", True, False), ("cdrom", False, True)):
            management.set_boot_device(self.task, device, persistent)
            self.assertEqual({"1": False, "2": marked}, self.list_marks())
            expected = {"boot_device": device, "persistent": persistent}
            self.assertEqual(expected, management.get_boot_device(self.task))
