"""Accepting provision and power requests: what is written, who is asked, what is refused."""

import base64
import gzip
import threading
import uuid
from typing import Any

from passlib.hash import sha512_crypt

from ingot.api.nodes import verbs
from ingot.common import clock, context, errors, interfaces, states
from ingot.db import conductors, maintenance, nodes
from tests import api_case, sql_counter
from tests.api_case import DRIVE
from tests.provision_case import CLEAN, ProvisionCase


def asked_for(request: Any) -> dict[str, Any]:
    """Return what a request asks for, without who asked for it."""
    return {name: value for name, value in request.items() if name != "asked_by"}


class Accepting(ProvisionCase):
    def test_each_verb_starts_its_flow(self) -> None:
        for verb, state, reached, target, flow, arguments in (
            ("manage", states.ENROLL, states.VERIFYING, states.MANAGEABLE, "verify", {}),
            ("provide", states.MANAGEABLE, states.CLEANING, states.AVAILABLE, "automated_clean", {}),
            ("clean", states.MANAGEABLE, states.CLEANING, states.MANAGEABLE, "manual_clean", {"clean_steps": CLEAN}),
            ("active", states.AVAILABLE, states.DEPLOYING, states.ACTIVE, "deploy", {}),
            ("deploy", states.AVAILABLE, states.DEPLOYING, states.ACTIVE, "deploy", {}),
            ("rebuild", states.ACTIVE, states.DEPLOYING, states.ACTIVE, "deploy", {}),
            ("deleted", states.ACTIVE, states.DELETING, states.AVAILABLE, "delete", {}),
            ("undeploy", states.ACTIVE, states.DELETING, states.AVAILABLE, "delete", {}),
            ("adopt", states.MANAGEABLE, states.ADOPTING, states.ACTIVE, "adopt", {}),
            ("inspect", states.MANAGEABLE, states.INSPECTING, states.MANAGEABLE, "inspect", {}),
            ("rescue", states.ACTIVE, states.RESCUING, states.RESCUE, "rescue", {"rescue_password": "x"}),
            ("unrescue", states.RESCUE, states.UNRESCUING, states.ACTIVE, "unrescue", {}),
            *(
                ("service", state, states.SERVICING, states.ACTIVE, "service", {"service_steps": CLEAN})
                for state in (states.ACTIVE, states.SERVICEFAIL, states.SERVICEHOLD)
            ),
            *(
                ("deleted", state, states.DELETING, states.AVAILABLE, "delete", {})
                for state in (states.DEPLOYWAIT, states.SERVICEWAIT, states.SERVICEFAIL, states.DEPLOYFAIL)
            ),
        ):
            self.put(provision_state=state, last_error="old", run_id="old", due_at=None, abort_requested=True)
            self.conductor.asked.clear()
            row = self.accepted(verb, **arguments)
            seen = (row.provision_state, row.target_provision_state, row.flow, row.last_error, row.run_id)
            self.assertEqual((reached, target, flow, None, None), seen, verb)
            self.assertFalse(row.abort_requested)
            self.assertIsNotNone(row.due_at)
            self.assertEqual([verb], self.conductor.wakeups)

    def test_a_mere_change_of_state_needs_no_conductor(self) -> None:
        for state in (states.AVAILABLE, states.CLEANFAIL, states.ADOPTFAIL, states.INSPECTFAIL):
            self.put(provision_state=state, last_error="old")
            row = self.accepted("manage")
            seen = (row.provision_state, row.target_provision_state, row.last_error, row.flow, row.due_at)
            self.assertEqual((states.MANAGEABLE, None, None, None, None), seen)
        self.assertEqual([], self.conductor.asked)

    def test_a_cleaning_keeps_its_steps(self) -> None:
        self.put(provision_state=states.MANAGEABLE)
        steps = [{**CLEAN[0], "args": {"a": 1}, "order": "2"}]
        row = self.accepted("clean", clean_steps=steps, disable_ramdisk=True)
        self.assertEqual({"clean_steps": [{**steps[0], "order": 2}], "disable_ramdisk": True}, asked_for(row.request))

    def test_a_deployment_is_validated_before_it_is_accepted(self) -> None:
        self.put(provision_state=states.AVAILABLE)
        self.accepted("active", deploy_steps=[{**CLEAN[0], "args": {}, "priority": "90"}])
        method, arguments = self.conductor.asked[0]
        self.assertEqual(("validate_deploy", asked_for(self.row.request)), (method, arguments["request"]))
        self.assertEqual(90, self.row.request["deploy_steps"][0]["priority"])

    def test_the_conductors_findings_are_reported_and_nothing_changes(self) -> None:
        self.put(provision_state=states.AVAILABLE)
        self.conductor.answers["validate_deploy"] = errors.MissingParameter(where="instance_info", names="image_source")
        self.assertIn("image_source", self.not_accepted(400, "active"))

    def test_config_drives_as_text_url_and_object(self) -> None:
        parts = {"meta_data": {"a": 1}, "user_data": "x"}
        for drive, column, in_request in (
            (DRIVE, DRIVE, None),
            ("http://files/drive.gz", None, "http://files/drive.gz"),
            (parts, None, parts),
        ):
            self.put(provision_state=states.AVAILABLE, configdrive="left over")
            row = self.accepted("active", configdrive=drive)
            self.assertEqual((column, in_request), (row.configdrive, row.request.get("configdrive")))

    def test_a_rebuild_keeps_the_config_drive_unless_a_new_one_is_given(self) -> None:
        self.put(provision_state=states.ACTIVE, configdrive="kept")
        self.assertEqual(("kept", True), (self.accepted("rebuild").configdrive, self.row.request["rebuild"]))
        self.put(provision_state=states.ACTIVE)
        self.assertEqual(DRIVE, self.accepted("rebuild", configdrive=DRIVE).configdrive)

    def test_an_abort_is_a_wish_that_needs_no_lock(self) -> None:
        waits = (states.DEPLOYWAIT, states.CLEANWAIT, states.SERVICEWAIT, states.INSPECTWAIT, states.RESCUEWAIT)
        for state in (*waits, states.DEPLOYHOLD, states.CLEANHOLD, states.SERVICEHOLD):
            self.put(provision_state=state, abort_requested=False, due_at=None, reservation="conductor-1")
            row = self.accepted("abort")
            self.assertEqual((state, True), (row.provision_state, row.abort_requested))
            self.assertIsNotNone(row.due_at)

    def test_unhold_lets_the_flow_go_on_where_it_was_held(self) -> None:
        run = {"flow": "any", "run_id": "r", "request": {"clean_steps": CLEAN}, "step_state": "waiting"}
        for held, reached, target in (
            (states.CLEANHOLD, states.CLEANWAIT, states.MANAGEABLE),
            (states.CLEANHOLD, states.CLEANWAIT, states.AVAILABLE),
            (states.DEPLOYHOLD, states.DEPLOYWAIT, states.ACTIVE),
            (states.SERVICEHOLD, states.SERVICEWAIT, states.ACTIVE),
        ):
            self.put(provision_state=held, target_provision_state=target, due_at=None, **run)
            self.conductor.asked.clear()
            row = self.accepted("unhold")
            self.assertEqual((reached, target), (row.provision_state, row.target_provision_state))
            self.assertEqual(run, {name: getattr(row, name) for name in run})
            self.assertIsNotNone(row.due_at)
            self.assertEqual(["unhold"], self.conductor.wakeups)

    def test_the_machine_of_a_failed_service_is_given_back(self) -> None:
        failed = {"maintenance": True, "maintenance_reason": "fan", "fault": "service failure", "last_error": "the fan"}
        self.put(provision_state=states.SERVICEFAIL, target_provision_state=states.ACTIVE, **failed)
        row = self.accepted("abort")
        self.assertEqual((states.SERVICING, states.ACTIVE), (row.provision_state, row.target_provision_state))
        self.assertEqual("leave_service", row.flow)
        self.assertEqual((True, "service failure"), (row.maintenance, row.fault))
        self.assertEqual(["abort"], self.conductor.wakeups)

    def test_reserved_steps_may_stand_on_any_interface(self) -> None:
        named = [
            {"interface": interface, "step": step, "args": {"seconds": 1} if step == "wait" else {}}
            for interface in interfaces.STEP_KINDS
            for step in ("hold", "wait", "power_on", "power_off", "reboot")
        ]
        for verb, state, name, steps in (
            ("clean", states.MANAGEABLE, "clean_steps", named),
            ("service", states.ACTIVE, "service_steps", named),
            ("active", states.AVAILABLE, "deploy_steps", [{**step, "priority": 5} for step in named]),
            ("rebuild", states.ACTIVE, "deploy_steps", [{**step, "priority": 5} for step in named]),
        ):
            self.put(provision_state=state)
            self.assertEqual(steps, self.accepted(verb, **{name: steps}).request[name])
        template = {"name": "CUSTOM_R", "steps": [{**step, "priority": 5} for step in named]}
        self.assertEqual(template["steps"], self.good("POST", "/v1/deploy_templates", template)["steps"])

    def test_a_deployment_means_the_same_at_every_version(self) -> None:
        """Templates are chosen by the node's instance_info: nothing of the caller's version gets to the conductor."""
        seen = []
        for version in ("1.5", "1.54", api_case.LATEST):
            self.put(provision_state=states.AVAILABLE, instance_info={"traits": ["CUSTOM_A"]})
            self.conductor.asked.clear()
            row = self.accepted("active", version)
            asked = [method for method, _arguments in self.conductor.asked]
            seen.append((asked_for(row.request), row.instance_info, asked))
        self.assertEqual([seen[0]] * 3, seen)

    def test_the_work_is_kept_when_the_wake_up_is_lost(self) -> None:
        conductors.register(self.db, "elsewhere", {"conductor_group": "far", "release": "0.1", "rpc_version": "1.0"}, [
            *api_case.enabled("fake-hardware", **api_case.PLAIN)])  # fmt: skip
        self.put(conductor_group="far")
        self.assertEqual("verify", self.accepted("manage").flow)
        self.assertEqual(1, self.client.lost_wakeups)

    def test_another_write_in_between_does_not_fail_the_request(self) -> None:
        self.put(provision_state=states.AVAILABLE)
        power_readings = iter(range(2))

        def a_power_reading_meanwhile(**_arguments: Any) -> None:
            if next(power_readings, None) is not None:
                nodes.set_always(self.db, self.uuid, {"power_state": "power on"})

        self.conductor.validate_deploy = lambda _ctx, **arguments: {  # type: ignore[attr-defined]
            "result": a_power_reading_meanwhile(**arguments)
        }
        self.assertEqual(states.DEPLOYING, self.accepted("active").provision_state)

    def test_one_of_many_at_once_is_accepted(self) -> None:
        self.put(provision_state=states.AVAILABLE)
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda verb=verb: statuses.append(self.ask(verb).status))
            for verb in ("active", "manage", "active", "manage", "active")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A manage that was first leaves a state from which neither verb leads on; so does an active.
        self.assertEqual([202, 400, 400, 400, 400], sorted(statuses))

    def test_accepting_costs_two_statements(self) -> None:
        self.accepted("manage")  # fills the caches of ring and RPC version
        self.put(provision_state=states.MANAGEABLE)
        with sql_counter.counting(self.db) as counted:
            self.accepted("provide")
        statements = [text for text in counted.statements if "configdrive" not in text]  # our own reading
        self.assertEqual(2, len(statements), counted)


class Refusing(ProvisionCase):
    def test_a_verb_that_the_state_does_not_allow(self) -> None:
        message = self.not_accepted(400, "active")
        self.assertIn('"active" can not be performed', message)
        self.assertIn("Possible here: manage", message)

    def test_an_unknown_target(self) -> None:
        for target in ("sleep", "", None):
            self.assertIn("abort, active", self.not_accepted(400, target))  # type: ignore[arg-type]

    def test_a_verb_before_its_version(self) -> None:
        for verb, minor in (("deploy", 72), ("clean", 14), ("inspect", 5), ("abort", 12)):
            self.assertIn(f"1.{minor + 1}", self.not_accepted(406, verb, f"1.{minor}"))
        for verb, minor in (("unhold", 84), ("service", 86)):
            self.not_accepted(406, verb, f"1.{minor}", **({"service_steps": CLEAN} if verb == "service" else {}))
        self.put(provision_state=states.DEPLOYWAIT)
        self.not_accepted(406, "abort", "1.109")

    def test_undeploy_has_no_version(self) -> None:
        self.put(provision_state=states.ACTIVE)
        self.accepted("undeploy", "1.72")

    def test_a_locked_node_says_who_holds_it(self) -> None:
        self.put(reservation="conductor-9", lock_purpose="verify", locked_at=clock.now())
        self.assertIn("conductor-9 for verify", self.not_accepted(409, "manage"))
        self.assertIn("conductor-9", self.not_accepted(409, "active"))

    def test_deployments_and_rescues_in_maintenance(self) -> None:
        for verb, state, arguments in (
            ("active", states.AVAILABLE, {}),
            ("deploy", states.AVAILABLE, {}),
            ("rescue", states.ACTIVE, {"rescue_password": "x"}),
            ("unrescue", states.RESCUE, {}),
        ):
            self.put(provision_state=state, maintenance=True, maintenance_reason="broken fan")
            self.assertIn("broken fan", self.not_accepted(400, verb, **arguments))
        self.put(provision_state=states.AVAILABLE)
        self.accepted("manage")

    def test_steps_in_maintenance_unless_it_is_for_the_failure_that_they_are_to_end(self) -> None:
        own = {verb: maintenance.fault_hold(fault, "smoke", "c-1") for verb, fault in
               (("clean", "clean failure"), ("service", "service failure"))}  # fmt: skip
        mine = maintenance.user_hold(context.admin(), "broken fan")
        power = maintenance.fault_hold(maintenance.POWER_FAULT, "broken fan", "c-1")
        for verb, rest, failed in (
            ("clean", states.MANAGEABLE, states.CLEANFAIL),
            ("service", states.ACTIVE, states.SERVICEFAIL),
        ):
            self.conductor.asked.clear()
            other = own["service" if verb == "clean" else "clean"] | {"reason": "broken fan"}
            for state, holds in (
                *((state, [mine]) for state in (rest, failed)),
                (rest, [own[verb] | {"reason": "broken fan"}]),
                (failed, [mine, own[verb]]),
                (failed, [own[verb], power]),
                (failed, [other]),
            ):
                self.put(provision_state=state, **maintenance.hold_columns(holds))
                refusal = self.not_accepted(400, verb, **{f"{verb}_steps": CLEAN})
                self.assertIn(f"The {verb} action cannot be performed", refusal)
                self.assertIn("broken fan", refusal)
            self.put(provision_state=failed, **maintenance.hold_columns([own[verb]]))
            self.assertTrue(self.accepted(verb, **{f"{verb}_steps": CLEAN}).maintenance)

    def test_protected_and_retired_nodes(self) -> None:
        self.put(provision_state=states.ACTIVE, protected=True, protected_reason="vip")
        for verb in ("deleted", "undeploy", "rebuild"):
            self.assertIn("vip", self.not_accepted(403, verb))
        self.put(provision_state=states.MANAGEABLE, retired=True, retired_reason="old")
        self.assertIn("old", self.not_accepted(400, "provide"))

    def test_what_the_interfaces_of_the_node_do_not_do(self) -> None:
        missing = errors.UnsupportedInterface(driver="interface no-inspect (inspect)", what="inspect")
        self.conductor.answers["validate_flow"] = missing
        for verb, state, arguments in (
            ("inspect", states.MANAGEABLE, {}),
            ("rescue", states.ACTIVE, {"rescue_password": "x"}),
            ("unrescue", states.RESCUE, {}),
        ):
            self.put(provision_state=state)
            self.assertIn("does not support", self.not_accepted(400, verb, **arguments))
            self.assertEqual(("validate_flow", {"node_uuid": self.uuid, "flow": verb}), self.conductor.asked[-1])

    def test_the_password_of_a_rescue_goes_nowhere(self) -> None:
        self.put(provision_state=states.ACTIVE)
        row = self.accepted("rescue", rescue_password="correct horse")
        self.assertTrue(sha512_crypt.verify("correct horse", row.request["rescue_password"]))
        self.assertNotIn("correct horse", str(row.as_dict()) + str(self.conductor.asked))
        self.assertNotIn("$6$", str(self.conductor.asked) + self.api("GET", "/v1/nodes/n").text)
        self.good("POST", "/ingot/v1/nodes/n/plan?flow=rescue", {"rescue_password": "correct horse"})
        self.assertEqual({"node_uuid": self.uuid, "flow": "rescue", "request": {}}, self.conductor.asked[-1][1])

    def test_arguments_that_the_verb_does_not_take(self) -> None:
        for verb, arguments, expected in (
            ("manage", {"clean_steps": CLEAN}, '"clean_steps" is only valid when setting'),
            ("manage", {"configdrive": DRIVE}, "to active, deploy, rebuild, not manage"),
            ("manage", {"rescue_password": "x"}, "rescue"),
            ("manage", {"disable_ramdisk": True}, "clean"),
            ("clean", {}, '"clean_steps" is required'),
            ("clean", {"clean_steps": []}, "required"),
            ("service", {}, "service_steps"),
            ("rescue", {"rescue_password": "  "}, "rescue_password"),
            ("manage", {"colour": 1}, "colour"),
        ):
            self.assertIn(expected, self.not_accepted(400, verb, **arguments))

    def test_steps_of_the_wrong_form(self) -> None:
        self.put(provision_state=states.MANAGEABLE)
        for step, expected in (
            ({"step": "x"}, "clean_steps.0: 'interface' is a required property"),
            ({"interface": "moon", "step": "x"}, "'moon' is not one of ['vendor', 'power'"),
            ({**CLEAN[0], "priority": 1}, "'priority' was unexpected"),
            ({**CLEAN[0], "args": []}, "clean_steps.0.args"),
            ({**CLEAN[0], "args": {"a": {"password": "******"}}}, "Invalid clean_steps.0.args.a.password: ******."),
            ({**CLEAN[0], "execute_on_child_nodes": "yes"}, "clean_steps.0.execute_on_child_nodes"),
            ({**CLEAN[0], "limit_child_node_execution": "x"}, "clean_steps.0.limit_child_node_execution"),
        ):
            self.assertIn(expected, self.not_accepted(400, "clean", clean_steps=[step]))

    def test_config_drives_of_the_wrong_form(self) -> None:
        self.put(provision_state=states.AVAILABLE)
        for drive in (5, [], {"colour": 1}, "not base64!"):
            self.assertIn("configdrive", self.not_accepted(400, "active", configdrive=drive))
        self.conf.set_override("configdrive_max_size", 1, group="deploy")
        bomb = gzip.compress(bytes(2**20 + 1))
        for packed, named in (
            (b"iso", "not gzip"),
            (bomb, "larger than 1048576 bytes"),
            (gzip.compress(b"iso") + bomb, "larger than 1048576 bytes"),
            (gzip.compress(b"iso")[:-4], "cut off"),
            (gzip.compress(b"iso") * 101, "more than 100 parts"),
        ):
            drive = base64.b64encode(packed).decode()
            self.assertIn(named, self.not_accepted(400, "active", configdrive=drive))
        self.not_accepted(406, "active", "1.55", configdrive={"meta_data": {}})
        self.not_accepted(406, "active", "1.58", configdrive={"vendor_data": {}})
        self.not_accepted(400, "rebuild", "1.34", configdrive=DRIVE)

    def test_every_verb_but_one_has_a_flow(self) -> None:
        self.assertEqual(["unhold"], [verb.name for verb in verbs.VERBS.values() if verb.flow is None])


class WhileTheParentWorks(ProvisionCase):
    """Steps of a parent node run on the node, whose own state is one of rest."""

    def setUp(self) -> None:
        super().setUp()
        self.parent = self.node(name="parent")["uuid"]
        self.put(provision_state=states.AVAILABLE, parent_node=self.parent, flow="for_parent")

    def test_verbs_are_refused_with_what_runs(self) -> None:
        for state, verb in ((states.AVAILABLE, "active"), (states.SERVICEFAIL, "abort"), (states.CLEANFAIL, "provide")):
            self.put(provision_state=state, flow="for_parent")
            message = self.not_accepted(409, verb)
            self.assertIn("flow for_parent", message)
            self.assertIn(self.parent, message)

    def test_what_the_steps_work_with_cannot_be_changed(self) -> None:
        for path, value in (("/driver_info/ipmi_address", "10.0.0.1"), ("/boot_interface", "ipxe")):
            patch = [{"op": "add", "path": path, "value": value}]
            self.assertIn("flow for_parent", self.refused(409, "PATCH", "/v1/nodes/n", patch))
        self.refused(409, "PATCH", "/v1/nodes/n", [{"op": "remove", "path": "/parent_node"}])
        self.good("PATCH", "/v1/nodes/n", [{"op": "add", "path": "/extra/a", "value": 1}])

    def test_the_node_is_not_deleted(self) -> None:
        self.assertIn("flow for_parent", self.refused(409, "DELETE", "/v1/nodes/n"))

    def test_afterwards_everything_is_as_before(self) -> None:
        self.put(flow=None)
        self.good("PATCH", "/v1/nodes/n", [{"op": "add", "path": "/driver_info/ipmi_address", "value": "10.0.0.1"}])
        self.accepted("manage")


class OnChildren(ProvisionCase):
    def setUp(self) -> None:
        super().setUp()
        self.children = [self.node(name=name, parent_node="n")["uuid"] for name in ("first", "second")]
        self.node(name="stranger")
        self.put(provision_state=states.MANAGEABLE)

    def step(self, **values: Any) -> dict[str, Any]:
        return {**CLEAN[0], "execute_on_child_nodes": True, **values}

    def test_names_and_uuids_of_children_are_written_as_uuids(self) -> None:
        limit = ["second", self.children[0], "second"]
        for verb, state in (("clean", states.MANAGEABLE), ("service", states.ACTIVE)):
            self.put(provision_state=state)
            steps = [self.step(limit_child_node_execution=limit), CLEAN[0], self.step()]
            request = self.accepted(verb, **{f"{verb}_steps": steps}).request
            expected = self.step(limit_child_node_execution=self.children[::-1])
            self.assertEqual([expected, CLEAN[0], self.step()], request[f"{verb}_steps"])

    def test_an_empty_limit_is_none(self) -> None:
        row = self.accepted("clean", clean_steps=[self.step(limit_child_node_execution=[])])
        self.assertEqual([self.step()], row.request["clean_steps"])

    def test_only_children_are_meant(self) -> None:
        gone = str(uuid.uuid4())
        for limit, expected in (
            (["first", "stranger"], f"'stranger'. Node {self.uuid} is the parent of: "),
            (["n"], "'n'. Node"),
            ([gone], f"'{gone}'. Node"),
            ([""], "should be non-empty"),
        ):
            message = self.not_accepted(400, "clean", clean_steps=[self.step(limit_child_node_execution=limit)])
            self.assertIn("clean_steps.0.limit_child_node_execution", message)
            self.assertIn(expected, message)

    def test_a_limit_without_children_is_refused(self) -> None:
        step = {**CLEAN[0], "limit_child_node_execution": ["first"]}
        self.assertIn("needs execute_on_child_nodes", self.not_accepted(400, "clean", clean_steps=[step]))

    def test_a_node_without_children_may_have_such_steps(self) -> None:
        self.put(name="parent")
        steps = [self.step()]
        self.good("PATCH", "/v1/nodes/first", [{"op": "remove", "path": "/parent_node"}])
        self.good("PATCH", "/v1/nodes/second", [{"op": "remove", "path": "/parent_node"}])
        answer = self.api("PUT", "/v1/nodes/parent/states/provision", {"target": "clean", "clean_steps": steps})
        self.assertEqual(202, answer.status)

    def test_a_node_is_not_its_own_parent(self) -> None:
        for value in ("n", self.uuid):
            patch = [{"op": "add", "path": "/parent_node", "value": value}]
            self.assertIn("its own parent", self.refused(400, "PATCH", "/v1/nodes/n", patch))
        own = str(uuid.uuid4())
        self.assertIn(own, self.refused(400, "POST", "/v1/nodes", {**api_case.NODE, "uuid": own, "parent_node": own}))

    def test_limits_cost_one_statement_more(self) -> None:
        self.accepted("clean", clean_steps=[self.step()])
        self.put(provision_state=states.MANAGEABLE)
        steps = [self.step(limit_child_node_execution=["first"]), self.step(limit_child_node_execution=["second"])]
        with sql_counter.counting(self.db) as counted:
            self.accepted("clean", clean_steps=steps)
        self.assertEqual(3, len([text for text in counted.statements if "configdrive" not in text]), counted)


class Power(ProvisionCase):
    def power(self, target: Any, version: str = api_case.LATEST, **arguments: Any) -> api_case.Answer:
        return self.api("PUT", "/v1/nodes/n/states/power", {"target": target, **arguments}, version)

    def test_a_request_is_written_and_the_conductor_notified(self) -> None:
        for asked, target in (
            ("power on", "power on"),
            ("power off", "power off"),
            ("rebooting", "power on"),
            ("soft rebooting", "power on"),
            ("soft power off", "power off"),
        ):
            self.assertEqual(202, self.power(asked, timeout=30).status)
            row = self.row
            request = asked_for(row.power_request)
            self.assertEqual((target, {"target": asked, "timeout": 30}), (row.target_power_state, request))
            self.assertIsNotNone(row.due_at)
            self.assertEqual(asked, self.conductor.wakeups[-1])

    def test_what_is_refused(self) -> None:
        for target, arguments, expected in (
            ("sleep", {}, "power on, power off, rebooting"),
            (None, {}, "power on"),
            (5, {}, "target: 5"),
            ("power on", {"timeout": 0}, "from 1 to"),
            ("power on", {"timeout": "soon"}, "from 1 to"),
            ("power on", {"timeout": 1e300}, "to 2147483647"),
            ("power on", {"timeout": "99999999999"}, "to 2147483647"),
            ("power on", {"force": True}, "force"),
        ):
            answer = self.power(target, **arguments)
            self.assertEqual(400, answer.status)
            self.assertIn(expected, answer.message)
        self.assertEqual(406, self.power("soft rebooting", "1.26").status)

    def test_nothing_is_switched_during_cleaning(self) -> None:
        for state in (states.CLEANING, states.CLEANWAIT):
            self.put(provision_state=state)
            self.assertIn(state, self.power("power off").message)
        self.assertIsNone(self.row.target_power_state)

    def test_a_machine_that_must_not_be_switched_off(self) -> None:
        self.put(disable_power_off=True)
        self.assertIn("disable_power_off", self.power("power off").message)
        self.assertEqual(202, self.power("rebooting").status)


class MaintenanceAndRaid(ProvisionCase):
    def test_maintenance_is_set_and_cleared_even_when_locked(self) -> None:
        self.put(reservation="conductor-9", locked_at=clock.now())
        self.good("PUT", "/v1/nodes/n/maintenance", {"reason": "hot"})
        self.assertEqual((True, "hot"), (self.row.maintenance, self.row.maintenance_reason))
        self.good("DELETE", "/v1/nodes/n/maintenance")
        self.assertEqual((False, None), (self.row.maintenance, self.row.maintenance_reason))

    def test_a_raid_configuration_is_checked_and_kept(self) -> None:
        disk = {"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}
        self.good("PUT", "/v1/nodes/n/states/raid", {"logical_disks": [disk]})
        self.assertEqual({"logical_disks": [disk]}, self.good("GET", "/v1/nodes/n/states")["target_raid_config"])
        for wrong in ([], [{**disk, "raid_level": "7"}], [disk, disk], [{"size_gb": 1}], [{**disk, "colour": 1}]):
            self.refused(400, "PUT", "/v1/nodes/n/states/raid", {"logical_disks": wrong})
        self.good("PUT", "/v1/nodes/n/states/raid", {})
        self.assertEqual({}, self.row.target_raid_config)

    def test_a_node_without_raid_gets_none(self) -> None:
        self.put(raid_interface="no-raid")
        self.assertIn("no-raid", self.refused(400, "PUT", "/v1/nodes/n/states/raid", {}))
        self.refused(406, "PUT", "/v1/nodes/n/states/raid", {}, version="1.11")
