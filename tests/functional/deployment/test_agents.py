"""What the agent decides in deployments and services: its own steps, reboots, and whether it is still the same one."""

from typing import Any

import testtools

from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

MACHINE = "machine-0"
BUILT = {"raid_level": "1", "is_root_volume": True, "root_device_hint": {"name": "/dev/sda"}}
RELOAD = {"step": "apply_configuration", "interface": "raid", "kinds": ["deploy"], "reboot_requested": True}
FLASH = {"step": "flash", "interface": "bios", "kinds": ["deploy", "service"], "reboot_requested": True}


class AgentsTestCase(testtools.TestCase):
    def available(self, *steps: dict[str, Any], **settings: Any) -> str:
        """Return an available node with an image, on its own lab, whose agent offers ``steps``, too."""
        self.bench = self.useFixture(lab.Lab(rack={"steps": steps}, **settings))
        self.control = self.bench.rack.control
        uuid = self.bench.enroll()
        self.bench.user.patch(f"/v1/nodes/{uuid}", {"/automated_clean": False})
        self.bench.make_available(uuid)
        self.bench.set_image(uuid)
        return uuid

    def commands(self, name: str) -> list[int]:
        """Return in which boots of the machine its agent was given a command."""
        return [row["boot"] for row in self.control.machine(MACHINE)["commands"] if row["command"] == name]


class TestDeployment(AgentsTestCase):
    def mirrored(self, result: Any) -> str:
        """Deploy a node by a template whose step builds arrays, and reports this."""
        uuid = self.available(RELOAD | {"argsinfo": {"raid_config": {}, "delete_existing": {}}, "result": result})
        step = {"interface": "raid", "step": "apply_configuration", "args": lab.MIRROR, "priority": 90}
        self.bench.user.post("/v1/deploy_templates", {"name": "CUSTOM_MIRROR", "steps": [step]})
        self.bench.user.put(f"/v1/nodes/{uuid}/traits/CUSTOM_MIRROR", None)
        self.bench.user.patch(f"/v1/nodes/{uuid}", {"/instance_info/traits": ["CUSTOM_MIRROR"]})
        self.bench.user.provision(uuid, "active")
        return uuid

    def test_arrays_that_the_agent_does_not_report_fail_it(self) -> None:
        uuid = self.mirrored(result={})
        failed = self.bench.reach(uuid, "deploy failed")
        for words in ("raid.apply_configuration of template CUSTOM_MIRROR", "None as deploy_result.logical_disks"):
            self.assertIn(words, failed["last_error"])
        self.assertEqual({}, failed["raid_config"])

    def test_a_template_step_that_the_driver_has_the_agent_do_is_rebooted_after_if_the_agent_says_so(self) -> None:
        """The raid interface declares the step; that it wants a reboot only the agent knows."""
        uuid = self.mirrored(result={"logical_disks": [BUILT]})
        self.bench.reach(uuid, "active")
        node = self.bench.user.node(uuid)
        self.assertEqual([BUILT], node["raid_config"]["logical_disks"])
        self.assertEqual(BUILT["root_device_hint"], node["properties"]["root_device"])
        self.assertEqual([CORE[0], ("apply_configuration", 90), *CORE[1:]], ran(self.bench.step_runs(uuid)))
        self.assertEqual([1, 2], self.commands("deploy.execute_deploy_step"))
        self.assertEqual([1, 2], self.commands("deploy.get_deploy_steps"))
        self.assertTrue(self.bench.holds_image(0))

    def test_steps_of_its_own_come_before_the_image_after_it_and_after_the_boot_loader(self) -> None:
        places = (("prepare_disks", 90), ("adapt_image", 70), ("adapt_instance", 50))
        uuid = self.available(*({"step": name, "priority": priority, "kinds": ["deploy"]} for name, priority in places))
        self.bench.user.provision(uuid, "active")
        self.bench.reach(uuid, "active")
        asked = [row["step"] or row["command"] for row in self.control.machine(MACHINE)["commands"]]
        expected = [
            "deploy.get_deploy_steps",
            "prepare_disks",
            "write_image",
            "adapt_image",
            "standby.get_partition_uuids",
            "image.install_bootloader",
            "adapt_instance",
            "standby.sync",
            "standby.power_off",
        ]
        self.assertEqual(expected, [name for name in asked if not name.startswith("log.")])

    def test_another_hardware_manager_after_a_reboot_ends_it(self) -> None:
        uuid = self.available(FLASH | {"priority": 90})
        change = {"step": "flash", "hardware_manager": "2.0"}
        self.control.order_fault(MACHINE, "new_version_after_step", change, times=1)
        self.bench.user.provision(uuid, "active")
        node = self.bench.reach(uuid, "deploy failed")
        for words in ("bios.flash", "'generic_hardware_manager': '2.0'", "planned with", "deploy again"):
            self.assertIn(words, node["last_error"])
        self.assertFalse(node["maintenance"])
        self.bench.user.provision(uuid, "active")  # planned with the new one
        self.bench.reach(uuid, "active")

    def test_an_agent_without_the_deploy_extension_writes_the_image_the_old_way(self) -> None:
        uuid = self.available()
        self.control.order_fault(MACHINE, "agent_lacks_extension", "deploy")
        self.bench.user.provision(uuid, "active")
        self.bench.reach(uuid, "active")
        self.assertEqual(CORE, ran(self.bench.step_runs(uuid)))
        self.assertEqual([1], self.commands("standby.prepare_image"))
        self.assertTrue(self.bench.holds_image(0))


class TestService(AgentsTestCase):
    def active(self, *steps: dict[str, Any], **settings: Any) -> str:
        uuid = self.available(*steps, **settings)
        self.bench.user.provision(uuid, "active")
        self.bench.reach(uuid, "active")
        self.control.wait_for_state(MACHINE, "os")
        return uuid

    def serve(self, uuid: str, end: str, *steps: tuple[str, str]) -> dict[str, Any]:
        requested = [{"interface": interface, "step": step} for interface, step in steps]
        self.bench.user.provision(uuid, "service", service_steps=requested)
        return self.bench.reach(uuid, end)

    def test_a_machine_is_serviced_and_its_system_runs_again(self) -> None:
        uuid = self.active(FLASH)
        node = self.serve(uuid, "active", ("bios", "flash"), ("deploy", "burnin_cpu"))
        self.assertEqual(["flash", "burnin_cpu"], [step for step, _priority in ran(self.bench.step_runs(uuid))])
        self.assertEqual(
            ["prepare_service", "flash", "burnin_cpu", "tear_down_service"],
            [row["step"] for row in self.bench.step_runs(uuid)],
        )
        self.assertEqual([3, 4], self.commands("service.execute_service_step"), "before and after the reboot")
        self.assertEqual(("power on", {}, None), (node["power_state"], node["service_step"], node["last_error"]))
        machine = self.control.wait_for_state(MACHINE, "os")
        self.assertEqual(5, machine["boots"])
        self.assertTrue(self.bench.holds_image(0))
        self.assertIn("power soft requested", "\n".join(self.control.log(MACHINE)), "the user's system is asked")
        device = self.bench.user.get(f"/v1/nodes/{uuid}/management/boot_device")
        self.assertEqual({"boot_device": "disk", "persistent": True}, device)

    def test_another_agent_after_a_reboot_ends_it_and_leaves_the_machine_to_the_operator(self) -> None:
        uuid = self.active(FLASH)
        change = {"step": "flash", "agent": "14.0.0"}
        self.control.order_fault(MACHINE, "new_version_after_step", change, times=1)
        node = self.serve(uuid, "service failed", ("bios", "flash"))
        for words in ("bios.flash", "14.0.0", "13.0.0"):
            self.assertIn(words, node["last_error"])
        self.assertEqual((True, "service failure"), (node["maintenance"], node["fault"]))
        self.assertEqual("power on", node["power_state"])
        self.control.clear_faults(MACHINE)
        self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")
        self.serve(uuid, "active", ("bios", "flash"))
        self.control.wait_for_state(MACHINE, "os")
        self.assertTrue(self.bench.holds_image(0))

    def test_an_agent_that_is_too_old_for_services_is_the_reason_given(self) -> None:
        uuid = self.active()
        self.control.order_fault(MACHINE, "agent_lacks_extension", "service")
        node = self.serve(uuid, "service failed", ("deploy", "burnin_cpu"))
        for words in ("prepare_service", "knows no service steps", "boot another one"):
            self.assertIn(words, node["last_error"])
