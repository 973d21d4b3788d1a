"""A stranger on the provisioning network asks for all that a booting machine asks for, all the time."""

import threading
from typing import Any

import requests
import testtools
from requests import adapters

from tests.functional.deployment import lab

STRANGER = "127.0.0.2"
_VERSION = {"X-OpenStack-Ironic-API-Version": "1.115"}


class _From(adapters.HTTPAdapter):
    """Sends requests from another address of this host than the rack's machines do."""

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        super().init_poolmanager(*given, **named, source_address=(STRANGER, 0))


class Stranger:
    """A client without credentials that knows a node's UUID and has an agent of its own.

    :ivar tokens: what it was given as the agent's token.
    """

    def __init__(self, url: str, uuid: str) -> None:
        self.tokens: set[str] = set()
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.mount("http://", _From())
        self._lookup = f"{url}/v1/lookup?node_uuid={uuid}"
        self._heartbeat = f"{url}/v1/heartbeat/{uuid}"

    def attack(self) -> None:
        """Look the node up, and call as its agent."""
        found = self._session.get(self._lookup, headers=_VERSION, timeout=60)
        if found.status_code == 200:
            token = found.json()["config"]["agent_token"]
            self.tokens.add(token)
            body = {"callback_url": "https://127.0.0.2:1", "agent_version": "13.0.0", "agent_token": token}
            self._session.post(self._heartbeat, json=body, headers=_VERSION, timeout=60)

    def attack_until(self, stopped: threading.Event) -> None:
        """Attack all the time."""
        while not stopped.wait(0.01):
            self.attack()


class TokenTheft(testtools.TestCase):
    def test_a_stranger_does_not_take_the_node_over_before_the_agent_has_called(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        machine = bench.rack.machines[0]["name"]
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.rack.control.order_fault(machine, "heartbeat_lost")  # a long time to attack in
        bench.user.provision(uuid, "active")
        given = f"Node {uuid}: the agent token of this boot is given to 127.0.0.1"
        bench.eventually(lambda: self.log(bench).count(given) == 2, "the agent has the token of its second boot")

        stranger, stopped = Stranger(bench.url, uuid), threading.Event()
        attack = threading.Thread(target=stranger.attack_until, args=(stopped,))
        attack.start()
        self.addCleanup(attack.join)
        self.addCleanup(stopped.set)
        warning = f"Node {uuid}: the agent token of this boot is not given to {STRANGER}"
        bench.eventually(lambda: warning in self.log(bench), "the stranger is refused")
        bench.rack.control.order_fault(machine, "agent_hangs_at_step", "write_image")  # until the attack has ended
        bench.rack.control.clear_faults(machine, "heartbeat_lost")
        bench.eventually(
            lambda: bench.user.node(uuid)["deploy_step"].get("step") == "write_image", "the agent has called"
        )
        stopped.set()
        attack.join()
        bench.rack.control.clear_faults(machine)
        bench.reach(uuid, "active")

        self.assertEqual({"******"}, stranger.tokens)
        self.assertTrue(bench.holds_image(0))

    def log(self, bench: lab.Lab) -> str:
        """Return what the all-in-one has logged."""
        return bench.process.log.read_text()
