"""Clients that write to one object at the same time, through a real server: nothing that was answered 200 is lost."""

import collections
import json
import threading
from collections.abc import Callable
from typing import Any

import requests

from ingot.api import server
from ingot.common import states
from ingot.db import nodes
from ingot.rack import ports
from tests import api_case, patience

STEP = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}
IN_RUNBOOK = {"interface": "bios", "step": "factory_reset", "order": 1}
CLIENTS = 2
TIMEOUT_S = patience.seconds(60)


class Client:
    """One client: a connection of its own, and what it was answered.

    :ivar answers: how many answers there were, by status.
    :ivar unexplained: refusals that do not say why.
    """

    def __init__(self, base: str, name: str) -> None:
        self.base, self.name = base, name
        self.answers: collections.Counter[int] = collections.Counter()
        self.unexplained: list[str] = []
        self.written: list[str] = []
        self._session = requests.Session()
        self._session.headers["X-OpenStack-Ironic-API-Version"] = api_case.LATEST

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        answer = self._session.request(method, self.base + path, json=body, headers=headers, timeout=TIMEOUT_S)
        if method != "GET":
            self.answers[answer.status_code] += 1
            if answer.status_code >= 400 and not json.loads(answer.json()["error_message"])["faultstring"]:
                self.unexplained.append(answer.text)
        return answer

    def add(self, path: str, key: str, value: Any, **headers: str) -> requests.Response:
        return self.send("PATCH", path, [{"op": "add", "path": f"/extra/{key}", "value": value}], **headers)


class Concurrency(api_case.ApiCase):
    """On SQLite, where writers come one after the other in any case; other databases below.

    :cvar patches: how often each client patches the node.
    """

    backend = "sqlite"
    patches = 100

    def configure(self) -> None:
        self.conf.set_override("port", ports.tcp(), group="api")
        self.conf.set_override("host_ip", "127.0.0.1", group="api")

    def setUp(self) -> None:
        super().setUp()
        web = server.Server(self.conf, self.application())
        web.start()
        self.addCleanup(web.stop)
        base = f"http://127.0.0.1:{self.conf.api.port}"
        self.clients = [Client(base, f"client{number}") for number in range(CLIENTS)]
        self.uuid = self.node(name="n")["uuid"]
        nodes.set_always(self.db, self.uuid, {"power_state": states.POWER_OFF, "provision_state": states.MANAGEABLE})

    def together(self, work: Callable[[Client], None]) -> collections.Counter[int]:
        """Do the same as all clients at the same time; count their answers."""
        start = threading.Barrier(CLIENTS)

        def run(client: Client) -> None:
            start.wait()
            work(client)

        threads = [threading.Thread(target=run, args=(client,)) for client in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S * 5)
            self.assertFalse(thread.is_alive(), "a client hangs")
        self.assertEqual([], [text for client in self.clients for text in client.unexplained])
        return sum((client.answers for client in self.clients), collections.Counter())

    def refused_only_for_others(self, answers: collections.Counter[int]) -> None:
        self.assertLessEqual(set(answers), {200, 202, 204, 409, 412}, answers)

    def adds_keys(self, path: str, each: int) -> None:
        """Add keys of ``extra`` as every client; check that exactly those answered 200 are there afterwards."""
        before = set(self.good("GET", path)["extra"])

        def add(client: Client) -> None:
            for number in range(each):
                key = f"{client.name}-{number}"
                if client.add(path, key, number).status_code == 200:
                    client.written.append(key)

        answers = self.together(add)
        self.refused_only_for_others(answers)
        self.assertEqual(CLIENTS * each, answers.total())
        written = {key for client in self.clients for key in client.written}
        self.assertEqual(before | written, set(self.good("GET", path)["extra"]))
        self.assertGreater(len(written), CLIENTS * each / 2, answers)

    def test_two_clients_patch_a_node_many_times(self) -> None:
        self.adds_keys("/v1/nodes/n", self.patches)

    def test_two_clients_count_together_with_entity_tags(self) -> None:
        self.good("PATCH", "/v1/nodes/n", [{"op": "add", "path": "/extra/count", "value": 0}])

        def count(client: Client) -> None:
            for _number in range(150):
                read = client.send("GET", "/v1/nodes/n?fields=extra")
                client.add(
                    "/v1/nodes/n", "count", read.json()["extra"]["count"] + 1, **{"If-Match": read.headers["ETag"]}
                )

        answers = self.together(count)
        self.assertLessEqual(set(answers), {200, 412}, answers)
        self.assertEqual(CLIENTS * 150, answers.total())
        self.assertEqual(answers[200], self.good("GET", "/v1/nodes/n")["extra"]["count"])

    def test_two_clients_patch_everything_else(self) -> None:
        ours = {"node_uuid": self.uuid}
        made: dict[str, dict[str, Any]] = {
            "chassis": {},
            "ports": {**ours, "address": "52:54:00:00:00:01"},
            "portgroups": ours,
            "volume/connectors": {**ours, "type": "iqn", "connector_id": "a"},
            "volume/targets": {**ours, "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"},
            "deploy_templates": {"name": "CUSTOM_T", "steps": [STEP]},
            "runbooks": {"name": "CUSTOM_R", "steps": [IN_RUNBOOK]},
        }
        for name, body in made.items():
            created = self.good("POST", f"/v1/{name}", body)
            for client in self.clients:
                client.answers.clear()
                client.written.clear()
            self.adds_keys(f"/v1/{name}/{created['uuid']}", 20)

    def test_two_clients_add_traits(self) -> None:
        self.good("POST", "/v1/runbooks", {"name": "r", "steps": [IN_RUNBOOK]})
        for path in ("/v1/nodes/n/traits", "/v1/runbooks/r/traits"):

            def add(client: Client, path: str = path) -> None:
                for number in range(20):
                    trait = f"CUSTOM_{client.name.upper()}_{number}"
                    if client.send("PUT", f"{path}/{trait}").status_code == 204:
                        client.written.append(trait)

            for client in self.clients:
                client.answers.clear()
                client.written.clear()
            self.refused_only_for_others(self.together(add))
            written = {trait for client in self.clients for trait in client.written}
            self.assertEqual(written, set(self.good("GET", path)["traits"]))

    def test_parts_of_a_node_and_the_node_itself(self) -> None:
        """Maintenance, RAID and traits of one client lose nothing that the other patches, and the reverse."""

        def work(client: Client) -> None:
            for number in range(50):
                if client is self.clients[0]:
                    if client.add("/v1/nodes/n", str(number), number).status_code == 200:
                        client.written.append(str(number))
                else:
                    client.send("PUT", "/v1/nodes/n/maintenance", {"reason": str(number)})
                    client.send("PUT", "/v1/nodes/n/states/raid", {})
                    client.send("PUT", "/v1/nodes/n/traits", {"traits": [f"CUSTOM_{number}"]})

        self.refused_only_for_others(self.together(work))
        node = self.good("GET", "/v1/nodes/n")
        self.assertEqual(set(self.clients[0].written), set(node["extra"]))
        self.assertEqual(("49", ["CUSTOM_49"]), (node["maintenance_reason"], node["traits"]))


class ConcurrencyOnMysql(Concurrency):
    backend = "mysql"
    patches = 250


class ConcurrencyOnPostgresql(Concurrency):
    backend = "postgresql"
    patches = 250
