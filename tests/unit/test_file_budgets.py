"""How many files of the product run for one unit of work.

A request counts from the web server to the database, without what the conductor does in the request's thread. A deploy
counts in the threads of the conductor, and once more with what the conductor does in the request's thread to accept it.
"""

import base64
import contextlib
import http.client
import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import bcrypt
import fixtures

from ingot.api import server
from ingot.rack import ports
from ingot.rpcapi import client, transport
from tests import api_case, conductor_case, file_counter

AUTHORIZATION = f"Basic {base64.b64encode(b'ada:secret').decode()}"
REPEATS = 3
SETTLED_S = 0.1
"""What a thread does after it has answered is part of the request."""

BUDGETS = {
    "GET node": 15,
    "GET nodes": 13,
    "GET states": 13,
    "PATCH node": 19,
    "PUT maintenance": 14,
    "PUT provision": 20,
    "heartbeat": 14,
    "fake deploy": 22,
    "fake deploy, with accepting it": 27,
}


class FileBudgets(conductor_case.ConductorCase):
    """The API with http_basic, on a socket, before a conductor with fake hardware, in one process."""

    def setUp(self) -> None:
        self.counter = file_counter.FileCounter()
        self.addCleanup(self.counter.stop)
        super().setUp()
        bus = transport.LocalTransport()
        bus.serve(self.conf.host, self.conductor.endpoint)
        app = api_case.create_app(self.conf, self.db, client.ConductorClient(self.conf, self.db, bus))
        web = server.Server(self.conf, app)
        web.start()
        self.addCleanup(web.stop)
        self.http = http.client.HTTPConnection("127.0.0.1", self.conf.api.port, timeout=conductor_case.PATIENCE)
        self.addCleanup(self.http.close)

    def configure(self) -> None:
        users = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "users"
        users.write_text(f"ada:{bcrypt.hashpw(b'secret', bcrypt.gensalt(rounds=4)).decode()}\n")
        for name, value, group in (
            ("auth_strategy", "http_basic", None),
            ("http_basic_auth_user_file", str(users), None),
            ("enabled_inspect_interfaces", ["fake", "agent"], None),
            ("hash_ring_reset_interval", 3600, None),
            ("host_ip", "127.0.0.1", "api"),
            ("port", ports.tcp(), "api"),
            ("require_tls", False, "agent"),
            ("automated_clean", False, "conductor"),
            ("heartbeat_interval", 3600, "conductor"),
            ("heartbeat_timeout", 36000, "conductor"),
            ("sweep_interval", 3600, "conductor"),
            ("endpoint_override", "http://127.0.0.1", "service_catalog"),
        ):
            self.conf.set_override(name, value, group=group)

    def send(self, status: int, method: str, path: str, body: Any = None) -> Any:
        headers = {
            "Authorization": AUTHORIZATION,
            "Content-Type": "application/json",
            "X-OpenStack-Ironic-API-Version": "latest",
        }
        self.http.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.http.getresponse()
        text = answer.read().decode()
        self.assertEqual(status, answer.status, f"{method} {path}: {text}")
        return json.loads(text) if text else None

    def wait(self, path: str, state: str) -> None:
        def check() -> bool:
            node = self.send(200, "GET", path)
            return bool(node["provision_state"] == state and node["reservation"] is None)

        conductor_case.eventually(check, state)

    def provision(self, path: str, target: str, state: str) -> None:
        self.send(202, "PUT", f"{path}/states/provision", {"target": target})
        self.wait(path, state)

    def node(self, available: bool = True, **values: Any) -> str:
        """Return the path of a new node."""
        path = f"/v1/nodes/{self.send(201, 'POST', '/v1/nodes', {'driver': 'fake-hardware', **values})['uuid']}"
        self.provision(path, "manage", "manageable")
        if available:
            self.provision(path, "provide", "available")
        return path

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        with self.counter.watching():
            yield
            time.sleep(SETTLED_S)

    def files(self, turn: int) -> Iterator[tuple[str, set[str]]]:
        path = self.node()
        for name, url in (("GET node", path), ("GET nodes", "/v1/nodes"), ("GET states", f"{path}/states")):
            with self.watching():
                self.send(200, "GET", url)
            yield name, self.counter.of_request()
        with self.watching():
            self.send(202, "PUT", f"{path}/maintenance", {"reason": "hot"})
        yield "PUT maintenance", self.counter.of_request()
        self.send(202, "DELETE", f"{path}/maintenance")
        with self.watching():
            self.send(200, "PATCH", path, [{"op": "add", "path": "/extra/turn", "value": turn}])
        yield "PATCH node", self.counter.of_request()
        with self.watching():
            self.send(202, "PUT", f"{path}/states/provision", {"target": "active"})
        yield "PUT provision", self.counter.of_request()
        self.wait(path, "active")
        path = self.node()
        with self.watching():
            self.provision(path, "active", "active")
        yield "fake deploy", self.counter.of_conductor()
        yield "fake deploy, with accepting it", self.counter.of_conductor_with_calls()
        yield "heartbeat", self.heartbeat()

    def heartbeat(self) -> set[str]:
        """Inspect a machine by its agent; count its second heartbeat, which wakes the conductor as the first one."""
        path = self.node(available=False, inspect_interface="agent")
        self.provision(path, "inspect", "inspect wait")
        uuid = path.rpartition("/")[2]
        token = self.send(200, "GET", f"/v1/lookup?node_uuid={uuid}")["config"]["agent_token"]
        beat = {"callback_url": "http://127.0.0.1:9", "agent_version": "11.0.0", "agent_token": token}
        self.send(202, "POST", f"/v1/heartbeat/{uuid}", beat)
        time.sleep(SETTLED_S)
        with self.watching():
            self.send(202, "POST", f"/v1/heartbeat/{uuid}", beat)
        files = self.counter.of_request()
        self.provision(path, "abort", "inspect failed")
        return files

    def test_work_runs_through_few_files(self) -> None:
        most: dict[str, set[str]] = {}
        for turn in range(1 + REPEATS):
            for name, files in self.files(turn):
                if turn and len(files) > len(most.get(name, ())):  # the first turn fills caches
                    most[name] = files
        self.assertEqual(set(BUDGETS), set(most))
        over = {name: (len(files), sorted(files)) for name, files in most.items() if len(files) > BUDGETS[name]}
        self.assertEqual({}, over)
