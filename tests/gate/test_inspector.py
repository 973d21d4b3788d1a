"""Inspection by a real ironic-inspector: machines of the rack, the service's own database, hooks and state machine."""

import pathlib
import signal
from typing import Any, ClassVar

import bcrypt
import requests
import testtools

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import environments

REQUIREMENT = "ironic-inspector==12.5.0"
"""The last release."""

_USER, _PASSWORD = "conductor", "hush hush"
_MACS = ["52:54:00:aa:00:01", "52:54:00:aa:00:02"]


class Inspector(lab.Process):
    """The service, which asks Ingot's API for nodes and writes into them.

    :param api: where that API is.
    """

    def __init__(self, directory: pathlib.Path, port: int, api: str) -> None:
        directory.mkdir()
        config, users = directory / "inspector.conf", directory / "users"
        users.write_text(f"{_USER}:{bcrypt.hashpw(_PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
        groups = {
            "DEFAULT": {
                "auth_strategy": "http_basic",
                "http_basic_auth_user_file": users,
                "host": "localhost",
                "listen_address": "127.0.0.1",
                "listen_port": port,
                "transport_url": "fake://",
                "introspection_delay": 0,
            },
            "database": {"connection": f"sqlite:///{directory}/inspector.sqlite"},
            "ironic": {"auth_type": "none", "endpoint_override": api},
            "oslo_messaging_notifications": {"driver": "noop"},
            "processing": {"store_data": "database"},
            "pxe_filter": {"driver": "noop"},
        }
        lines = ([f"[{group}]", *(f"{k} = {v}" for k, v in values.items())] for group, values in groups.items())
        config.write_text("\n".join(line for group in lines for line in group) + "\n")
        programs = environments.cached("inspector", REQUIREMENT)
        environments.run(programs / "ironic-inspector-dbsync", "--config-file", config, "upgrade")
        super().__init__(["ironic-inspector", "--config-file", str(config)], directory / "inspector.log")
        self.programs = programs
        self.url = f"http://127.0.0.1:{port}"

    def status(self, node: str) -> dict[str, Any]:
        answer = requests.get(f"{self.url}/v1/introspection/{node}", auth=(_USER, _PASSWORD), timeout=30)
        found: dict[str, Any] = answer.json()
        return found

    @property
    def answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).ok
        except requests.RequestException:
            return False


class InspectorTest(testtools.TestCase):
    login: ClassVar[dict[str, Any]] = {"auth_type": "http_basic", "username": _USER, "password": _PASSWORD}

    def begin(self, starts: bool = True, **options: Any) -> None:
        """Start Ingot, a rack and the service, and make a node manageable."""
        port = ports.tcp()
        self.bench = self.useFixture(
            lab.Lab(
                rack={"machine": [{"macs": _MACS}]},
                options={
                    "DEFAULT": {"enabled_inspect_interfaces": "inspector,no-inspect"},
                    "inspector": {
                        "endpoint_override": f"http://127.0.0.1:{port}", "status_check_period": 1, "add_ports": "all",
                        **self.login, **options,
                    },
                },
            )
        )  # fmt: skip
        self.service = Inspector(self.bench.directory / "inspector", port, self.bench.url)
        self.addCleanup(self.service.stop)
        if starts:
            self.start_service()
        self.uuid = self.bench.enroll(inspect_interface="inspector")
        (second,) = self.bench.user.get(f"/v1/ports?address={_MACS[1]}")["ports"]
        self.bench.user.delete(f"/v1/ports/{second['uuid']}")
        self.bench.user.provision(self.uuid, "manage")
        self.bench.reach(self.uuid, "manageable")

    def start_service(self) -> None:
        self.service.start()
        self.bench.eventually(lambda: self.service.answers, "the service answers")

    def inspect(self, end: str) -> dict[str, Any]:
        self.bench.user.provision(self.uuid, "inspect")
        self.bench.eventually(lambda: self.bench.user.node(self.uuid)["provision_state"] != "manageable", "it begins")
        return self.bench.reach(self.uuid, end)

    def shown(self) -> str:
        return str(self.bench.user.get(f"/ingot/v1/nodes/{self.uuid}/explanation"))

    def test_the_agent_is_booted_here_and_calls_there(self) -> None:
        self.begin()
        node = self.inspect("manageable")
        self.assertEqual((None, "power off"), (node["last_error"], node["power_state"]))
        self.assertEqual("x86_64", node["properties"]["cpu_arch"])
        self.assertEqual(self.bench.rack.machines[0]["memory_mb"], node["properties"]["memory_mb"])
        found = self.bench.user.get(f"/v1/nodes/{self.uuid}/inventory")
        self.assertEqual("Ingot", found["inventory"]["system_vendor"]["manufacturer"])
        addresses = {port["address"] for port in self.bench.user.get("/v1/ports")["ports"]}
        self.assertEqual(set(_MACS), addresses)
        status = self.service.status(self.uuid)
        self.assertEqual((True, None), (status["finished"], status["error"]))
        log = (self.bench.directory / "conductor-0.log").read_text()
        self.assertNotIn(_PASSWORD, log)
        self.assertNotIn("ERROR", log)

    def test_what_the_service_finds_wrong_is_the_error(self) -> None:
        self.begin()
        rule = {"conditions": [], "actions": [{"action": "fail", "message": "not one of ours"}]}
        made = requests.post(f"{self.service.url}/v1/rules", json=rule, auth=(_USER, _PASSWORD), timeout=30)
        self.assertTrue(made.ok, made.text)
        node = self.inspect("inspect failed")
        self.assertIn("the inspection service reports: ", node["last_error"])
        self.assertIn("not one of ours", node["last_error"])
        self.bench.eventually(
            lambda: self.bench.rack.control.machine(self.bench.rack.machines[0]["name"])["power"] == "off", "it is off"
        )

    def test_an_abort_goes_to_the_service(self) -> None:
        self.begin()
        machine = self.bench.rack.machines[0]["name"]
        self.bench.rack.control.order_fault(machine, "boot_hang")
        self.bench.user.provision(self.uuid, "inspect")
        self.bench.reach(self.uuid, "inspect wait")
        self.bench.eventually(lambda: self.service.status(self.uuid).get("state") == "waiting", "the service waits")
        self.bench.user.provision(self.uuid, "abort")
        self.bench.reach(self.uuid, "inspect failed")
        self.bench.eventually(lambda: self.service.status(self.uuid).get("finished"), "the service has ended it")
        self.assertIn("Canceled", self.service.status(self.uuid)["error"])

    def test_a_conductor_that_is_killed_asks_on(self) -> None:
        self.begin()
        machine = self.bench.rack.machines[0]["name"]
        self.bench.rack.control.order_fault(machine, "boot_hang", times=1)
        self.bench.user.provision(self.uuid, "inspect")
        self.bench.reach(self.uuid, "inspect wait")
        self.bench.eventually(lambda: self.service.status(self.uuid).get("state") == "waiting", "the service waits")
        self.bench.rack.control.wait_for_state(machine, "hung", lab.PATIENCE)  # it boots after the service was asked
        started = self.service.status(self.uuid)["started_at"]
        self.bench.process.stop(signal.SIGKILL)
        self.bench.process.start()
        self.bench.wait_until_served()
        self.bench.rack.control.power(machine, "reset")
        self.bench.reach(self.uuid, "manageable")
        self.assertEqual(started, self.service.status(self.uuid)["started_at"], "it was started again")

    def test_a_service_that_is_away_for_a_while(self) -> None:
        self.begin(starts=False)
        self.bench.user.provision(self.uuid, "inspect")
        self.bench.eventually(lambda: "inspection service" in self.shown(), "the explanation names the service")
        self.start_service()
        self.bench.reach(self.uuid, "manageable")

    def test_the_service_boots_machines_that_cannot_be_booted_here(self) -> None:
        self.begin()
        port = self.bench.user.get("/v1/ports")["ports"][0]
        self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/pxe_enabled": False})
        self.bench.user.provision(self.uuid, "inspect")
        self.bench.reach(self.uuid, "inspect wait")
        self.bench.eventually(lambda: self.service.status(self.uuid).get("state") == "waiting", "the service waits")
        self.bench.eventually(
            lambda: self.bench.rack.control.machine(self.bench.rack.machines[0]["name"])["power"] == "on",
            "the service has switched the machine on",
        )
        self.bench.user.provision(self.uuid, "abort")
        self.bench.reach(self.uuid, "inspect failed")
