"""The client's address, scheme and host when proxies stand before the API, and who may say so."""

from typing import Any

import fixtures

from ingot.common import states
from ingot.db import nodes
from tests import api_case, database

PROXY, FAR_PROXY, CLIENT, LIAR = "127.0.0.1", "10.9.0.2", "198.51.100.7", "203.0.113.9"
PLAIN = "http://localhost"


class ProxyCase(api_case.ApiCase):
    PARSES = True

    def configure(self) -> None:
        self.conf.set_override("enable_proxy_headers_parsing", self.PARSES, group="oslo_middleware")
        self.conf.set_override("trusted_proxies", ["127.0.0.0/8", "::1", "10.9.0.0/24"], group="api")
        self.conf.set_override("public_endpoint", "https://configured.example", group="api")

    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", provision_state=states.DEPLOYWAIT)
        self.log = self.useFixture(fixtures.FakeLogger("ingot.api"))

    def ask(self, peer: str, **headers: str) -> tuple[str, str]:
        """Return where a request comes from and how its client sees the API, as the API has them."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        seen = {"REMOTE_ADDR": peer}
        root = self.http.get("/v1/", headers=sent, environ_overrides=seen).get_json()
        self.http.get(f"/v1/lookup?node_uuid={self.known.uuid}", headers={
            **sent, "X-OpenStack-Ironic-API-Version": "1.115"}, environ_overrides=seen)  # fmt: skip
        address = nodes.get(self.db, "n").agent_address
        nodes.set_always(self.db, self.known.uuid, {"agent_token": None, "agent_address": None})
        return address, root["links"][0]["href"].removesuffix("/v1/").removesuffix("/v1")


class Trusted(ProxyCase):
    def test_both_kinds_of_headers_are_read(self) -> None:
        expected = (CLIENT, "https://api.example:8443")
        self.assertEqual(expected, self.ask(PROXY, X_Forwarded_For=CLIENT, X_Forwarded_Proto="https",
                                            X_Forwarded_Host="api.example:8443"))  # fmt: skip
        self.assertEqual(expected, self.ask(PROXY, Forwarded=f'for={CLIENT};proto=https;host="api.example:8443"'))
        self.assertEqual(expected, self.ask("", Forwarded=f"For={CLIENT};Proto=https;Host=api.example:8443"))

    def test_a_prefix_is_part_of_links(self) -> None:
        for prefix in ("/baremetal", "/baremetal/"):
            self.assertEqual((PROXY, f"{PLAIN}/baremetal"), self.ask(PROXY, X_Forwarded_Prefix=prefix))
        self.assertEqual((PROXY, PLAIN), self.ask(PROXY, X_Forwarded_Prefix="evil"))

    def test_a_request_without_headers_is_the_peers_own(self) -> None:
        self.assertEqual((PROXY, PLAIN), self.ask(PROXY))
        for peer in (CLIENT, f"::ffff:{CLIENT}"):
            self.assertEqual((CLIENT, PLAIN), self.ask(peer))

    def test_what_a_client_puts_before_its_address_counts_for_nothing(self) -> None:
        self.assertEqual(CLIENT, self.ask(PROXY, X_Forwarded_For=f"{LIAR}, {CLIENT}")[0])
        self.assertEqual(CLIENT, self.ask(PROXY, X_Forwarded_For=f"{PROXY}, {CLIENT}, {FAR_PROXY}")[0])
        self.assertEqual(CLIENT, self.ask(PROXY, Forwarded=f"for={LIAR};host=evil, for={CLIENT}")[0])

    def test_of_several_proxies_the_one_nearest_to_the_client_knows_how_it_came(self) -> None:
        chain = f"for={CLIENT};proto=https;host=api.example, for={FAR_PROXY};proto=http;host=inner"
        self.assertEqual((CLIENT, "https://api.example"), self.ask(PROXY, Forwarded=chain))
        self.assertEqual((CLIENT, "https://api.example"), self.ask(
            PROXY, X_Forwarded_For=f"{CLIENT}, {FAR_PROXY}", X_Forwarded_Proto="https",
            X_Forwarded_Host="api.example, inner"))  # fmt: skip

    def test_addresses_in_all_their_forms(self) -> None:
        for given, address in (
            ("198.51.100.7:4711", CLIENT), ('"[2001:db8::7]:4711"', "2001:db8::7"), ("[2001:DB8::7]", "2001:db8::7"),
            ("2001:db8::7", "2001:db8::7"), ("::ffff:198.51.100.7", CLIENT),
            ("unknown", PROXY), ("_hidden", PROXY), ("", PROXY),
        ):  # fmt: skip
            self.assertEqual(address, self.ask(PROXY, Forwarded=f"for={given};proto=http")[0], given)

    def test_headers_that_contradict_each_other_say_nothing(self) -> None:
        forged = {"Forwarded": f"for={LIAR};proto=https;host=evil.example"}
        self.assertEqual(("", PLAIN), self.ask(PROXY, X_Forwarded_For=CLIENT, **forged))
        self.assertIn("contradict", self.log.output)
        agreeing = {"Forwarded": f"for={CLIENT};proto=https", "X_Forwarded_For": CLIENT}
        self.assertEqual((CLIENT, "https://localhost"), self.ask(PROXY, **agreeing))

    def test_rubbish_changes_nothing(self) -> None:
        for headers in (
            {"Forwarded": ";;,=,for"}, {"X_Forwarded_Proto": "javascript"}, {"X_Forwarded_For": ",,"},
            {"Forwarded": 'for="'}, {"X_Forwarded_Proto": ","},
        ):  # fmt: skip
            self.assertEqual((PROXY, PLAIN), self.ask(PROXY, **headers), headers)


class Untrusted(ProxyCase):
    def test_what_others_say_is_ignored_and_logged_once(self) -> None:
        forged: dict[str, Any] = {"X_Forwarded_For": CLIENT, "X_Forwarded_Proto": "https", "X_Forwarded_Prefix": "/x"}
        for _time in range(2):
            # It may be a proxy that is not known, before many clients.
            self.assertEqual(("", PLAIN), self.ask(LIAR, **forged))
            self.assertEqual(("", PLAIN), self.ask(LIAR, Forwarded=f"for={CLIENT};host=evil.example"))
        self.assertEqual(1, self.log.output.count("[api] trusted_proxies"))
        self.assertIn(LIAR, self.log.output)


class NotParsed(ProxyCase):
    PARSES = False

    def test_by_default_headers_count_for_nothing(self) -> None:
        configured = "https://configured.example"
        self.assertEqual(("", configured), self.ask(
            PROXY, X_Forwarded_For=CLIENT, X_Forwarded_Proto="http", Forwarded=f"for={CLIENT}"))  # fmt: skip
        self.assertIn("enable_proxy_headers_parsing", self.log.output)
        self.assertEqual((PROXY, configured), self.ask(PROXY))


class Defaults(api_case.ApiCase):
    def test_proxies_of_this_host_are_trusted_once_headers_are_parsed(self) -> None:
        self.assertFalse(self.conf.oslo_middleware.enable_proxy_headers_parsing)
        self.assertEqual(["127.0.0.0/8", "::1/128"], [str(network) for network in self.conf.api.trusted_proxies])

    def test_a_value_that_is_no_network_is_refused(self) -> None:
        self.conf.set_override("trusted_proxies", ["127.0.0.0/8"], group="api")
        raised = self.assertRaises(ValueError, self.conf.set_override, "trusted_proxies", ["haproxy"], group="api")
        self.assertIn("haproxy", str(raised))
