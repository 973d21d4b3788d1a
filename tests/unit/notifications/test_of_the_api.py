"""The API tells of each change: that it begins, and how it has ended."""

import logging
from typing import Any

import fixtures

from ingot.api import app
from ingot.common import states
from ingot.db import nodes
from tests import api_case, notices, world
from tests.sql_counter import counting


class NoticesTest(api_case.ApiCase):
    level: str | None = "info"

    def configure(self) -> None:
        notices.switch_on(self.conf, self.level)

    def take(self) -> list[dict[str, Any]]:
        return notices.take(self.http.application.extensions[app.NOTIFIER])

    def take_types(self) -> list[str]:
        return [message["event_type"] for message in self.take()]


class ChangesTest(NoticesTest):
    def test_a_node_is_created(self) -> None:
        node = self.node(name="n", driver_info={"ipmi_password": "hunter2"}, extra={"a": 1})
        start, end = self.take()
        self.assertEqual(("baremetal.node.create.start", "INFO"), (start["event_type"], start["priority"]))
        self.assertEqual(f"ironic-api.{self.conf.host}", end["publisher_id"])
        self.assertEqual("NodeCRUDPayload", end["payload"]["ironic_object.name"])
        sent = notices.data(end)
        self.assertEqual({"ipmi_password": "******"}, sent["driver_info"])
        self.assertEqual(None, notices.data(start)["created_at"])
        for name in set(sent) & set(node) - {"created_at", "driver_info", "updated_at", "traits"}:
            self.assertEqual(node[name], sent[name], name)

    def test_each_resource_has_notices(self) -> None:
        node = self.node(name="n")["uuid"]
        nodes.set_always(self.db, node, {"power_state": states.POWER_OFF})  # or volumes stay as they are
        for path, body in world.created(node).items():
            one = self.good("POST", path, body)
            name, value = ("description", "a") if "rules" in path else ("extra", {"a": 1})
            self.unchecked("PATCH", f"{path}/{one['uuid']}", [{"op": "add", "path": f"/{name}", "value": value}])
            self.unchecked("DELETE", f"{path}/{one['uuid']}")
        sent = self.take_types()
        nouns = ("allocation", "chassis", "deploytemplate", "inspectionrule", "port", "portgroup", "runbook")
        for noun in (*nouns, "volumeconnector", "volumetarget"):
            for event in ("create.start", "create.end", "update.start", "delete.start"):
                self.assertIn(f"baremetal.{noun}.{event}", sent)
            self.assertTrue({f"baremetal.{noun}.update.{end}" for end in ("end", "error")}.intersection(sent), noun)

    def test_what_is_refused_by_the_database_ends_in_an_error(self) -> None:
        self.node(name="n")
        self.refused(409, "POST", "/v1/nodes", {"driver": "fake-hardware", "name": "n"})
        last = self.take()[-1]
        self.assertEqual(("baremetal.node.create.error", "ERROR"), (last["event_type"], last["priority"]))

    def test_updates_of_a_node(self) -> None:
        node = self.node(name="n")["uuid"]
        self.good("PATCH", f"/v1/nodes/{node}", [{"op": "replace", "path": "/name", "value": "m"}])
        self.good("PUT", f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A"]})
        self.good("PUT", f"/v1/nodes/{node}/maintenance", {"reason": "because"})
        self.good("DELETE", f"/v1/nodes/{node}")
        sent = self.take()[2:]
        self.assertEqual(
            [
                f"baremetal.node.{action}.{status}"
                for action in ("update", "update", "maintenance_set", "delete")
                for status in ("start", "end")
            ],
            [message["event_type"] for message in sent],
        )
        names = [notices.data(message)["name"] for message in sent]
        self.assertEqual(["m"] * 8, names)
        self.assertEqual(["CUSTOM_A"], notices.data(sent[3])["traits"])
        self.assertEqual("because", notices.data(sent[5])["maintenance_reason"])

    def test_an_update_tells_the_values_of_documents(self) -> None:
        node = self.node(extra={"b": 2})["uuid"]
        patch = [
            {"op": "add", "path": "/extra/a", "value": 1},
            {"op": "add", "path": "/driver_info/ipmi_password", "value": "hunter2"},
        ]
        self.good("PATCH", f"/v1/nodes/{node}", patch)
        sent = notices.data(self.take()[-1])
        self.assertEqual({"a": 1, "b": 2}, sent["extra"])
        self.assertEqual("******", sent["driver_info"]["ipmi_password"])

    def test_accepted_work(self) -> None:
        node = self.node(name="n")["uuid"]
        self.good("PUT", f"/v1/nodes/{node}/states/power", {"target": "rebooting"})
        self.good("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
        power, provision = self.take()[2:]
        self.assertEqual("baremetal.node.power_set.start", power["event_type"])
        self.assertEqual("rebooting", notices.data(power)["to_power"])
        self.assertEqual("baremetal.node.provision_set.start", provision["event_type"])
        sent = notices.data(provision)
        self.assertEqual(
            ["manage", "enroll", "verifying", "manageable"],
            [sent[name] for name in ("event", "previous_provision_state", "provision_state", "target_provision_state")],
        )

    def test_verbs_that_lead_to_the_same_state_have_events_of_their_own(self) -> None:
        steps = [{"interface": "deploy", "step": "erase_devices"}]
        for state, body in (
            (states.MANAGEABLE, {"target": "clean", "clean_steps": steps}),
            (states.MANAGEABLE, {"target": "provide"}),
            (states.DEPLOYFAIL, {"target": "active"}),
            (states.DEPLOYFAIL, {"target": "rebuild"}),
        ):
            node = self.node()["uuid"]
            nodes.set_always(self.db, node, {"provision_state": state, "instance_info": {"image_source": "a"}})
            self.good("PUT", f"/v1/nodes/{node}/states/provision", body)
        sent = [notices.data(one) for one in self.take() if one["event_type"] == "baremetal.node.provision_set.start"]
        self.assertEqual(["clean", "provide", "deploy", "rebuild"], [one["event"] for one in sent])


class ErrorsOnlyTest(NoticesTest):
    level = "error"

    def test_only_failures_are_sent(self) -> None:
        self.node(name="n")
        self.refused(409, "POST", "/v1/nodes", {"driver": "fake-hardware", "name": "n"})
        self.assertEqual(["baremetal.node.create.error"], self.take_types())


class WithoutDriverTest(api_case.ApiCase):
    def test_a_level_alone_sends_nothing_and_says_so(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("ingot.notifications", level=logging.WARNING))
        self.conf.set_override("notification_level", "info")
        made = self.application().extensions[app.NOTIFIER]
        self.assertEqual((False, ()), (made.is_on, made.node_columns))
        self.assertIn("set [oslo_messaging_notifications] driver, to messagingv2", log.output)


class OffTest(NoticesTest):
    level = None

    def test_nothing_is_sent(self) -> None:
        self.node(name="n")
        self.assertEqual([], self.take_types())


class StatementsTest(api_case.ApiCase):
    """A change costs as many statements with notifications as without, but for what reads the end of some."""

    def test_they_are_the_same(self) -> None:
        counts = []
        for level in (None, None, "info"):  # the first fills caches
            if level:
                notices.switch_on(self.conf)
                self.http = self.application().test_client()
            node = self.node()["uuid"]
            with counting(self.db) as counted:
                self.node()
                self.good("PATCH", f"/v1/nodes/{node}", [{"op": "add", "path": "/extra/a", "value": "m"}])
                self.good("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
                self.good("PUT", f"/v1/nodes/{node}/maintenance", {})
                self.good("DELETE", f"/v1/nodes/{node}")
            counts.append(len(counted))
        self.assertEqual(counts[1] + 1, counts[2])  # the end of maintenance_set
