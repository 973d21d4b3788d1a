"""Runbooks: created, changed, deleted, refused, given traits, and used by provision requests."""

import uuid
from typing import Any

import sqlalchemy as sa

from ingot.common import states
from ingot.db import models
from tests import api_case, provision_case, sql_counter

STEP = {"interface": "raid", "step": "apply_configuration", "args": {"a": 1}, "order": 2}
SECOND = {"interface": "bios", "step": "factory_reset", "args": {}, "order": 1}
RESERVED = ("hold", "wait", "power_on", "power_off", "reboot")


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


class RunbookCase(api_case.ApiCase):
    def runbook(self, name: str = "tidy-up", version: str = api_case.LATEST, **values: Any) -> Any:
        return self.good("POST", "/v1/runbooks", {"name": name, "steps": [STEP], **values}, version)

    def names(self) -> list[str]:
        return [runbook["name"] for runbook in self.good("GET", "/v1/runbooks")["runbooks"]]


class RunbookCrud(RunbookCase):
    def test_is_created_with_its_defaults(self) -> None:
        answer = self.api("POST", "/v1/runbooks", {"name": "tidy-up", "steps": [STEP]})
        shown = answer.json
        where = f"http://localhost/v1/runbooks/{shown['uuid']}"
        self.assertEqual((201, where), (answer.status, answer.headers["Location"]))
        self.assertEqual({"href": where, "rel": "self"}, shown["links"][0])
        plain = {"extra": {}, "public": False, "owner": None, "disable_ramdisk": False, "description": None}
        expected = {**plain, "name": "tidy-up", "steps": [STEP], "traits": [], "updated_at": None}
        self.assertEqual(expected, {name: value for name, value in shown.items() if name in expected})

    def test_is_shown_by_name_and_by_uuid(self) -> None:
        created = self.runbook()
        for ident in ("tidy-up", created["uuid"], created["uuid"].upper()):
            self.assertEqual(created, self.good("GET", f"/v1/runbooks/{ident}"))

    def test_a_list_shows_little_and_with_detail_all(self) -> None:
        created = self.runbook()
        brief = self.good("GET", "/v1/runbooks")["runbooks"][0]
        self.assertEqual({"uuid", "name", "links"}, set(brief))
        self.assertEqual([created], self.good("GET", "/v1/runbooks?detail=true")["runbooks"])

    def test_secrets_of_steps_are_masked_and_come_back_as_they_were(self) -> None:
        """Who reads, changes and writes the steps, in another order, stores no mask."""
        secret = {"interface": "bios", "step": "apply_configuration", "args": {"a": 1, "admin_password": "hunter2"}}
        first = {**secret, "order": 1}
        created = self.runbook(steps=[first, STEP])
        shown = created["steps"][0]["args"]
        self.assertEqual({"a": 1, "admin_password": "******"}, shown)
        for answer in (
            self.good("GET", "/v1/runbooks/tidy-up"),
            self.good("GET", "/v1/runbooks?detail=true")["runbooks"][0],
        ):
            self.assertEqual(shown, answer["steps"][0]["args"])
        changed = [created["steps"][1], {**first, "args": {**shown, "a": 2}}]
        answered = self.good("PATCH", "/v1/runbooks/tidy-up", replace("/steps", changed))["steps"]
        self.assertEqual([{}, {"a": 2, "admin_password": "******"}], [answered[0]["args"] and {}, answered[1]["args"]])
        table = models.table(models.RunbookStep)
        stored = self.db.read_column(sa.select(table.c.args).order_by(table.c.id))
        self.assertEqual([STEP["args"], {"a": 2, "admin_password": "hunter2"}], stored)

    def test_masks_that_stand_for_nothing_are_refused(self) -> None:
        step = {"interface": "bios", "step": "apply_configuration", "args": {"password": "******"}, "order": 1}
        message = self.refused(400, "POST", "/v1/runbooks", {"name": "tidy-up", "steps": [step]})
        self.assertIn("Invalid steps.0.args.password: ******. So secrets are shown", message)
        self.runbook()
        message = self.refused(400, "PATCH", "/v1/runbooks/tidy-up", replace("/steps", [STEP, step]))
        self.assertIn("Invalid steps.1.args.password", message)

    def test_steps_may_leave_out_arguments_and_keep_their_order_as_given(self) -> None:
        steps = [{**STEP, "order": "7"}, {"interface": "bios", "step": "factory_reset", "order": 1}]
        self.assertEqual([{**STEP, "order": 7}, SECOND], self.runbook(steps=steps)["steps"])

    def test_every_field_that_can_be_changed(self) -> None:
        created = self.runbook()
        for path, value in (
            ("/name", "CUSTOM_B"),
            ("/steps", [SECOND]),
            ("/extra", {"a": 1}),
            ("/owner", "p"),
            ("/disable_ramdisk", True),
            ("/description", "d" * 255),
        ):
            shown = self.good("PATCH", f"/v1/runbooks/{created['uuid']}", replace(path, value))
            self.assertEqual(value, shown[path[1:]])
        self.assertIsNotNone(shown["updated_at"])
        for name, rest in (("extra", {}), ("owner", None), ("disable_ramdisk", False), ("description", None)):
            shown = self.good("PATCH", "/v1/runbooks/CUSTOM_B", [{"op": "remove", "path": f"/{name}"}])
            self.assertEqual(rest, shown[name])

    def test_what_cannot_be_changed(self) -> None:
        self.runbook()
        for patch, expected in (
            (replace("/uuid", str(uuid.uuid4())), "Cannot patch /uuid"),
            (replace("/traits", ["CUSTOM_A"]), "Cannot patch /traits"),
            ([{"op": "remove", "path": "/name"}], "'name' is a required property"),
            ([{"op": "remove", "path": "/steps"}], "'steps' is a required property"),
            (replace("/steps", [STEP, {**STEP, "order": 3}]), "steps: 'raid.apply_configuration'"),
            (replace("/public", "yes"), "public: 'yes' is not of type 'boolean', 'null'"),
        ):
            self.assertIn(expected, self.refused(400, "PATCH", "/v1/runbooks/tidy-up", patch))
        self.assertEqual([STEP], self.good("GET", "/v1/runbooks/tidy-up")["steps"])

    def test_is_deleted_with_its_steps_and_traits(self) -> None:
        created = self.runbook()
        self.good("PUT", "/v1/runbooks/tidy-up/traits", {"traits": ["CUSTOM_A"]})
        self.good("DELETE", f"/v1/runbooks/{created['uuid']}")
        self.assertIn("tidy-up", self.refused(404, "DELETE", "/v1/runbooks/tidy-up"))
        self.assertEqual([], self.names())
        with self.db.single() as connection:
            for model in (models.RunbookStep, models.RunbookTrait):
                self.assertEqual(
                    0, connection.execute(sa.select(sa.func.count()).select_from(models.table(model))).scalar_one()
                )

    def test_a_list_costs_the_same_however_long(self) -> None:
        costs = []
        for length in (1, 20):
            for number in range(len(self.names()), length):
                name = self.runbook(f"r{number}")["name"]
                self.good("PUT", f"/v1/runbooks/{name}/traits/CUSTOM_A")
            for path in ("/v1/runbooks", "/v1/runbooks?detail=true"):
                with sql_counter.counting(self.db) as counted:
                    self.good("GET", path)
                costs.append(len(counted))
        self.assertEqual([1, 3, 1, 3], costs)


class RunbookRules(RunbookCase):
    def test_names(self) -> None:
        for name in ("CUSTOM_A", "lower-case", "a.b_c~d", "detail", "traits", "x" * 255):
            self.assertEqual(name, self.runbook(name)["name"])
        for name in ("has space", "", None, 5, "x" * 256, "a/b", str(uuid.uuid4())):
            self.assertIn("name", self.refused(400, "POST", "/v1/runbooks", {"name": name, "steps": [STEP]}))

    def test_before_1_112_names_are_those_of_traits(self) -> None:
        self.runbook("CUSTOM_B", "1.111")
        self.runbook("HW_CPU_X86_VMX", "1.111")
        body = {"name": "tidy-up", "steps": [STEP]}
        self.assertIn("CUSTOM_ and then", self.refused(400, "POST", "/v1/runbooks", body, "1.111"))
        message = self.refused(400, "PATCH", "/v1/runbooks/CUSTOM_B", replace("/name", "tidy-up"), "1.111")
        self.assertIn("'tidy-up'. Before version 1.112", message)

    def test_a_taken_name_or_uuid_is_refused(self) -> None:
        created = self.runbook()
        self.runbook("other")
        body = {"name": "tidy-up", "steps": [STEP]}
        self.assertEqual("A runbook with name tidy-up already exists.", self.refused(409, "POST", "/v1/runbooks", body))
        body = {"name": "third", "uuid": created["uuid"], "steps": [STEP]}
        self.assertIn(f"UUID {created['uuid']}", self.refused(409, "POST", "/v1/runbooks", body))
        patch = [*replace("/steps", [SECOND]), *replace("/name", "tidy-up")]
        self.assertIn("tidy-up", self.refused(409, "PATCH", "/v1/runbooks/other", patch))
        self.assertEqual([STEP], self.good("GET", "/v1/runbooks/other")["steps"])

    def test_wrong_ones_say_why(self) -> None:
        for values, expected in (
            ({"steps": []}, "steps: [] should be non-empty"),
            ({"steps": "x"}, "steps: 'x' is not of type 'array'"),
            ({"steps": [{**STEP, "interface": "moon"}]}, "steps.0.interface: 'moon' is not one of"),
            ({"steps": [{"interface": "bios", "step": "x", "args": {}}]}, "'order' is a required property"),
            ({"steps": [{**STEP, "priority": 1}]}, "'priority' was unexpected"),
            ({"steps": [{**STEP, "execute_on_child_nodes": True}]}, "'execute_on_child_nodes' was unexpected"),
            ({"steps": [{**STEP, "order": -1}]}, "steps.0.order"),
            ({"steps": [{**STEP, "order": True}]}, "steps.0.order"),
            ({"steps": [{**STEP, "order": 1.5}]}, "steps.0.order"),
            ({"steps": [STEP, {**STEP, "args": {}, "order": 9}]}, "steps: 'raid.apply_configuration'"),
            ({"public": "x"}, "public: 'x' is not of type 'boolean', 'null'"),
            ({"disable_ramdisk": 5}, "disable_ramdisk: 5"),
            ({"extra": [1]}, "extra: [1]"),
            ({"description": "d" * 256}, "description"),
            ({"traits": ["CUSTOM_A"]}, "'traits' was unexpected"),
            ({"uuid": "x"}, "uuid: 'x'"),
        ):
            body = {"name": "tidy-up", "steps": [STEP], **values}
            self.assertIn(expected, self.refused(400, "POST", "/v1/runbooks", body))
        self.assertIn("'name' is a required", self.refused(400, "POST", "/v1/runbooks", {"steps": [STEP]}))
        self.assertEqual([], self.names())

    def test_reserved_steps_need_no_interface_of_their_own(self) -> None:
        for interface in ("vendor", "power", "management", "firmware", "deploy", "bios", "raid"):
            steps = [
                {"interface": interface, "step": step, "args": {}, "order": place}
                for place, step in enumerate(RESERVED)
            ]
            self.assertEqual(steps, self.runbook(f"on-{interface}", steps=steps)["steps"])

    def test_a_new_one_has_no_owner_or_the_project_that_asks(self) -> None:
        body = {"name": "tidy-up", "steps": [STEP], "owner": "me"}
        self.assertIn("owner: 'me'", self.refused(400, "POST", "/v1/runbooks", body))
        answer = self.api("POST", "/v1/runbooks", body, X_Project_Id="me")
        self.assertEqual((201, "me"), (answer.status, answer.json["owner"]))

    def test_a_public_one_has_no_owner(self) -> None:
        self.assertTrue(self.runbook(public=True)["public"])
        message = self.refused(400, "PATCH", "/v1/runbooks/tidy-up", replace("/owner", "p"))
        self.assertIn("owner: 'p'. A public runbook has no owner", message)
        patch = [*replace("/owner", "p"), *replace("/public", False)]
        self.assertEqual("p", self.good("PATCH", "/v1/runbooks/tidy-up", patch)["owner"])
        self.assertIsNone(self.good("PATCH", "/v1/runbooks/tidy-up", replace("/public", True))["owner"])
        patch = [*replace("/owner", "p"), *replace("/public", True)]
        self.assertIn("owner: 'p'", self.refused(400, "PATCH", "/v1/runbooks/tidy-up", patch))

    def test_versions(self) -> None:
        self.runbook("CUSTOM_A")
        self.refused(404, "GET", "/v1/runbooks", version="1.91")
        self.refused(404, "GET", "/v1/runbooks/CUSTOM_A", version="1.91")
        for method, path in (("POST", ""), ("PATCH", "/CUSTOM_A"), ("DELETE", "/CUSTOM_A")):
            self.refused(405, method, f"/v1/runbooks{path}", version="1.91")
        self.refused(404, "GET", "/v1/runbooks/CUSTOM_A/traits", version="1.111")
        shown = self.good("GET", "/v1/runbooks/CUSTOM_A", version="1.111")
        self.assertEqual(set(), {"traits", "description"} & set(shown))
        self.assertNotIn("runbooks", self.good("GET", "/v1", version="1.91"))
        self.assertIn("runbooks", self.good("GET", "/v1", version="1.92"))

    def test_a_description_before_its_version_is_an_unknown_field(self) -> None:
        body = {"name": "CUSTOM_A", "steps": [STEP], "description": "x"}
        self.assertIn("1.112", self.refused(400, "POST", "/v1/runbooks", body, "1.111"))
        self.runbook("CUSTOM_A", "1.111")
        self.refused(400, "PATCH", "/v1/runbooks/CUSTOM_A", replace("/description", "x"), "1.111")


class RunbookTraits(RunbookCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.runbook()["uuid"]

    def traits(self) -> list[str]:
        found: list[str] = self.good("GET", "/v1/runbooks/tidy-up/traits")["traits"]
        return found

    def test_are_replaced_added_and_removed(self) -> None:
        self.assertEqual(
            204, self.api("PUT", "/v1/runbooks/tidy-up/traits", {"traits": ["CUSTOM_B", "CUSTOM_A"]}).status
        )
        self.assertEqual(["CUSTOM_A", "CUSTOM_B"], self.traits())
        answer = self.api("PUT", "/v1/runbooks/tidy-up/traits/CUSTOM_C")
        self.assertEqual((204, f"http://localhost/v1/runbooks/{self.uuid}/traits/CUSTOM_C"), (
            answer.status, answer.headers["Location"]))  # fmt: skip
        self.good("DELETE", "/v1/runbooks/tidy-up/traits/CUSTOM_A")
        self.assertEqual(["CUSTOM_B", "CUSTOM_C"], self.good("GET", "/v1/runbooks/tidy-up")["traits"])
        self.good("PUT", "/v1/runbooks/tidy-up/traits", {"traits": ["HW_CPU_X86_VMX"]})
        self.assertEqual(["HW_CPU_X86_VMX"], self.traits())
        self.good("DELETE", "/v1/runbooks/tidy-up/traits")
        self.assertEqual([], self.traits())

    def test_to_remove_one_that_is_not_there_is_no_error(self) -> None:
        self.assertEqual(204, self.api("DELETE", "/v1/runbooks/tidy-up/traits/CUSTOM_A").status)

    def test_what_is_refused(self) -> None:
        for body, expected in (
            ({"traits": ["bad"]}, "'bad'. A trait is CUSTOM_"),
            ({"traits": "x"}, "traits: 'x'"),
            ({"traits": [f"CUSTOM_{number}" for number in range(51)]}, "at most 50"),
            ({}, "'traits' is a required property"),
        ):
            self.assertIn(expected, self.refused(400, "PUT", "/v1/runbooks/tidy-up/traits", body))
        self.assertIn("'bad'", self.refused(400, "PUT", "/v1/runbooks/tidy-up/traits/bad"))
        self.refused(400, "PUT", f"/v1/runbooks/tidy-up/traits/CUSTOM_{'A' * 250}")
        self.assertIn("nope", self.refused(404, "PUT", "/v1/runbooks/nope/traits/CUSTOM_A"))
        self.assertEqual([], self.traits())


class UsingRunbooks(provision_case.ProvisionCase):
    """A provision request names a runbook instead of steps."""

    def setUp(self) -> None:
        super().setUp()
        self.runbook = self.make("tidy-up")
        self.good("PUT", "/v1/runbooks/tidy-up/traits", {"traits": ["CUSTOM_A", "CUSTOM_B"]})
        self.good("PUT", "/v1/nodes/n/traits", {"traits": ["CUSTOM_B", "CUSTOM_C"]})
        self.put(provision_state=states.MANAGEABLE)

    def make(self, name: str, **values: Any) -> Any:
        return self.good("POST", "/v1/runbooks", {"name": name, "steps": [STEP, SECOND], **values})

    def request(self, verb: str = "clean", version: str = api_case.LATEST, **arguments: Any) -> dict[str, Any]:
        request: dict[str, Any] = dict(self.accepted(verb, version, **arguments).request)
        self.assertIn("request_id", request.pop("asked_by"))
        return request

    def test_its_steps_are_written_in_their_order_with_where_they_come_from(self) -> None:
        expected = {"disable_ramdisk": False, "origin": "runbook tidy-up"}
        self.assertEqual({**expected, "clean_steps": [SECOND, STEP]}, self.request(runbook="tidy-up"))
        self.put(provision_state=states.ACTIVE)
        request = self.request("service", runbook=self.runbook["uuid"])
        self.assertEqual({**expected, "service_steps": [SECOND, STEP]}, request)

    def test_equal_orders_run_as_they_were_given(self) -> None:
        self.good("PATCH", "/v1/runbooks/tidy-up", replace("/steps", [{**STEP, "order": 1}, SECOND]))
        self.assertEqual([{**STEP, "order": 1}, SECOND], self.request(runbook="tidy-up")["clean_steps"])

    def test_no_ramdisk_if_the_runbook_or_the_request_says_so(self) -> None:
        self.assertTrue(self.request(runbook="tidy-up", disable_ramdisk=True)["disable_ramdisk"])
        self.good("PATCH", "/v1/runbooks/tidy-up", replace("/disable_ramdisk", True))
        self.put(provision_state=states.MANAGEABLE)
        self.assertTrue(self.request(runbook="tidy-up")["disable_ramdisk"])

    def test_what_is_changed_later_does_not_change_what_was_accepted(self) -> None:
        self.request(runbook="tidy-up")
        self.good("DELETE", "/v1/runbooks/tidy-up")
        self.assertEqual([SECOND, STEP], self.row.request["clean_steps"])

    def test_unknown_ones_are_not_found(self) -> None:
        self.assertIn("Runbook nope", self.not_accepted(404, "clean", runbook="nope"))
        gone = str(uuid.uuid4())
        self.assertIn(gone, self.not_accepted(404, "clean", runbook=gone))

    def test_not_beside_steps(self) -> None:
        message = self.not_accepted(400, "clean", runbook="tidy-up", clean_steps=provision_case.CLEAN)
        self.assertIn("Leave out this or clean_steps", message)

    def test_not_before_its_version_and_only_for_its_verbs(self) -> None:
        self.not_accepted(406, "clean", "1.91", runbook="tidy-up")
        self.assertIn("to clean, service, not provide", self.not_accepted(400, "provide", runbook="tidy-up"))

    def test_it_must_share_a_trait_with_the_node(self) -> None:
        self.make("other")
        self.assertIn("PUT /v1/runbooks/other/traits", self.not_accepted(400, "clean", runbook="other"))
        self.good("PUT", "/v1/runbooks/other/traits/CUSTOM_Z")
        message = self.not_accepted(400, "clean", runbook="other")
        self.assertIn("'other'", message)
        self.assertIn("CUSTOM_Z", message)
        self.assertIn(self.uuid, message)

    def test_before_1_112_its_name_must_be_a_trait_of_the_node(self) -> None:
        self.make("CUSTOM_C")
        self.make("CUSTOM_D")
        self.assertEqual("runbook CUSTOM_C", self.request(version="1.111", runbook="CUSTOM_C")["origin"])
        self.put(provision_state=states.MANAGEABLE)
        self.conductor.asked.clear()
        self.assertIn("CUSTOM_D", self.not_accepted(400, "clean", "1.111", runbook="CUSTOM_D"))
        self.assertIn("tidy-up", self.not_accepted(400, "clean", "1.111", runbook="tidy-up"))
