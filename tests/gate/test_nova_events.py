"""A real Nova API, which asks a real Keystone who is there, takes the power states of machines from a conductor.

What it does with them is seen in its database, where a server's actions are: behind it would be the message bus and a
compute service, which the events are sent to.
"""

import contextlib
import pathlib
import shutil
import signal
import sqlite3
from typing import ClassVar

import fixtures
import requests
import testtools

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import cloud, environments
from tests.gate.test_nova import REQUIREMENTS

PROGRAM = environments.ROOT / "tests" / "gate" / "programs" / "nova_server.py"
CELL = "cell1"

# Nova has no server of its own any more; its application wants one with threads.
_SERVE = """
import socketserver, sys
from wsgiref import simple_server
port, sys.argv = int(sys.argv[1]), ["nova-api"]
from nova.wsgi.osapi_compute import application
class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128
class Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass
simple_server.make_server("127.0.0.1", port, application, Server, Quiet).serve_forever()
"""

_CONFIGURATION = """
[DEFAULT]
host = api-0
my_ip = 127.0.0.1
state_path = {directory}
transport_url = fake://
debug = true
[api]
auth_strategy = keystone
[database]
connection = sqlite:///{directory}/cell0.sqlite
[api_database]
connection = sqlite:///{directory}/api.sqlite
[oslo_concurrency]
lock_path = {directory}/locks
[keystone_authtoken]
www_authenticate_uri = {auth_url}
auth_type = password
interface = public
{credentials}
"""


class NovaAPI(fixtures.Fixture):
    """
    :ivar url: of the compute API.
    """

    def __init__(self, keystone: cloud.Keystone) -> None:
        super().__init__()
        self._keystone = keystone

    def _setUp(self) -> None:
        self._programs = environments.cached("nova", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._config = self.directory / "nova.conf"
        login = "\n".join(f"{name} = {value}" for name, value in self._keystone.credentials("ingot").items())
        self._config.write_text(
            _CONFIGURATION.format(directory=self.directory, auth_url=self._keystone.url, credentials=login)
        )
        shutil.copy(self._programs.parent / "etc" / "nova" / "api-paste.ini", self.directory)
        cell = f"sqlite:///{self.directory}/cell.sqlite"
        self._manage("api_db", "sync")
        self._manage("cell_v2", "map_cell0", "--database_connection", f"sqlite:///{self.directory}/cell0.sqlite")
        created = ("--name", CELL, "--database_connection", cell, "--transport-url", "fake://")
        self._manage("cell_v2", "create_cell", *created)
        self._manage("db", "sync")
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}/v2.1"
        program = ["/usr/bin/env", f"OS_NOVA_CONFIG_DIR={self.directory}", str(self._programs / "python")]
        self.process = lab.Process([*program, "-c", _SERVE, str(port)], self.directory / "nova-api.log")
        self.addCleanup(self.process.stop)
        self.start()

    def _manage(self, *words: str) -> None:
        command = (self._programs / "nova-manage", "--config-file", self._config)
        environments.run(*command, *words, timeout=environments.BUILD_TIMEOUT_S)

    def start(self) -> None:
        self.process.start()

        def answers() -> bool:
            return requests.get(f"{self.url}/", timeout=lab.PATIENCE).status_code == requests.codes.unauthorized

        lab.eventually(answers, "Nova's API answers", lab.PATIENCE, self.process.log.read_text)

    def make_server(self) -> str:
        """Return the uuid of a new server."""
        command = (self._programs / "python", PROGRAM, "--config-file", self._config)
        return environments.run(*command, cwd=self.directory, timeout=environments.BUILD_TIMEOUT_S).split()[-1]

    def list_actions(self, server: str) -> list[str]:
        """Return what was done with a server, as Nova shows it to its owner."""
        statement = "SELECT action FROM instance_actions WHERE instance_uuid = ? ORDER BY id"
        with contextlib.closing(sqlite3.connect(self.directory / "cell.sqlite")) as database:
            return [action for (action,) in database.execute(statement, (server,))]


class TestNovaEvents(testtools.TestCase):
    """The tests share a cloud and a rack; each has a machine and a server of its own."""

    keystone: ClassVar[cloud.Keystone]
    nova: ClassVar[NovaAPI]
    bench: ClassVar[lab.Lab]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.nova = cls.enterClassContext(NovaAPI(cls.keystone))
        cls.keystone.publish(cls.nova.url, "compute", "nova")
        login = {**cls.keystone.credentials("ingot"), "auth_type": "password", "region_name": cloud.REGION}
        options = {"nova": {**login, "timeout": 2}}
        cls.bench = cls.enterClassContext(lab.Lab(machines=2, options=options))

    def enroll(self, index: int) -> tuple[str, str]:
        """Return a node whose machine is off, and its server."""
        node, server = self.bench.enroll(index), self.nova.make_server()
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

    def check_actions(self, server: str, *actions: str) -> None:
        def check() -> bool:
            return self.nova.list_actions(server)[-len(actions) :] == [*actions]

        self.bench.eventually(check, f"Nova knows of {actions}")

    def log(self) -> str:
        return (self.bench.directory / "conductor-0.log").read_text()

    def test_each_switch_of_a_machine_is_an_action_of_its_server(self) -> None:
        node, server = self.enroll(0)
        self.switch(node, "power on")
        self.check_actions(server, "start")
        self.switch(node, "power off")
        self.check_actions(server, "start", "stop")
        self.bench.ipmitool("chassis", "power", "on")
        self.reach(node, "power on")
        self.check_actions(server, "start", "stop", "start")
        self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_uuid": "5f0c0f0e-9c1f-4f51-b7b9-6f1f2f1f3f10"})
        self.switch(node, "power off")
        self.bench.eventually(lambda: "it knows no such server" in self.log(), "the server is unknown")
        self.assertNotIn(cloud.PASSWORD, self.log())

    def test_machines_do_not_wait_for_a_nova_that_is_away_or_slow(self) -> None:
        node, server = self.enroll(1)
        self.nova.process.stop(signal.SIGKILL)
        self.switch(node, "power on")
        self.bench.eventually(lambda: "will be sent again" in self.log(), "Nova is away")
        self.nova.start()
        self.check_actions(server, "start")
        self.nova.process.send(signal.SIGSTOP)
        try:
            for target in ("power off", "power on", "power off"):
                self.switch(node, target)
            self.bench.eventually(lambda: "timed out" in self.log(), "Nova is slow")
        finally:
            self.nova.process.send(signal.SIGCONT)
        self.check_actions(server, "stop")
        self.assertIsNone(self.bench.user.node(node)["last_error"])
