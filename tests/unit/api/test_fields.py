"""Fields by version: the tables against the answers, for every field of every resource."""

from typing import Any

import testtools

from ingot.api.nodes import node_fields
from ingot.api.resources import chassis, conductors, drivers, ports, step_lists
from ingot.api.web import fields, tables
from ingot.common import errors
from tests import api_case

STEP = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}


class EveryField(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        node = self.node()["uuid"]
        port = self.good("POST", "/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:01"})["uuid"]
        portgroup = self.good("POST", "/v1/portgroups", {"node_uuid": node})["uuid"]
        self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_T", "steps": [STEP]})
        runbook = {"name": "CUSTOM_R", "steps": [{"interface": "bios", "step": "factory_reset", "order": 1}]}
        self.good("POST", "/v1/runbooks", runbook)
        self.resources: list[tuple[tables.Table, str]] = [
            (node_fields.TABLE, f"/v1/nodes/{node}"),
            (node_fields.STATES_TABLE, f"/v1/nodes/{node}/states"),
            (ports.TABLE, f"/v1/ports/{port}"),
            (ports.PORTGROUP_TABLE, f"/v1/portgroups/{portgroup}"),
            (chassis.TABLE, f"/v1/chassis/{self.good('POST', '/v1/chassis', {})['uuid']}"),
            (step_lists.TEMPLATE_TABLE, "/v1/deploy_templates/CUSTOM_T"),
            (step_lists.RUNBOOK_TABLE, "/v1/runbooks/CUSTOM_R"),
            (drivers.TABLE, "/v1/drivers/fake-hardware"),
            (conductors.TABLE, f"/v1/conductors/{api_case.HOST}"),
        ]

    def test_is_absent_before_its_version_and_present_from_it_on(self) -> None:
        for table, url in self.resources:
            for field in table.fields.values():
                at = self.api("GET", url, version=f"1.{field.since}")
                if at.status == 200:
                    self.assertEqual(not field.hidden, field.name in at.json, f"{field.name} of {url}")
                before = self.api("GET", url, version=f"1.{max(1, field.since - 1)}")
                if before.status == 200 and field.since > 1:
                    self.assertNotIn(field.name, before.json, url)

    def test_cannot_be_selected_before_its_version(self) -> None:
        for table, url in self.resources:
            first = max(80, next(iter(table.fields.values())).since)  # before it, there is nothing to select from
            newer = [field for field in table.fields.values() if field.since > first and not field.hidden]
            for field in newer if table is not node_fields.STATES_TABLE else ():
                name = f"{url}?fields={field.name}"
                self.assertIn(field.name, self.refused(406, "GET", name, version=f"1.{field.since - 1}"))
                self.assertIn(field.name, self.good("GET", name, version=f"1.{field.since}"))

    def test_cannot_be_written_before_its_version(self) -> None:
        for table, url in self.resources[:1]:
            for field in table.patchable.values():
                if field.since > 1:
                    patch = [{"op": "remove", "path": f"/{field.name}"}]
                    self.assertIn(field.name, self.refused(406, "PATCH", url, patch, f"1.{field.since - 1}"))


class Selecting(api_case.ApiCase):
    def test_only_what_is_asked_for_and_links(self) -> None:
        node = self.node(name="n")
        self.assertEqual({"name", "extra", "links"}, set(self.good("GET", "/v1/nodes/n?fields=name,extra")))
        self.assertEqual({"uuid", "links"}, set(self.good("GET", "/v1/nodes?fields=uuid&fields=uuid")["nodes"][0]))
        self.assertEqual(node["uuid"], self.good("GET", "/v1/nodes/n?fields=uuid%20")["uuid"])

    def test_an_unknown_field_is_named_with_those_there_are(self) -> None:
        message = self.refused(400, "GET", "/v1/chassis?fields=uuid,colour")
        self.assertIn("colour", message)
        self.assertIn("description", message)

    def test_fields_came_with_1_8(self) -> None:
        self.refused(406, "GET", "/v1/nodes?fields=uuid", version="1.7")


class NodeValues(api_case.ApiCase):
    def test_secrets_are_masked(self) -> None:
        node = self.node(driver_info={"ipmi_password": "hunter2", "ipmi_address": "10.0.0.1"})
        self.assertEqual({"ipmi_password": "******", "ipmi_address": "10.0.0.1"}, node["driver_info"])

    def test_available_was_shown_as_null_before_1_2(self) -> None:
        node = self.good("POST", "/v1/nodes", api_case.NODE, "1.1")
        self.assertIsNone(node["provision_state"])
        self.assertEqual("available", self.good("GET", f"/v1/nodes/{node['uuid']}", version="1.2")["provision_state"])

    def test_a_node_without_a_conductor_says_so(self) -> None:
        self.register("other", api_case.enabled("ipmi", **api_case.PLAIN), group="far")
        self.client.notify = None  # type: ignore[assignment,method-assign]
        self.assertEqual(api_case.HOST, self.node()["conductor"])

    def test_times_have_a_zone(self) -> None:
        self.assertRegex(self.node()["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00$")


class Body(testtools.TestCase):
    def body(self, *declared: fields.Field) -> fields.Body:
        return fields.Body("thing", *declared)

    def refused(self, body: fields.Body, value: Any, minor: int = 1) -> str:
        return self.assertRaises(errors.Invalid, body.check, value, minor).message

    def test_null_is_what_stands_for_nothing(self) -> None:
        body = self.body(fields.Field("extra", type=fields.OBJECT), fields.Field("on", type=fields.FLAG_ON))
        self.assertEqual({"extra": {}, "on": True}, body.check({"extra": None, "on": None}, 1))

    def test_words_for_true_and_false(self) -> None:
        body = self.body(fields.Field("on", type=fields.FLAG))
        self.assertEqual([True, False], [body.check({"on": word}, 1)["on"] for word in ("yes", "OFF")])
        self.assertIn("'maybe'", self.refused(body, {"on": "maybe"}))

    def test_a_required_key_is_named(self) -> None:
        body = self.body(fields.Field("name", type=fields.REQUIRED_TEXT, required=True))
        self.assertIn("'name' is a required property", self.refused(body, {}))

    def test_a_long_value_does_not_flood_the_message(self) -> None:
        body = self.body(fields.Field("name", type=fields.text(10)))
        self.assertLess(len(self.refused(body, {"name": "x" * 100_000})), 600)

    def test_numbers_may_come_as_digits(self) -> None:
        body = self.body(fields.Field("timeout", type=fields.whole_number(1)))
        self.assertEqual({"timeout": 5}, body.check({"timeout": "5"}, 1))
        for wrong in (0, -1, "abc", "", 1.5, True):
            self.refused(body, {"timeout": wrong})

    def test_characters_that_no_database_keeps_are_refused(self) -> None:
        self.assertIn("NUL", self.refused(self.body(fields.Field("name", type=fields.TEXT)), {"name": "a\0b"}))
