"""Deployments on the embedded default: the command ingot, SQLite, no bus."""

import signal

import testtools

from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran


class TestDeployment(testtools.TestCase):
    def test_a_machine_becomes_active_and_comes_back_clean(self) -> None:
        bench = self.useFixture(lab.Lab(machines=2))
        template = {"interface": "raid", "step": "apply_configuration", "args": lab.MIRROR, "priority": 90}
        bench.user.post("/v1/deploy_templates", {"name": "CUSTOM_RAID_MIRROR", "steps": [template]})
        plain, mirrored = bench.enroll(0), bench.enroll(1)
        for uuid in (plain, mirrored):
            bench.make_available(uuid)
        bench.user.put(f"/v1/nodes/{mirrored}/traits/CUSTOM_RAID_MIRROR", None)
        bench.set_image(plain)
        bench.set_image(mirrored, traits=["CUSTOM_RAID_MIRROR"])
        for uuid in (plain, mirrored):
            bench.user.provision(uuid, "active", configdrive={"meta_data": {"instance-id": uuid}})
        for uuid in (plain, mirrored):
            bench.reach(uuid, "active")

        self.assertEqual(CORE, ran(bench.step_runs(plain)))
        self.assertEqual([CORE[0], ("apply_configuration", 90), *CORE[1:]], ran(bench.step_runs(mirrored)))
        self.assertTrue(bench.holds_image(0))
        self.assertTrue(bench.holds_image(1, disk=0) and bench.holds_image(1, disk=1))
        node = bench.user.node(mirrored)
        self.assertEqual("power on", node["power_state"])
        self.assertEqual("1", node["raid_config"]["logical_disks"][0]["raid_level"])
        device = bench.user.get(f"/v1/nodes/{plain}/management/boot_device")
        self.assertEqual({"boot_device": "disk", "persistent": True}, device)
        bench.rack.control.wait_for_state(bench.rack.machines[0]["name"], "os")

        bench.user.provision(plain, "deleted")
        bench.reach(plain, "available")
        self.assertFalse(bench.holds_image(0))
        self.assertEqual({}, bench.user.node(plain)["instance_info"])

    def test_ipmitool_agrees_about_power_and_boot_device(self) -> None:
        """A client from outside this project sees what Ingot says it did."""
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        for target, expected in (("power on", "on"), ("rebooting", "on"), ("power off", "off")):
            bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": target})
            bench.eventually(lambda: not bench.user.node(uuid)["target_power_state"], f"{target} is done")
            self.assertEqual(f"power {expected}", bench.user.node(uuid)["power_state"])
            self.assertIn(f"is {expected}", bench.ipmitool("power", "status"))
        for device, persistent, expected in (("pxe", False, "Force PXE"), ("disk", True, "Force Boot from default")):
            body = {"boot_device": device, "persistent": persistent}
            bench.user.put(f"/v1/nodes/{uuid}/management/boot_device", body)
            self.assertEqual(body, bench.user.get(f"/v1/nodes/{uuid}/management/boot_device"))
            output = bench.ipmitool("chassis", "bootparam", "get", "5")
            self.assertIn(expected, output)
            self.assertIn("all future boots" if persistent else "only next boot", output)
        bench.ipmitool("chassis", "bootdev", "bios")
        device = bench.user.get(f"/v1/nodes/{uuid}/management/boot_device")
        self.assertEqual({"boot_device": "bios", "persistent": False}, device)
        bench.ipmitool("power", "on")
        bench.eventually(lambda: bench.user.node(uuid)["power_state"] == "power on", "the change is found")

    def test_killed_while_the_agent_writes_it_goes_on_automatically(self) -> None:
        """The agent works on while no API listens; its next heartbeat continues the deployment, no attempt is lost."""
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.rack.control.order_fault("machine-0", "agent_hangs_at_step", "write_image")
        bench.user.provision(uuid, "active")

        def waits_for_the_image() -> bool:
            node = bench.user.node(uuid)
            return bool(
                node["deploy_step"].get("step") == "write_image" and node["provision_state"] == "wait call-back"
            )

        bench.eventually(waits_for_the_image, "the agent writes the image")
        bench.process.stop(signal.SIGKILL)
        bench.rack.control.clear_faults("machine-0")
        bench.process.start()
        bench.reach(uuid, "active")
        attempts = [(row["attempt"], row["state"]) for row in bench.step_runs(uuid) if row["step"] == "write_image"]
        self.assertEqual([(1, "done")], attempts)
        self.assertTrue(bench.holds_image(0))

    def test_killed_inside_a_step_it_repeats_the_step(self) -> None:
        """The step runs show the attempt that was lost and its repetition."""
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        slow = {"command": "deploy.execute_deploy_step", "seconds": 50}
        bench.rack.control.order_fault("machine-0", "slow_answer", slow, times=1)
        bench.user.provision(uuid, "active")

        def asked_to_write() -> bool:
            node = bench.user.node(uuid)
            return bool(node["deploy_step"].get("step") == "write_image" and node["reservation"])

        bench.eventually(asked_to_write, "the conductor asks the agent to write")
        bench.process.stop(signal.SIGKILL)
        bench.process.start()
        bench.reach(uuid, "active")
        attempts = [(row["attempt"], row["state"]) for row in bench.step_runs(uuid) if row["step"] == "write_image"]
        self.assertEqual([(1, "interrupted"), (2, "done")], attempts)
        self.assertTrue(bench.holds_image(0))
