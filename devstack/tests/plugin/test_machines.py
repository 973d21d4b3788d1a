"""Machines before they are nodes: what a rack says of them, what a file lists, what the command line asks for."""

import contextlib
import io
import pathlib
from typing import Any

import fixtures
import openstack
import testtools
from plugin import machines

from ingot.rack.process import RackProcess
from tests import http_handler, patience


class RackTest(testtools.TestCase):
    """A real rack, which is asked at its control."""

    def setUp(self) -> None:
        super().setUp()
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        rack = RackProcess(place / "rack", patience.seconds(60), machines=2, nics=2, bmc_base_port=0, redfish_port=0)
        self.addCleanup(rack.stop)
        rack.start()
        self._machines = rack.machines
        self._url = str(rack.description["control_url"])

    def read(self, driver: str) -> list[machines.Machine]:
        return machines.read_rack(self._url, driver, "admin", "secret")

    def test_all_machines_with_all_cards_are_found(self) -> None:
        found = self.read("ipmi")
        self.assertEqual([one["name"] for one in self._machines], [one.name for one in found])
        self.assertEqual([tuple(one["macs"]) for one in self._machines], [one.macs for one in found])

    def test_ipmi_is_reached_at_the_port_of_the_machine(self) -> None:
        expected = {
            "ipmi_address": "127.0.0.1",
            "ipmi_port": self._machines[1]["bmc_port"],
            "ipmi_username": "admin",
            "ipmi_password": "secret",
        }
        self.assertEqual(expected, self.read("ipmi")[1].bmc)

    def test_redfish_is_reached_at_the_system_of_the_machine(self) -> None:
        face = self._machines[0]["redfish"]
        expected = {
            "redfish_address": face["address"],
            "redfish_system_id": face["system"],
            "redfish_verify_ca": False,
            "redfish_username": "admin",
            "redfish_password": "secret",
        }
        self.assertEqual(expected, self.read("redfish")[0].bmc)

    def test_another_driver_is_refused(self) -> None:
        error = self.assertRaises(machines.MachineError, self.read, "snmp")
        self.assertIn("ipmi or redfish, not as snmp", str(error))


class HardwareTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self._file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "hardware")

    def read(self, text: str, driver: str = "ipmi") -> list[machines.Machine]:
        self._file.write_text(text)
        return machines.read_hardware(self._file, driver)

    def test_each_line_is_a_machine(self) -> None:
        found = self.read("# rack 1\n192.0.2.7 52:54:00:AA:00:01 root calvin\n\n192.0.2.8 52:54:00:aa:00:02 root x y\n")
        self.assertEqual([("node-1", ("52:54:00:aa:00:01",)), ("node-3", ("52:54:00:aa:00:02",))],
                         [(one.name, one.macs) for one in found])  # fmt: skip
        expected = {"ipmi_address": "192.0.2.7", "ipmi_username": "root", "ipmi_password": "calvin"}
        self.assertEqual(expected, found[0].bmc)

    def test_other_types_are_reached_by_redfish(self) -> None:
        (found,) = self.read("https://192.0.2.7 52:54:00:aa:00:01 root calvin", "idrac")
        self.assertEqual("https://192.0.2.7", found.bmc["redfish_address"])
        self.assertEqual("root", found.bmc["redfish_username"])

    def test_a_line_that_lacks_something_is_named(self) -> None:
        error = self.assertRaises(
            machines.MachineError, self.read, "192.0.2.7 52:54:00:aa:00:01 root calvin\n192.0.2.8\n"
        )
        self.assertIn("hardware, line 2: it needs BMC address, MAC address, user and password", str(error))

    def test_a_file_that_is_not_there_is_named(self) -> None:
        error = self.assertRaises(machines.MachineError, machines.read_hardware, self._file, "ipmi")
        self.assertIn(f"IRONIC_HWINFO_FILE {self._file}: No such file", str(error))

    def test_no_password_is_shown(self) -> None:
        self.assertNotIn("calvin", repr(self.read("192.0.2.7 52:54:00:aa:00:01 root calvin")))


_PLACEMENT = {
    "id": "v1.0",
    "links": [{"rel": "self", "href": ""}],
    "status": "CURRENT",
    "min_version": "1.0",
    "max_version": "1.39",
}
"""What Placement says of itself."""


class PlacementTest(testtools.TestCase):
    def test_machines_that_can_be_had_are_counted(self) -> None:
        asked = []

        def answer(request: http_handler.Handler) -> None:
            if not request.path.startswith("/resource_providers"):
                request.answer(200, {"versions": [_PLACEMENT]})
                return
            asked.append(f"{request.path} {request.headers['OpenStack-API-Version']}")
            request.answer(200, {"resource_providers": [{"uuid": "a"}]})

        url = self.useFixture(http_handler.FunctionServer(answer)).url.removesuffix("/file")
        cloud = openstack.connect(auth_type="none", auth={"endpoint": url}, placement_endpoint_override=url)
        self.addCleanup(cloud.close)
        self.assertEqual(1, machines.count_offered(cloud.placement, "gold-2", ["CUSTOM_A", "CUSTOM_B"]))
        expected = "/resource_providers?resources=CUSTOM_GOLD_2%3A1&required=CUSTOM_A%2CCUSTOM_B placement 1.18"
        self.assertEqual([expected], asked)


class CommandTest(testtools.TestCase):
    def fields(self, *more: str) -> dict[str, Any]:
        words = ["enroll", "--cloud", "x", "--rack", "http://127.0.0.1:1", "--driver", "ipmi", "--kernel", "k"]
        return machines.common_fields(machines.parser().parse_args([*words, "--ramdisk", "r", *more]))

    def test_what_is_not_given_is_not_set(self) -> None:
        fields = self.fields()
        self.assertEqual({"deploy_kernel": "k", "deploy_ramdisk": "r"}, fields["driver_info"])
        self.assertEqual({"driver", "driver_info", "properties"}, set(fields))
        self.assertEqual({"capabilities": "boot_mode:uefi"}, fields["properties"])

    def test_facts_are_properties(self) -> None:
        fields = self.fields("--cpus", "4", "--memory", "4096", "--disk", "10", "--arch", "x86_64", "--shard", "s")
        self.assertEqual("s", fields["shard"])
        self.assertEqual((4, 4096, 10, "x86_64"), tuple(fields["properties"][name] for name in
                         ("cpus", "memory_mb", "local_gb", "cpu_arch")))  # fmt: skip

    def test_cards_are_cabled_to_ports_of_the_switch(self) -> None:
        words = ["enroll", "--cloud", "x", "--rack", "http://127.0.0.1:1", "--driver", "ipmi"]
        bare = machines.parser().parse_args(words)
        self.assertEqual({}, machines.cabling(bare).describe("machine-0", 1))
        words += ["--switch-info", "leaf", "--switch-id", "02:00:00:00:00:01", "--physical-network", "rack"]
        link = {"switch_info": "leaf", "switch_id": "02:00:00:00:00:01", "port_id": "machine-0-1"}
        expected = {"local_link_connection": link, "physical_network": "rack"}
        self.assertEqual(expected, machines.cabling(machines.parser().parse_args(words)).describe("machine-0", 1))

    def test_a_cloud_that_is_unknown_is_an_error_and_no_traceback(self) -> None:
        said = io.StringIO()
        self.useFixture(fixtures.EnvironmentVariable("OS_CLIENT_CONFIG_FILE", "/nonexistent/clouds.yaml"))
        with contextlib.redirect_stderr(said):
            status = machines.main(["wait", "--cloud", "nowhere", "--conductors", "1"])
        self.assertEqual(1, status)
        self.assertIn("machines.py: Cloud nowhere was not found", said.getvalue())
