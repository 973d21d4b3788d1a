"""Deployments that go another way than: boot an agent, let it write an image, boot the disk."""

import datetime
from typing import Any

import testtools

from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

MACHINE = "machine-0"
IQN = "iqn.2026-01.org.example"
PROPERTIES = {
    "target_iqn": f"{IQN}:volume",
    "target_portal": "192.0.2.5:3260",
    "target_lun": 1,
    "auth_method": "CHAP",
    "auth_username": "chap",
    "auth_password": "open-sesame",
}
URI = f"iscsi:192.0.2.5::3260:1:{IQN}:volume"


class WayCase(testtools.TestCase):
    def machine(self, bench: lab.Lab) -> dict[str, Any]:
        return bench.rack.control.machine(MACHINE)

    def commands(self, bench: lab.Lab) -> list[str]:
        return [command["command"] for command in self.machine(bench)["commands"]]


class BootFromVolume(WayCase):
    """No image is written, and no agent runs (specification 000)."""

    def bench(self, **rack: Any) -> tuple[lab.Lab, str]:
        options = {"DEFAULT": {"enabled_storage_interfaces": "noop,external"}}
        bench = self.useFixture(lab.Lab(options=options, rack=rack))
        uuid = bench.enroll(storage_interface="external")
        return bench, uuid

    def export(self, bench: lab.Lab, uuid: str) -> None:
        """Register the machine's volume, as a block storage service or an operator does."""
        connector = {"node_uuid": uuid, "type": "iqn", "connector_id": f"{IQN}:machine"}
        bench.user.post("/v1/volume/connectors", connector)
        target = {"node_uuid": uuid, "volume_type": "iscsi", "volume_id": "volume", "boot_index": 0}
        bench.user.post("/v1/volume/targets", {**target, "properties": PROPERTIES})

    def test_the_machine_starts_from_its_volume_at_every_boot(self) -> None:
        bench, uuid = self.bench()
        bench.make_available(uuid)
        self.export(bench, uuid)
        before = self.machine(bench)
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")
        self.assertEqual(CORE, ran(bench.step_runs(uuid)))
        bench.rack.control.wait_for_state(MACHINE, "os")
        machine = self.machine(bench)
        started = {"uri": URI, "target": f"{IQN}:volume", "initiator": f"{IQN}:machine", "username": "chap"}
        self.assertEqual(started, {name: machine["boot_volume"][name] for name in started})
        self.assertEqual(before["boots"] + 1, machine["boots"])
        self.assertEqual(len(before["commands"]), len(machine["commands"]))
        self.assertEqual(("pxe", True), (machine["boot_device"]["device"], machine["boot_device"]["persistent"]))

        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "rebooting"})
        bench.eventually(lambda: self.machine(bench)["boots"] == before["boots"] + 2, "it boots again")
        bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(URI, self.machine(bench)["boot_volume"]["uri"])

        shown = bench.user.get("/v1/volume/targets?detail=true")["targets"][0]["properties"]
        self.assertEqual("******", shown["auth_password"])
        self.assertNotIn("open-sesame", "".join(log.read_text() for log in bench.directory.glob("*.log")))

        bench.user.provision(uuid, "deleted")
        bench.reach(uuid, "available")
        self.assertGreater(len(self.machine(bench)["commands"]), len(machine["commands"]))  # an agent cleans it

    def test_what_is_missing_is_said_before_anything_is_touched(self) -> None:
        bench, uuid = self.bench()
        bench.make_available(uuid)
        target = {"node_uuid": uuid, "volume_type": "iscsi", "volume_id": "volume", "boot_index": 0}
        bench.user.post("/v1/volume/targets", {**target, "properties": {"target_iqn": f"{IQN}:volume"}})
        boots = self.machine(bench)["boots"]
        path = f"/v1/nodes/{uuid}/states/provision"
        self.assertIn("one of type iqn", bench.user.request("PUT", path, {"target": "active"}).text)
        connector = {"node_uuid": uuid, "type": "iqn", "connector_id": f"{IQN}:machine"}
        bench.user.post("/v1/volume/connectors", connector)
        refused = bench.user.request("PUT", path, {"target": "active"})
        self.assertEqual(400, refused.status_code)
        self.assertIn("target_portal", refused.text)
        storage = bench.user.get(f"/v1/nodes/{uuid}/validate")["storage"]
        self.assertFalse(storage["result"])
        self.assertIn("target_portal", storage["reason"])
        self.assertEqual(("available", boots), (bench.user.node(uuid)["provision_state"], self.machine(bench)["boots"]))

    def test_steps_of_the_agent_are_refused_before_anything_is_touched(self) -> None:
        bench, uuid = self.bench(steps=[{"step": "flash", "interface": "bios", "kinds": ["deploy"]}])
        bench.make_available(uuid)
        self.export(bench, uuid)
        boots = self.machine(bench)["boots"]
        flash = {"interface": "bios", "step": "flash", "args": {}, "priority": 85}
        request = {"target": "active", "deploy_steps": [flash]}
        refused = bench.user.request("PUT", f"/v1/nodes/{uuid}/states/provision", request)
        self.assertEqual(400, refused.status_code)
        self.assertIn("bios.flash", refused.text)
        self.assertEqual(("available", boots), (bench.user.node(uuid)["provision_state"], self.machine(bench)["boots"]))


class FastTrack(WayCase):
    """An agent that runs already is used; one that went silent is replaced."""

    def bench(self, timeout: int = 60) -> tuple[lab.Lab, str]:
        """Return a lab and a node whose manual cleaning has left an agent running."""
        bench = self.useFixture(lab.Lab(options={"deploy": {"fast_track": True, "fast_track_timeout": timeout}}))
        uuid = bench.enroll()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        bench.user.provision(uuid, "clean", clean_steps=[{"interface": "deploy", "step": "erase_devices_metadata"}])
        bench.reach(uuid, "manageable")
        self.assertEqual(("agent", 1), self.state(bench))
        bench.set_image(uuid)
        return bench, uuid

    def state(self, bench: lab.Lab) -> tuple[str, int]:
        machine = self.machine(bench)
        return machine["state"], machine["boots"]

    def switched(self, bench: lab.Lab, uuid: str) -> None:
        """Wait until the conductor, too, is done with the power."""

        def done() -> bool:
            node = bench.user.node(uuid)
            return node["target_power_state"] is None and node["reservation"] is None

        bench.eventually(done, "the power change has ended")

    def heard(self, bench: lab.Lab, uuid: str) -> str:
        return str(bench.user.node(uuid)["driver_internal_info"].get("agent_last_heartbeat"))

    def silent_for(self, bench: lab.Lab, uuid: str) -> float:
        last = datetime.datetime.fromisoformat(self.heard(bench, uuid))
        return (datetime.datetime.now(datetime.UTC) - last).total_seconds()

    def deploy(self, bench: lab.Lab, uuid: str) -> None:
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")
        bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(CORE, ran(bench.step_runs(uuid)))
        self.assertTrue(bench.holds_image(0))

    def test_cleaning_and_deployment_use_the_agent_that_runs(self) -> None:
        bench, uuid = self.bench()
        last = self.heard(bench, uuid)
        bench.eventually(lambda: self.heard(bench, uuid) != last, "it is heard while the node is manageable")
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        self.assertEqual(("agent", 1), self.state(bench))
        last = self.heard(bench, uuid)
        bench.eventually(lambda: self.heard(bench, uuid) != last, "it is heard while the node is available")
        log = len(bench.rack.control.log(MACHINE))
        self.deploy(bench, uuid)
        self.assertEqual(("os", 2), self.state(bench))
        powered = [line for line in bench.rack.control.log(MACHINE)[log:] if "power" in line and "requested" in line]
        self.assertEqual(["on"], [line.split()[-2] for line in powered])  # the agent switches itself off

    def test_an_agent_whose_heartbeats_stopped_is_replaced(self) -> None:
        bench, uuid = self.bench(timeout=2)
        bench.rack.control.order_fault(MACHINE, "heartbeat_lost")
        bench.eventually(lambda: self.silent_for(bench, uuid) > 2, "its last heartbeat is too old")
        bench.user.provision(uuid, "provide")
        bench.eventually(lambda: self.machine(bench)["boots"] == 2, "another one is booted")
        bench.rack.control.clear_faults(MACHINE)
        bench.reach(uuid, "available")
        self.assertEqual(2, self.state(bench)[1])

    def test_an_agent_that_a_user_switched_off_is_replaced(self) -> None:
        bench, uuid = self.bench()
        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "power off"})
        bench.rack.control.wait_for_state(MACHINE, "off")
        self.switched(bench, uuid)
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        self.deploy(bench, uuid)

    def test_an_agent_that_a_user_rebooted_is_used_when_it_is_back(self) -> None:
        bench, uuid = self.bench()
        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "rebooting"})
        bench.eventually(lambda: self.state(bench) == ("agent", 2), "it is there again")
        bench.eventually(lambda: self.heard(bench, uuid) != "None", "it has a token and is heard")
        self.switched(bench, uuid)
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        self.assertEqual(2, self.state(bench)[1])


class OldAgent(WayCase):
    """An agent without the deploy extension is served the old way (specification 000)."""

    def test_it_writes_the_image_with_its_old_command(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.rack.control.order_fault(MACHINE, "agent_lacks_extension", "deploy")
        bench.user.provision(uuid, "active", configdrive={"meta_data": {"a": "b"}})
        bench.reach(uuid, "active")
        self.assertEqual(CORE, ran(bench.step_runs(uuid)))
        self.assertTrue(bench.holds_image(0))
        self.assertIn("standby.prepare_image", self.commands(bench))
        self.assertNotIn("deploy.execute_deploy_step", self.commands(bench))
