"""The other things a user may ask for: manual cleaning, rebuild, abort, a ramdisk instead of an image."""

import testtools

from ingot.rack import readback
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

MACHINE = "machine-0"


class TestVerbs(testtools.TestCase):
    def test_manual_cleaning_runs_what_was_asked_for_and_comes_back(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        steps = [
            {"interface": "deploy", "step": "erase_devices"},
            {"interface": "deploy", "step": "erase_devices_metadata"},
        ]
        bench.user.provision(uuid, "clean", clean_steps=steps)
        bench.reach(uuid, "manageable")
        self.assertEqual(
            ["prepare_cleaning", "erase_devices", "erase_devices_metadata", "tear_down_cleaning"],
            [row["step"] for row in bench.step_runs(uuid)],
        )
        self.assertEqual("power off", bench.user.node(uuid)["power_state"])

    def test_a_rebuild_writes_image_and_config_drive_again_and_does_not_clean(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.user.provision(uuid, "active", configdrive={"meta_data": {"instance-id": "the same"}})
        bench.reach(uuid, "active")
        disk = bench.rack.control.machine(MACHINE)["disks"][0]["path"]
        with open(disk, "r+b") as file:
            file.seek(len(bench.image) // 2)
            file.write(b"what a user left behind")
        self.assertFalse(bench.holds_image(0))
        bench.user.provision(uuid, "rebuild")
        bench.reach(uuid, "active")
        self.assertEqual(CORE, ran(bench.step_runs(uuid)))
        self.assertTrue(bench.holds_image(0))
        self.assertIn(b"the same", readback.config_drive(disk) or b"")

    def test_a_deployment_that_waits_can_be_aborted_and_tried_again(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "write_image")
        bench.user.provision(uuid, "active")
        bench.eventually(
            lambda: (
                (node := bench.user.node(uuid))["deploy_step"].get("step") == "write_image"
                and node["provision_state"] == "wait call-back"
            ),
            "it hangs",
        )
        bench.user.provision(uuid, "abort")
        node = bench.reach(uuid, "deploy failed")
        self.assertIn("aborted", node["last_error"])
        self.assertIn("deploy.write_image", node["last_error"])
        bench.rack.control.wait_for_state(MACHINE, "off")
        bench.rack.control.clear_faults(MACHINE)
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")

    def test_a_request_may_name_steps_that_only_the_agent_knows(self) -> None:
        steps = [{"step": "flash", "interface": "bios", "kinds": ["deploy"]}]
        bench = self.useFixture(lab.Lab(rack={"steps": steps}))
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        flash = {"interface": "bios", "step": "flash", "args": {}, "priority": 85}
        bench.user.provision(uuid, "active", deploy_steps=[flash])
        bench.reach(uuid, "active")
        self.assertEqual([CORE[0], ("flash", 85), *CORE[1:]], ran(bench.step_runs(uuid)))
        asked_by = {row["step"]: row["origin"] for row in bench.step_runs(uuid)}
        self.assertEqual("request", asked_by["flash"])

        for wrong, expected in (({"step": "juggle"}, "bios.juggle"), ({"priority": 30}, "41")):
            bench.user.provision(uuid, "rebuild", deploy_steps=[{**flash, **wrong}])
            node = bench.reach(uuid, "deploy failed")
            self.assertIn(expected, node["last_error"])

    def test_a_machine_runs_a_ramdisk_of_the_users(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll(deploy_interface="ramdisk")
        bench.make_available(uuid)
        info = {"kernel": f"{bench.files.url}/deploy.kernel", "ramdisk": f"{bench.files.url}/deploy.initramfs"}
        bench.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": info})
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")
        self.assertNotIn("write_image", [row["step"] for row in bench.step_runs(uuid)])
        self.assertEqual("power on", bench.user.node(uuid)["power_state"])

    def test_a_deployment_without_an_image_says_so_at_once(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        refused = bench.user.request("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "active"})
        self.assertEqual(400, refused.status_code)
        self.assertIn("image_source", refused.text)
        node = bench.user.node(uuid)
        self.assertEqual(("available", None), (node["provision_state"], node["last_error"]))
