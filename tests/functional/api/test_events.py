"""Live events from two API processes of one database: while machines are deployed, readers that come and go, an
API that is killed, and readers that do not read.
"""

import itertools
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import fixtures
import requests
import testtools

from tests import database, patience
from tests.functional import services
from tests.functional.deployment import lab

NODES = 25
_FAKES = {f"{kind}_interface": "fake" for kind in ("power", "management", "boot", "deploy")}
_OPTIONS = {
    "DEFAULT": {"debug": False},
    "api": {"api_threads": 2, "max_event_streams": 8, "event_heartbeat_interval": 1},
}


class Reader(threading.Thread):
    """A client that follows the events, from one API after the other.

    :param urls: where to connect, in turn.
    :param most: blocks after which it leaves and comes back; None: it stays.
    :ivar seen: the events.
    """

    def __init__(self, urls: list[str], most: int | None = None, query: str = "") -> None:
        super().__init__(daemon=True)
        self._urls = itertools.cycle(urls)
        self._most = most
        self._query = query
        self._stopped = threading.Event()
        self._last: str | None = None
        self.connected = threading.Event()
        self.seen: list[dict[str, Any]] = []
        self.missed: list[str] = []

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow(f"{next(self._urls)}/ingot/v1/events{self._query}")
            except requests.RequestException:
                time.sleep(0.1)  # killed, or not there yet

    def stop(self) -> None:
        self._stopped.set()
        self.join(patience.seconds(30))

    def _follow(self, url: str) -> None:
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        with requests.get(url, headers=headers, stream=True, timeout=patience.seconds(20)) as answer:
            if answer.status_code != 200:
                raise requests.RequestException(answer.text)
            for number, _block in enumerate(self._blocks(answer), 1):
                if self._stopped.is_set() or (self._most and number >= self._most):
                    return

    def _blocks(self, answer: requests.Response) -> Iterator[None]:
        """Read on; yield after each event, and after each silence."""
        event: dict[str, str] = {}
        for line in answer.iter_lines(chunk_size=None, decode_unicode=True):
            name, _colon, value = line.partition(": ")
            if name:
                event[name] = value
            elif not line:
                self._take(event)
                event = {}
                yield

    def _take(self, event: dict[str, str]) -> None:
        self._last = event.get("id", self._last)
        if event.get("event") == "missed":
            self.missed.append(event["data"])
        elif "data" in event:
            self.seen.append(json.loads(event["data"]))
        self.connected.set()


class TwoApis(fixtures.Fixture):
    """A laboratory with one conductor and two APIs."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def _setUp(self) -> None:
        broker = services.broker_url()
        self.lab = self.useFixture(lab.Lab(database_url=self._url, rabbit_url=broker, apis=2, options=_OPTIONS))
        self.urls = self.lab.urls
        self.second = self.lab.apis["api-1"]
        self.other = lab.User(self.urls[1])
        for api in (lab.User(self.urls[0]), self.other):
            self.lab.eventually(lambda api=api: api.get("/v1"), "both APIs answer")


class _OnTwoApis:
    backend: ClassVar[str]

    def make(self: Any) -> TwoApis:
        url = self.useFixture(database.DatabaseFixture(self.backend, migrated=False)).url
        made: TwoApis = self.useFixture(TwoApis(url))
        return made

    def reader(self: Any, urls: list[str], most: int | None = None, query: str = "") -> Reader:
        reader = Reader(urls, most, query)
        reader.start()
        self.addCleanup(reader.stop)
        self.assertTrue(reader.connected.wait(lab.PATIENCE))
        return reader

    def test_readers_see_every_event_once_and_in_one_order(self: Any) -> None:
        site = self.make()
        first, second = (self.reader([url]) for url in site.urls)
        restless = self.reader(site.urls, most=7)
        only_power = self.reader(site.urls[:1], query="?kind=power")
        for number in range(NODES):
            site.lab.user.post("/v1/nodes", {"driver": "fake-hardware", "name": f"fake-{number}", **_FAKES})
        self.everywhere(site, "enroll", "manage", "manageable")
        self.everywhere(site, "manageable", "provide", "available")
        site.lab.user.put("/v1/nodes/fake-0/states/power", {"target": "power on"})
        site.lab.eventually(lambda: only_power.seen, "a change of power is seen")
        site.second.stop(signal.SIGKILL)
        answer = self.ask(site, "available", "active")
        self.assertEqual(NODES, answer["accepted"], answer)
        site.second.start()
        self.wait(site, "active")
        site.lab.eventually(lambda: NODES == self.ended(first, "active"), "the first has read all")
        latest = first.seen[-1]["id"]
        for reader in (second, restless):
            site.lab.eventually(lambda reader=reader: reader.seen and reader.seen[-1]["id"] >= latest, "all is read")
        for reader in (first, second, restless, only_power):
            reader.stop()
        for reader in (first, second, restless):
            ids = [event["id"] for event in reader.seen if event["id"] <= latest]
            self.assertEqual(list(range(ids[0], latest + 1)), ids)
            self.assertEqual([], reader.missed)
        by_id = {event["id"]: event for event in first.seen}
        for event in (*second.seen, *restless.seen):
            self.assertEqual(by_id.get(event["id"], event), event)
        self.assertEqual({"power"}, {event["kind"] for event in only_power.seen})
        self.check_nodes(first.seen)

    def check_nodes(self: Any, seen: list[dict[str, Any]]) -> None:
        """Check that each node went from enroll to active, and that its steps began before they ended."""
        for number in range(NODES):
            own = [event for event in seen if event["node_name"] == f"fake-{number}"]
            states = [event["provision_state"] for event in own if event["kind"] == "provision"]
            self.assertEqual(["enroll", "verifying", "manageable", "cleaning"], states[:4])
            self.assertEqual(["deploying", "active"], states[-2:])
            steps = [event["state"] for event in own if event["kind"] == "step" and event["flow"] == "deploy"]
            self.assertEqual(["running", "done"], steps[:2])

    def everywhere(self: Any, site: TwoApis, state: str, verb: str, reached: str) -> None:
        answer = self.ask(site, state, verb)
        self.assertEqual(NODES, answer["accepted"], answer)
        self.wait(site, reached)

    def ask(self: Any, site: TwoApis, state: str, verb: str) -> Any:
        body = {"action": "provision", "body": {"target": verb}, "filter": {"provision_state": state}}
        return site.lab.user.post("/ingot/v1/bulk", body)

    def wait(self: Any, site: TwoApis, state: str) -> None:
        def all_there() -> bool:
            found = site.lab.user.get("/v1/nodes?fields=provision_state,reservation,last_error")["nodes"]
            return all(node["provision_state"] == state and node["reservation"] is None for node in found)

        site.lab.eventually(all_there, f"all are {state}")

    def ended(self: Any, reader: Reader, state: str) -> int:
        """Count the nodes that a reader has seen reach a state."""
        return len({event["node_uuid"] for event in list(reader.seen) if event.get("provision_state") == state})


class EventsOnSQLite(_OnTwoApis, testtools.TestCase):
    backend = "sqlite"


class EventsOnMySQL(_OnTwoApis, testtools.TestCase):
    backend = "mysql"


class EventsOnPostgreSQL(_OnTwoApis, testtools.TestCase):
    backend = "postgresql"

    # A connection that such a reader kept would be missed soonest here, where each is a process of the server.

    def test_readers_that_do_not_read_block_no_other_request(self) -> None:
        site = self.make()
        host, port = site.urls[0].removeprefix("http://").split(":")  # not the balancer
        for _ in range(7):
            lazy = socket.create_connection((host, int(port)))
            self.addCleanup(lazy.close)
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            lazy.sendall(b"GET /ingot/v1/events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        reader = self.reader(site.urls[:1])
        site.lab.eventually(lambda: self.status(site.urls[0]) == 503, "there are as many streams as there may be")
        uuid = site.lab.user.post("/v1/nodes", {"driver": "fake-hardware", **_FAKES})["uuid"]
        for number in range(300):
            site.lab.user.put(f"/v1/nodes/{uuid}/maintenance", {"reason": f"{number} {'x' * 20000}"})
        field = "maintenance_reason"
        site.lab.eventually(lambda: (reader.seen[-1] if reader.seen else {}).get(field, "")[:3] == "299", "all is read")
        self.assertEqual(300, sum(event["kind"] == "maintenance" for event in reader.seen))

    def status(self, url: str) -> int:
        """Return the status of the answer to a request for a stream."""
        with requests.get(f"{url}/ingot/v1/events", stream=True, timeout=lab.PATIENCE) as answer:
            return int(answer.status_code)
