"""Tokens of Keystone: who gets in, what each role may do, what others see of a node."""

import json
import logging
import uuid
from typing import Any

import fixtures
from oslo_policy import policy

from ingot.api import routes
from ingot.api.auth import enforcer, identity, rules
from ingot.api.resources import root
from ingot.common import errors, states
from ingot.db import nodes
from tests import api_case, database, identity_case, policy_table, sql_counter

TARGET = {"boot_index": 0, "volume_type": "iscsi"}
# The document of volumes is about no node: only who may see all of them gets it. A stream of events does not end.
NOT_READ = ("/v1/volume", "/ingot/v1/events")
PATCH = [{"op": "add", "path": "/extra/a", "value": 1}]

BODIES: dict[str, Any] = {
    "baremetal:node:update": PATCH,
    "baremetal:node:create": api_case.NODE,
    "baremetal:node:set_power_state": {"target": "power on"},
    "baremetal:node:set_provision_state": {"target": "manage"},
    "baremetal:node:set_maintenance": {},
    "baremetal:node:set_boot_device": {"boot_device": "pxe"},
    "baremetal:port:update": PATCH,
    "baremetal:portgroup:update": PATCH,
    "baremetal:volume:update": PATCH,
    "baremetal:chassis:update": PATCH,
    "baremetal:runbook:update": PATCH,
    "baremetal:deploy_template:update": PATCH,
    "baremetal:allocation:update": PATCH,
}
"""By rule: bodies that are right, so that only the rule is in the way."""


class GettingIn(identity_case.IdentityCase):
    def test_without_a_token_the_answer_says_where_to_get_one(self) -> None:
        answer = self.api("GET", "/v1/nodes")
        self.assertEqual(401, answer.status)
        self.assertEqual('Keystone uri="https://keystone.example/v3"', answer.headers["WWW-Authenticate"])

    def test_a_token_that_is_none_does_not_open(self) -> None:
        self.assertEqual(401, self.ask("made up", "GET", "/v1/nodes").status)

    def test_what_a_client_says_of_itself_is_not_believed(self) -> None:
        forged = {
            "X_Roles": "admin",
            "X_Identity_Status": "Confirmed",
            "OpenStack_System_Scope": "all",
            "X_User_Id": "me",
        }
        self.assertEqual(401, self.api("GET", "/v1/nodes", **forged).status)
        self.own_node()
        answer = self.api("GET", "/v1/nodes", **forged, X_Auth_Token="stranger reader")
        self.assertEqual((200, []), (answer.status, answer.json["nodes"]))

    def test_public_routes_need_none(self) -> None:
        for route in (route for route in routes.ROUTES if route.public):
            for method in route.operations:
                answer = self.api(method, route.path.replace("<node>", "n").replace("<mac>", "52-54-00-00-00-01"))
                self.assertNotIn(answer.status, (401, 403, 500), f"{method} {route.path}")

    def test_the_token_goes_nowhere(self) -> None:
        node = self.own_node(provision_state=states.MANAGEABLE)
        answer = self.ask("owner member", "PUT", f"/v1/nodes/{node.uuid}/states/power", {"target": "power on"})
        self.assertEqual(202, answer.status, answer)
        (context,) = self.conductor.contexts
        self.assertEqual(("user-owner-member", "owner"), (context["user"], context["project_id"]))
        self.assertNotIn("owner member", json.dumps(context))
        self.assertNotIn("auth_token", context)


class Careless(identity_case.IdentityCase):
    """Routes that a careless developer might add."""

    def application(self) -> Any:
        added = (
            routes.serve("undeclared", {"GET": root.service}),
            routes.serve("unasked", {"GET": root.service}, "node:get"),
        )
        self.useFixture(fixtures.MonkeyPatch("ingot.api.routes.ROUTES", (*routes.ROUTES, *added)))
        return super().application()

    def test_a_route_without_a_rule_is_refused(self) -> None:
        self.assertEqual(403, self.ask("system admin", "GET", "/v1/undeclared").status)

    def test_what_asks_no_rule_answers_nothing(self) -> None:
        answer = self.ask("system admin", "GET", "/v1/unasked")
        self.assertEqual(500, answer.status)
        self.assertNotIn("versions", answer.text)


class WithoutKeystone(api_case.ApiCase):
    def configure(self) -> None:
        identity_case.configure(self.conf)

    def test_no_service_starts_without_a_user_of_keystone(self) -> None:
        self.conf.set_override("auth_type", None, group="keystone_authtoken")
        refusal = self.assertRaises(errors.ConfigurationError, identity.load_strategy, self.conf)
        self.assertIn("auth_type", refusal.message)

    def test_no_answer_says_that_a_token_is_wrong(self) -> None:
        answer = self.api("GET", "/v1/nodes", X_Auth_Token="a token")
        self.assertEqual(503, answer.status)
        self.assertIn("Retry-After", answer.headers)


class Matrix(identity_case.IdentityCase):
    """Every operation, requested by every role."""

    def setUp(self) -> None:
        super().setUp()
        self.rules = enforcer.Enforcer(self.conf)
        self.known = self.own_node(name="n", power_state=states.POWER_OFF)
        self.paths = {"node": self.known.uuid, "trait": "CUSTOM_A", "uuid": self.known.uuid, "name": "led@system"}
        self.paths |= {"run": self.known.uuid, "hostname": api_case.HOST, "method": "m", "component": "c", "vif": "v"}
        made = {
            "/v1/ports": {"node_uuid": self.known.uuid, "address": "52:54:00:00:00:01"},
            "/v1/portgroups": {"node_uuid": self.known.uuid},
            "/v1/volume/connectors": {"node_uuid": self.known.uuid, "type": "iqn", "connector_id": "iqn.a"},
            "/v1/volume/targets": {"node_uuid": self.known.uuid, "volume_id": "v", **TARGET},
            "/v1/chassis": {},
            "/v1/deploy_templates": {"name": "CUSTOM_A", "steps": [
                {"interface": "deploy", "step": "erase", "args": {}, "priority": 10}]},
            "/v1/runbooks": {"name": "CUSTOM_A", "owner": "owner", "steps": [
                {"interface": "deploy", "step": "erase", "args": {}, "order": 1}]},
            "/v1/allocations": {"resource_class": "x", "owner": "owner"},
        }  # fmt: skip
        self.bodies: dict[str, Any] = {}
        self.idents: dict[str, str] = {}
        for path, body in made.items():
            answer = self.ask("system admin", "POST", path, body)
            self.assertEqual(201, answer.status, (path, answer))
            self.idents[path] = answer.json["uuid"]
            self.bodies[f"POST {path}"] = body
        self.idents["/v1/deploy-templates"] = self.idents["/v1/deploy_templates"]

    def concrete(self, route: routes.Route) -> str:
        path = route.path
        start = path.partition("/<")[0]
        values = {**self.paths, "ident": self.idents.get(start, self.known.uuid)}
        for name, value in values.items():
            path = path.replace(f"<{name}>", value)
        query = {"validate": f"node={self.known.uuid}", "vendor_passthru": "method=m", "plan": "flow=deploy"}
        last = path.rpartition("/")[2]
        if last in query and path != f"/v1/nodes/{self.known.uuid}/validate":
            return f"{path}?{query[last]}"
        return path.partition("<")[0] + "x" if "<" in path else path

    def body(self, method: str, route: routes.Route) -> Any:
        body = self.bodies.get(f"{method} {route.path}", BODIES.get(route.operations[method].rule))
        return None if body is PATCH and method != "PATCH" else body

    def refused(self, rule: str) -> list[str]:
        """Return who is refused, by what was measured of Ironic; for Ingot's own rules, by the rules."""
        measured = policy_table.MEASURED.get(rule) or policy_table.who_may(rule, self.rules)
        may = {f"{part.partition(':')[0]} {role.strip()}" for part in measured.split(" | ")
               for role in part.partition(":")[2].split(",")}  # fmt: skip
        own = {"baremetal:node:create": "admin service", "baremetal:node:delete": ""}.get(rule)
        if own is not None:  # these have a second rule, for nodes of the own project
            may |= {f"{where} {role}" for where in identity_case.PROJECTS for role in own.split()} | {"owner admin"}
        return [person for person in identity_case.PERSONS if person not in may and person != identity_case.ELEVATED]

    def test_who_may_not_learns_that_before_the_version(self) -> None:
        for part, target in (("boot_mode", "uefi"), ("secure_boot", True)):
            path = f"/v1/nodes/{self.known.uuid}/states/{part}"
            for person, status in (
                ("system reader", 403), ("owner reader", 403), ("stranger admin", 404), ("system admin", 404)
            ):  # fmt: skip
                answer = self.api("PUT", path, {"target": target}, version="1.75", X_Auth_Token=person)
                self.assertEqual(status, answer.status, (part, person, answer.message))
                self.assertEqual(person == "system admin", "1.76" in answer.message)

    def test_who_may_not_does_not_get_anything(self) -> None:
        for route in routes.ROUTES:
            for method, operation in route.operations.items() if not route.public else ():
                rule = operation.rule
                if rule.endswith(":list") or operation.handler.__name__ == "without_ident":
                    continue  # a list shows what one may see: nothing, at worst
                path, body = self.concrete(route), self.body(method, route)
                for person in self.refused(rule):
                    answer = self.ask(person, method, path, body)
                    about = f"{person}: {method} {path} ({rule}): {answer}"
                    # A request that is wrong in itself may be refused before anything is read.
                    expected = (403, 404) if body is not None or method in ("GET", "DELETE") else (400, 403, 404, 406)
                    if rule == "baremetal:allocation:get":  # a node that is not there is answered with 400
                        expected = (400, 403, 404)
                    self.assertIn(answer.status, expected, about)

    def test_strangers_do_not_learn_what_there_is(self) -> None:
        paths = [route for route in routes.ROUTES if "<node>" in route.path and not route.public]
        nowhere = "11111111-2222-3333-4444-555555555555"
        for route in paths:
            for method in route.operations:
                path = self.concrete(route)
                body = self.body(method, route)
                here = self.ask("stranger admin", method, path, body)
                there = self.ask("stranger admin", method, path.replace(self.known.uuid, nowhere), body)
                self.assertEqual(
                    (there.status, there.text.replace(nowhere, self.known.uuid)), (here.status, here.text), path
                )

    def test_readers_read(self) -> None:
        for route in routes.ROUTES:
            rule = route.operations["GET"].rule if "GET" in route.operations else ""
            if route.public or rule not in rules.RULES or route.path in NOT_READ:
                continue
            for person in ("system reader", "owner reader", "lessee reader"):
                if rule.endswith(":list") or person not in self.refused(rule):
                    answer = self.ask(person, "GET", self.concrete(route))
                    self.assertNotIn(answer.status, (401, 403), f"{person}: {route.path} ({rule}): {answer}")


class Lists(identity_case.IdentityCase):
    def setUp(self) -> None:
        super().setUp()
        self.mine = self.own_node(name="mine", lessee=None)
        self.lent = self.own_node(name="lent")
        self.other = self.own_node(name="other", owner="other", lessee=None)
        self.unowned = self.own_node(name="unowned", owner=None, lessee=None)
        for number, node in enumerate((self.mine, self.lent, self.other)):
            for path, body in (
                ("/v1/ports", {"address": f"52:54:00:00:00:0{number}"}),
                ("/v1/portgroups", {}),
                ("/v1/volume/connectors", {"type": "iqn", "connector_id": f"iqn.{number}"}),
                ("/v1/volume/targets", {"boot_index": 0, "volume_id": "v", "volume_type": "iscsi"}),
            ):
                answer = self.ask("system admin", "POST", path, {"node_uuid": node.uuid, **body})
                self.assertEqual(201, answer.status, answer)

    def names(self, person: str, path: str = "/v1/nodes") -> list[str]:
        answer = self.ask(person, "GET", path)
        self.assertEqual(200, answer.status, answer)
        return sorted(node["name"] for node in answer.json["nodes"])

    def test_show_what_the_project_owns_or_leases(self) -> None:
        for path in ("/v1/nodes", "/v1/nodes/detail", "/v1/nodes?limit=2"):
            self.assertEqual(["lent", "mine"], self.names("owner reader", path))
        self.assertEqual(["lent"], self.names("lessee reader"))
        self.assertEqual([], self.names("stranger admin"))
        self.assertEqual(["lent", "mine", "other", "unowned"], self.names("system reader"))

    def test_are_refused_to_those_without_a_role(self) -> None:
        for person in ("owner none", "system none"):
            self.assertEqual(403, self.ask(person, "GET", "/v1/nodes").status)

    def test_of_another_project_are_refused(self) -> None:
        self.assertEqual(403, self.ask("owner reader", "GET", "/v1/nodes?project=lessee").status)
        self.assertEqual(["lent", "mine"], self.names("owner reader", "/v1/nodes?project=owner"))
        self.assertEqual(["lent"], self.names("system reader", "/v1/nodes?project=lessee"))

    def test_of_what_belongs_to_nodes_are_limited_alike(self) -> None:
        for path in ("/v1/ports", "/v1/portgroups", "/v1/volume/connectors", "/v1/volume/targets"):
            key = path.rpartition("/")[2]
            counted = [
                len(self.ask(f"{where} reader", "GET", path).json[key])
                for where in ("system", "owner", "lessee", "stranger")
            ]
            self.assertEqual([3, 2, 1, 0], counted, path)
            self.assertEqual(404, self.ask("owner reader", "GET", f"{path}?node={self.other.uuid}").status)
            below = path.removeprefix("/v1")
            self.assertEqual(404, self.ask("owner reader", "GET", f"/v1/nodes/other{below}").status)
            self.assertEqual(1, len(self.ask("lessee reader", "GET", f"/v1/nodes/lent{below}").json[key]))

    def test_ask_as_much_of_many_nodes_as_of_few(self) -> None:
        asked: list[str] = []
        enforce = policy.Enforcer.enforce

        def counted(self: policy.Enforcer, rule: str, *args: Any, **kwargs: Any) -> Any:
            asked.append(rule)
            return enforce(self, rule, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch("oslo_policy.policy.Enforcer.enforce", counted))
        counts = []
        for number in (2, 40):
            for _node in range(number):
                database.make_node(self.db, owner=str(uuid.uuid4()), lessee="lessee", provision_state=states.ACTIVE)
            self.http = self.application().test_client()  # it remembers nothing
            asked.clear()
            shown = self.ask("lessee reader", "GET", "/v1/nodes/detail").json["nodes"]
            counts.append((len(shown) > number, len(asked)))
        self.assertEqual(counts[0], counts[1])

    def test_cost_no_statement_more(self) -> None:
        for path in ("/v1/nodes", "/v1/nodes/lent/states", "/v1/ports"):
            for person in ("system admin", "lessee reader"):
                with sql_counter.counting(self.db) as counted:
                    self.ask(person, "GET", path)
                self.assertEqual(1, len(counted), f"{person} {path}: {counted}")
        with sql_counter.counting(self.db) as counted:
            self.ask("lessee reader", "GET", "/v1/nodes/lent")
        self.assertLessEqual(len(counted), 4)


class Fields(identity_case.IdentityCase):
    HIDDEN = ("driver_info", "driver_internal_info", "last_error", "reservation")

    def setUp(self) -> None:
        super().setUp()
        secret = {"ipmi_address": "192.0.2.1", "ipmi_password": "secret"}
        self.known = self.own_node(
            name="n", driver_info=secret, instance_info={"configdrive": "secret"}, last_error="conductor-7 says no",
            reservation="conductor-7", driver_internal_info={"a": 1}, provision_state=states.ACTIVE,
        )  # fmt: skip

    def hidden(self, person: str, path: str = "/v1/nodes/n") -> list[str]:
        answer = self.ask(person, "GET", path)
        self.assertEqual(200, answer.status, answer)
        self.assertNotIn("secret", answer.text)
        shown = answer.json["nodes"][0] if "nodes" in answer.json else answer.json
        return [name for name in self.HIDDEN if name in shown and "Redacted" in json.dumps(shown[name])]

    def test_of_the_inside_are_hidden_from_lessees(self) -> None:
        for path in ("/v1/nodes/n", "/v1/nodes/detail", f"/v1/nodes?fields={','.join(self.HIDDEN)}"):
            self.assertEqual(list(self.HIDDEN), self.hidden("lessee admin", path))
            self.assertEqual([], self.hidden("owner reader", path))
            self.assertEqual([], self.hidden("system reader", path))
        self.assertEqual(["last_error"], self.hidden("lessee reader", "/v1/nodes/n/states"))
        self.assertEqual([], self.hidden("owner reader", "/v1/nodes/n/states"))

    def test_name_the_permission_that_is_missing(self) -> None:
        shown = self.ask("lessee reader", "GET", "/v1/nodes/n").json
        self.assertIn("baremetal:node:get:last_error", shown["last_error"])
        self.assertIn("baremetal:node:get:driver_info", shown["driver_info"]["content"])

    def test_of_volume_targets_are_for_administrators(self) -> None:
        body = {"boot_index": 0, "volume_id": "v", "volume_type": "iscsi", "properties": {"target_iqn": "iqn.x"}}
        made = self.ask("system admin", "POST", "/v1/volume/targets", {**body, "node_uuid": self.known.uuid}).json
        path = f"/v1/volume/targets/{made['uuid']}"
        self.assertIn("redacted_contents", self.ask("owner reader", "GET", path).json["properties"])
        self.assertEqual({"target_iqn": "iqn.x"}, self.ask("owner admin", "GET", path).json["properties"])


class Changing(identity_case.IdentityCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = self.own_node(name="n", provision_state=states.MANAGEABLE)

    def patch(self, person: str, path: str, value: Any, op: str = "add") -> int:
        return self.ask(person, "PATCH", "/v1/nodes/n", [{"op": op, "path": path, "value": value}]).status

    def test_fields_have_rules_of_their_own(self) -> None:
        for path, value, may, may_not in (
            ("/extra/a", 1, "lessee member", "lessee reader"),
            ("/description", "x", "lessee member", "owner reader"),
            ("/instance_info/a", 1, "lessee manager", "lessee member"),
            ("/driver_info/a", 1, "owner member", "lessee admin"),
            ("/properties/a", 1, "owner member", "lessee admin"),
            ("/name", "n", "owner member", "lessee admin"),
            ("/lessee", "lessee", "owner member", "lessee admin"),
            ("/boot_interface", "fake", "owner manager", "owner member"),
            ("/owner", "owner", "system member", "owner admin"),
            ("/conductor_group", "", "system member", "owner admin"),
            ("/shard", "s", "system admin", "system member"),
            ("/disable_power_off", True, "system admin", "system member"),
            ("/automated_clean", False, "system admin", "owner admin"),
            ("/automated_clean", True, "owner member", "owner reader"),
        ):
            self.assertEqual(403, self.patch(may_not, path, value), f"{may_not} {path}")
            self.assertEqual(200, self.patch(may, path, value), f"{may} {path}")

    def test_all_fields_of_a_patch_must_be_allowed(self) -> None:
        patch = [*PATCH, {"op": "add", "path": "/driver_info/a", "value": 1}]
        self.assertEqual(403, self.ask("lessee member", "PATCH", "/v1/nodes/n", patch).status)
        self.assertEqual({}, self.ask("owner reader", "GET", "/v1/nodes/n").json["extra"])

    def test_the_owner_of_a_node_in_use_is_changed_by_administrators_only(self) -> None:
        self.own_node(name="used", provision_state=states.ACTIVE)
        patch = [{"op": "replace", "path": "/owner", "value": "stranger"}]
        self.assertEqual(409, self.ask("system member", "PATCH", "/v1/nodes/used", patch).status)
        self.assertEqual(200, self.ask("system admin", "PATCH", "/v1/nodes/used", patch).status)

    def test_administrators_of_a_project_have_nodes_of_their_own(self) -> None:
        made = self.ask("stranger admin", "POST", "/v1/nodes", api_case.NODE)
        self.assertEqual((201, "stranger"), (made.status, made.json["owner"]))
        other = self.ask("stranger admin", "POST", "/v1/nodes", {**api_case.NODE, "owner": "owner"})
        self.assertEqual(400, other.status)
        self.assertIn("owner", other.message)
        path = f"/v1/nodes/{made.json['uuid']}"
        self.assertEqual(403, self.ask("stranger manager", "DELETE", path).status)
        self.assertEqual(204, self.ask("stranger admin", "DELETE", path).status)
        self.assertEqual(201, self.ask("system admin", "POST", "/v1/nodes", {**api_case.NODE, "owner": "x"}).status)
        self.conf.set_override("project_admin_can_manage_own_nodes", False, group="api")
        self.assertEqual(403, self.ask("stranger admin", "POST", "/v1/nodes", api_case.NODE).status)
        self.assertEqual(403, self.ask("owner admin", "DELETE", "/v1/nodes/n").status)

    def test_a_failed_log_in_is_one_line_of_the_log(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.assertEqual(401, self.ask("no token", "GET", "/v1/nodes").status)
        lines = [line for line in log.output.splitlines() if "deprecated" not in line and "GET /v1" not in line]
        self.assertEqual(["Failed log-in with a token from 127.0.0.1"], lines)

    def test_a_run_of_a_foreign_node_is_not_there_and_the_node_is_not_named(self) -> None:
        run = str(uuid.uuid4())
        node = self.own_node(name="foreign", run_id=run, flow="deploy", provision_state=states.DEPLOYING)
        self.assertEqual(200, self.ask("owner reader", "GET", f"/ingot/v1/runs/{run}").status)
        answer = self.ask("stranger admin", "GET", f"/ingot/v1/runs/{run}")
        self.assertEqual((404, f"Run {run} could not be found."), (answer.status, answer.message))
        for name in (node.uuid, "foreign", "Node"):
            self.assertNotIn(name, answer.text)

    def test_things_are_given_to_own_nodes_only(self) -> None:
        other = database.make_node(self.db, owner="other")
        port = {"node_uuid": other.uuid, "address": "52:54:00:00:00:01"}
        nowhere = {**port, "node_uuid": "11111111-2222-3333-4444-555555555555"}
        for body in (port, nowhere):
            self.assertEqual(403, self.ask("owner manager", "POST", "/v1/ports", body).status)
        self.assertEqual(400, self.ask("system admin", "POST", "/v1/ports", nowhere).status)
        mine = self.ask("owner manager", "POST", "/v1/ports", {**port, "node_uuid": self.known.uuid}).json
        move = [{"op": "replace", "path": "/node_uuid", "value": other.uuid}]
        self.assertEqual(400, self.ask("owner manager", "PATCH", f"/v1/ports/{mine['uuid']}", move).status)
        self.assertEqual(400, self.ask("system admin", "PATCH", f"/v1/ports/{mine['uuid']}", move).status)
        parent = {**api_case.NODE, "parent_node": other.uuid}
        self.assertEqual(400, self.ask("owner admin", "POST", "/v1/nodes", parent).status)

    def test_steps_of_ones_own_and_runbooks_have_rules(self) -> None:
        steps = {"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices"}]}
        self.assertEqual(403, self.ask("lessee member", "PUT", "/v1/nodes/n/states/provision", steps).status)
        book = {"name": "CUSTOM_A", "steps": [{"interface": "deploy", "step": "x", "args": {}, "order": 1}]}
        self.assertEqual(201, self.ask("owner manager", "POST", "/v1/runbooks", book).status)
        use = {"target": "clean", "runbook": "CUSTOM_A"}
        self.assertEqual(403, self.ask("lessee manager", "PUT", "/v1/nodes/n/states/provision", use).status)
        self.assertEqual(400, self.ask("owner manager", "PUT", "/v1/nodes/n/states/provision", use).status)  # no trait

    def test_steps_run_on_children_that_one_may_use(self) -> None:
        values = {"parent_node": self.known.uuid, "provision_state": states.MANAGEABLE}
        self.own_node(name="lent", **values)
        kept = self.own_node(name="kept", lessee=None, **values)
        step = {"interface": "power", "step": "reboot", "execute_on_child_nodes": True}
        for limit, person, status in (
            (["lent"], "lessee manager", 202),
            (["kept"], "lessee manager", 400),
            ([], "lessee manager", 403),
            ([], "owner member", 202),
        ):
            steps = [{**step, "limit_child_node_execution": limit}] if limit else [step]
            answer = self.ask(person, "PUT", "/v1/nodes/n/states/provision", {"target": "clean", "clean_steps": steps})
            self.assertEqual(status, answer.status, (limit, person, answer))
            nodes.set_always(self.db, self.known.uuid, {"provision_state": states.MANAGEABLE, "flow": None})
        listed = self.ask("lessee reader", "GET", "/v1/nodes/n/children").json["children"]
        self.assertNotIn(kept.uuid, listed)
        self.assertEqual(1, len(listed))

    def test_a_refusal_says_what_is_missing(self) -> None:
        message = self.ask("owner reader", "PATCH", "/v1/nodes/n", PATCH).message
        for part in ("Access was denied to the following resource: baremetal:node:update_extra", "reader", "owner"):
            self.assertIn(part, message)


class Allocations(identity_case.IdentityCase):
    def make(self, person: str, **values: Any) -> api_case.Answer:
        return self.ask(person, "POST", "/v1/allocations", {"resource_class": "large", **values})

    def test_belong_to_the_project_that_asks(self) -> None:
        mine = self.make("owner member")
        self.assertEqual((201, "owner"), (mine.status, mine.json["owner"]))
        self.assertEqual(403, self.make("owner member", owner="lessee").status)
        self.assertEqual("lessee", self.make("system member", owner="lessee").json["owner"])
        counts = {where: len(self.ask(f"{where} reader", "GET", "/v1/allocations").json["allocations"])
                  for where in ("system", "owner", "lessee", "stranger")}  # fmt: skip
        self.assertEqual({"system": 2, "owner": 1, "lessee": 1, "stranger": 0}, counts)
        path = f"/v1/allocations/{mine.json['uuid']}"
        self.assertEqual(404, self.ask("stranger admin", "DELETE", path).status)
        self.assertEqual(403, self.ask("owner reader", "DELETE", path).status)
        self.assertEqual(204, self.ask("owner member", "DELETE", path).status)

    def test_know_no_candidates_of_others(self) -> None:
        self.own_node(name="mine")
        self.own_node(name="other", owner="other", lessee=None)
        self.assertEqual(201, self.make("lessee member", candidate_nodes=["mine"]).status)
        self.assertEqual(400, self.make("lessee member", candidate_nodes=["other"]).status)
        self.assertEqual(201, self.make("system member", candidate_nodes=["other"]).status)
        self.assertEqual(400, self.make("lessee member", node="other").status)


class Runbooks(identity_case.IdentityCase):
    def setUp(self) -> None:
        super().setUp()
        step = {"interface": "deploy", "step": "x", "args": {}, "order": 1}
        for person, body in (
            ("owner manager", {"name": "CUSTOM_OWN"}),
            ("system admin", {"name": "CUSTOM_PUBLIC", "public": True}),
            ("system admin", {"name": "CUSTOM_HIDDEN"}),
        ):
            answer = self.ask(person, "POST", "/v1/runbooks", {**body, "steps": [step]})
            self.assertEqual(201, answer.status, answer)

    def names(self, person: str) -> list[str]:
        return sorted(book["name"] for book in self.ask(person, "GET", "/v1/runbooks").json["runbooks"])

    def test_lists_have_the_own_and_public_ones(self) -> None:
        self.assertEqual(["CUSTOM_OWN", "CUSTOM_PUBLIC"], self.names("owner reader"))
        self.assertEqual(["CUSTOM_PUBLIC"], self.names("stranger reader"))
        self.assertEqual(["CUSTOM_HIDDEN", "CUSTOM_OWN", "CUSTOM_PUBLIC"], self.names("system reader"))

    def test_public_ones_are_shown_to_every_user(self) -> None:
        found = {name: self.ask("stranger reader", "GET", f"/v1/runbooks/CUSTOM_{name}").status
                 for name in ("OWN", "PUBLIC", "HIDDEN")}  # fmt: skip
        self.assertEqual({"OWN": 403, "PUBLIC": 200, "HIDDEN": 403}, found)

    def test_publishing_and_giving_away_are_the_systems(self) -> None:
        for path, value in (("/public", True), ("/owner", "stranger")):
            patch = [{"op": "replace", "path": path, "value": value}]
            self.assertEqual(403, self.ask("owner manager", "PATCH", "/v1/runbooks/CUSTOM_OWN", patch).status)
        named = [{"op": "replace", "path": "/name", "value": "CUSTOM_NEW"}]
        self.assertEqual(200, self.ask("owner manager", "PATCH", "/v1/runbooks/CUSTOM_OWN", named).status)
