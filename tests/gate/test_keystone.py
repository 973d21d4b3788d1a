"""Ingot and a real Keystone: openstacksdk and the command line as people with different roles."""

from typing import Any, ClassVar

import requests
import testtools
from openstack import exceptions

from tests.gate import client, cloud, environments

_BODIES = {"PUT": {"target": "power on"}, "POST": {"driver": "fake-hardware"}}

_AUDIT = {
    "audit": {"enabled": True, "audit_map_file": environments.ROOT / "etc" / "api_audit_map.conf"},
    "oslo_messaging_notifications": {"driver": "log"},
}


class KeystoneTest(testtools.TestCase):
    """The tests share one cloud; each has nodes of its own."""

    keystone: ClassVar[cloud.Keystone]
    ingot: ClassVar[cloud.Ingot]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.ingot = cls.enterClassContext(cloud.Ingot(cls.keystone, _AUDIT))

    def as_(self, person: str) -> Any:
        """Return the bare-metal part of openstacksdk, for a user."""
        return self.keystone.connect(person).baremetal

    def node(self, name: str) -> Any:
        """Return a node with an owner and a lessee."""
        projects = self.keystone.projects
        made = self.as_("operator").create_node(
            driver="fake-hardware", name=name, owner=projects["owner"], driver_info={"ipmi_password": "secret"}
        )
        return self.as_("operator").update_node(made, lessee=projects["lessee"])

    def test_every_role_sees_its_own_objects(self) -> None:
        self.node("seen")
        for person, sees in (
            ("operator", True), ("auditor", True), ("owner-reader", True), ("lessee-member", True), ("stranger", False)
        ):  # fmt: skip
            found = {node.name for node in self.as_(person).nodes()}
            self.assertEqual(sees, "seen" in found, person)
            self.assertEqual(sees, self.as_(person).find_node("seen") is not None, person)

    def test_secrets_and_the_inside_stay_hidden(self) -> None:
        self.node("inside")
        self.assertEqual({"ipmi_password": "******"}, self.as_("owner-reader").get_node("inside").driver_info)
        self.assertIn("Redacted", str(self.as_("lessee-member").get_node("inside").driver_info))

    def test_roles_decide_what_may_be_done(self) -> None:
        node = self.node("used")
        self.as_("lessee-member").set_node_power_state(node, "power on")
        self.ingot.eventually(lambda: self.as_("auditor").get_node("used").power_state == "power on", "it is on")
        for person in ("auditor", "owner-reader"):
            refusal = self.assertRaises(
                exceptions.ForbiddenException, self.as_(person).set_node_power_state, node, "power off"
            )
            self.assertIn("baremetal:node:set_power_state", str(refusal))
        self.assertRaises(
            exceptions.ForbiddenException, self.as_("lessee-member").set_node_provision_state, node, "manage"
        )
        self.as_("lessee-manager").set_node_provision_state(node, "manage", wait=True, timeout=client.PATIENCE_S)
        self.assertRaises(exceptions.NotFoundException, self.as_("stranger").set_node_power_state, node, "power off")
        self.assertRaises(exceptions.ForbiddenException, self.as_("owner-admin").update_node, node, shard="s")

    def test_projects_have_machines_of_their_own(self) -> None:
        mine = self.as_("owner-admin").create_node(driver="fake-hardware", name="own")
        self.assertEqual(self.keystone.projects["owner"], mine.owner)
        port = self.as_("owner-admin").create_port(node_id=mine.id, address="52:54:00:00:00:10")
        self.assertEqual([port.id], [found.id for found in self.as_("owner-reader").ports(node=mine.id)])
        self.assertEqual([], list(self.as_("lessee-member").ports()))
        self.assertRaises(exceptions.ForbiddenException, self.as_("owner-member").delete_node, mine)
        self.as_("owner-admin").delete_node(mine)

    def test_what_belongs_to_the_system_is_for_the_system(self) -> None:
        """A token of a project is refused, which Ironic answers with 500."""
        self.assertEqual(["fake-hardware"], [one.name for one in self.as_("auditor").drivers() if "fake" in one.name])
        refusal = self.assertRaises(exceptions.ForbiddenException, lambda: list(self.as_("owner-admin").drivers()))
        self.assertIn("baremetal:driver:get", str(refusal))
        self.assertRaises(exceptions.ForbiddenException, lambda: list(self.as_("owner-admin").chassis(details=True)))

    def test_without_a_token_there_are_versions_and_lookups_only(self) -> None:
        session = requests.Session()
        self.addCleanup(session.close)
        session.trust_env = False
        session.headers["X-OpenStack-Ironic-API-Version"] = "1.115"
        ask = {path: session.get(self.ingot.url + path, timeout=client.PATIENCE_S) for path in (
            "/", "/v1", "/v1/lookup?addresses=52:54:00:00:00:99", "/v1/nodes")}  # fmt: skip
        self.assertEqual([200, 200, 404, 401], [answer.status_code for answer in ask.values()])
        self.assertEqual(f'Keystone uri="{self.keystone.url}"', ask["/v1/nodes"].headers["WWW-Authenticate"])
        session.headers["X-Auth-Token"] = "made up"
        self.assertEqual(401, session.get(f"{self.ingot.url}/v1/nodes", timeout=client.PATIENCE_S).status_code)

    def ask(self, method: str, path: str, **tokens: str) -> requests.Response:
        """Send a request with tokens: ``X_Auth_Token``, ``X_Service_Token``."""
        headers = {"X-OpenStack-Ironic-API-Version": "1.115"} | {
            name.replace("_", "-"): value for name, value in tokens.items()
        }
        with requests.Session() as session:
            session.trust_env = False
            body = _BODIES.get(method)
            return session.request(
                method, f"{self.ingot.url}{path}", headers=headers, json=body, timeout=client.PATIENCE_S
            )

    def token(self, person: str) -> str:
        return str(self.keystone.connect(person).auth_token)

    def test_work_that_outlives_a_token_goes_on_for_a_service(self) -> None:
        """As with Ironic: a service that works for a user sends its own token beside the user's."""
        self.node("outlived")
        users = self.token("owner-member")
        gone = self.keystone.expired(users)
        for user, service, status in (
            (users, None, 200),
            (gone, None, 401),
            (gone, self.token("ingot"), 200),
            (gone, self.token("owner-admin"), 401),  # no service: the role is asked for
            (gone, "made up", 401),
            (users, "made up", 401),
            (None, self.token("ingot"), 401),  # it opens nothing on its own
        ):
            tokens = {"X_Auth_Token": user, "X_Service_Token": service}
            sent = {name: token for name, token in tokens.items() if token}
            answer = self.ask("GET", "/v1/nodes/outlived", **sent)
            self.assertEqual(status, answer.status_code, (sent.keys(), service == "made up", answer.text))

    def test_a_service_does_for_a_user_what_the_user_may(self) -> None:
        """The token of the service gives no right: rules ask for the roles of the user."""
        node = self.node("served")
        power = f"/v1/nodes/{node.id}/states/power"
        for user, status in (("owner-reader", 403), ("stranger", 404), ("lessee-member", 202)):
            tokens = {"X_Auth_Token": self.token(user), "X_Service_Token": self.token("ingot")}
            self.assertEqual(status, self.ask("PUT", power, **tokens).status_code, user)
        self.ingot.eventually(lambda: self.as_("auditor").get_node("served").power_state == "power on", "it is on")
        entry = self.ingot.get(f"/v1/nodes/{node.id}/history?detail=true")["history"]
        self.assertNotIn(self.keystone.connect("ingot").current_user_id, [one["user"] for one in entry])

    def test_what_roles_of_the_whole_system_may(self) -> None:
        """As the rules of Ironic 39 have it, with scopes enforced."""
        node = self.node("everybodys")
        power = f"/v1/nodes/{node.id}/states/power"
        for person, read, switch, create, drivers in (
            ("operator", 200, 202, 201, 200),
            ("system-manager", 200, 202, 403, 200),
            ("system-member", 200, 202, 403, 200),
            ("auditor", 200, 403, 403, 200),
            ("owner-admin", 200, 202, 201, 403),
            ("stranger", 404, 404, 201, 403),
        ):
            token = self.token(person)
            found = (
                self.ask("GET", f"/v1/nodes/{node.id}", X_Auth_Token=token).status_code,
                self.ask("PUT", power, X_Auth_Token=token).status_code,
                self.ask("POST", "/v1/nodes", X_Auth_Token=token).status_code,
                self.ask("GET", "/v1/drivers", X_Auth_Token=token).status_code,
            )
            self.assertEqual((read, switch, create, drivers), found, person)
            self.ingot.eventually(lambda: self.as_("auditor").get_node("everybodys").reservation is None, "it is free")

    def test_application_credentials_do_what_their_access_rules_say(self) -> None:
        self.node("rented")
        rules = [{"service": "baremetal", "method": "GET", "path": "/v1/nodes/*"}]
        for name, kept, node, ports in (("all", None, 200, 200), ("some", rules, 200, 401)):
            token = self.keystone.delegate("owner-member", name, kept)
            self.assertEqual(node, self.ask("GET", "/v1/nodes/rented", X_Auth_Token=token).status_code, name)
            self.assertEqual(ports, self.ask("GET", "/v1/ports", X_Auth_Token=token).status_code, name)
        self.assertEqual(401, self.ask("PUT", "/v1/nodes/rented/states/power", X_Auth_Token=token).status_code)
        with_service = {"X_Auth_Token": token, "X_Service_Token": self.token("ingot")}
        self.assertEqual(200, self.ask("GET", "/v1/ports", **with_service).status_code, "a service goes on for it")

    def test_a_trust_hands_on_a_role_in_a_project(self) -> None:
        node = self.node("entrusted")
        power = f"/v1/nodes/{node.id}/states/power"
        self.assertEqual(404, self.ask("GET", f"/v1/nodes/{node.id}", X_Auth_Token=self.token("stranger")).status_code)
        for role, status in (("reader", 403), ("member", 202)):
            token = self.keystone.entrust("owner-member", "stranger", role)
            self.assertEqual(200, self.ask("GET", f"/v1/nodes/{node.id}", X_Auth_Token=token).status_code)
            self.assertEqual(status, self.ask("PUT", power, X_Auth_Token=token).status_code, role)

    def test_keystone_is_asked_once_for_a_token(self) -> None:
        token = self.token("auditor")
        before = self.keystone.count_validations()
        for _ in range(10):
            self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=token).status_code)
        self.assertEqual(1, self.keystone.count_validations() - before)

    def test_a_token_that_was_revoked(self) -> None:
        """One that is cached counts for token_cache_time more, as with Ironic; any other is refused at once."""
        used, unused = self.token("auditor"), self.token("auditor")
        self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=used).status_code)
        for token in (used, unused):
            self.keystone.revoke(token)
        self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=used).status_code)
        self.assertEqual(401, self.ask("GET", "/v1/nodes", X_Auth_Token=unused).status_code)

    def test_keystone_goes_away_and_comes_back(self) -> None:
        known, new = self.token("operator"), self.token("operator")
        self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=known).status_code)
        count = len(list(self.as_("operator").nodes()))
        self.keystone.process.stop()
        try:
            for method, path in (("GET", "/v1/nodes"), ("POST", "/v1/nodes"), ("DELETE", "/v1/nodes/none")):
                answer = self.ask(method, path, X_Auth_Token=new)
                self.assertEqual(503, answer.status_code, (method, answer.text))
                self.assertIn("Keystone does not answer", answer.text)
            self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=known).status_code, "who was let in is in")
        finally:
            self.keystone.restart()
        self.assertEqual(200, self.ask("GET", "/v1/nodes", X_Auth_Token=new).status_code)
        self.assertEqual(count, len(list(self.as_("operator").nodes())), "nothing was changed")

    def test_events_of_the_audit_have_the_service_of_the_catalog(self) -> None:
        node = self.node("audited")
        self.assertEqual(200, self.ask("GET", f"/v1/nodes/{node.id}", X_Auth_Token=self.token("auditor")).status_code)
        auditor = self.keystone.connect("auditor").current_user_id

        def find() -> bool:
            lines = self.ingot.process.log.read_text().splitlines()
            events = [line for line in lines if "audit.http.response" in line and node.id in line and auditor in line]
            return any("service/compute/baremetal/nodes/node" in event and '"reasonCode": "200"' in event
                       for event in events)  # fmt: skip

        self.ingot.eventually(find, "the log has the event")
        self.assertNotIn(self.token("auditor"), self.ingot.process.log.read_text())

    def test_browsers_have_sessions_with_the_rights_of_their_users(self) -> None:
        self.node("browsed")
        browser = requests.Session()
        browser.trust_env = False
        browser.headers["X-Ingot-Console"] = "1"
        self.addCleanup(browser.close)
        session = f"{self.ingot.url}/ingot/v1/session"
        node = f"{self.ingot.url}/v1/nodes/{self.as_('auditor').get_node('browsed').id}"
        for person, where, status, power in (
            ("stranger", "owner", 401, 401),  # no role there
            ("owner-reader", "owner", 201, 403),
            ("lessee-member", "lessee", 201, 202),
            ("operator", None, 201, 202),
        ):
            login = {"user": person, "password": cloud.PASSWORD} | ({"project": where} if where else {})
            answer = browser.post(session, json=login, timeout=client.PATIENCE_S)
            self.assertEqual(status, answer.status_code, (person, answer.text))
            self.assertEqual(status == 201, browser.get(session, timeout=client.PATIENCE_S).json()["authenticated"])
            if status == 201:
                self.assertEqual(power == 202, self.is_shown_as_allowed(browser, "browsed"), person)
            answer = browser.put(f"{node}/states/power", json={"target": "power on"}, timeout=client.PATIENCE_S)
            self.assertEqual(power, answer.status_code, (person, answer.text))
            self.ingot.eventually(lambda: self.as_("auditor").get_node("browsed").reservation is None, "it is free")
        token = browser.cookies["ingot_session"]
        self.assertEqual(204, browser.delete(session, timeout=client.PATIENCE_S).status_code)
        self.assertNotIn("could not be revoked", self.ingot.process.log.read_text())
        browser.cookies["ingot_session"] = token  # as a thief would have kept it
        self.assertFalse(browser.get(session, timeout=client.PATIENCE_S).json()["authenticated"])
        wrong = {"user": "operator", "password": "wrong"}
        self.assertEqual(401, browser.post(session, json=wrong, timeout=client.PATIENCE_S).status_code)

    def is_shown_as_allowed(self, browser: requests.Session, node: str) -> bool:
        """Return whether the console offers to switch a node's power; if not, it says which rule is against it."""
        asked = f"{self.ingot.url}/ingot/v1/permissions"
        rules = browser.get(asked, params={"node": node}, timeout=client.PATIENCE_S).json()["rules"]
        rule: dict[str, Any] = rules["baremetal:node:set_power_state"]
        self.assertEqual(rule["allowed"], rule["reason"] is None)
        return bool(rule["allowed"])

    def test_the_history_tells_who_it_was(self) -> None:
        node = self.node("notified")
        self.as_("owner-member").set_node_provision_state(node, "manage", wait=True, timeout=client.PATIENCE_S)
        member = self.keystone.connect("owner-member")
        entry = self.ingot.get(f"/v1/nodes/{node.id}/history?detail=true")["history"][0]
        self.assertEqual((member.current_user_id, member.current_project_id), (entry["user"], entry["project"]))

    def test_the_command_line_works_with_passwords_of_keystone(self) -> None:
        cli = self.ingot.cli
        cli("node create --driver fake-hardware --name typed")
        self.assertEqual("typed", cli.show("node show typed")["name"])
        self.assertIn("fake-hardware", cli("driver list"))
        cli("node delete typed")
