"""The audit trail: who has changed what, by query and in the log, without a statement more for the request."""

import json
import logging
from typing import Any

import fixtures
import flask
import sqlalchemy as sa

from ingot.api import app
from ingot.api.web import audit_trail
from ingot.common import clock, errors, metrics
from ingot.db import audit
from tests import api_case, identity_case, metric_values
from tests.sql_counter import counting

_PASSWORD = "hunter2"


class AuditCase(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("enabled", True, group="audit")

    def application(self) -> flask.Flask:
        made = super().application()
        self.addCleanup(made.extensions[app.TRAIL].close)  # nothing is written when the next test has the database
        return made

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger("ingot.audit", level=logging.INFO, format="%(message)s"))

    @property
    def trail(self) -> audit_trail.Trail:
        found: audit_trail.Trail = self.http.application.extensions[app.TRAIL]
        return found

    def read(self, query: str = "") -> list[dict[str, Any]]:
        """Return what the trail has, newest first, once all is written; no more is written then."""
        self.trail.close()
        found: list[dict[str, Any]] = self.good("GET", f"/ingot/v1/audit{query}")["events"]
        return found


class TrailTest(AuditCase):
    def test_a_change(self) -> None:
        body = {"driver": "fake-hardware", "name": "n", "driver_info": {"ipmi_password": _PASSWORD}}
        own_id = "req-11111111-2222-3333-4444-555555555555"
        who = {"X_User_Id": "u", "X_Project_Id": "p", "X_OpenStack_Request_Id": own_id}
        node = self.api("POST", "/v1/nodes", body, **who).json["uuid"]
        [event] = self.read()
        self.assertEqual(("baremetal:node:create", "success"), (event["action"], event["outcome"]))
        self.assertEqual({"type": "node", "id": node, "name": "n"}, event["target"])
        self.assertEqual(("u", "p"), (event["initiator"]["id"], event["initiator"]["project_id"]))
        self.assertEqual("127.0.0.1", event["initiator"]["address"])
        self.assertEqual({"code": 201, "message": None}, event["reason"])
        self.assertEqual(own_id, event["global_request_id"])
        self.assertEqual(
            {"method": "POST", "path": "/v1/nodes", "fields": ["driver", "driver_info", "name"]}, event["request"]
        )
        line = json.loads(self.log.output)
        self.assertEqual({**event, "observer": self.conf.host}, line)

    def test_what_is_read_is_not_recorded(self) -> None:
        node = self.node()["uuid"]
        self.good("GET", f"/v1/nodes/{node}")
        self.good("GET", "/v1/nodes")
        self.unchecked("POST", f"/v1/heartbeat/{node}", {"callback_url": "http://192.0.2.1:9999"})
        self.assertEqual(["baremetal:node:create"], [event["action"] for event in self.read()])

    def test_accepted_work_and_its_verb(self) -> None:
        node = self.node(name="n")["uuid"]
        self.good("PUT", "/v1/nodes/n/states/provision", {"target": "manage"})
        event, _created = self.read()
        self.assertEqual(("baremetal:node:set_provision_state", "pending"), (event["action"], event["outcome"]))
        self.assertEqual({"type": "node", "id": node, "name": "n"}, event["target"])
        self.assertEqual("manage", event["request"]["target"])

    def test_names_of_fields_but_no_values(self) -> None:
        self.node(name="n")
        patch = [{"op": "add", "path": "/driver_info/ipmi_password", "value": _PASSWORD}]
        self.good("PATCH", "/v1/nodes/n", patch)
        event, _created = self.read()
        self.assertEqual(["/driver_info/ipmi_password"], event["request"]["fields"])
        self.assertNotIn(_PASSWORD, self.log.output)

    def test_what_was_refused(self) -> None:
        self.node(name="n")
        self.refused(409, "POST", "/v1/nodes", {"driver": "fake-hardware", "name": "n"})
        self.refused(404, "DELETE", "/v1/nodes/other")
        missing, conflict, _created = self.read()
        self.assertEqual(("failure", 409), (conflict["outcome"], conflict["reason"]["code"]))
        self.assertIn("n", conflict["reason"]["message"])
        self.assertEqual({"type": "node", "id": "other", "name": None}, missing["target"])

    def test_signs_that_databases_refuse(self) -> None:
        before = self.node(name="a")["uuid"]
        self.refused(400, "PUT", f"/v1/nodes/{before}/states/provision?a%00=1", {"target": "manage"})
        after = self.node(name="b")["uuid"]
        found = self.read()
        self.assertEqual([after, before, before], [event["target"]["id"] for event in found])
        self.assertIn("Unexpected arguments: a\N{REPLACEMENT CHARACTER}", found[1]["reason"]["message"])

    def test_an_event_that_the_database_refuses_costs_no_other(self) -> None:
        self.useFixture(fixtures.FakeLogger("ingot.api.web.audit_trail"))
        lost = metric_values.read("ingot_audit_events_total", outcome="lost")
        made = [self.node(name="a")["uuid"]]
        self.refuse_second_event_of_a_name()
        self.refused(409, "POST", "/v1/nodes", {"driver": "fake-hardware", "uuid": made[0], "name": "b"})
        self.good("PUT", "/v1/nodes/a/maintenance", {})
        made.append(self.node(name="c")["uuid"])
        found = self.read("?outcome=success")
        self.assertEqual(made, sorted((event["target"]["id"] for event in found), key=made.index))
        self.assertEqual(lost + 1, metric_values.read("ingot_audit_events_total", outcome="lost"))

    def refuse_second_event_of_a_name(self) -> None:
        """Have the database refuse what it takes otherwise; not that of the next test, which may be the same one."""
        names = sa.Table("audit_events", sa.MetaData(), sa.Column("target_name", sa.String(255))).c.target_name
        index = sa.Index("one_of_a_name", names, unique=True)
        index.create(self.db.engine)
        self.addCleanup(index.drop, self.db.engine)

    def test_none_is_lost_at_first(self) -> None:
        """A counter that begins at 1 has not increased for Prometheus."""
        metrics.AUDIT_EVENTS.clear()
        self.application()
        series = metric_values.list_series("ingot_audit_events_total")
        self.assertEqual([{"outcome": "lost"}, {"outcome": "written"}], sorted(series, key=str))

    def test_each_node_of_a_bulk_request(self) -> None:
        nodes = [self.node(name=name)["uuid"] for name in ("a", "b")]
        body = {"action": "set_maintenance", "nodes": [*nodes, "none"], "body": {"reason": "r"}}
        self.good("POST", "/ingot/v1/bulk", body)
        found = self.read("?action=baremetal:node:set_maintenance")
        self.assertEqual({*nodes, "none"}, {event["target"]["id"] for event in found})
        self.assertEqual(["failure", "pending", "pending"], sorted(event["outcome"] for event in found))
        self.assertEqual([["reason"]] * 3, [event["request"]["fields"] for event in found])
        reasons = {event["target"]["id"]: event["reason"]["message"] for event in found}
        self.assertEqual([None, None], [reasons[node] for node in nodes])
        self.assertIn("none", reasons["none"])

    def test_the_verb_of_a_bulk_request(self) -> None:
        node = self.node(name="a")["uuid"]
        body = {"action": "provision", "nodes": [node], "body": {"target": "manage"}}
        self.good("POST", "/ingot/v1/bulk", body)
        event, _created = self.read()
        self.assertEqual(("pending", "manage"), (event["outcome"], event["request"]["target"]))

    def test_a_dry_run_changes_nothing(self) -> None:
        node = self.node(name="a")["uuid"]
        body = {"action": "provision", "nodes": [node], "body": {"target": "manage"}, "dry_run": True}
        self.good("POST", "/ingot/v1/bulk", body)
        event, _created = self.read()
        self.assertEqual(("success", 200), (event["outcome"], event["reason"]["code"]))
        self.assertEqual(("provision", "True"), (event["request"]["action"], event["request"]["dry_run"]))

    def test_resources_of_a_node(self) -> None:
        node = self.api("POST", "/v1/nodes", api_case.NODE, X_Project_Id="p").json["uuid"]
        port = self.good("POST", "/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:01"})["uuid"]
        self.good("DELETE", f"/v1/ports/{port}")
        deleted, created, _node = self.read()
        self.assertEqual(
            [("port", port)] * 2, [(one["target"]["type"], one["target"]["id"]) for one in (deleted, created)]
        )
        self.assertEqual(3, len(audit.read_page(self.db, {}, project="p")))
        self.assertEqual(0, len(audit.read_page(self.db, {}, project="other")))

    def test_filters_and_pages(self) -> None:
        before = clock.iso(clock.now())
        made = [self.node(name=f"n{number}")["uuid"] for number in range(5)]
        self.good("DELETE", f"/v1/nodes/{made[0]}")
        self.assertEqual(2, len(self.read(f"?target={made[0]}")))
        self.assertEqual(6, len(self.read(f"?since={before}")))
        self.assertEqual([], self.read(f"?until={before}"))
        self.assertEqual(6, len(self.read("?target_type=node&outcome=success")))
        self.assertEqual([], self.read("?user=other"))
        seen, path = [], "/ingot/v1/audit?limit=4"
        while path:
            page = self.good("GET", path)
            seen += [event["id"] for event in page["events"]]
            path = page.get("next", "").removeprefix("http://localhost")
        self.assertEqual((6, 6), (len(seen), len(set(seen))))
        self.assertIn("moment of ISO 8601", self.refused(400, "GET", "/ingot/v1/audit?since=now"))
        for odd in ("since=0001-01-01T00:00:00%2B05:00", "until=9999-12-31T23:59:59-05:00"):
            self.assertIn("moment of ISO 8601", self.refused(400, "GET", f"/ingot/v1/audit?{odd}"))
        self.refused(400, "GET", f"/ingot/v1/audit?marker={made[0]}")

    def test_a_request_has_no_statement_more(self) -> None:
        self.node()
        self.trail.close()  # what it has to write is not written while statements are counted
        counts = []
        for is_on in (False, True):
            self.conf.set_override("enabled", is_on, group="audit")
            self.http = self.application().test_client()
            with counting(self.db) as counted:
                self.node()
                counts.append(len(counted))
        self.assertEqual(counts[0], counts[1])

    def test_old_events_are_deleted(self) -> None:
        for number in range(5):
            self.node(name=f"n{number}")
        newest = self.read()[0]["id"]
        self.assertEqual(0, audit.prune(self.db, keep=10, days=1))
        self.assertEqual(3, audit.prune(self.db, keep=2, days=0))
        self.assertEqual(newest, self.good("GET", "/ingot/v1/audit")["events"][0]["id"])
        self.assertEqual(0, audit.prune(self.db, keep=0, days=0))


class BoundsTest(AuditCase):
    def configure(self) -> None:
        super().configure()
        self.conf.set_override("most_refused", 3, group="audit")
        self.conf.set_override("ignore_req_list", "patch", group="audit")

    def test_a_flood_of_refusals_is_counted(self) -> None:
        for number in range(10):
            self.refused(404, "DELETE", f"/v1/nodes/n{number}")
        self.assertEqual(3, len(self.read()))

    def test_ignored_methods(self) -> None:
        self.node(name="n")
        self.good("PATCH", "/v1/nodes/n", [{"op": "add", "path": "/extra/a", "value": 1}])
        self.assertEqual(1, len(self.read()))


class WithoutDatabaseTest(AuditCase):
    def test_what_comes_after_the_end_is_counted(self) -> None:
        self.useFixture(fixtures.FakeLogger("ingot.api.web.audit_trail"))
        self.trail.close()
        self.node(name="m")
        self.assertEqual(1, self.trail.lost)

    def test_what_a_database_that_is_away_does_not_take_is_counted(self) -> None:
        self.useFixture(fixtures.FakeLogger("ingot.api.web.audit_trail"))
        for name, seconds in (("_RETRY_AT_END_S", 0.01), ("_STOP_S", 0.05)):
            self.useFixture(fixtures.MonkeyPatch(f"ingot.api.web.audit_trail.{name}", seconds))

        def refuse(_db: Any, _events: Any) -> None:
            raise errors.ServiceUnavailable(what="The database", reason="it is away")

        self.useFixture(fixtures.MonkeyPatch("ingot.db.audit.add", refuse))
        for number in range(3):
            self.node(name=f"n{number}")
        self.trail.close()
        self.assertEqual(3, self.trail.lost)

    def test_what_has_no_row_is_in_the_log(self) -> None:
        logged = self.useFixture(fixtures.FakeLogger("ingot.api.web.audit_trail", level=logging.ERROR))
        with self.db.single() as connection:
            connection.exec_driver_sql("DROP TABLE audit_events")
        self.node(name="m")
        self.trail.close()
        self.assertIn("audit events are in the log only", logged.output)
        self.assertIn('"name":"m"', self.log.output)


class UsersTest(identity_case.IdentityCase):
    def configure(self) -> None:
        super().configure()
        self.conf.set_override("enabled", True, group="audit")

    def test_a_flood_without_login_hides_no_refusal_of_a_user(self) -> None:
        self.conf.set_override("most_refused", 3, group="audit")
        self.http = self.application().test_client()
        logged = self.useFixture(fixtures.FakeLogger("ingot.api.web.audit_trail"))
        node = self.own_node()
        for _number in range(10):
            self.assertEqual(401, self.unchecked("DELETE", f"/v1/nodes/{node.uuid}").status)
        self.ask("stranger reader", "DELETE", f"/v1/nodes/{node.uuid}")
        self.http.application.extensions[app.TRAIL].close()
        events = self.ask("system reader", "GET", "/ingot/v1/audit").json["events"]
        self.assertEqual([404, 401, 401, 401], [event["reason"]["code"] for event in events])
        self.assertIn("7 refused requests without a login were not audited", logged.output)

    def test_projects_see_what_was_done_to_their_nodes(self) -> None:
        node = self.own_node()
        self.ask("system admin", "POST", "/v1/nodes", {"driver": "fake-hardware"})
        self.ask("stranger reader", "DELETE", f"/v1/nodes/{node.uuid}")
        self.ask("owner member", "PUT", f"/v1/nodes/{node.uuid}/maintenance", {})
        self.assertEqual(401, self.unchecked("DELETE", f"/v1/nodes/{node.uuid}").status)
        self.http.application.extensions[app.TRAIL].close()

        def list_actions(person: str) -> list[tuple[str, int]]:
            events = self.ask(person, "GET", "/ingot/v1/audit").json["events"]
            return sorted((event["action"].rpartition(":")[2], event["reason"]["code"]) for event in events)

        everything = [("create", 201), ("delete", 401), ("delete", 404), ("set_maintenance", 202)]
        self.assertEqual(everything, list_actions("system reader"))
        self.assertEqual([("delete", 404), ("set_maintenance", 202)], list_actions("owner reader"))
        self.assertEqual([("delete", 404), ("set_maintenance", 202)], list_actions("lessee reader"))
        self.assertEqual([], list_actions("stranger reader"))
        self.assertEqual(403, self.ask("owner none", "GET", "/ingot/v1/audit").status)
