"""No conductor is sent what it does not know: versions that clients find out, and those that an operator pins."""

from typing import Any

from ingot.common import context, errors
from ingot.db import conductors
from ingot.rpcapi import client, transport, versions
from tests import database

CTX = context.RequestContext()


class Notes(transport.LocalTransport):
    """A bus that notes what is sent under which version."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []

    def call(self, host: str, method: str, version: str, *_rest: Any) -> dict[str, Any]:
        self.sent.append((method, version))
        return {"result": None}


class Versions(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.database.conf.set_override("hash_ring_reset_interval", 0)
        self.node = database.make_node(self.db)
        self.bus = Notes()

    def online(self, hostname: str, rpc_version: str) -> conductors.Entry:
        known = {"conductor_group": "", "release": "0.0.0", "rpc_version": rpc_version, "process": hostname}
        offer = conductors.EnabledInterface("fake-hardware", "power", "fake", True)
        return conductors.register(self.db, hostname, known, [offer])

    def call(self, method: str) -> None:
        client.ConductorClient(self.database.conf, self.db, self.bus).call(CTX, self.node, method)

    def test_the_newest_is_spoken_when_all_know_it(self) -> None:
        self.online("one", versions.RPC_VERSION)
        self.online("of-the-future", "1.99")

        self.call("validate_node")

        self.assertEqual([("validate_node", versions.RPC_VERSION)], self.bus.sent)

    def test_the_oldest_conductor_counts_while_it_is_online(self) -> None:
        self.online("one", versions.RPC_VERSION)
        old = self.online("old", "1.0")

        self.call("validate_node")
        refusal = self.assertRaises(errors.ServiceUnavailable, self.call, "list_vifs")
        conductors.unregister(self.db, old)
        self.call("list_vifs")

        self.assertIn("conductors with 1.0 are online", refusal.message)
        self.assertEqual([("validate_node", "1.0"), ("list_vifs", versions.RPC_VERSION)], self.bus.sent)

    def test_a_client_that_is_running_notices_who_comes_and_goes(self) -> None:
        self.online("one", versions.RPC_VERSION)
        running = client.ConductorClient(self.database.conf, self.db, self.bus)
        for change in (lambda: None, lambda: self.online("old", "1.0")):
            change()
            running.call(CTX, self.node, "validate_node")

        self.assertEqual([versions.RPC_VERSION, "1.0"], [version for _method, version in self.bus.sent])

    def test_a_pinned_release_counts_whichever_conductors_are_online(self) -> None:
        self.online("one", versions.RPC_VERSION)
        self.database.conf.set_override("pin_release_version", "0.0")

        self.call("validate_node")
        self.assertRaises(errors.ServiceUnavailable, self.call, "list_vifs")

        self.assertEqual([("validate_node", "1.0")], self.bus.sent)

    def test_an_unknown_release_cannot_be_pinned(self) -> None:
        self.online("one", versions.RPC_VERSION)
        self.database.conf.set_override("pin_release_version", "9.9")

        refusal = self.assertRaises(errors.ConfigurationError, self.call, "validate_node")

        self.assertIn("0.2", refusal.message)
