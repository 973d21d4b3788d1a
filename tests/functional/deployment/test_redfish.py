"""Nodes of type redfish through the API: enrolled, managed, switched and booted, on sushy-tools' emulator; inspected,
cleaned and deployed on the rack, which has what that lacks."""

from typing import Any

import requests
import testtools

from tests.functional import redfish_emulator
from tests.functional.deployment import lab

BODY = {
    "driver": "redfish",
    "name": "r1",
    "resource_class": "baremetal",
    "properties": {"capabilities": "boot_mode:uefi"},
}


class RedfishNodes(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bmc = self.useFixture(redfish_emulator.Emulator(machines=2, guarded=True))
        options = {
            "DEFAULT": {"enabled_hardware_types": "redfish,ipmi"},
            "conductor": {"sync_power_state_interval": 1, "force_power_state_during_sync": False},
        }
        self.lab = self.useFixture(lab.Lab(options=options))
        self.user = self.lab.user

    def enroll(self, **info: Any) -> str:
        access = {
            "redfish_address": self.bmc.url,
            "redfish_system_id": self.bmc.systems[0],
            "redfish_username": redfish_emulator.USER,
            "redfish_password": redfish_emulator.PASSWORD,
        }
        uuid: str = self.user.post("/v1/nodes", {**BODY, "driver_info": {**access, **info}})["uuid"]
        return uuid

    def switch(self, node: str, target: str, state: str) -> None:
        self.user.put(f"/v1/nodes/{node}/states/power", {"target": target})
        self.lab.eventually(
            lambda: (found := self.user.node(node))["power_state"] == state and not found["target_power_state"],
            f"{target}: {state}",
        )

    def test_a_machine_is_enrolled_verified_switched_and_given_what_to_boot(self) -> None:
        node = self.enroll()
        self.assertEqual(("redfish", "redfish"), tuple(
            self.user.node(node)[f"{kind}_interface"] for kind in ("power", "management")))  # fmt: skip
        self.user.provision(node, "manage")
        managed = self.lab.reach(node, "manageable")
        self.assertEqual(("power off", "uefi", False), tuple(
            managed[name] for name in ("power_state", "boot_mode", "secure_boot")))  # fmt: skip
        self.assertEqual("******", managed["driver_info"]["redfish_password"])
        self.switch(node, "power on", "power on")
        self.assertEqual("On", self.bmc.system()["PowerState"])
        devices = f"/v1/nodes/{node}/management/boot_device"
        self.user.put(devices, {"boot_device": "cdrom", "persistent": True})
        self.assertEqual({"boot_device": "cdrom", "persistent": True}, self.user.get(devices))
        self.assertEqual("Cd", self.bmc.system()["Boot"]["BootSourceOverrideTarget"])
        refused = self.user.request("PUT", devices, {"boot_device": "tape"})
        self.assertEqual(400, refused.status_code, refused.text)
        self.user.put(f"/v1/nodes/{node}/states/secure_boot", {"target": True})
        self.assertIs(True, self.bmc.get(f"{self.bmc.systems[0]}/SecureBoot")["SecureBootEnable"])
        image = f"{self.bmc.url}/redfish/v1"
        self.user.post(f"/v1/nodes/{node}/vmedia", {"device_type": "cdrom", "image_url": image})
        expected = {"media_types": ["CD", "DVD"], "inserted": True, "image": image}
        self.assertIn(expected, self.user.get(f"/v1/nodes/{node}/vmedia"))
        self.user.delete(f"/v1/nodes/{node}/vmedia")
        self.switch(node, "soft power off", "power off")

    def test_what_is_wrong_with_a_bmc_is_what_the_node_says(self) -> None:
        node = self.enroll(redfish_password="wrong")
        self.user.provision(node, "manage")
        self.lab.eventually(lambda: self.user.node(node)["last_error"], "an error")
        found = self.user.node(node)
        self.assertEqual("enroll", found["provision_state"])
        for part in (self.bmc.url, "401", "redfish_password"):
            self.assertIn(part, found["last_error"])
        invalid = self.user.get(f"/v1/nodes/{self.enroll_named('r2', redfish_auth_type='digest')}/validate")
        self.assertFalse(invalid["power"]["result"])
        self.assertIn("driver_info.redfish_auth_type", invalid["power"]["reason"])

    def enroll_named(self, name: str, **info: Any) -> str:
        access = {"redfish_address": self.bmc.url, **info}
        uuid: str = self.user.post("/v1/nodes", {**BODY, "name": name, "driver_info": access})["uuid"]
        return uuid


class RackNodes(testtools.TestCase):
    def test_a_machine_is_inspected_gets_bios_settings_and_is_deployed(self) -> None:
        options = {
            "DEFAULT": {"enabled_hardware_types": "redfish"},
            "redfish": {"bios_settings_timeout": 60},
            "conductor": {"automated_clean": False},
        }
        bench = self.useFixture(lab.Lab(rack={"redfish_base_port": 0}, options=options))
        machine = bench.rack.machines[0]
        info = {
            "redfish_address": machine["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
        }
        node = bench.user.post("/v1/nodes", {**BODY, "inspect_interface": "redfish", "driver_info": info})["uuid"]
        bench.user.provision(node, "manage")
        bench.reach(node, "manageable")
        settings = {one["name"]: one["value"] for one in bench.user.get(f"/v1/nodes/{node}/bios")["bios"]}
        self.assertEqual(("Enabled", "true"), (settings["ProcTurboMode"], settings["ProcHyperthreading"]))
        bench.user.provision(node, "inspect")
        inspected = bench.reach(node, "manageable")
        self.assertEqual("x86_64", inspected["properties"]["cpu_arch"])
        ports = bench.user.get(f"/v1/nodes/{node}/ports")["ports"]
        self.assertEqual(machine["macs"], [port["address"] for port in ports])
        step = {
            "interface": "bios",
            "step": "apply_configuration",
            "args": {"settings": [{"name": "ProcTurboMode", "value": "Disabled"}]},
        }
        bench.user.provision(node, "clean", clean_steps=[step], disable_ramdisk=True)
        bench.reach(node, "manageable")
        setting = bench.user.get(f"/v1/nodes/{node}/bios/ProcTurboMode")["ProcTurboMode"]
        self.assertEqual(("Disabled", ["Enabled", "Disabled"]), (setting["value"], setting["allowable_values"]))
        bench.user.provision(node, "clean", clean_steps=[step | {"step": "factory_reset", "args": {}}])
        bench.reach(node, "manageable")
        setting = bench.user.get(f"/v1/nodes/{node}/bios/ProcTurboMode")["ProcTurboMode"]
        self.assertEqual("Enabled", setting["value"])
        bench.user.provision(node, "provide")
        bench.reach(node, "available")
        bench.set_image(node)
        bench.user.provision(node, "active")
        bench.reach(node, "active")
        self.assertTrue(bench.holds_image(0))
        bench.process.stop()
        sessions = requests.get(
            f"{info['redfish_address']}/redfish/v1/SessionService/Sessions",
            auth=(info["redfish_username"], info["redfish_password"]),
            verify=info["redfish_verify_ca"],
            timeout=lab.PATIENCE,
        )
        self.assertEqual([], sessions.json()["Members"], "the conductor leaves no session behind")
