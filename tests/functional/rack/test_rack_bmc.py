"""The BMCs as seen by clients from outside this project: ipmitool and, in another process, pyghmi."""

from pyghmi import exceptions
from pyghmi.ipmi import command

from tests.functional.rack.base import RackTest


class IpmitoolTest(RackTest):
    def bootparam(self) -> str:
        return self.ipmitool("chassis", "bootparam", "get", "5").stdout

    def test_power(self) -> None:
        for words, state in (("on", "on"), ("reset", "on"), ("cycle", "on"), ("off", "off"), ("off", "off")):
            self.assertEqual(0, self.ipmitool("power", words).returncode, words)
            self.assertEqual(f"Chassis Power is {state}\n", self.ipmitool("power", "status").stdout, words)
        self.assertEqual(3, self.rack.control.machine(self.name)["boots"])

    def test_what_makes_no_sense_when_off_is_refused(self) -> None:
        for action in ("cycle", "reset", "soft"):
            refused = self.ipmitool("power", action)
            self.assertEqual(1, refused.returncode)
            self.assertIn("not supported in present state", refused.stderr)

    def test_the_power_button_is_noticed_by_a_running_agent_only(self) -> None:
        self.boot_agent()
        self.assertEqual(0, self.ipmitool("power", "soft").returncode)
        self.rack.control.wait_for_state(self.name, "off")
        self.rack.control.set_boot_device(self.name, "disk")
        self.rack.control.power(self.name, "on")
        self.rack.control.wait_for_state(self.name, "hung")
        self.assertEqual(0, self.ipmitool("power", "soft").returncode)
        self.assertEqual("Chassis Power is on\n", self.ipmitool("power", "status").stdout)

    def test_boot_device_flags(self) -> None:
        self.ipmitool("chassis", "bootdev", "pxe", "options=persistent,efiboot")
        for text in ("all future boots", "BIOS EFI boot", "Force PXE"):
            self.assertIn(text, self.bootparam())
        self.ipmitool("chassis", "bootdev", "disk")
        for text in ("only next boot", "BIOS PC Compatible", "Force Boot from default Hard-Drive"):
            self.assertIn(text, self.bootparam())

    def test_a_device_for_one_boot_is_used_up_and_the_persistent_one_stays(self) -> None:
        self.ipmitool("chassis", "bootdev", "pxe", "options=persistent")
        self.ipmitool("chassis", "bootdev", "disk")
        self.ipmitool("power", "on")
        machine = self.rack.control.wait_for_state(self.name, "hung")
        self.assertIn("no disk has a boot sector", machine["reason"])
        self.assertEqual({"device": "pxe", "persistent": True, "efi": False}, machine["boot_device"])
        self.ipmitool("power", "reset")
        self.rack.control.wait_for_state(self.name, "agent")

    def test_sensors(self) -> None:
        listed = self.ipmitool("sdr", "elist").stdout
        for part in ("Inlet Temp", "19 degrees C", "1000 RPM", "12 Volts", "Drive 0"):
            self.assertIn(part, listed)
        thresholds = self.ipmitool("sensor", "get", "Inlet Temp").stdout
        for part in ("Upper Critical        : 42.000", "Lower Non-Critical    : 5.000", "Status                : ok"):
            self.assertIn(part, thresholds)
        self.rack.control.order_fault(self.name, "too_hot")
        self.rack.control.order_fault(self.name, "drive_failed")
        listed = self.ipmitool("sdr", "elist").stdout
        for part in ("99 degrees C", "ucr", "Drive Fault"):
            self.assertIn(part, listed)

    def test_what_happened_is_in_the_log_until_it_is_cleared(self) -> None:
        for words in ("on", "off"):
            self.ipmitool("power", words)
        lines = self.ipmitool("sel", "list").stdout.splitlines()
        self.assertEqual(2, len(lines))
        self.assertIn("Power Unit", lines[1])
        self.assertIn("Entries          : 2", self.ipmitool("sel", "info").stdout)
        self.ipmitool("sel", "clear")
        self.assertEqual("", self.ipmitool("sel", "list").stdout)

    def test_the_light_that_identifies_the_machine(self) -> None:
        for words, bits in ((("force",), 2), (("0",), 0), (("30",), 1)):
            self.assertEqual(0, self.ipmitool("chassis", "identify", *words).returncode)
            status = self.ipmitool("raw", "0x00", "0x01").stdout.split()
            self.assertEqual(bits, int(status[2], 16) >> 4 & 3)

    def test_guid_is_the_machines_uuid(self) -> None:
        self.assertIn(self.rack.machines[0]["uuid"], self.ipmitool("mc", "guid").stdout)

    def test_wrong_password(self) -> None:
        refused = self.ipmitool("power", "status", password="guess")
        self.assertEqual(1, refused.returncode)
        self.assertIn("Unable to establish IPMI v2 / RMCP+ session", refused.stderr)


class PyghmiTest(RackTest):
    def login(self, index: int = 0, userid: str = "admin", password: str = "password") -> command.Command:
        port = self.rack.machines[index]["bmc_port"]
        # Bytes: given text, pyghmi's client never forgets a session and cannot log in a second time.
        made = command.Command(bmc="127.0.0.1", port=port, userid=userid.encode(), password=password.encode())
        self.addCleanup(made.ipmi_session.logout)
        return made

    def test_power_and_boot_device(self) -> None:
        client = self.login()
        self.assertEqual("off", client.get_power()["powerstate"])
        client.set_bootdev("network", persist=True, uefiboot=True)
        device = client.get_bootdev()
        self.assertEqual(("network", True, True), (device["bootdev"], device["persistent"], device["uefimode"]))
        self.assertEqual("on", client.set_power("on", wait=True)["powerstate"])

    def test_a_new_session_with_one_bmc_leaves_those_with_others_alone(self) -> None:
        first, second = self.login(0), self.login(1)
        first.ipmi_session.logout()
        again = self.login(0)
        self.assertEqual("off", second.get_power()["powerstate"])
        self.assertEqual("off", again.get_power()["powerstate"])

    def test_wrong_credentials_are_refused_at_once(self) -> None:
        self.assertRaisesRegex(exceptions.IpmiException, "Incorrect password", self.login, password="guess")
        self.assertRaisesRegex(exceptions.IpmiException, "Unauthorized name", self.login, userid="missing")
