"""A real Nova, which asks a real Keystone who is there, takes the power states of machines from a conductor.

Nova's API hands them to its compute service, which enters them into its database: what is seen is what Nova then says
about its servers. The scheduler, Placement and Neutron are left out.
"""

import pathlib
import shutil
import signal
from typing import ClassVar

import fixtures
import requests
import testtools

from ingot.rack import ports
from tests import http_handler, metric_values
from tests.functional.deployment import lab
from tests.gate import cloud, environments
from tests.gate.test_nova import REQUIREMENTS, Peer

_PROGRAMS = environments.ROOT / "tests" / "gate" / "programs"
SERVERS = (
    "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c50",
    "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c51",
    "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c52",
)
UNKNOWN = "5f0c0f0e-9c1f-4f51-b7b9-6f1f2f1f3f10"

_CONFIGURATION = """
[DEFAULT]
host = api-0
my_ip = 127.0.0.1
state_path = {directory}
transport_url = fake://
compute_driver = ironic.IronicDriver
debug = true
log_options = false
[api]
auth_strategy = keystone
[database]
connection = sqlite:///{directory}/cell.sqlite
[api_database]
connection = sqlite:///{directory}/api.sqlite
[oslo_concurrency]
lock_path = {directory}/locks
[placement]
auth_type = none
endpoint_override = {placement}
[glance]
api_servers = {placement}
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
interface = public
{credentials}
"""


class _Versions(http_handler.Handler):
    """Placement as far as Nova's compute service asks it when it starts: which versions there are."""

    def do_GET(self) -> None:
        version = {"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT"}
        links = [{"rel": "self", "href": ""}]
        self.answer(200, {"versions": [{**version, "links": links}]}, **{"Content-Type": "application/json"})


class Nova(fixtures.Fixture):
    """
    :param keystone: whom it asks, and in whose catalog it is.
    """

    def __init__(self, keystone: cloud.Keystone) -> None:
        super().__init__()
        self._keystone = keystone

    def _setUp(self) -> None:
        programs = environments.cached("nova", *REQUIREMENTS)
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = directory / "nova.conf"
        config.write_text(
            _CONFIGURATION.format(
                directory=directory,
                placement=self.useFixture(Peer(_Versions)).url,
                auth_url=self._keystone.url,
                credentials="\n".join(f"{name} = {it}" for name, it in self._keystone.credentials("ingot").items()),
            )
        )
        shutil.copy(programs.parent / "etc" / "nova" / "api-paste.ini", directory)
        python = programs / "python"
        database = (python, _PROGRAMS / "nova_database.py", "--config-file", config, *SERVERS)
        environments.run(*database, timeout=environments.BUILD_TIMEOUT_S)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}/v2.1"
        program = ["/usr/bin/env", f"OS_NOVA_CONFIG_DIR={directory}", str(python), str(_PROGRAMS / "nova_server.py")]
        self.process = lab.Process([*program, str(port)], directory / "nova-api.log")
        self.addCleanup(self.process.stop)
        self.start()
        self._keystone.publish(self.url, "compute", "nova")
        self._keystone.grant("ingot", "service", "admin")  # others find servers of their own project only

    def start(self) -> None:
        self.process.start()

        def answers() -> bool:
            return requests.get(self.url, timeout=lab.PATIENCE).ok

        lab.eventually(answers, "Nova's API answers", lab.PATIENCE, self.process.log.read_text)

    def show(self, server: str) -> tuple[str | None, list[str]]:
        """Return status and actions of a server, the newest last, as Nova tells them to an administrator.

        :returns: None for the status if it changes between the two lists: Nova gives details only with Neutron.
        """
        compute = self._keystone.connect(cloud.ADMINISTRATOR, "admin").compute
        found = {
            one.id: status
            for status in ("ACTIVE", "SHUTOFF")
            for one in compute.servers(details=False, all_projects=True, status=status)
        }
        return found.get(server), [one.action for one in compute.server_actions(server)][::-1]


class TestNovaAPI(testtools.TestCase):
    """The tests share a cloud and a rack; each has a machine and a server of its own."""

    keystone: ClassVar[cloud.Keystone]
    nova: ClassVar[Nova]
    bench: ClassVar[lab.Lab]
    metrics: ClassVar[int]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.nova = cls.enterClassContext(Nova(cls.keystone))
        cls.metrics = ports.tcp()
        login = {**cls.keystone.credentials("ingot"), "auth_type": "password", "region_name": cloud.REGION}
        options = {"nova": {**login, "timeout": 2}, "metrics": {"api_port": cls.metrics}}
        cls.bench = cls.enterClassContext(lab.Lab(machines=len(SERVERS), options=options))

    def enroll(self, index: int) -> tuple[str, str]:
        """Return a node whose machine is off, and its server."""
        node, server = self.bench.enroll(index), SERVERS[index]
        self.bench.user.provision(node, "manage")
        self.bench.reach(node, "manageable")
        self.switch(node, "power off")
        self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_uuid": server})
        return node, server

    def switch(self, node: str, target: str) -> None:
        self.bench.user.put(f"/v1/nodes/{node}/states/power", {"target": target})
        self.reach(node, target)

    def reach(self, node: str, power_state: str) -> None:
        def check() -> bool:
            shown = self.bench.user.node(node)
            return shown["power_state"] == power_state and shown["target_power_state"] is None

        self.bench.eventually(check, f"the machine is in {power_state}")

    def check(self, server: str, status: str, *actions: str) -> None:
        """Check that Nova comes to know a server's state, and what it counts as the last that was done with it."""

        def is_known() -> bool:
            found, done = self.nova.show(server)
            return found == status and done[-len(actions) :] == [*actions]

        lab.eventually(is_known, f"Nova knows that it is {status}", lab.PATIENCE, self.complain)

    def complain(self) -> str:
        return f"{self.bench.logs()}\n{self.nova.process.log.read_text()[-8000:]}"

    def log(self) -> str:
        return (self.bench.directory / "conductor-0.log").read_text()

    def count(self, outcome: str) -> float:
        """Return how many events had an outcome."""
        answer = requests.get(f"http://127.0.0.1:{self.metrics}/metrics", timeout=lab.PATIENCE)
        found = [one for one in metric_values.parse(answer.text) if one.name == "ingot_nova_power_updates_total"]
        return sum(one.value for one in found if one.labels["outcome"] == outcome)

    def wait_for_log(self, text: str, since: int) -> None:
        """Wait until the conductor's log says something.

        :param since: how long it was when the wait began to matter.
        """
        self.bench.eventually(lambda: text in self.log()[since:], f"the log says: {text}")

    def test_a_switched_machine_is_a_switched_server(self) -> None:
        node, server = self.enroll(0)
        self.assertEqual(("SHUTOFF", []), self.nova.show(server))
        self.switch(node, "power on")
        self.check(server, "ACTIVE", "start")
        self.switch(node, "power off")
        self.check(server, "SHUTOFF", "start", "stop")
        self.bench.ipmitool("chassis", "power", "on")  # by others
        self.check(server, "ACTIVE", "start", "stop", "start")
        taken = self.nova.process.log.read_text()
        self.assertIn(f"Creating event power-update:POWER_ON for instance {server} on compute-0", taken)

        refused, sent = self.count("refused"), self.count("sent")
        for instance in (None, UNKNOWN):
            self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_uuid": instance})
        self.switch(node, "power off")
        self.bench.eventually(lambda: self.count("refused") == refused + 1, "the server is unknown")
        self.assertIn(f"POWER_OFF of server {UNKNOWN}: it knows no such server", self.log())
        self.assertEqual(sent, self.count("sent"))
        self.assertEqual("ACTIVE", self.nova.show(server)[0], "no server is another's")
        self.assertNotIn(cloud.PASSWORD, self.log())

    def test_machines_do_not_wait_for_nova(self) -> None:
        node, server = self.enroll(1)
        began = len(self.log())
        self.nova.process.stop(signal.SIGKILL)
        self.switch(node, "power on")
        self.wait_for_log("will be sent again", began)
        self.nova.start()
        self.check(server, "ACTIVE", "start")

        began = len(self.log())
        self.nova.process.send(signal.SIGSTOP)
        try:
            for target in ("power off", "power on", "power off"):
                self.switch(node, target)
            self.wait_for_log("timed out", began)
        finally:
            self.nova.process.send(signal.SIGCONT)
        self.check(server, "SHUTOFF", "stop")
        self.assertIsNone(self.bench.user.node(node)["last_error"])
        self.assertEqual(0, self.count("lost"))

    def test_machines_do_not_wait_for_keystone(self) -> None:
        node, server = self.enroll(2)
        self.nova.process.stop(signal.SIGKILL)
        self.keystone.process.send(signal.SIGSTOP)
        began = len(self.log())
        try:
            self.switch(node, "power on")
            self.wait_for_log("will be sent again", began)  # its login is forgotten
            self.wait_for_log(f"Request to {self.keystone.url}/auth/tokens timed out", began)
        finally:
            self.keystone.process.send(signal.SIGCONT)
        self.keystone.process.stop(signal.SIGKILL)
        began = len(self.log())
        self.wait_for_log(f"Unable to establish connection to {self.keystone.url}", began)
        self.nova.start()
        self.keystone.restart()
        self.check(server, "ACTIVE", "start")
        self.assertEqual(0, self.count("lost"))
