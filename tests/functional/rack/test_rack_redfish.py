"""The Redfish face of a machine, driven by sushy: what is read, and what each action does to the machine."""

import datetime

import requests
import sushy
from sushy import auth

from tests.functional import redfish_emulator
from tests.functional.rack.redfish_base import RedfishTest, boot_image

_PROSE = {"@odata.context", "@Redfish.Copyright", "Description", "Oem"}


class ReadingTest(RedfishTest):
    def test_a_face_of_its_own_has_one_machine_and_the_shared_one_all(self) -> None:
        self.assertEqual(1, len(self.connect().get_system_collection().members_identities))
        shared = self.connect(self.rack.description["redfish_url"])
        self.assertEqual(2, len(shared.get_system_collection().members_identities))
        for machine in self.rack.machines:
            system = shared.get_system(f"/redfish/v1/Systems/{machine['uuid']}")
            self.assertEqual(machine["uuid"], system.uuid)
            self.assertEqual([machine["uuid"]], [one.identity for one in system.managers])

    def test_every_link_leads_to_a_resource(self) -> None:
        session = requests.Session()
        session.auth, session.verify, session.trust_env = ("admin", "password"), self.ca_file, False
        self.addCleanup(session.close)
        for address in (self.address, self.rack.description["redfish_url"]):
            seen, left = set(), ["/redfish/v1/"]
            while left:
                path = left.pop()
                if path in seen:
                    continue
                seen.add(path)
                answer = session.get(address + path, timeout=10)
                self.assertEqual(200, answer.status_code, path)
                self.assertEqual(path.rstrip("/"), answer.json()["@odata.id"].rstrip("/"))
                left += [found for found in _links(answer.json()) if found not in seen]
            self.assertGreater(len(seen), 70)

    def test_what_a_system_is(self) -> None:
        system, machine = self.system(), self.rack.machines[0]
        self.assertEqual((machine["name"], "Ingot", "rack"), (system.name, system.manufacturer, system.model))
        self.assertEqual(4, system.memory_summary.size_gib)
        processor = system.processors.get_members()[0]
        self.assertEqual(
            (2, sushy.ProcessorArchitecture.X86), (processor.total_cores, processor.processor_architecture)
        )
        cards = system.ethernet_interfaces
        self.assertEqual([mac.upper() for mac in machine["macs"]], list(cards.summary))
        self.assertEqual(256 * 2**20, system.simple_storage.max_size_bytes)
        self.assertEqual([256 * 2**20] * 2, system.storage.drives_sizes_bytes)
        expanded = system.storage_expanded.get_members()[0]
        self.assertEqual({"OK"}, {drive.status.health.value for drive in expanded.drives})

    def test_sensors_follow_the_power(self) -> None:
        chassis = self.system().chassis[0]
        off = {one.name: one.reading_celsius for one in chassis.thermal.temperatures}
        self.assertEqual([0, 0], [fan.reading for fan in chassis.thermal.fans])
        self.rack.control.power(self.name, "on")
        chassis = self.system().chassis[0]
        hot = {one.name: one.reading_celsius for one in chassis.thermal.temperatures}
        self.assertGreater(hot["CPU 1"], off["CPU 1"])
        self.assertEqual(2, len(chassis.power.power_supplies))
        self.assertEqual(sushy.POWER_STATE_ON, chassis.power_state)

    def test_a_switch_says_where_a_card_is(self) -> None:
        (adapter,) = self.system().chassis[0].network_adapters.get_members()
        lldp = adapter.ports.get_members()[0].ethernet.lldp_receive
        self.assertEqual(("Ethernet0/1", "rack-switch"), (lldp.port_id, lldp.system_name))

    def test_a_failed_drive_is_seen(self) -> None:
        self.order("drive_failed")
        system = self.system()
        health = [drive.status.health for drive in system.storage.get_members()[0].drives]
        self.assertEqual([sushy.HEALTH_CRITICAL, sushy.HEALTH_OK], health)
        self.assertEqual(sushy.HEALTH_CRITICAL, system.status.health)


class SessionTest(RedfishTest):
    def test_a_session_lasts_until_it_is_closed(self) -> None:
        login = auth.SessionAuth("admin", "password")
        client = self.connect(login=login)
        sessions = client.get_session_service().sessions
        self.assertEqual([login.get_session_resource_id()], list(sessions.members_identities))
        token = {"X-Auth-Token": login.get_session_key()}
        ask = lambda: requests.get(f"{self.address}/redfish/v1/Systems", headers=token, verify=self.ca_file, timeout=9)  # noqa: E731
        self.assertEqual(200, ask().status_code)
        login.close()
        self.assertEqual(401, ask().status_code)

    def test_a_wrong_password(self) -> None:
        for login in (auth.SessionAuth("admin", "no"), auth.BasicAuth("admin", "no")):
            error = self.assertRaises(sushy.exceptions.AccessError, lambda login=login: self.system(login=login))
            self.assertTrue(error.code.endswith(".NoValidSession"), error.code)
        self.assertEqual("Off", self.system(login=auth.BasicAuth("admin", "password")).power_state.value)

    def test_tls_is_verified(self) -> None:
        self.assertRaises(sushy.exceptions.ConnectionError, self.connect, verify=True)

    def test_errors_say_what_is_wrong_with_what(self) -> None:
        system = self.system()
        error = self.assertRaises(
            sushy.exceptions.BadRequestError, system._conn.patch, system.path, data={"IndicatorLED": "Red"}
        )
        self.assertTrue(error.code.endswith(".PropertyValueNotInList"))
        self.assertEqual(["#/IndicatorLED"], error.related_properties)
        self.assertIn("Red", error.extended_info[0]["Message"])
        self.assertRaises(sushy.exceptions.ResourceNotFoundError, self.connect().get_system, "/redfish/v1/Systems/x")
        stale = system._conn.get(system.path).headers["ETag"]
        system.set_indicator_led(sushy.INDICATOR_LED_LIT)
        answer = requests.patch(
            self.address + system.path, json={"AssetTag": "x"}, headers={"If-Match": stale},
            auth=("admin", "password"), verify=self.ca_file, timeout=10,
        )  # fmt: skip
        self.assertEqual(412, answer.status_code)


class PowerTest(RedfishTest):
    def test_every_reset_type(self) -> None:
        system = self.system()
        self.assertEqual(9, len(system.get_allowed_reset_system_values()))
        for kind, power, boots in (
            (sushy.RESET_TYPE_ON, "on", 1),
            (sushy.RESET_TYPE_FORCE_RESTART, "on", 2),
            (sushy.RESET_TYPE_POWER_CYCLE, "on", 3),
            (sushy.RESET_TYPE_NMI, "on", 3),
            (sushy.RESET_TYPE_FORCE_OFF, "off", 3),
            (sushy.RESET_TYPE_FORCE_ON, "on", 4),
            (sushy.RESET_TYPE_FORCE_OFF, "off", 4),
            (sushy.RESET_TYPE_PUSH_POWER_BUTTON, "on", 5),
        ):
            system.reset_system(kind)
            machine = self.rack.control.machine(self.name)
            self.assertEqual((power, boots), (machine["power"], machine["boots"]), kind)
            system.refresh(force=True)
            self.assertEqual(power, system.power_state.value.lower())

    def test_graceful_ones_wait_for_what_runs(self) -> None:
        system = self.system()
        self.boot_agent()
        self.rack.control.wait_for_state(self.name, "agent")
        system.reset_system(sushy.RESET_TYPE_GRACEFUL_RESTART)
        self.rack.control.wait_for(self.name, lambda machine: bool(machine["boots"] == 2))
        self.rack.control.wait_for_state(self.name, "agent")
        system.reset_system(sushy.RESET_TYPE_GRACEFUL_SHUTDOWN)
        self.rack.control.wait_for_state(self.name, "off")

    def test_without_power_nothing_restarts(self) -> None:
        system = self.system()
        for kind in (sushy.RESET_TYPE_FORCE_RESTART, sushy.RESET_TYPE_NMI, sushy.RESET_TYPE_GRACEFUL_RESTART):
            error = self.assertRaises(sushy.exceptions.HTTPError, system.reset_system, kind)
            self.assertTrue(error.code.endswith(".ResourceInStandby"))

    def test_both_faces_show_one_machine(self) -> None:
        system = self.system()
        system.reset_system(sushy.RESET_TYPE_ON)
        self.assertEqual("Chassis Power is on\n", self.ipmitool("power", "status").stdout)
        self.ipmitool("power", "off")  # a machine that starts would use up what comes next
        system.refresh(force=True)
        self.assertEqual("Off", system.power_state.value)
        self.ipmitool("chassis", "bootdev", "pxe", "options=efiboot")
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_PXE, system.boot.target)
        self.assertEqual(sushy.BOOT_SOURCE_MODE_UEFI, system.boot.mode)


class BootTest(RedfishTest):
    def test_an_override_once_is_used_up_and_a_lasting_one_stays(self) -> None:
        system = self.system()
        for target, frequency, left in (
            (sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE, sushy.BOOT_SOURCE_ENABLED_DISABLED),
            (sushy.BOOT_SOURCE_TARGET_HDD, sushy.BOOT_SOURCE_ENABLED_CONTINUOUS, sushy.BOOT_SOURCE_ENABLED_CONTINUOUS),
        ):
            system.set_system_boot_options(target, frequency, sushy.BOOT_SOURCE_MODE_UEFI)
            system.refresh(force=True)
            self.assertEqual((target, frequency), (system.boot.target, system.boot.enabled))
            self.restart()
            self.eventually(lambda: self.rack.control.machine(self.name)["state"] != "firmware", "the start")
            system.refresh(force=True)
            self.assertEqual(left, system.boot.enabled)
        system.set_system_boot_options(enabled=sushy.BOOT_SOURCE_ENABLED_DISABLED)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_NONE, system.boot.target)

    def test_the_mode_is_kept_with_and_without_an_override(self) -> None:
        system = self.system()
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.set_system_boot_options(mode=sushy.BOOT_SOURCE_MODE_BIOS)
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_TARGET_PXE, system.boot.target)
        self.restart()
        self.eventually(lambda: self.rack.control.machine(self.name)["state"] != "firmware", "the start")
        system.refresh(force=True)
        self.assertEqual(sushy.BOOT_SOURCE_ENABLED_DISABLED, system.boot.enabled)
        self.assertEqual(sushy.BOOT_SOURCE_MODE_BIOS, system.boot.mode)
        self.assertEqual("LegacyBios", system.bios.attributes["BootMode"])

    def insert(self, arguments: str) -> str:
        self.service.files["/boot.iso"] = boot_image(arguments)
        return f"{self.service.url}/boot.iso"

    def test_virtual_media_start_the_agent(self) -> None:
        system = self.system()
        (drive,) = (one for one in system.virtual_media.get_members() if sushy.VIRTUAL_MEDIA_CD in one.media_types)
        drive.insert_media(self.insert(f"ipa-api-url={self.service.url} ipa-debug=1"))
        drive.refresh(force=True)
        self.assertEqual((True, "boot.iso", True), (drive.inserted, drive.image_name, drive.write_protected))
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.reset_system(sushy.RESET_TYPE_ON)
        self.service.wait_for_heartbeat()
        self.assertFalse([path for path in self.service.requests if "/boot/ipxe" in path])
        drive.eject_media()
        drive.refresh(force=True)
        self.assertEqual((False, None), (drive.inserted, drive.image))

    def test_or_a_live_system_and_so_does_a_boot_by_http(self) -> None:
        system, url = self.system(), self.insert("root=live")
        system.set_system_boot_options(
            sushy.BOOT_SOURCE_TARGET_UEFI_HTTP, sushy.BOOT_SOURCE_ENABLED_ONCE, http_boot_uri=url
        )
        system.reset_system(sushy.RESET_TYPE_ON)
        self.assertIn(url, self.rack.control.wait_for_state(self.name, "os")["reason"])
        system.managers[0].virtual_media.get_members()[0].insert_media(url)
        system.refresh(force=True)
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
        self.restart()
        self.assertIn(url, self.rack.control.wait_for_state(self.name, "os")["reason"])

    def test_an_image_that_is_gone_starts_nothing(self) -> None:
        system = self.system()
        system.virtual_media.get_members()[0].insert_media(f"{self.service.url}/gone.iso")
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
        system.reset_system(sushy.RESET_TYPE_ON)
        self.assertIn("HTTP 404", self.rack.control.wait_for_state(self.name, "hung")["reason"])


class ManagerTest(RedfishTest):
    def test_a_reset_ends_sessions_and_leaves_the_machine_alone(self) -> None:
        system = self.system()
        system.reset_system(sushy.RESET_TYPE_ON)
        manager = system.managers[0]
        manager.reset_manager(sushy.RESET_TYPE_FORCE_RESTART)
        self.eventually(lambda: self._away(), "the restart")
        self.eventually(lambda: not self._away(), "its end")
        self.assertEqual([], [one for one in self.sessions() if one == system.root._auth.get_session_resource_id()])
        system.refresh(force=True)
        self.assertEqual(sushy.POWER_STATE_ON, system.power_state)

    def _away(self) -> bool:
        try:
            requests.get(f"{self.address}/redfish/v1/", verify=self.ca_file, timeout=5)
        except requests.ConnectionError:
            return True
        return False

    def sessions(self) -> list[str]:
        client = self.connect(login=auth.BasicAuth("admin", "password"))
        return list(client.get_session_service().sessions.members_identities)

    def test_the_clock_is_set(self) -> None:
        manager = self.connect().get_manager()
        manager.set_datetime("2030-01-02T03:04:05+00:00", "+02:00")
        found = datetime.datetime.fromisoformat(manager.datetime)
        self.assertLess(abs((found - datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)).total_seconds()), 60)
        self.assertEqual("+02:00", manager.datetimelocaloffset)


class EmulatorTest(RedfishTest):
    """What sushy reads of the rack and of sushy-tools' emulator has one shape where both serve it."""

    def test_resources_have_the_same_properties_and_actions(self) -> None:
        emulator = self.useFixture(redfish_emulator.Emulator())
        theirs = sushy.Sushy(emulator.url).get_system()
        ours = self.system()
        for name in ("json", "virtual_media.json", "ethernet_interfaces.json"):
            self.assertEqual(set(), self.properties(theirs, name) - self.properties(ours, name), name)
        cards = [one.ethernet_interfaces.get_members()[0].json for one in (theirs, ours)]
        self.assertEqual(set(), set(cards[0]) - set(cards[1]) - _PROSE)
        self.assertEqual(set(), set(theirs.json["Actions"]) - set(ours.json["Actions"]))
        self.assertLessEqual(
            theirs.get_allowed_system_boot_source_values(), ours.get_allowed_system_boot_source_values()
        )
        self.assertLessEqual(theirs.get_allowed_reset_system_values(), ours.get_allowed_reset_system_values())
        drive, other = (one.virtual_media.get_members()[0].json for one in (theirs, ours))
        self.assertEqual({"Certificates"}, set(drive) - set(other) - _PROSE)

    def properties(self, system: object, name: str) -> set[str]:
        found = system
        for part in name.split("."):
            found = getattr(found, part)
        return set(found) - _PROSE


def _links(value: object) -> list[str]:
    if isinstance(value, list):
        return [found for one in value for found in _links(one)]
    if not isinstance(value, dict):
        return []
    here = [value["@odata.id"]] if "@odata.id" in value else []
    return here + [found for one in value.values() for found in _links(one)]
