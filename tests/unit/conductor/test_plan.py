"""The plan before, through the API and a real conductor: what it says is what happens, and asking changes nothing."""

from typing import Any

from ingot.common import interfaces, states
from ingot.db import models, nodes
from tests import database
from tests.plan_case import OTHER, TRAIT, PlanCase, named, ranked, step

COMPARED = ("interface", "step", "priority", "args", "origin")


class Plan(PlanCase):
    def test_of_a_deployment_has_the_flows_entries_and_who_asked(self) -> None:
        self.template(ranked("factory_reset", 150, "bios"), ranked("pause", 40, seconds=3))
        node = self.with_traits(TRAIT)
        plan = self.plan(node, "deploy", deploy_steps=[ranked("pause", 30, seconds=1)])
        self.assertEqual((node.uuid, "deploy", True, []), tuple(plan[name] for name in (
            "node_uuid", "flow", "in_band_steps_known", "errors")))  # fmt: skip
        self.assertEqual(
            [("deploy.prepare", 0, "flow", "flow"), ("bios.factory_reset", 150, f"template {TRAIT}", "driver"),
             ("deploy.deploy", 100, "driver", "driver"), ("vendor.pause", 30, "request", "driver")],
            [(name, one["priority"], one["origin"], one["runner"]) for name, one in zip(
                named(plan), plan["steps"], strict=True)],
        )  # fmt: skip
        self.assertEqual(
            {"interface", "step", "priority", "args", "origin", "runner", "abortable", "requires_ramdisk",
             "reboot_requested", "presumed"},
            set(plan["steps"][0]),
        )  # fmt: skip

    def test_get_is_the_plan_of_a_request_without_arguments(self) -> None:
        node = database.make_node(self.db)
        for flow in ("deploy", "clean"):
            shown = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/plan?flow={flow}")
            self.assertEqual(self.plan(node, flow), shown)

    def test_of_a_cleaning_without_arguments_is_that_of_automated_cleaning(self) -> None:
        self.conf.set_override("clean_step_priority_override", {"bios.factory_reset": 7}, group="conductor")
        node = database.make_node(self.db)
        self.assertEqual(
            ["deploy.prepare_cleaning", "bios.factory_reset", "deploy.tear_down_cleaning"],
            named(self.plan(node, "clean")),
        )
        off = database.make_node(self.db, automated_clean=False)
        self.assertEqual(([], []), (self.plan(off, "clean")["steps"], self.plan(off, "clean")["errors"]))

    def test_verifying_has_an_order_of_the_operators(self) -> None:
        node = database.make_node(self.db, provision_state=states.ENROLL)
        for given, expected in (
            ({}, ["firmware.cache_firmware_components", "bios.cache_bios_settings"]),
            ({"bios.cache_bios_settings": 0, "management.clear_job_queue": 90}, ["firmware.cache_firmware_components"]),
            ({"bios.cache_bios_settings": 90}, ["bios.cache_bios_settings", "firmware.cache_firmware_components"]),
        ):
            self.conf.set_override("verify_step_priority_override", given, group="conductor")
            nodes.set_always(self.db, node.uuid, {"provision_state": states.ENROLL})
            ran = self.step_runs(self.run_flow(node, "verify", states.VERIFYING))
            self.assertEqual(expected, [f"{row.interface}.{row.step}" for row in ran][-len(expected) :], given)

    def test_of_a_cleaning_or_servicing_keeps_the_order_of_the_request(self) -> None:
        node = database.make_node(self.db)
        requested = [
            step("pause", args={"seconds": 0}),
            step("factory_reset", "bios"),
            step("hold", "power"),
            step("pause"),
        ]
        for flow, around in (("clean", "cleaning"), ("service", "service")):
            plan = self.plan(node, flow, **{f"{flow}_steps": requested})
            inner = ["vendor.pause", "bios.factory_reset", "power.hold", "vendor.pause"]
            self.assertEqual([f"deploy.prepare_{around}", *inner, f"deploy.tear_down_{around}"], named(plan))
            self.assertEqual("reserved", plan["steps"][3]["runner"])
            self.assertEqual([], plan["errors"])

    def test_null_leaves_an_argument_out(self) -> None:
        node = database.make_node(self.db)
        plan = self.plan(node, "clean", clean_steps=[step("pause", args={"seconds": None})])
        self.assertEqual(([], {}), (plan["errors"], plan["steps"][1]["args"]))

    def test_of_a_runbook_is_that_of_its_steps(self) -> None:
        self.ask("POST", "/v1/runbooks", {"name": TRAIT, "steps": [step("pause", args={}, order=1)]})
        self.ask("PUT", f"/v1/runbooks/{TRAIT}/traits", {"traits": [TRAIT]})
        plan = self.plan(self.with_traits(TRAIT), "clean", runbook=TRAIT)
        self.assertEqual(("vendor.pause", f"runbook {TRAIT}"), (named(plan)[1], plan["steps"][1]["origin"]))

    def test_tells_every_error(self) -> None:
        self.template(ranked("juggle", 40))
        node = self.with_traits(TRAIT, requested=[TRAIT, "CUSTOM_MISSING"])
        requested = [
            ranked("pause", 30, speed=1),
            ranked("deploy", 55, "deploy"),
            ranked("apply_configuration", 20, "bios"),
        ]
        errors = self.plan(node, "deploy", deploy_steps=requested)["errors"]
        for words in ("CUSTOM_MISSING", "vendor.juggle", "speed", "deploy.deploy", "settings"):
            self.assertEqual(1, sum(words in error for error in errors), (words, errors))
        self.assertEqual(5, len(errors))

    def test_tells_what_interfaces_lack(self) -> None:
        node = database.make_node(self.db, power_interface="telepathy", raid_interface="telepathy")
        for flow in ("deploy", "clean", "service"):
            body = {"service_steps": [step("pause")]} if flow == "service" else {}
            errors = self.plan(node, flow, **body)["errors"]
            self.assertEqual(1, len(errors), errors)
            self.assertIn("power interface 'telepathy'", errors[0])

    def test_an_option_that_makes_plans_impossible_is_reported(self) -> None:
        self.conf.set_override("deploy_step_priority_override", {"deploy.deploy": 55}, group="conductor")
        plan = self.plan(database.make_node(self.db), "deploy")
        self.assertIn("deploy.deploy", " ".join(plan["errors"]))

    def test_secrets_are_masked(self) -> None:
        settings = [{"name": "admin_password", "value": 1, "password": "open sesame"}]
        plan = self.plan(database.make_node(self.db), "deploy", deploy_steps=[
            ranked("apply_configuration", 150, "bios", settings=settings)])  # fmt: skip
        self.assertEqual({**settings[0], "password": "******"}, plan["steps"][1]["args"]["settings"][0])

    def test_what_cannot_be_understood_is_refused(self) -> None:
        path = f"/ingot/v1/nodes/{database.make_node(self.db).uuid}/plan"
        self.assertIn("flow=", self.refused("POST", path))
        self.assertIn("clean, deploy, inspect", self.refused("GET", f"{path}?flow=fly"))
        self.assertIn("clean_steps", self.refused("POST", f"{path}?flow=deploy", {"clean_steps": [step("pause")]}))
        self.assertIn("service_steps", self.refused("GET", f"{path}?flow=service"))
        self.assertIn("target", self.refused("POST", f"{path}?flow=deploy", {"target": "active"}))

    def test_takes_no_lock_writes_nothing_and_asks_no_hardware(self) -> None:
        self.template(ranked("pause", 40, seconds=3))
        node = self.with_traits(TRAIT)
        self.put_out_of_reach()
        before = vars(nodes.get(self.db, node.uuid))
        with database.statements(self.db) as sent:
            for flow, body in (
                ("deploy", {"deploy_steps": [ranked("factory_reset", 150, "bios")]}),
                ("clean", {"clean_steps": [step("create_configuration", "raid")]}),
                ("clean", {}),
                ("service", {"service_steps": [step("pause")]}),
            ):
                self.assertEqual([], self.plan(node, flow, **body)["errors"])
        own = [one for one in sent if "conductors" not in one]  # the conductor's heartbeat may fall into this
        self.assertEqual([], [one for one in own if not one.startswith("SELECT")])
        self.assertEqual(before, vars(nodes.get(self.db, node.uuid)))

    def put_out_of_reach(self) -> None:
        """Make the hardware fail when touched, but leave of each fake interface what needs no machine."""
        quiet = ("validate", "interface_type", "runs_agent", "kind", "name", "conf", "not_supported")

        def touched(*_given: Any, **_more: Any) -> None:
            raise AssertionError("the hardware was touched")

        for kind in set(interfaces.TYPES) - {"network", "storage"}:
            interface = self.conductor.services.hardware.interface(kind, "fake")
            for name in dir(interface):
                asks = (
                    name.startswith(("_", "get_clean", "get_deploy", "get_service", "declared", "has_"))
                    or name in quiet
                )
                if not asks and callable(getattr(interface, name)):
                    setattr(interface, name, touched)


class PlanAndTimeline(PlanCase):
    """Afterwards the step runs have what the plan said, field by field."""

    def agree(self, node: models.Node, plan: Any) -> None:
        timeline = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/timeline")
        ran = [{name: one[name] for name in COMPARED} for one in timeline["steps"]]
        self.assertEqual([{name: one[name] for name in COMPARED} for one in plan["steps"]], ran)
        self.assertTrue(all(one["state"] == "done" for one in timeline["steps"]))

    def provision(self, node: models.Node, target: str, **body: Any) -> None:
        self.ask("PUT", f"/v1/nodes/{node.uuid}/states/provision", {"target": target, **body})
        self.settled(node)

    def test_of_a_deployment(self) -> None:
        self.template(ranked("factory_reset", 150, "bios"), ranked("pause", 120, seconds=0))
        self.template(ranked("power_on", 45, "power"), ranked("pause", 90, seconds=0), name=OTHER)
        node = self.with_traits(TRAIT, OTHER)
        password = [{"name": "a", "password": "open sesame"}]
        body = {"deploy_steps": [ranked("apply_configuration", 120, "bios", settings=password),
                                 ranked("wait", 20, "vendor", seconds=0)]}  # fmt: skip
        plan = self.plan(node, "deploy", **body)
        self.assertEqual(([], 8), (plan["errors"], len(plan["steps"])))
        self.provision(node, "active", **body)
        self.agree(node, plan)

    def test_of_manual_and_automated_cleaning(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        body = {"clean_steps": [step("factory_reset", "bios"), step("pause", args={"seconds": 0})]}
        plan = self.plan(node, "clean", **body)
        self.provision(node, "clean", **body)
        self.agree(node, plan)
        self.conf.set_override("clean_step_priority_override", {"bios.factory_reset": 7}, group="conductor")
        plan = self.plan(node, "clean")
        self.provision(node, "provide")
        self.agree(node, plan)

    def test_of_servicing(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        body = {"service_steps": [step("pause", args={"seconds": 0}), step("reboot", "power")]}
        plan = self.plan(node, "service", **body)
        self.provision(node, "service", **body)
        self.agree(node, plan)

    def test_the_runs_of_a_node_have_their_flows(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.provision(node, "provide")
        self.provision(node, "active", deploy_steps=[ranked("fail", 30, message="out of luck")])
        deployment, cleaning = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/runs")["runs"]
        self.assertEqual(("deploy", "failed", "the fake step failed: out of luck"), tuple(deployment[name] for name in (
            "flow", "state", "last_error")))  # fmt: skip
        self.assertEqual(("automated_clean", "done"), (cleaning["flow"], cleaning["state"]))


class PlanWithAgent(PlanCase):
    """A machine that boots the agent: its steps are not known before."""

    def configure(self) -> None:
        self.conf.set_override("enabled_deploy_interfaces", ["fake", "direct"])
        self.conf.set_override("enabled_boot_interfaces", ["fake", "ipxe"])

    def machine(self, **values: Any) -> models.Node:
        info = {"image_source": "http://images/image.raw", "image_checksum": "a" * 32, "image_disk_format": "raw",
                "image_os_hash_algo": "sha256", "image_os_hash_value": "a" * 64}  # fmt: skip
        return database.make_node(
            self.db, deploy_interface="direct", boot_interface="fake", instance_info=info, **values
        )

    def test_says_that_steps_may_be_added(self) -> None:
        node = self.machine()
        for flow in ("deploy", "clean"):
            plan = self.plan(node, flow)
            self.assertEqual((False, []), (plan["in_band_steps_known"], plan["errors"]))

    def test_what_only_an_agent_may_offer_is_presumed_in_its_place(self) -> None:
        requested = [ranked("apply_configuration", 90, "firmware", raid="x"), ranked("erase_devices", 50, "deploy")]
        plan = self.plan(self.machine(), "deploy", deploy_steps=requested)
        self.assertEqual(
            ["deploy.prepare", "deploy.deploy", "firmware.apply_configuration", "deploy.write_image",
             "deploy.prepare_instance_boot", "deploy.erase_devices", "deploy.tear_down_agent",
             "deploy.switch_to_tenant_network", "deploy.boot_instance"],
            named(plan),
        )  # fmt: skip
        presumed = [one for one in plan["steps"] if one["presumed"]]
        self.assertEqual(["apply_configuration", "erase_devices"], [one["step"] for one in presumed])
        self.assertEqual([("agent", "request", True)] * 2, [
            (one["runner"], one["origin"], one["requires_ramdisk"]) for one in presumed])  # fmt: skip

    def test_a_presumed_step_outside_of_the_agents_range_is_an_error(self) -> None:
        errors = self.plan(self.machine(), "deploy", deploy_steps=[ranked("erase_devices", 20, "deploy")])["errors"]
        self.assertEqual(1, len(errors), errors)
        self.assertIn("between 41 and 99", errors[0])

    def test_without_ramdisk_nothing_is_presumed(self) -> None:
        requested = [step("erase_devices", "deploy")]
        with_agent = self.plan(self.machine(), "clean", clean_steps=requested)
        self.assertEqual([False, True, False], [one["presumed"] for one in with_agent["steps"]])
        without = self.plan(self.machine(), "clean", clean_steps=requested, disable_ramdisk=True)
        self.assertTrue(without["in_band_steps_known"])
        self.assertIn("deploy.erase_devices", " ".join(without["errors"]))

    def test_a_core_step_that_is_switched_off_is_not_there(self) -> None:
        plan = self.plan(self.machine(), "deploy", deploy_steps=[ranked("boot_instance", 0, "deploy")])
        self.assertNotIn("deploy.boot_instance", named(plan))

    def test_what_the_boot_interface_lacks_is_reported(self) -> None:
        node = self.machine()
        self.ask("PATCH", f"/v1/nodes/{node.uuid}", [{"op": "add", "path": "/boot_interface", "value": "ipxe"}])
        for flow in ("deploy", "clean"):
            self.assertIn("deploy_kernel", " ".join(self.plan(node, flow)["errors"]))


class Validation(PlanCase):
    """GET /v1/nodes/<id>/validate (specification 003)."""

    def deploy(self, node: models.Node) -> Any:
        return self.ask("GET", f"/v1/nodes/{node.uuid}/validate")["deploy"]

    def test_fails_for_a_template_of_any_trait_of_the_node_that_it_cannot_run(self) -> None:
        self.template(ranked("juggle", 40))
        self.assertEqual({"result": True}, self.deploy(self.with_traits(OTHER)))
        result = self.deploy(self.with_traits(TRAIT, requested=[]))
        self.assertFalse(result["result"])
        for words in ("vendor.juggle", f"template {TRAIT}", "vendor.pause"):
            self.assertIn(words, result["reason"])

    def test_names_everything_that_is_wrong_once(self) -> None:
        self.template(ranked("juggle", 40), ranked("pause", 40, speed=1))
        reason = self.deploy(self.with_traits(TRAIT, requested=[TRAIT, "CUSTOM_MISSING"]))["reason"]
        for words in ("vendor.juggle", "'speed'", "CUSTOM_MISSING"):
            self.assertEqual(1, reason.count(words), reason)

    def test_invalid_traits_are_reported(self) -> None:
        for odd in ("CUSTOM_A", {"CUSTOM_A": 1}, [["CUSTOM_A"]], [1]):
            node = database.make_node(self.db, instance_info={"traits": odd})
            self.assertIn("list of strings", self.deploy(node)["reason"])
            self.assertIn("list of strings", " ".join(self.plan(node, "deploy")["errors"]))

    def test_a_deployment_is_refused_with_the_first_of_these(self) -> None:
        node = self.with_traits(requested=["CUSTOM_MISSING"])
        message = self.refused("PUT", f"/v1/nodes/{node.uuid}/states/provision", {"target": "active"})
        self.assertIn("CUSTOM_MISSING", message)


class WhatClientsSee(PlanCase):
    """Of a plan that runs: the steps of the specifications, counted from 0, without what the flow does around them."""

    def configure(self) -> None:
        for kind, name in (("deploy", "direct,fake"), ("boot", "ipxe,fake")):
            self.conf.set_override(f"enabled_{kind}_interfaces", name.split(","))
        for option in ("deploy_kernel", "deploy_ramdisk"):
            self.conf.set_override(option, f"http://files/{option}", group="deploy")

    def node_that(self, reached: str, flow: str, state: str, **columns: Any) -> Any:
        """Begin a flow, and show the node once it is in a state.

        :param columns: of the node; ``requested`` is the flow's request.
        """
        request = columns.pop("requested", {})
        node = database.make_node(self.db, **columns)
        self.accept(node, flow, state, **request)
        self.notify(node)
        self.in_state(node, reached)
        return self.ask("GET", f"/v1/nodes/{node.uuid}")

    def test_a_deployment_has_six_core_steps_counted_from_0(self) -> None:
        image = {"image_source": "http://images/os.raw", "image_checksum": "ab" * 32}
        direct = {"deploy_interface": "direct", "boot_interface": "ipxe", "instance_info": image}
        node = self.node_that(states.DEPLOYWAIT, "deploy", states.DEPLOYING, **direct)
        info = node["driver_internal_info"]
        core = ["deploy", "write_image", "prepare_instance_boot", "tear_down_agent", "switch_to_tenant_network"]
        self.assertEqual([*core, "boot_instance"], [one["step"] for one in info["deploy_steps"]])
        self.assertEqual((0, "deploy"), (info["deploy_step_index"], node["deploy_step"]["step"]))
        own = self.ask("GET", f"/ingot/v1/nodes/{node['uuid']}/timeline")["steps"]
        self.assertEqual(["prepare", "deploy"], [one["step"] for one in own][:2])

    def test_a_cleaning_and_a_service_have_those_that_were_requested(self) -> None:
        for kind, flow, state, reached in (
            ("clean", "manual_clean", states.CLEANING, states.CLEANHOLD),
            ("service", "service", states.SERVICING, states.SERVICEHOLD),
        ):
            steps = {f"{kind}_steps": [step("pause", args={"seconds": 0}), step("hold", "power")]}
            node = self.node_that(reached, flow, state, requested=steps, deploy_interface="fake")
            info = node["driver_internal_info"]
            self.assertEqual(["pause", "hold"], [one["step"] for one in info[f"{kind}_steps"]])
            self.assertEqual((1, "hold"), (info[f"{kind}_step_index"], node[f"{kind}_step"]["step"]))

    def test_while_the_flow_enters_no_step_is_shown(self) -> None:
        steps = {"clean_steps": [step("pause")]}
        node = self.node_that(
            states.CLEANWAIT, "manual_clean", states.CLEANING, requested=steps, deploy_interface="direct",
            boot_interface="ipxe",
        )  # fmt: skip
        info = node["driver_internal_info"]
        self.assertEqual((["pause"], None), ([one["step"] for one in info["clean_steps"]], info["clean_step_index"]))
        self.assertEqual({}, node["clean_step"])

    def test_a_flow_that_has_entries_only_shows_no_plan(self) -> None:
        node = database.make_node(
            self.db, driver_internal_info={"inspect_steps": [{"interface": "inspect", "step": "inspect_hardware",
                                           "origin": "flow"}], "inspect_step_index": 0, "mine": 1},
        )  # fmt: skip
        self.assertEqual({"mine": 1}, self.ask("GET", f"/v1/nodes/{node.uuid}")["driver_internal_info"])
