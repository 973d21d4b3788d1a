"""What a Redfish face changes in a machine for long: BIOS, secure boot, volumes, firmware; and the events it sends."""

import http.server
import json
import threading
from typing import Any

import sushy

from tests.functional.rack.redfish_base import PATIENCE_S, RedfishTest

IMMEDIATE, ON_RESET = sushy.ApplyTime.IMMEDIATE, sushy.ApplyTime.ON_RESET


class BiosTest(RedfishTest):
    def test_settings_are_applied_by_the_next_start(self) -> None:
        bios = self.system().bios
        before = bios.attributes["ProcTurboMode"]
        bios.set_attributes({"ProcTurboMode": "Disabled", "Sriov": True, "BootRetryCount": 5}, ON_RESET)
        self.assertEqual("Disabled", bios.pending_attributes["ProcTurboMode"])
        bios.refresh(force=True)
        self.assertEqual(("Enabled", before), (before, bios.attributes["ProcTurboMode"]))
        self.restart()
        bios = self.system().bios
        self.assertEqual(
            ["Disabled", True, 5], [bios.attributes[n] for n in ("ProcTurboMode", "Sriov", "BootRetryCount")]
        )
        self.assertEqual({}, bios.pending_attributes)
        self.assertEqual(1, bios.update_status.status)  # success, in sushy's numbers

    def test_a_reset_brings_the_defaults_back(self) -> None:
        self.system().bios.set_attribute("ProcTurboMode", "Disabled")
        self.restart()
        bios = self.system().bios
        bios.reset_bios()
        self.assertEqual("Disabled", bios.attributes["ProcTurboMode"])
        self.restart()
        self.assertEqual("Enabled", self.system().bios.attributes["ProcTurboMode"])

    def test_settings_survive_a_restart_of_the_rack(self) -> None:
        self.system().bios.set_attribute("ProcTurboMode", "Disabled")
        self.rack.stop()
        self.rack.start()
        self.assertEqual({"ProcTurboMode": "Disabled"}, self.system().bios.pending_attributes)

    def test_what_cannot_be_set_is_refused_whole(self) -> None:
        bios = self.system().bios
        for settings, code in (
            ({"Nope": 1}, "PropertyUnknown"),
            ({"SerialNumber": "x"}, "PropertyNotWritable"),
            ({"ProcTurboMode": "Maybe"}, "PropertyValueNotInList"),
            ({"Sriov": "true"}, "PropertyValueTypeError"),
            ({"BootRetryCount": 11}, "PropertyValueOutOfRange"),
        ):
            error = self.assertRaises(
                sushy.exceptions.BadRequestError, bios.set_attributes, {"ProcVirtualization": "Disabled", **settings}
            )
            self.assertTrue(error.code.endswith(code), error.code)
            self.assertEqual([f"#/Attributes/{next(iter(settings))}"], error.related_properties)
        self.assertEqual({}, self.system().bios.pending_attributes)

    def test_the_registry_describes_the_attributes(self) -> None:
        bios = self.system().bios
        found = {one.name: one for one in bios.get_attribute_registry().registry_entries.attributes}
        self.assertEqual(set(bios.attributes), set(found))
        self.assertEqual((0, 10), (found["BootRetryCount"].lower_bound, found["BootRetryCount"].upper_bound))
        self.assertTrue(found["SerialNumber"].read_only)

    def test_a_password_is_changed_by_those_who_know_it(self) -> None:
        bios = self.system().bios
        bios.change_password("new", "", "AdminPassword")
        self.assertRaises(sushy.exceptions.BadRequestError, bios.change_password, "x", "", "AdminPassword")
        bios.change_password("newer", "new", "AdminPassword")


class SecureBootTest(RedfishTest):
    def test_it_is_in_force_from_the_next_start(self) -> None:
        secure = self.system().secure_boot
        self.assertEqual((False, sushy.SECURE_BOOT_DISABLED), (secure.enabled, secure.current_boot))
        secure.set_enabled(True)
        secure.refresh(force=True)
        self.assertEqual((True, sushy.SECURE_BOOT_DISABLED), (secure.enabled, secure.current_boot))
        self.restart()
        secure.refresh(force=True)
        self.assertEqual(sushy.SECURE_BOOT_ENABLED, secure.current_boot)

    def test_without_keys_it_checks_nothing(self) -> None:
        secure = self.system().secure_boot
        secure.reset_keys(sushy.SECURE_BOOT_RESET_KEYS_DELETE_ALL)
        secure.set_enabled(True)
        self.restart()
        secure.refresh(force=True)
        self.assertEqual((sushy.SECURE_BOOT_MODE_SETUP, sushy.SECURE_BOOT_DISABLED), (secure.mode, secure.current_boot))
        secure.reset_keys(sushy.SECURE_BOOT_RESET_KEYS_TO_DEFAULT)
        secure.refresh(force=True)
        self.assertEqual(sushy.SECURE_BOOT_MODE_USER, secure.mode)

    def test_databases(self) -> None:
        secure = self.system().secure_boot
        found = {one.identity: one for one in secure.databases.get_members()}
        self.assertEqual({"PK", "KEK", "db", "dbx"}, set(found))
        found["PK"].reset_keys(sushy.SECURE_BOOT_RESET_KEYS_DELETE_ALL)
        secure.refresh(force=True)
        self.assertEqual(sushy.SECURE_BOOT_MODE_SETUP, secure.mode)

    def test_a_legacy_machine_has_none(self) -> None:
        system = self.system()
        system.set_system_boot_options(mode=sushy.BOOT_SOURCE_MODE_BIOS)
        self.assertRaises(sushy.exceptions.BadRequestError, system.secure_boot.set_enabled, True)


class VolumeTest(RedfishTest):
    def volumes(self) -> Any:
        return self.system().storage.get_members()[0].volumes

    def test_a_volume_is_made_and_deleted_at_once(self) -> None:
        volume = self.volumes().create({"RAIDType": "RAID1", "Name": "root"}, apply_time=IMMEDIATE)
        self.assertEqual(
            ("root", sushy.RAIDType.RAID1, 256 * 2**20), (volume.name, volume.raid_type, volume.capacity_bytes)
        )
        drives = self.system().storage.get_members()[0].drives
        self.assertEqual([[volume.identity]] * 2, [[one.identity for one in drive.volumes] for drive in drives])
        self.assertIsNone(volume.delete(apply_time=IMMEDIATE))
        self.assertEqual((), self.volumes().members_identities)

    def test_or_by_the_next_start(self) -> None:
        monitor = self.volumes().create({"RAIDType": "RAID0", "VolumeType": "NonRedundant"}, apply_time=ON_RESET)
        self.assertTrue(monitor.check_is_processing)
        self.assertEqual(sushy.TASK_STATE_PENDING, monitor.get_task().task_state)
        self.assertEqual((), self.volumes().members_identities)
        self.restart()
        monitor.wait(PATIENCE_S)
        (volume,) = self.volumes().get_members()
        self.assertEqual(sushy.TASK_STATE_COMPLETED, monitor.get_task().task_state)
        monitor = volume.delete(apply_time=ON_RESET)
        self.restart()
        monitor.wait(PATIENCE_S)
        self.assertEqual((), self.volumes().members_identities)

    def test_power_that_is_cut_ends_what_the_firmware_is_at_work_on(self) -> None:
        self.order("redfish_slow_tasks", {"seconds": 30}, times=1)
        monitor = self.volumes().create({"RAIDType": "RAID1"}, apply_time=ON_RESET)
        self.restart()
        self.assertTrue(monitor.check_is_processing)
        self.restart()
        monitor.wait(PATIENCE_S)
        task = monitor.get_task()
        self.assertEqual(sushy.TASK_STATE_EXCEPTION, task.task_state)
        self.assertIn("power was cut", task.messages[0].message)
        self.assertEqual((), self.volumes().members_identities)

    def test_a_fault_makes_tasks_slow_or_fail(self) -> None:
        self.order("redfish_slow_tasks", {"seconds": 0.5}, times=1)
        self.volumes().create({"RAIDType": "RAID1"}, apply_time=IMMEDIATE)  # sushy waits for it
        self.assertEqual(1, len(self.volumes().members_identities))
        self.order("redfish_task_fails", "the controller is tired")
        monitor = self.volumes().get_members()[0].delete()
        monitor.wait(PATIENCE_S)
        task = monitor.get_task()
        self.assertEqual(sushy.TASK_STATE_EXCEPTION, task.task_state)
        self.assertIn("the controller is tired", task.messages[0].message)
        self.assertEqual(1, len(self.volumes().members_identities))

    def test_what_cannot_be_made(self) -> None:
        volumes = self.volumes()
        volumes.create({"RAIDType": "RAID1", "CapacityBytes": 2**20}, apply_time=IMMEDIATE)
        for payload, code in (
            ({"RAIDType": "RAID0"}, "ResourceExhaustion"),
            ({"RAIDType": "RAID9"}, "PropertyValueNotInList"),
            ({}, "PropertyMissing"),
            ({"RAIDType": "RAID0", "Colour": 1}, "PropertyUnknown"),
        ):
            error = self.assertRaises(sushy.exceptions.BadRequestError, volumes.create, payload)
            self.assertTrue(error.code.endswith(code), error.code)

    def test_a_volume_is_initialized(self) -> None:
        volume = self.volumes().create({"RAIDType": "RAID1"}, apply_time=IMMEDIATE)
        self.assertIsNone(volume.initialize(sushy.VolumeInitializeType.FAST, apply_time=IMMEDIATE))


class UpdateTest(RedfishTest):
    def serve(self, name: str) -> str:
        self.service.files[f"/{name}"] = b"firmware"
        return f"{self.service.url}/{name}"

    def version(self, component: str) -> str:
        found = self.connect().get_update_service().firmware_inventory.get_members()
        return str(next(one.version for one in found if one.identity == component))

    def test_a_bios_is_updated_by_a_task_and_a_start(self) -> None:
        monitor = self.connect().get_update_service().simple_update(self.serve("bios-2.1.0.bin"))
        self.assertTrue(monitor.is_processing)
        self.assertEqual("1.0.0", self.system().bios_version)
        monitor.wait(PATIENCE_S)
        self.assertEqual(sushy.TASK_STATE_COMPLETED, monitor.get_task().task_state)
        self.restart()
        self.assertEqual(("2.1.0", "2.1.0"), (self.system().bios_version, self.version("BIOS")))

    def test_a_bmc_restarts_with_its_own(self) -> None:
        client = self.connect()
        target = "/redfish/v1/UpdateService/FirmwareInventory/BMC"
        client.get_update_service().simple_update(self.serve("image-3.0.bin"), targets=[target])
        self.eventually(lambda: "the BMC restarts" in " ".join(self.rack.control.log(self.name)), "the restart")

        def is_new() -> bool:
            try:
                return bool(self.connect().get_manager().firmware_version == "3.0")
            except sushy.exceptions.ConnectionError:
                return False

        self.eventually(is_new, "the BMC")

    def test_an_image_that_is_not_there(self) -> None:
        monitor = self.connect().get_update_service().simple_update(f"{self.service.url}/bios-9.9.bin")
        monitor.wait(PATIENCE_S)
        task = monitor.get_task()
        self.assertEqual((sushy.TASK_STATE_EXCEPTION, sushy.HEALTH_CRITICAL), (task.task_state, task.task_status))
        self.assertIn("HTTP 404", task.messages[0].message)

    def test_a_task_that_never_ends_can_be_deleted(self) -> None:
        self.order("redfish_task_stuck", times=1)
        client = self.connect()
        monitor = client.get_update_service().simple_update(self.serve("nic-2.0.bin"))
        self.assertTrue(monitor.check_is_processing)
        client._conn.delete(monitor.task_monitor_uri)
        self.assertRaises(sushy.exceptions.ResourceNotFoundError, monitor.refresh)
        self.assertEqual("1.0.0", self.version("NIC"))

    def test_on_the_shared_face_an_update_names_its_machine(self) -> None:
        service = self.connect(self.rack.description["redfish_url"]).get_update_service()
        image = self.serve("bios-4.0.bin")
        self.assertRaises(sushy.exceptions.BadRequestError, service.simple_update, image)
        second = self.rack.machines[1]["redfish"]["system"]
        service.simple_update(image, targets=[second]).wait(PATIENCE_S)
        self.rack.control.power(self.rack.machines[1]["name"], "on")
        self.assertEqual("4.0", self.system(address=self.rack.machines[1]["redfish"]["address"]).bios_version)
        self.assertEqual("1.0.0", self.version("BIOS"))


class EventTest(RedfishTest):
    def listen(self) -> tuple[str, list[dict[str, Any]]]:
        """Return where events are received, and those that were."""
        received: list[dict[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append({**json.loads(body), "secret": self.headers["X-Secret"]})
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}/events", received

    def test_subscriptions_get_what_happens(self) -> None:
        url, received = self.listen()
        service = self.connect().get_event_service()
        subscription = service.subscriptions.create(
            {"Destination": url, "Protocol": "Redfish", "Context": "mine", "HttpHeaders": [{"X-Secret": "s3cret"}]}
        )
        self.assertEqual((url, "mine", []), (subscription.destination, subscription.context, subscription.http_headers))
        self.rack.control.power(self.name, "on")
        self.eventually(lambda: bool(received), "an event")
        self.assertEqual(("mine", "s3cret"), (received[0]["Context"], received[0]["secret"]))
        self.assertEqual("PowerState is On", received[0]["Events"][0]["Message"])
        service.submit_test_event("1", "2026-01-01T00:00:00Z", "Alert", "a test", [], "Base.1.0.Success", "/x", "OK")
        self.eventually(lambda: len(received) > 1, "the test event")
        subscription.delete()
        self.assertEqual((), service.subscriptions.members_identities)

    def test_what_cannot_be_subscribed(self) -> None:
        subscriptions = self.connect().get_event_service().subscriptions
        for payload in (
            {"Protocol": "Redfish"},
            {"Destination": "http://x", "Protocol": "Redfish", "EventTypes": ["x"]},
        ):
            self.assertRaises(sushy.exceptions.BadRequestError, subscriptions.create, payload)
