"""Inspection hooks: what they make of inventories beside Ironic's own, and of what hostile machines send."""

import json
import pathlib
import time
from typing import Any

import sqlalchemy as sa

from ingot.common import errors, states
from ingot.conductor.inspection import lldp
from ingot.conductor.inspection.hooks import loading
from ingot.db import inventory, models
from tests import database
from tests.inspection_cases import CASES, LLDPD, MAC
from tests.unit.conductor import test_inspection

CARDS = {"interfaces": [{"name": "eth0", "mac_address": MAC}]}
RECORDED = pathlib.Path(__file__).parents[2] / "ironic_hooks.json"

DIFFERENT = {
    **dict.fromkeys(
        ("lldpd", "TLVs in the inventory"), "10GBASE-T and newer types of ports are shown; Ironic leaves the TLV out"
    ),
    "a switch of a data center": "10BASE-T full duplex is shown by its own bit, and newer types of ports are known",
    "a hostile switch": "what is malformed is left out; Ironic's inspection ends with AttributeError",
    "short records": "a record that is too short is left out; Ironic keeps an empty object of its part",
}
"""Cases of which Ingot makes something else than Ironic, and why. Each row must be true: none outlives its reason."""


class HooksCase(test_inspection.InspectionCase):
    known = (MAC,)

    def setUp(self) -> None:
        super().setUp()
        self.port_columns: dict[str, Any] = {}
        self.before: dict[str, Any] | None = None

    def run_case(self, case: dict[str, Any]) -> dict[str, Any]:
        """Return what Ingot makes of a case, in the form of Ironic's recorded results."""
        for name, value in case.get("options", {}).items():
            self.conf.set_override(name, value, group="inspector")
        self.conf.set_override("hooks", ["validate-interfaces", case["hook"]], group="inspector")
        self.port_columns = case.get("port", {})
        self.before = case.get("before")
        node = self.inspect(case["inventory"], case.get("plugin_data"), properties=case.get("properties", {}))
        for name in case.get("options", {}):
            self.conf.clear_override(name, group="inspector")
        if node.provision_state != states.MANAGEABLE:
            return {"error": node.last_error}
        port, data = self.ports()[MAC], self.plugin_data()
        for name in ("all_interfaces", "valid_interfaces", "macs"):
            data.pop(name, None)
        link, network = port.local_link_connection, port.physical_network
        return {"properties": node.properties, "plugin_data": data, "link": link, "network": network}

    def make_known(self, address: str) -> None:
        database.make_port(self.db, self.node, address=address, **self.port_columns)
        if self.before is not None:
            inventory.save(self.db, self.node.id, self.before, {})


class TestBesideIronic(HooksCase):
    def test_each_case(self) -> None:
        recorded = json.loads(RECORDED.read_text())["results"]
        self.assertEqual(set(CASES), set(recorded), "run devstack/record_ironic_hooks.py")
        for name, case in CASES.items():
            made, theirs = self.run_case(case), recorded[name]
            with self.db.single() as connection:  # addresses are unique
                connection.execute(sa.delete(models.table(models.Port)))
            if name in DIFFERENT:
                self.assertNotEqual(theirs, made, name)
            elif "error" in theirs:
                self.assertIn("error", made, name)
            else:
                self.assertEqual(theirs, made, name)


class TestHostileMachines(HooksCase):
    def data_of(self, hook: str, inventory: dict[str, Any] | None = None, **plugin_data: Any) -> Any:
        with self.db.single() as connection:
            connection.execute(sa.delete(models.table(models.Port)))
        made = self.run_case({"hook": hook, "inventory": {**CARDS, **(inventory or {})}, "plugin_data": plugin_data})
        self.assertNotIn("error", made)
        return made

    def test_anything_may_stand_for_what_switches_say(self) -> None:
        for raw in (7, "x", [1], {"eth0": 7}, {"eth0": "0102"}, {"eth0": {"a": 1}}, {"eth0": [[True, "00"], [1], 7]}):
            for hook in ("parse-lldp", "local-link-connection"):
                made = self.data_of(hook, lldp_raw=raw)
                self.assertEqual(({}, None), (made["link"], made["plugin_data"].get("parsed_lldp")), raw)

    def test_cards_without_end(self) -> None:
        cards = [{"name": f"eth{n}", "mac_address": MAC, "lldp": LLDPD} for n in range(500)]
        found = self.data_of("parse-lldp", {"interfaces": cards})["plugin_data"]["parsed_lldp"]
        self.assertEqual(64, len(found))

    def test_tlvs_without_end(self) -> None:
        vlans = [[127, f"0080c203{number:04x}0131"] for number in range(5000)]
        found = self.data_of("parse-lldp", lldp_raw={"eth0": vlans})["plugin_data"]["parsed_lldp"]
        self.assertEqual(512, len(found["eth0"]["switch_port_vlans"]))

    def test_names_that_are_none(self) -> None:
        tlvs = [[5, b"leaf\0".hex()], [4, b"\0\1".hex()], [6, b"\xff\xfe".hex()], [2, "07" + b"a\x1b[2Jb".hex()]]
        found = self.data_of("parse-lldp", lldp_raw={"eth0": tlvs})["plugin_data"]["parsed_lldp"]
        self.assertEqual({"switch_system_name": "leaf", "switch_port_id": "a[2Jb"}, found["eth0"])

    def test_what_a_bmc_has_heard_stays(self) -> None:
        known = {"52:54:00:00:00:09": {"switch_port_id": "1"}}
        self.assertEqual(known, self.data_of("parse-lldp", parsed_lldp=known)["plugin_data"]["parsed_lldp"])

    def test_devices_that_are_none(self) -> None:
        for devices in (7, [7], [{"vendor_id": 1, "product_id": []}], [{"vendor_id": "10de"}]):
            for hook in ("pci-devices", "accelerators"):
                self.assertEqual({}, self.data_of(hook, pci_devices=devices)["properties"], devices)

    def test_accelerators_without_end(self) -> None:
        device = {"vendor_id": "10de", "product_id": "1eb8", "bus": "x"}
        made = self.run_case(
            {**CASES["accelerators"], "plugin_data": {"pci_devices": [device] * 257}, "properties": {"a": 1}}
        )
        self.assertIn("found 257 accelerators", made["error"])

    def test_disks_that_are_none(self) -> None:
        for disks in (7, [7], [{"size": "x", "serial": 7}], [{"name": None}]):
            made = self.data_of("raid-device", {"disks": disks})
            self.assertEqual({}, made["properties"])
            made = self.data_of("root-device", {"disks": disks}, root_disk=disks)
            self.assertEqual({"local_gb": 0}, made["properties"])

    def test_numbers_without_end(self) -> None:
        data = [["a", "b", "c", "9" * 5000], ["a", "b", "d", "9" * 19], ["a", "b", "e", "-12"], ["a", "b", "f", [1]]]
        data += [["a", "b", "g", "--5"], ["a", "b", "h", "+"], ["a", "b", "i", "\u0663"]]
        found = self.data_of("extra-hardware", data=data)["plugin_data"]["extra"]["a"]["b"]
        texts = {"c": "9" * 5000, "d": "9" * 19, "g": "--5", "h": "+", "i": "\u0663"}
        self.assertEqual({**texts, "e": -12, "f": [1]}, found)

    def test_disks_without_end(self) -> None:
        disks = [{"size": 1024**3, "name": name} for name in ("a", *(f"b{number}" for number in range(20_000)))]
        hints = {"skip_block_devices": [{"name": "<in> b"}], "root_device": {"size": ">= 1"}}
        begun = time.process_time()
        made = self.run_case({"hook": "root-device", "inventory": {**CARDS, "disks": disks}, "properties": hints})
        self.assertLess(time.process_time() - begun, 3)
        self.assertEqual({"size": 1024**3, "name": "a"}, made["plugin_data"]["root_disk"])

    def test_sizes_that_are_none_are_refused(self) -> None:
        hints = {"root_device": {"size": "<range-in> [1.2.3 4]"}}
        made = self.run_case({"hook": "root-device", "inventory": {**CARDS, "disks": []}, "properties": hints})
        self.assertIn("properties.root_device.size is '<range-in> [1.2.3 4]'", made["error"])

    def test_flags_that_are_none(self) -> None:
        self.assertEqual({}, self.data_of("cpu-capabilities", {"cpu": {"flags": [7, {}, "vmx\n"]}})["properties"])


class TestPortsThatGo(test_inspection.InspectionCase):
    known = (test_inspection.ETH1, test_inspection.ETH2)

    def test_which_ports_stay(self) -> None:
        eth0, eth1, eth2 = test_inspection.ETH0, test_inspection.ETH1, test_inspection.ETH2
        for kept, expected in (("all", {eth0, eth1, eth2}), ("present", {eth0, eth1}), ("added", {eth0})):
            self.conf.set_override("keep_ports", kept, group="inspector")
            self.assertIsNone(self.inspect().last_error)
            self.assertEqual(expected, set(self.ports()), kept)
            with self.db.single() as connection:
                connection.execute(sa.delete(models.table(models.Port)))

    def test_a_port_with_a_network_stays(self) -> None:
        self.conf.set_override("keep_ports", "present", group="inspector")
        self.vif = {"tenant_vif_port_id": "a"}
        self.inspect()
        self.assertIn(test_inspection.ETH2, self.ports())

    vif: dict[str, str] | None = None

    def make_known(self, address: str) -> None:
        database.make_port(self.db, self.node, address=address, internal_info=self.vif or {})


class TestOptions(HooksCase):
    def refused(self, **options: Any) -> list[str]:
        for name, value in options.items():
            self.conf.set_override(name, value, group="inspector")
        return self.assertRaises(errors.ConfigurationError, loading.Hooks, self.conf).messages

    def test_all_that_is_wrong_is_said_at_once(self) -> None:
        file = "/nowhere/devices.yaml"
        messages = self.refused(
            hooks=[
                "parse-lldp",
                "nonsense",
                "local-link-connection",
                "physical-network",
                "pci-devices",
                "accelerators",
            ],
            physical_network_cidr_map=["10.0.0.1/24:a"],
            pci_device_alias=['{"vendor_id": 1}'],
            known_accelerators=file,
        )
        self.assertEqual(5, len(messages), messages)
        for part in ("nonsense", "needs validate-interfaces before", "10.0.0.1/24:a", '{"vendor_id": 1}', file):
            self.assertTrue(any(part in one for one in messages), part)

    def test_networks_have_names(self) -> None:
        for entry in ("10.0.0.0/24", "10.0.0.0/24:", f"10.0.0.0/24:{'x' * 65}"):
            hooks = ["validate-interfaces", "physical-network"]
            self.assertIn(entry, self.refused(hooks=hooks, physical_network_cidr_map=[entry])[0])


class TestTexts(HooksCase):
    def test_identities(self) -> None:
        for kind, value, expected in (
            (lldp.CHASSIS_ID, "05017f000001", (False, "127.0.0.1")),
            (lldp.CHASSIS_ID, "0506525400000001", (False, "52:54:00:00:00:01")),
            (lldp.CHASSIS_ID, "050301", (False, None)),
            (lldp.PORT_ID, "03525400000001", (True, "52:54:00:00:00:01")),
            (lldp.PORT_ID, "0352540000", (False, None)),
            (lldp.PORT_ID, "06ff", (False, None)),
            (lldp.PORT_ID, "0402" + "00" * 15 + "01", (False, "::1")),
        ):
            self.assertEqual(expected, lldp.read_identity(kind, bytes.fromhex(value)), value)
