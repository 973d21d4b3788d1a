"""Nova's ironic driver, unmodified, with Nova's own objects and database, against Ingot and a rack of machines.

What stands around the driver is left out: the compute manager and its message bus, the scheduler, Placement. Neutron is
asked by Nova for the security groups of a config drive, and answered that there are none. The image is in a real
Glance, which Ingot asks for it by the id that Nova passes on.
"""

import base64
import http.server
import json
import os
import pathlib
import subprocess
import threading
from typing import Any, ClassVar

import fixtures
import testtools

from tests import http_handler, patience
from tests.functional.deployment import lab
from tests.gate import environments, imaging

REQUIREMENTS = ("nova>=34.0",)
PROGRAM = environments.ROOT / "tests" / "gate" / "programs" / "nova_compute.py"
TRAIT = "CUSTOM_GOLD"
UNKNOWN_IMAGE = "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58"
VIF = "7a9f3e1c-64c2-4a7e-9d0b-3f1f8f0f2b11"
USER_DATA = base64.b64encode(b"#cloud-config\n").decode()
SHARD = "rack-7"
CALL_TIMEOUT_S = patience.seconds(120)
RUNNING, SHUTDOWN = 1, 4
"""Nova's states of power."""

_CONFIGURATION = """
[DEFAULT]
host = compute-0
compute_driver = ironic.IronicDriver
state_path = {directory}
transport_url = fake://
debug = true
log_file = {directory}/nova.log
[database]
connection = sqlite:///{directory}/cell.sqlite
[api_database]
connection = sqlite:///{directory}/api.sqlite
[oslo_concurrency]
lock_path = {directory}/locks
[ironic]
auth_type = none
endpoint_override = {ingot}
api_retry_interval = 1
shard = {shard}
conductor_group =
peer_list = compute-0
[neutron]
auth_type = none
endpoint_override = {neutron}
"""


class _NoPorts(http_handler.Handler):
    """A Neutron that has no port."""

    def do_GET(self) -> None:
        self.answer(200, {"ports": [], "security_groups": []}, **{"Content-Type": "application/json"})


class Peer(fixtures.Fixture):
    """A service that Nova asks, and that is none.

    :param handler: answers.
    """

    def __init__(self, handler: type[http_handler.Handler]) -> None:
        super().__init__()
        self._handler = handler

    def _setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)


class Nova(fixtures.Fixture):
    """Nova's driver in a process of its own, with Nova's database.

    :param ingot: URL of Ingot.
    """

    def __init__(self, ingot: str) -> None:
        super().__init__()
        self._ingot = ingot

    def _setUp(self) -> None:
        programs = environments.cached("nova", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = self.directory / "nova.conf"
        neutron = self.useFixture(Peer(_NoPorts))
        config.write_text(
            _CONFIGURATION.format(directory=self.directory, ingot=self._ingot, neutron=neutron.url, shard=SHARD)
        )
        command = (programs / "nova-manage", "--config-file", config)
        environments.run(*command, "api_db", "sync", timeout=environments.BUILD_TIMEOUT_S)
        environments.run(*command, "db", "sync", "--local_cell", timeout=environments.BUILD_TIMEOUT_S)
        self.output = self.directory / "compute.log"
        with self.output.open("ab") as complaints:
            self._process = subprocess.Popen(
                [str(programs / "python"), str(PROGRAM), "--config-file", str(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                cwd=self.directory,
                env={"PATH": os.defpath, "HOME": str(self.directory), "NO_PROXY": "*", "PYTHONWARNINGS": "ignore"},
            )
        self.addCleanup(self._stop)

    def _stop(self) -> None:
        try:
            self._process.communicate(timeout=lab.PATIENCE)
        finally:
            self._process.kill()

    def _complaint(self) -> str:
        return f"\n{self.output.read_text()[-5000:]}"

    def ask(self, name: str, *arguments: Any) -> dict[str, Any]:
        """Return the outcome of a call of the driver: a result or an error."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the process has no pipes")
        print(json.dumps([name, *arguments]), file=self._process.stdin, flush=True)
        watchdog = threading.Timer(CALL_TIMEOUT_S, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise AssertionError(f"{name}: the driver ended or took {CALL_TIMEOUT_S} s:{self._complaint()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Return the result of a call of the driver, which must succeed without any complaint."""
        before = len(self.output.read_text())
        answer = self.ask(name, *arguments)
        if "error" in answer:
            raise AssertionError(f"{name}: {answer}{self._complaint()}")
        environments.check_silent(name, self.output.read_text()[before:])
        return answer["result"]


class TestNova(testtools.TestCase):
    """The tests share a compute service and a rack; each has a machine of its own."""

    glance: ClassVar[imaging.Glance]
    bench: ClassVar[lab.Lab]
    nova: ClassVar[Nova]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.glance = cls.enterClassContext(imaging.Glance())
        options = {
            "DEFAULT": {"enabled_storage_interfaces": "noop,external"},
            "glance": {"auth_type": "none", "endpoint_override": cls.glance.url},
        }
        cls.bench = cls.enterClassContext(lab.Lab(machines=8, options=options))
        cls.nova = cls.enterClassContext(Nova(cls.bench.url))

    def enroll(self, index: int, connectors: bool = True, **fields: Any) -> str:
        """Return an available machine."""
        properties = {"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"}
        uuid = self.bench.enroll(index, resource_class="metal", properties=properties, shard=SHARD, **fields)
        self.bench.user.put(f"/v1/nodes/{uuid}/traits/{TRAIT}", None)
        addresses = (("ip", f"192.0.2.{index}"), ("iqn", f"iqn.2026-01.org.example:{index}"))
        for kind, ident in addresses if connectors else ():
            connector = {"node_uuid": uuid, "type": kind, "connector_id": ident}
            self.bench.user.post("/v1/volume/connectors", connector)
        self.bench.make_available(uuid)
        return uuid

    def make(self, node: str, image: str, name: str, *more: Any) -> str:
        """Create the instance that later calls use.

        :param more: specs of the flavor, and the volume it boots from.
        """
        uuid: str = self.nova("make", node, image, name, [TRAIT], USER_DATA, *more)
        return uuid

    def failure(self, name: str, *arguments: Any) -> tuple[str, str]:
        """Return type and message of the error that a call of the driver ends in."""
        answer = self.nova.ask(name, *arguments)
        return answer["error"], answer["message"]

    def check_report(self, node: str, reserved: int) -> None:
        """Check what Placement and the scheduler get about a node."""
        found = self.nova("report", node)
        inventory = found["inventory"]["CUSTOM_METAL"]
        self.assertEqual((1, reserved, [TRAIT]), (inventory["total"], inventory["reserved"], found["traits"]))
        self.assertEqual([["x86_64", "baremetal", "hvm"]], found["resource"]["supported_instances"])
        self.assertEqual({"cpu_arch": "x86_64", "boot_mode": "uefi"}, found["resource"]["stats"])

    def test_a_machine_is_an_instance_and_then_free_again(self) -> None:
        node = self.enroll(0)
        other = self.bench.user.post("/v1/nodes", {"driver": "fake-hardware", "shard": "rack-8"})["uuid"]
        found = self.nova("begin", VIF)
        self.assertEqual((True, False), (node in found, other in found), "of its shard and conductor group")
        self.check_report(node, reserved=0)
        image = imaging.upload(self.glance.connect(), "render", self.bench.image)
        instance = self.make(node, image, "render-1")
        self.nova("spawn")
        shown = self.bench.user.node(node)
        self.assertEqual(("active", instance), (shown["provision_state"], shown["instance_uuid"]))
        info = shown["instance_info"]
        self.assertEqual(("render-1", [TRAIT], "512"), (info["display_name"], info["traits"], info["memory_mb"]))
        self.assertTrue(self.bench.holds_image(0))
        for part in (b"render-1", b"#cloud-config", b"admin_pass"):
            self.assertIn(part, self.bench.config_drive(0))
        self.check_report(node, reserved=1)

        known = self.nova("known")
        self.assertEqual((True, [instance], RUNNING), (known["exists"], known["uuids"], known["state"]))
        self.assertEqual("iqn.2026-01.org.example:0", known["connector"]["initiator"])
        self.nova("dump")
        changes = {"soft off": SHUTDOWN, "on": RUNNING, "reboot": RUNNING, "soft reboot": RUNNING, "off": SHUTDOWN}
        self.assertEqual(list(changes.values()), self.nova("power", *changes))
        self.nova("interfaces")
        kind, message = self.failure("serial")
        self.assertEqual("ConsoleTypeUnavailable", kind)
        self.assertIn("serial", message)
        for call, state in (("rescue", "rescue"), ("unrescue", "active")):
            self.nova(call)
            self.assertEqual(state, self.bench.user.node(node)["provision_state"])

        self.nova("rebuild")
        shown = self.bench.user.node(node)
        self.assertEqual(("active", "power on"), (shown["provision_state"], shown["power_state"]))
        self.assertTrue(self.bench.holds_image(0))
        self.nova("destroy")
        shown = self.bench.reach(node, "available")
        self.assertEqual((None, {}), (shown["instance_uuid"], shown["instance_info"]))
        self.assertFalse(self.bench.holds_image(0))
        self.check_report(node, reserved=0)
        self.assertFalse(self.nova("known")["exists"])

    def test_a_machine_that_cannot_be_spawned_is_free_again(self) -> None:
        node = self.enroll(1)
        self.nova("begin", VIF)
        self.make(node, UNKNOWN_IMAGE, "render-2")
        kind, message = self.failure("spawn")
        self.assertEqual("ValidationError", kind)
        self.assertIn("image_source", message)
        shown = self.bench.user.node(node)
        self.assertEqual(("available", None), (shown["provision_state"], shown["instance_uuid"]))
        self.assertEqual({}, shown["instance_info"])

        self.bench.set_image(node, image_os_hash_value="0" * 64)
        self.make(node, f"{self.bench.files.url}/image.raw", "render-3")
        kind, message = self.failure("spawn")
        self.assertEqual("InstanceDeployFailure", kind)
        self.assertIn("its sha256 is", message)
        self.nova("destroy")
        self.bench.reach(node, "available")
        self.check_report(node, reserved=0)

    def upload(self, name: str) -> str:
        """Return the id of an image of Glance's that can be deployed."""
        return str(imaging.upload(self.glance.connect(), name, self.bench.image))

    def check_free(self, node: str) -> None:
        """Check that nothing of an instance is left on a node."""
        shown = self.bench.reach(node, "available")
        self.assertEqual((None, {}, None), (shown["instance_uuid"], shown["instance_info"], shown["last_error"]))
        self.assertEqual([], self.bench.user.get(f"/v1/nodes/{node}/vifs")["vifs"])
        self.assertEqual([], self.bench.user.get(f"/v1/volume/targets?node={node}")["targets"])

    def test_nodes_come_and_go_with_their_shard(self) -> None:
        node = self.enroll(2)
        self.nova("begin", VIF)
        self.make(node, UNKNOWN_IMAGE, "render-4")
        other = "5f0c0f0e-9c1f-4f51-b7b9-6f1f2f1f3f10"
        found = self.nova("nodes", node, other)
        self.assertIn(node, found["available"])
        self.assertEqual(node, found["by uuid"][node])
        self.assertEqual(([True, False], [False, True]), (found["exists"], found["deleted"]))
        self.assertIsNone(found["binding"])
        self.bench.user.patch(f"/v1/nodes/{node}", {"/shard": "rack-8"})
        self.assertNotIn(node, self.nova("nodes")["available"])
        shards = self.bench.user.get("/v1/shards")["shards"]
        self.assertIn("rack-8", {shard["name"] for shard in shards})
        self.bench.user.patch(f"/v1/nodes/{node}", {"/shard": SHARD})
        self.bench.user.put(f"/v1/nodes/{node}/maintenance", {"reason": "its fan"})
        self.check_report(node, reserved=1)

    def test_two_instances_do_not_get_one_machine(self) -> None:
        node = self.enroll(3)
        self.nova("begin", VIF)
        self.nova("report", node)
        late = self.make(node, UNKNOWN_IMAGE, "render-5")
        self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_uuid": UNKNOWN_IMAGE})
        self.assertEqual("ComputeResourcesUnavailable", self.failure("spawn")[0])
        kind, message = self.failure("reserve")
        self.assertEqual("InstanceDeployFailure", kind)
        self.assertIn(late, message)
        self.assertEqual({"result": None}, self.nova.ask("give_up"), "it says that it has nothing to clean up")
        self.assertEqual(UNKNOWN_IMAGE, self.bench.user.node(node)["instance_uuid"], "another's is not taken away")
        self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_uuid": None})
        self.nova("reserve")
        self.nova("interfaces")
        self.nova("give_up")
        self.check_free(node)

    def test_a_deployment_is_destroyed_while_it_runs(self) -> None:
        node = self.enroll(4)
        self.nova("begin", VIF)
        self.make(node, self.upload("slow"), "render-6")
        (port,) = self.bench.user.get(f"/v1/nodes/{node}/ports")["ports"]
        self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/address": "52:54:00:99:99:99"})  # its agent never boots
        self.nova("begin_spawn")
        self.bench.reach(node, "wait call-back")
        self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/address": port["address"]})
        self.assertEqual({"result": None}, self.nova.ask("destroy"), "beside it the spawn says how it ends")
        self.assertEqual("InstanceNotFound", self.nova.ask("end_spawn")["result"]["error"])
        self.check_free(node)

    def test_a_machine_boots_from_a_volume(self) -> None:
        node = self.enroll(5, connectors=False, storage_interface="external")
        mac = self.bench.rack.machines[5]["macs"][0]
        for kind, ident in (("mac", mac), ("iqn", "iqn.2026-01.org.example:5")):
            self.bench.user.post("/v1/volume/connectors", {"node_uuid": node, "type": kind, "connector_id": ident})
        self.nova("begin", VIF)
        data = {"target_iqn": "iqn.2026-01.org.example:v", "target_portal": "192.0.2.5:3260", "target_lun": 1}
        volume = {"id": "3c6f7a53-2f0e-4f62-b1d5-5a0b3a1e8a61", "data": data}
        self.make(node, "", "render-8", {}, volume)
        self.nova("spawn")
        found = self.nova("connector")
        self.assertEqual(("192.0.2.77", "iqn.2026-01.org.example:5"), (found["ip"], found["initiator"]))
        self.assertNotIn("image_source", self.bench.user.node(node)["instance_info"])
        (target,) = self.bench.user.get(f"/v1/volume/targets?node={node}&detail=true")["targets"]
        self.assertEqual((volume["id"], 0, data), (target["volume_id"], target["boot_index"], target["properties"]))
        self.nova("destroy")
        self.check_free(node)

    def test_networks_are_put_back_when_there_is_no_volume(self) -> None:
        node = self.enroll(6, storage_interface="external")
        self.nova("begin", VIF)
        data = {"target_iqn": "iqn.2026-01.org.example:v", "target_lun": 1}
        volume = {"id": "3c6f7a53-2f0e-4f62-b1d5-5a0b3a1e8a62", "data": data}
        self.make(node, "", "render-9", {}, volume)
        kind, message = self.failure("spawn")
        self.assertEqual("ValidationError", kind)
        self.assertIn("target_portal", message)
        self.nova("unplug")
        self.check_free(node)

    def test_a_rebuilt_machine_has_a_new_config_drive(self) -> None:
        node = self.enroll(7)
        self.nova("begin", VIF)
        image = self.upload("rebuilt")
        self.make(node, image, "render-10", {"capabilities:boot_mode": "uefi"})
        self.nova("spawn")
        info = self.bench.user.node(node)["instance_info"]
        self.assertEqual(('{"boot_mode": "uefi"}', image), (info["capabilities"], info["image_source"]))
        self.assertNotIn(b"secret again", self.bench.config_drive(7))
        self.nova("rebuild", True)
        self.assertIn(b"secret again", self.bench.config_drive(7))
        self.nova("destroy")
        self.check_free(node)
