"""SQL statements of whole operations, counted with COMMIT and ROLLBACK, as Ironic's were on MariaDB.

MariaDB is sent no BEGIN, and with SQLite that is a local lock and no round trip: it is not counted.
"""

import hashlib
import pathlib
from typing import Any

import fixtures
import testtools
import testtools.content

from ingot.api import app, server
from ingot.common import states
from ingot.conductor import manager
from ingot.db import nodes
from ingot.drivers.agent import client as agent_client
from ingot.rack import ports
from ingot.rack.process import RackProcess
from ingot.rpcapi import client, transport
from tests import conductor_case, database, disk_images, sql_counter
from tests.functional.deployment import lab
from tests.functional.rack.base import FAST

_STEPS = [{"step": name, "interface": "deploy", "priority": priority, "kinds": ["deploy"]} for name, priority in
          (("prepare_disks", 95), ("configure_loader", 70), ("configure_system", 45))]  # fmt: skip


class Bench(fixtures.Fixture):
    """The all-in-one in the test's own process, so that its statements can be counted, and a rack beside it."""

    def __init__(self, **rack: Any) -> None:
        super().__init__()
        self._rack = rack

    def _setUp(self) -> None:
        stored = self.useFixture(database.DatabaseFixture())
        self.db, conf = stored.db, stored.conf
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.image = disk_images.gpt_image()
        for name, content in (("image.raw", self.image), ("kernel", b"kernel"), ("ramdisk", b"ramdisk")):
            (directory / name).write_bytes(content)
        self.files = self.useFixture(lab.FileServer(directory))
        port = ports.tcp()
        for name, value, group in (
            ("host", "conductor-1", None),
            ("host_ip", "127.0.0.1", "api"),
            ("port", port, "api"),
            ("endpoint_override", f"http://127.0.0.1:{port}", "service_catalog"),
            ("sync_power_state_interval", 0, "conductor"),
            ("sweep_interval", 60, "conductor"),
            ("heartbeat_interval", 60, "conductor"),
            ("heartbeat_timeout", 300, "conductor"),
            ("deploy_kernel", f"{self.files.url}/kernel", "deploy"),
            ("deploy_ramdisk", f"{self.files.url}/ramdisk", "deploy"),
            ("url_denied_networks", [], "deploy"),
        ):
            conf.set_override(name, value, group=group)
        conductor = manager.Conductor(conf, self.db)
        bus = transport.LocalTransport()
        bus.serve("conductor-1", conductor.endpoint)
        conductor.start()
        self.addCleanup(conductor.stop)
        web = server.Server(conf, app.create_app(conf, self.db, client.ConductorClient(conf, self.db, bus)))
        web.start()
        self.addCleanup(web.stop)
        self.user = lab.User(f"http://127.0.0.1:{port}")
        self.rack = RackProcess(
            directory / "rack",
            boot_url=f"http://127.0.0.1:{port}/boot/ipxe/{{mac}}",
            bmc_base_port=0,
            **{"machines": 1, **FAST, "heartbeat_max": 30, **self._rack},
        )
        self.addCleanup(self.rack.stop)
        self.rack.start()

    def reach(self, uuid: str, state: str) -> None:
        """Wait for a state without a request to the API: only Ingot's own statements are counted."""

        def check() -> bool:
            node = nodes.get(self.db, uuid, ("provision_state", "reservation", "flow", "last_error"))
            if node.provision_state != state and node.last_error:
                raise AssertionError(node.last_error)
            return node.provision_state == state and node.reservation is None and node.flow is None

        conductor_case.eventually(check, f"{uuid} is {state}")


class TestBudgets(testtools.TestCase):
    def deploy(self, bench: Bench, uuid: str) -> int:
        """Deploy a node; return how many statements Ingot needed."""
        with sql_counter.counting(bench.db) as counted:
            bench.user.provision(uuid, "active")
            bench.reach(uuid, states.ACTIVE)
        looks = "SELECT nodes.flow, nodes.last_error, nodes.provision_state, nodes.reservation FROM nodes"
        sent = [text for text in counted.statements if not text.startswith((looks, "BEGIN"))]
        self.addDetail("statements", testtools.content.text_content("\n".join(sent)))
        return len(sent) + 2 * counted.commits

    def test_a_fake_deployment_takes_sixteen_statements(self) -> None:
        """The API reads the node, has the conductor check it, and accepts.

        The conductor locks it and reads it, and writes for each of the two steps that it runs, and for the end;
        step runs and history go with these. Which versions the conductors have is read once for a while.
        """
        bench = self.useFixture(Bench())
        fakes = {f"{kind}_interface": "fake" for kind in ("power", "management", "boot", "deploy")}
        uuid = bench.user.post("/v1/nodes", {"driver": "fake-hardware", **fakes})["uuid"]
        nodes.set_always(bench.db, uuid, {"provision_state": states.AVAILABLE})
        self.assertLessEqual(self.deploy(bench, uuid), 16)

    def note_calls(self, owner: type, name: str) -> list[str]:
        """Return a list that gets the first argument of each call of a method from now on."""
        original, calls = getattr(owner, name), []

        def call(self: Any, first: str, *args: Any, **kwargs: Any) -> Any:
            calls.append(first)
            return original(self, first, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(f"{owner.__module__}.{owner.__name__}.{name}", call))
        return calls

    def test_an_agent_deployment_with_four_in_band_steps_takes_at_most_98(self) -> None:
        """Ironic 39 needs 751. The agent: lookup, a heartbeat after each command; write_image is the fourth step.

        A heartbeat that meets the conductor at work costs four, so that the number is not the same each time. The agent
        is asked for its steps, and for each of the four twice; three quick commands prepare the boot and its end.
        """
        asked = self.note_calls(agent_client.AgentClient, "_request")
        woken = self.note_calls(transport.LocalTransport, "cast")
        bench = self.useFixture(Bench(steps=_STEPS))
        machine = bench.rack.machines[0]
        interfaces = {"power": "ipmitool", "management": "ipmitool", "boot": "ipxe", "deploy": "direct"}
        info = {"ipmi_address": machine["bmc_address"], "ipmi_port": machine["bmc_port"]}
        info |= {"ipmi_username": "admin", "ipmi_password": "password"}
        (disk, *_others) = bench.rack.control.machine(machine["name"])["disks"]
        properties = {"root_device": {"serial": disk["serial"]}}  # an agent without hints looks once more for some
        body = {"driver": "ipmi", "driver_info": info, "properties": properties}
        uuid = bench.user.post("/v1/nodes", {**body, **{f"{k}_interface": v for k, v in interfaces.items()}})["uuid"]
        bench.user.post("/v1/ports", {"node_uuid": uuid, "address": machine["macs"][0]})
        nodes.set_always(bench.db, uuid, {"provision_state": states.AVAILABLE})
        image = lab.image_info(bench.files.url, hashlib.sha256(bench.image).hexdigest())
        bench.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": image})
        self.assertLessEqual(self.deploy(bench, uuid), 98)
        self.assertLessEqual(asked.count("request for its commands"), 4, asked)
        self.assertLessEqual(len(asked), 13, asked)
        self.assertLessEqual(len(woken), 9)
