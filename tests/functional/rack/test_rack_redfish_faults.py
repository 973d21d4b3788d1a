"""Every fault of a Redfish face that can be ordered, as a client meets it, and the habits of vendors."""

import socket
import ssl
import time
from concurrent import futures
from typing import Any, ClassVar
from urllib.parse import urlsplit

import requests
import sushy
from sushy import auth
from sushy.oem.dell import constants as dell

from tests.functional.rack.redfish_base import PATIENCE_S, RedfishTest

BASIC = auth.BasicAuth("admin", "password")


class FaultTest(RedfishTest):
    def setUp(self) -> None:
        super().setUp()
        self.session = requests.Session()
        self.session.auth, self.session.verify, self.session.trust_env = ("admin", "password"), self.ca_file, False
        self.addCleanup(self.session.close)

    def get(self, path: str = "/redfish/v1/Systems", timeout: float = PATIENCE_S) -> requests.Response:
        return self.session.get(self.address + path, timeout=timeout)

    def test_busy_says_when_to_come_again(self) -> None:
        system = self.system()
        self.order("redfish_busy", {"retry_after": 7, "method": "POST", "path": "Reset"}, times=1)
        error = self.assertRaises(sushy.exceptions.ServerSideError, system.reset_system, sushy.RESET_TYPE_ON)
        self.assertEqual(503, error.status_code)
        self.assertIn("7 seconds", error.extended_info[0]["Message"])
        self.assertEqual("off", self.rack.control.machine(self.name)["power"])
        system.reset_system(sushy.RESET_TYPE_ON)
        self.order("redfish_busy", {"retry_after": 3})
        self.assertEqual("3", self.get().headers["Retry-After"])

    def test_an_error_once(self) -> None:
        self.order("redfish_error", {"status": 500, "method": "GET"}, times=1)
        self.assertEqual([500, 200], [self.get().status_code for _ in range(2)])

    def test_an_answer_that_is_lost_after_the_work(self) -> None:
        self.order("redfish_answer_lost", {"method": "POST", "path": "Reset"}, times=1)
        self.assertRaises(sushy.exceptions.ConnectionError, self.system().reset_system, sushy.RESET_TYPE_ON)
        self.assertEqual("on", self.rack.control.machine(self.name)["power"])

    def test_a_request_that_is_held(self) -> None:
        for times, (done, power) in enumerate(((False, "off"), (True, "on")), start=1):
            self.order("redfish_held", {"method": "POST", "path": "Reset", "done": done}, times=1)
            with futures.ThreadPoolExecutor() as pool:
                asked = pool.submit(self.system().reset_system, sushy.RESET_TYPE_ON)
                self.eventually(lambda times=times: self.count_held() == times, "request that is held")
                self.assertFalse(asked.done())
                self.rack.control.clear_faults(self.name)
                self.assertIsInstance(asked.exception(PATIENCE_S), sushy.exceptions.ConnectionError)
            self.assertEqual(power, self.rack.control.machine(self.name)["power"])

    def count_held(self) -> int:
        return sum("is held" in line for line in self.rack.control.log(self.name))

    def test_silence(self) -> None:
        for fault in ("redfish_silent", "bmc_silent"):
            self.order(fault)
            where = urlsplit(self.address)
            with socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S) as raw:
                raw.settimeout(0.3)
                self.assertRaises(TimeoutError, raw.recv, 1)
            self.assertRaises(requests.ReadTimeout, self.get, timeout=0.3)
            self.rack.control.clear_faults(self.name, fault)
            self.assertEqual(200, self.get().status_code)

    def test_silence_on_the_shared_face_is_one_machines_only(self) -> None:
        self.order("redfish_silent")
        url = self.rack.description["redfish_url"]
        self.assertRaises(
            requests.ReadTimeout, self.session.get, url + self.rack.machines[0]["redfish"]["system"], timeout=0.3
        )
        other = f"{url}/redfish/v1/Systems/{self.rack.machines[1]['uuid']}"
        self.assertEqual(200, self.session.get(other, timeout=PATIENCE_S).status_code)

    def test_silence_in_the_middle_of_a_connection(self) -> None:
        self.get()
        self.order("redfish_silent")
        self.assertRaises(requests.ReadTimeout, self.get, timeout=0.3)

    def test_a_closed_port(self) -> None:
        where = urlsplit(self.address)
        self.order("redfish_port_closed")

        def refused() -> bool:
            try:
                socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S).close()
            except ConnectionRefusedError:
                return True
            return False

        self.eventually(refused, "the port to be closed")
        self.rack.control.clear_faults(self.name)
        self.eventually(lambda: not refused(), "the port to be open again")
        self.assertEqual(200, self.get().status_code)

    def test_dripping_bytes(self) -> None:
        self.order("redfish_drips", {"seconds": 0.002})
        began = time.monotonic()
        self.assertEqual(200, self.get().status_code)
        self.assertGreater(time.monotonic() - began, 0.5)

    def test_lost_sessions(self) -> None:
        login = auth.SessionAuth("admin", "password")
        system = self.system(login=login)
        before = login.get_session_key()
        self.order("redfish_sessions_lost", times=1)
        system.refresh(force=True)  # sushy opens another one
        self.assertNotEqual(before, login.get_session_key())

    def test_a_full_session_table(self) -> None:
        self.order("redfish_session_table_full")
        error = self.assertRaises(sushy.exceptions.ServerSideError, self.connect)
        self.assertTrue(error.code.endswith(".SessionLimitExceeded"))
        self.assertEqual("Off", self.system(login=BASIC).power_state.value)

    def test_the_table_is_full_of_sessions_that_are_never_closed(self) -> None:
        body = {"UserName": "admin", "Password": "password"}
        path = f"{self.address}/redfish/v1/SessionService/Sessions"
        statuses = [self.session.post(path, json=body, timeout=PATIENCE_S).status_code for _ in range(65)]
        self.assertEqual([201] * 64 + [503], statuses)

    def test_a_wrong_password(self) -> None:
        self.order("bmc_wrong_password")
        for login in (BASIC, auth.SessionAuth("admin", "password")):
            self.assertRaises(sushy.exceptions.AccessError, lambda login=login: self.system(login=login))

    def test_wrong_certificates(self) -> None:
        where = urlsplit(self.address)
        for flaw, words in (
            ("expired", "expired"),
            ("wrong-name", "IP address mismatch"),
            ("unknown-issuer", "self-signed|signature failure"),
        ):
            self.order("redfish_certificate", flaw)
            self.session.close()
            error = self.assertRaises(requests.exceptions.SSLError, self.get)
            self.assertRegex(str(error), words)
            self.assertIn("CERTIFICATE", ssl.get_server_certificate((where.hostname, where.port), timeout=PATIENCE_S))
        self.rack.control.clear_faults(self.name)
        self.assertEqual(200, self.get().status_code)

    def test_changes_that_are_accepted_and_forgotten(self) -> None:
        for fault in ("redfish_boot_ignored", "redfish_media_ignored"):
            self.order(fault)
        system = self.system()
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_NONE, system.boot.target)
        drive = system.virtual_media.get_members()[0]
        drive.insert_media("http://127.0.0.1/x.iso")
        drive.refresh(force=True)
        self.assertFalse(drive.inserted)

    def test_power_that_is_stuck(self) -> None:
        self.order("power_stuck", times=1)
        system = self.system()
        system.reset_system(sushy.RESET_TYPE_ON)
        system.refresh(force=True)
        self.assertEqual(sushy.POWER_STATE_OFF, system.power_state)


class VendorTest(RedfishTest):
    settings: ClassVar[dict[str, Any]] = {
        **RedfishTest.settings,
        "machines": 6,
        "boot_delay": 0.5,
        "machine": [
            {"redfish_vendor": vendor} for vendor in ("ilo", "dell", "supermicro", "lenovo", "cisco", "nvidia")
        ],
    }
    IMAGE = "http://127.0.0.1/x.iso"

    def vendor(self, number: int) -> Any:
        self.name = self.rack.machines[number]["name"]
        return self.system(address=self.rack.machines[number]["redfish"]["address"])

    def test_sushy_gets_media_into_the_drives_of_all_and_out_again(self) -> None:
        for number in range(6):
            manager = self.vendor(number).managers[0]
            drive = next(
                one for one in manager.virtual_media.get_members() if sushy.VIRTUAL_MEDIA_CD in one.media_types
            )
            drive.insert_media(self.IMAGE)
            drive.refresh(force=True)
            self.assertEqual((True, self.IMAGE), (drive.inserted, drive.image), number)
            drive.eject_media()
            drive.refresh(force=True)
            self.assertFalse(drive.inserted, number)

    def test_an_ilo_refuses_changes_while_its_machine_starts(self) -> None:
        system = self.vendor(0)
        self.assertEqual(("1", "HPE"), (system.identity, system.manufacturer))
        system.reset_system(sushy.RESET_TYPE_ON)
        self.assertEqual("InPost", self.vendor(0).json["Oem"]["Hpe"]["PostState"])
        error = self.assertRaises(
            sushy.exceptions.BadRequestError, system._conn._op, "PATCH", system.path, server_side_retries_left=0,
            data={"Boot": {"BootSourceOverrideTarget": "Pxe"}},
        )  # fmt: skip
        self.assertIn("iLO", error.code)

    def test_a_dell_has_a_job_queue_and_boots_media_by_its_configuration(self) -> None:
        system = self.vendor(1)
        manager = system.managers[0]
        extension = manager.get_oem_extension("Dell")
        self.assertTrue(extension.lifecycle_service.is_idrac_ready())
        extension.set_virtual_boot_device(sushy.VIRTUAL_MEDIA_CD, persistent=False, manager=manager, system=system)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_CD, system.boot.target)
        system.bios.set_attribute("ProcTurboMode", "Disabled", sushy.ApplyTime.ON_RESET)
        jobs = {one.name: one for one in extension.job_collection.get_jobs()}
        self.assertEqual("Scheduled", jobs["Configure: BIOS.Setup.1-1"].job_state)
        self.assertTrue(all(one.identity.startswith("JID_") for one in jobs.values()))
        self.assertEqual(1, len(extension.job_collection.get_unfinished_jobs()))
        extension.job_service.delete_jobs()
        self.assertEqual([], extension.job_collection.get_jobs())
        self.assertIn("Completed", dell.TERMINAL_JOB_STATES)

    def test_settings_of_a_dell_wait_for_a_job(self) -> None:
        bios = self.vendor(1).bios
        bios.set_attribute("ProcTurboMode", "Disabled")
        self.restart()
        bios.refresh(force=True)
        self.assertEqual("Enabled", bios.attributes["ProcTurboMode"])
        bios.set_attribute("ProcTurboMode", "Disabled", sushy.ApplyTime.ON_RESET)
        self.restart()

        def is_set() -> bool:
            bios.refresh(force=True)
            return bool(bios.attributes["ProcTurboMode"] == "Disabled")

        self.eventually(is_set, "setting that the job has made")

    def test_a_dell_refuses_power_on_of_a_machine_that_is_on(self) -> None:
        system = self.vendor(1)
        system.reset_system(sushy.RESET_TYPE_ON)
        error = self.assertRaises(sushy.exceptions.HTTPError, system.reset_system, sushy.RESET_TYPE_ON)
        self.assertEqual(409, error.status_code)

    def test_a_supermicro_starts_from_its_usb_cd_only(self) -> None:
        system = self.vendor(2)
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_USB_CD, system.boot.target)
        system._conn.patch(
            system.path, data={"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}
        )
        system.reset_system(sushy.RESET_TYPE_ON)
        self.assertIn("no medium", self.rack.control.wait_for_state(self.name, "hung")["reason"])

    def test_an_nvidia_has_its_boot_override_in_settings(self) -> None:
        system = self.vendor(5)
        self.assertEqual({}, system.json["Boot"])
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_PXE, system.boot.target)
