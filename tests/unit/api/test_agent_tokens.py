"""Who gets the token of a boot, and what an agent that has shown it may not change any more."""

from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import models, nodes
from tests import api_case, database, sql_counter

MAC = "52:54:00:aa:bb:cc"
AGENT, STRANGER = "192.0.2.7", "192.0.2.66"
HIDDEN = "******"
URL = "https://192.0.2.7:9999"
CERTIFICATE = "-----BEGIN CERTIFICATE-----"
FOUND = {"inventory": {"interfaces": [{"mac_address": MAC}]}}


class TokenCase(api_case.ApiCase):
    STATE, FLOW = states.DEPLOYWAIT, "deploy"

    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", provision_state=self.STATE, flow=self.FLOW)
        database.make_port(self.db, self.known, address=MAC)
        self.log = self.useFixture(fixtures.FakeLogger("ingot.api.agents.agents"))

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))

    @property
    def row(self) -> models.Node:
        return nodes.get(self.db, self.known.uuid)

    def send(self, method: str, path: str, address: str, body: Any = None, version: str = "1.115") -> api_case.Answer:
        headers = {"X-OpenStack-Ironic-API-Version": version}
        seen = {"REMOTE_ADDR": address}
        sent = self.http.open(path, method=method, json=body, headers=headers, environ_overrides=seen)
        return api_case.Answer(sent)

    def look_up(self, address: str, query: str = f"addresses={MAC}") -> str:
        """Return the token that a client at an address is given."""
        answer = self.send("GET", f"/v1/lookup?{query}", address)
        self.assertEqual(200, answer.status, answer)
        return str(answer.json["config"]["agent_token"])

    def beat(self, token: str, url: str = URL, certificate: str | None = CERTIFICATE) -> api_case.Answer:
        body = {"callback_url": url, "agent_version": "13.0.0", "agent_token": token}
        more = {} if certificate is None else {"agent_verify_ca": certificate}
        return self.send("POST", f"/v1/heartbeat/{self.known.uuid}", AGENT, body | more)


class FromTheMedium(TokenCase):
    """The agent has its token from what its machine was booted from: no client is given it."""

    def test_the_first_who_asks_gets_nothing_and_the_agent_goes_on(self) -> None:
        token = "of-the-medium-" * 3
        self.put(agent_token=token)
        for address in (STRANGER, AGENT):
            self.assertEqual(HIDDEN, self.look_up(address))
        self.assertNotIn(token, self.log.output)
        self.assertIn("from its boot medium", self.log.output)
        self.assertEqual(400, self.beat(HIDDEN).status)
        self.assertEqual(202, self.beat(token).status)


class Theft(TokenCase):
    """The attack that was seen: one request after that of the real agent took the node over."""

    def test_a_stranger_who_asks_after_the_agent_gets_nothing_and_spoils_nothing(self) -> None:
        token = self.look_up(AGENT)
        for query in (f"addresses={MAC}", f"node_uuid={self.known.uuid}"):
            self.assertEqual(HIDDEN, self.look_up(STRANGER, query))
        self.assertEqual(202, self.beat(token).status)
        self.assertEqual(URL, self.row.agent_url)

    def test_the_log_names_node_and_both_addresses_and_not_the_token(self) -> None:
        token = self.look_up(AGENT)
        self.look_up(STRANGER)
        for said in (self.known.uuid, AGENT, STRANGER):
            self.assertIn(said, self.log.output)
        self.assertNotIn(token, self.log.output)

    def test_the_hidden_token_is_no_token(self) -> None:
        self.look_up(AGENT)
        self.assertEqual(400, self.beat(self.look_up(STRANGER)).status)


class LostReply(TokenCase):
    def test_the_same_address_gets_the_same_token_again(self) -> None:
        lost = self.look_up(AGENT)
        with sql_counter.counting(self.db) as counted:
            self.assertEqual(lost, self.look_up(AGENT))
        self.assertEqual(1, len(counted), counted)
        self.assertEqual(202, self.beat(lost).status)

    def test_not_after_a_while(self) -> None:
        token = self.look_up(AGENT)
        self.put(agent_token_at=clock.after(-self.conf.agent.token_reissue_timeout - 1))
        self.assertEqual(HIDDEN, self.look_up(AGENT))
        self.assertEqual(202, self.beat(token).status)  # who has it, has it

    def test_never_where_the_operator_says_so(self) -> None:
        self.conf.set_override("token_reissue_timeout", 0, group="agent")
        self.assertNotEqual(HIDDEN, self.look_up(AGENT))
        self.assertEqual(HIDDEN, self.look_up(AGENT))

    def test_not_through_a_proxy_that_does_not_say_for_whom(self) -> None:
        path, version = f"/v1/lookup?addresses={MAC}", {"X-OpenStack-Ironic-API-Version": "1.115"}
        for seen in ({"REMOTE_ADDR": ""}, {"REMOTE_ADDR": AGENT, "HTTP_X_FORWARDED_FOR": AGENT}):
            self.put(agent_token=None)
            first, second = (
                self.http.get(path, headers=version, environ_overrides=seen).get_json()["config"]["agent_token"]
                for _time in range(2)
            )
            self.assertNotEqual(HIDDEN, first)
            self.assertEqual(HIDDEN, second)

    def test_not_after_it_was_used(self) -> None:
        self.beat(self.look_up(AGENT))
        self.assertEqual(HIDDEN, self.look_up(AGENT))

    def test_one_of_the_release_before_whose_address_is_unknown_is_not_given_out(self) -> None:
        self.put(agent_token="t" * 43)
        for address in (AGENT, ""):
            self.assertEqual(HIDDEN, self.look_up(address))

    def test_the_next_boot_has_another_one_for_whatever_address(self) -> None:
        token = self.look_up(AGENT)
        self.put(agent_token=None)  # as a conductor of the release before forgets an agent
        again = self.look_up(STRANGER)
        self.assertNotIn(again, (token, HIDDEN))
        self.assertEqual(again, self.look_up(STRANGER))
        self.assertEqual(HIDDEN, self.look_up(AGENT))


class OneBoot(TokenCase):
    """What the first heartbeat of a boot has said holds until the next boot."""

    def test_address_and_certificate_stay_what_they_were(self) -> None:
        token = self.look_up(AGENT)
        self.beat(token)
        for url, certificate, named in (
            ("https://192.0.2.66:9999", CERTIFICATE, "callback_url"),
            ("http://192.0.2.7:9999", CERTIFICATE, "callback_url"),
            (URL, "-----BEGIN CERTIFICATE----- another", "agent_verify_ca"),
            (URL, None, "agent_verify_ca"),
        ):
            self.conf.set_override("require_tls", False, group="agent")
            answer = self.beat(token, url, certificate)
            self.assertEqual(400, answer.status)
            self.assertIn(f'Detected change in ramdisk provided "{named}"', answer.message)
            self.assertIn("boot", answer.message)
            self.assertIn(self.known.uuid, self.log.output)
        self.assertEqual((URL, CERTIFICATE), (self.row.agent_url, self.row.agent_verify_ca))
        self.assertEqual(202, self.beat(token).status)
        self.assertEqual(202, self.beat(token, f"{URL}/").status)

    def test_an_agent_that_never_had_a_certificate_gets_none_later(self) -> None:
        token = self.look_up(AGENT)
        self.beat(token, certificate=None)
        self.assertEqual(400, self.beat(token).status)
        self.assertIsNone(self.row.agent_verify_ca)

    def test_plain_http_is_refused_in_the_middle_of_a_boot_too(self) -> None:
        self.conf.set_override("require_tls", False, group="agent")
        token = self.look_up(AGENT)
        plain = "http://192.0.2.7:9999"
        self.assertEqual(202, self.beat(token, plain, None).status)
        self.conf.set_override("require_tls", True, group="agent")
        self.assertIn("TLS is required", self.beat(token, plain, None).message)

    def test_of_two_first_heartbeats_at_once_one_holds(self) -> None:
        token = self.look_up(AGENT)
        self.put(agent_url="https://192.0.2.66:9999", agent_verify_ca=CERTIFICATE)
        checked = models.Node(**{**vars(self.row), "agent_url": None, "agent_verify_ca": None})
        self.patch(nodes, "get", lambda *_given: checked)
        answer = self.beat(token)
        self.assertEqual(400, answer.status)
        self.assertIn("look the node up again", answer.message)


class Inspected(TokenCase):
    STATE, FLOW = states.INSPECTWAIT, "inspect"

    def tell(self, address: str, version: str = "1.115") -> str:
        answer = self.send("POST", "/v1/continue_inspection", address, FOUND, version)
        self.assertEqual(202, answer.status, answer)
        return str(answer.json["config"]["agent_token"])

    def test_the_answer_has_the_token_where_no_lookup_came_before(self) -> None:
        token = self.tell(AGENT)
        self.assertEqual(self.row.agent_token, token)
        self.assertEqual(token, self.look_up(AGENT))  # which the agent does next
        self.assertEqual(HIDDEN, self.look_up(STRANGER))

    def test_it_has_it_once_as_a_lookup(self) -> None:
        token = self.look_up(AGENT)
        self.assertEqual(HIDDEN, self.tell(STRANGER))
        self.assertEqual(token, self.tell(AGENT))

    def test_not_for_clients_of_the_service_that_stood_there_before(self) -> None:
        self.assertEqual(HIDDEN, self.tell(AGENT, "1.83"))
        self.assertIsNone(self.row.agent_token)
