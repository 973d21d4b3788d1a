"""Which steps a deployment or a cleaning gets, with which priority and arguments, and in which order (000 to 003)."""

from typing import Any, ClassVar

from oslo_config import cfg

from ingot.common import clock, errors, states
from ingot.db import models, nodes, step_lists
from ingot.drivers.interfaces import base, results
from tests import conductor_case, database
from tests.steps_case import StepsCase, step

DEPLOY = ("deploy.deploy", 100, "driver")


class TestTemplates(StepsCase):
    def setUp(self) -> None:
        super().setUp()
        self.declare("deploy", "bios", "tune", base.deploy_step(priority=20, argsinfo={"a": {"description": "Any."}}))

    def test_a_template_overrides_the_default_priority_and_arguments(self) -> None:
        self.template("CUSTOM_TUNED", step("tune", 150, a=1))
        self.deploy("CUSTOM_TUNED")
        self.assertEqual([("bios.tune", 150, "template CUSTOM_TUNED"), DEPLOY], self.ran())
        self.assertEqual([("bios.tune", {"a": 1})], self.calls)

    def test_without_the_trait_a_template_changes_nothing(self) -> None:
        self.template("CUSTOM_TUNED", step("tune", 150, a=1))
        self.deploy()
        self.assertEqual([DEPLOY, ("bios.tune", 20, "driver")], self.ran())

    def test_the_same_step_runs_for_each_template_that_asks_for_it(self) -> None:
        self.template("CUSTOM_ONE", step("tune", 90, a=1))
        self.template("CUSTOM_TWO", step("tune", 80, a=2))
        self.deploy("CUSTOM_TWO", "CUSTOM_ONE")
        self.assertEqual(
            [DEPLOY, ("bios.tune", 90, "template CUSTOM_ONE"), ("bios.tune", 80, "template CUSTOM_TWO")], self.ran()
        )
        self.assertEqual([("bios.tune", {"a": 1}), ("bios.tune", {"a": 2})], self.calls)

    def test_templates_of_several_traits_are_looked_up_at_once(self) -> None:
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
            self.template(name, step("tune", 5, a=name))
        with database.statements(self.db) as sql:
            found = step_lists.list_template_steps(self.db, ["CUSTOM_A", "CUSTOM_C"])
        own = [one for one in sql if "deploy_template" in one]  # the conductor's heartbeat may fall into this
        self.assertEqual((["CUSTOM_A", "CUSTOM_C"], 1), ([row.template for row in found], len(own)))

    def test_priority_0_disables_a_step(self) -> None:
        self.template("CUSTOM_PLAIN", step("tune", 0))
        self.deploy("CUSTOM_PLAIN")
        self.assertEqual([DEPLOY], self.ran())

    def test_request_over_template_over_configuration_over_code(self) -> None:
        self.template("CUSTOM_TUNED", step("tune", 40, a="template"))
        for expected in (20, 30, 40, 50):
            with self.subTest(expected=expected):
                if expected == 30:
                    self.conf.set_override("deploy_step_priority_override", {"bios.tune": 30}, group="conductor")
                names = ("CUSTOM_TUNED",) if expected >= 40 else ()
                request = {"deploy_steps": [step("tune", 50, a="request")]} if expected == 50 else {}
                self.deploy(*names, **request)
                self.assertEqual(expected, self.ran()[-1][1])
        self.assertEqual({"a": "request"}, self.calls[-1][1])

    def test_the_same_step_may_be_requested_more_than_once(self) -> None:
        self.deploy(deploy_steps=[step("tune", 50, a=1), step("tune", 40, a=2)])
        self.assertEqual([("bios.tune", {"a": 1}), ("bios.tune", {"a": 2})], self.calls)

    def test_an_unknown_step_of_a_template_is_refused_before_anything_is_touched(self) -> None:
        self.template("CUSTOM_ODD", step("juggle", 50))
        failed = self.deploy("CUSTOM_ODD")
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("template CUSTOM_ODD", failed.last_error)
        self.assertIn("bios.juggle", failed.last_error)
        self.assertEqual([], self.step_runs(self.node))

    def test_errors_of_its_steps_name_the_template(self) -> None:
        self.agent(step("scrub", 0, "deploy"))
        for number, (wrong, word) in enumerate(
            (
                (step("deploy", 99, "deploy"), "deploy.deploy"),
                (step("tune", 50, b=1), "'b'"),
                (step("apply_configuration", 50), "settings"),
                (step("wait", 50, seconds="long"), "seconds"),
                (step("scrub", 20, "deploy"), "between 41 and 99"),
                (step("juggle", 50), "bios.juggle"),
                (step("fail", 50, "vendor", message="ouch"), "ouch"),
                (step("apply_configuration", 50, "raid", raid_config={}), "logical_disks"),
            )
        ):
            name = f"CUSTOM_WRONG_{number}"
            self.template(name, wrong)
            failed = self.deploy(name)
            self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
            self.assertIn(word, failed.last_error)
            self.assertEqual(1, failed.last_error.count(f"template {name}"), failed.last_error)

    def test_while_pinned_to_a_release_before_steps_only_the_driver_has_any(self) -> None:
        self.template("CUSTOM_TUNED", step("tune", 150, a=1))
        self.agent(step("scrub", 90, "deploy"))
        self.conductor.services.uses_deploy_steps = False
        self.deploy("CUSTOM_TUNED")
        self.assertEqual([DEPLOY, ("bios.tune", 20, "driver")], self.ran())


class TestCoreSteps(StepsCase):
    """The six core steps can be left out and not moved, by no source of steps."""

    def setUp(self) -> None:
        super().setUp()
        for name in sorted(base.CORE_DEPLOY_STEPS - {"deploy"}):
            self.declare("deploy", "deploy", name, base.deploy_step(priority=10 + len(name)))

    def test_each_can_be_left_out_by_template_request_and_configuration(self) -> None:
        for name in sorted(base.CORE_DEPLOY_STEPS):
            self.template(f"CUSTOM_NO_{name.upper()}", step(name, 0, "deploy"))
            for asked in ("template", "request", "configuration"):
                with self.subTest(step=name, asked=asked):
                    off = {f"deploy.{name}": 0} if asked == "configuration" else {}
                    self.conf.set_override("deploy_step_priority_override", off, group="conductor")
                    names = [f"CUSTOM_NO_{name.upper()}"] if asked == "template" else []
                    request = {"deploy_steps": [step(name, 0, "deploy")]} if asked == "request" else {}
                    after = self.deploy(*names, **request)
                    self.assertEqual(states.ACTIVE, after.provision_state, after.last_error)
                    left = base.CORE_DEPLOY_STEPS - {name}
                    self.assertEqual({f"deploy.{one}" for one in left}, {one for one, _, _ in self.ran()})

    def test_none_can_be_moved(self) -> None:
        for name in sorted(base.CORE_DEPLOY_STEPS):
            self.template(f"CUSTOM_MOVE_{name.upper()}", step(name, 99, "deploy"))
            for names, request in (([f"CUSTOM_MOVE_{name.upper()}"], []), ([], [step(name, 99, "deploy")])):
                with self.subTest(step=name, template=bool(names)):
                    failed = self.deploy(*names, deploy_steps=request)
                    self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
                    self.assertIn(f"deploy.{name}", failed.last_error)
                    self.assertIn("only be overridden by 0", failed.last_error)
                    self.assertEqual([], self.step_runs(self.node))


class TestInBandSteps(StepsCase):
    def test_they_are_merged_with_the_others_once_the_agent_is_there(self) -> None:
        self.declare("deploy", "bios", "tune", base.deploy_step(priority=150))
        self.declare("deploy", "raid", "stripe", base.deploy_step(priority=60))
        self.agent(step("scrub", 90, "deploy"), step("label", 60, "management"), step("spare", 0, "deploy"))
        after = self.deploy()
        self.assertEqual(states.ACTIVE, after.provision_state, after.last_error)
        self.assertEqual(
            [
                ("bios.tune", 150, "driver"),
                DEPLOY,
                ("deploy.scrub", 90, "agent"),
                ("management.label", 60, "agent"),
                ("raid.stripe", 60, "driver"),
            ],
            self.ran(),
        )

    def test_the_agent_says_whether_its_step_wants_a_reboot_from_any_caller(self) -> None:
        self.declare("deploy", "raid", "mirror", base.deploy_step(priority=90, requires_ramdisk=True))
        self.agent({**step("mirror", 0, "raid"), "reboot_requested": True})
        self.node = database.make_node(self.db, agent_url="http://agent", agent_last_heartbeat=clock.after(60))
        self.accept(self.node, "deploy", states.DEPLOYING, deploy_steps=[step("hold", 80, "power")])
        self.notify(self.node)
        plan = self.in_state(self.node, states.DEPLOYHOLD).driver_internal_info["deploy_steps"]
        self.assertEqual([True], [one["reboot_requested"] for one in plan if one["step"] == "mirror"])

    def test_one_outside_of_the_range_is_refused_by_name(self) -> None:
        for priority in (40, 100, 120):
            with self.subTest(priority=priority):
                self.agent(step("scrub", priority, "deploy"))
                failed = self.deploy()
                self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
                self.assertIn("deploy.scrub", failed.last_error)
                self.assertIn("between 41 and 99", failed.last_error)

    def test_a_template_can_enable_and_move_one_within_the_range(self) -> None:
        self.agent(step("scrub", 0, "deploy"))
        self.template("CUSTOM_SCRUB", step("scrub", 45, "deploy", deep=True))
        self.deploy("CUSTOM_SCRUB")
        self.assertEqual([DEPLOY, ("deploy.scrub", 45, "template CUSTOM_SCRUB")], self.ran())
        self.assertEqual([("deploy.scrub", {"deep": True})], self.calls)

    def test_an_unknown_one_is_named_when_the_agent_has_listed_its_steps(self) -> None:
        self.agent(step("scrub", 0, "deploy"))
        failed = self.deploy(deploy_steps=[step("shine", 50, "deploy")])
        self.assertIn("deploy.shine", failed.last_error)
        self.assertIn("deploy.scrub", failed.last_error)
        self.assertEqual([DEPLOY], self.ran())

    def test_another_agent_version_ends_the_deployment(self) -> None:
        self.agent(step("scrub", 90, "deploy"))

        def changed(*_args: Any) -> None:
            raise errors.AgentVersionMismatch("agent 2 answers; the steps were planned with 1")

        self.put(self.interface("deploy"), "execute_in_band_step", changed)
        failed = self.deploy()
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("deploy.scrub", failed.last_error)
        self.assertIn("planned with 1", failed.last_error)


class TestArraysOfDisks(StepsCase):
    """Steps of the agent that build arrays tell what they built: the node shows it, or the step has failed."""

    BUILT: ClassVar[dict[str, Any]] = {"raid_level": "1", "is_root_volume": True, "root_device_hint": {"wwn": "0x5"}}
    WAYS = (
        ("deploy", "apply_configuration", states.DEPLOYING, states.ACTIVE),
        ("clean", "create_configuration", states.CLEANING, states.MANAGEABLE),
        ("service", "apply_configuration", states.SERVICING, states.ACTIVE),
        ("service", "create_configuration", states.SERVICING, states.ACTIVE),
    )

    def configure(self) -> None:
        self.conf.set_override("enabled_raid_interfaces", ["no-raid"])

    def build(self, kind: str, name: str, state: str, result: Any, **columns: Any) -> models.Node:
        """Run a flow with one step, to which the agent answers this."""
        self.agent(step(name, 0, "raid"))
        deploy = self.interface("deploy")
        self.put(deploy, "execute_in_band_step", lambda _task, _kind, _one: results.Done(result))
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        self.node = database.make_node(self.db, **there, **columns)
        requested = {f"{kind}_steps": [step(name, 90, "raid")]}
        return self.run_flow(self.node, {"clean": "manual_clean"}.get(kind, kind), state, **requested)

    def test_what_was_built_is_shown_and_the_image_goes_onto_the_root_volume(self) -> None:
        for kind, name, state, good in self.WAYS:
            after = self.build(kind, name, state, {f"{kind}_result": {"logical_disks": [self.BUILT]}})
            self.assertEqual((good, None), (after.provision_state, after.last_error))
            self.assertEqual([self.BUILT], after.raid_config["logical_disks"])
            self.assertEqual({"wwn": "0x5"}, after.properties["root_device"])

    def test_a_step_that_does_not_tell_fails_with_the_reason(self) -> None:
        for kind, name, state, _good in self.WAYS:
            key = f"{kind}_result"
            for result, expected in (
                ({}, f"None as {key}; it must be an object"),
                ({key: None}, f"None as {key}"),
                ({key: {}}, f"None as {key}.logical_disks; it must be a list of at least one array"),
                ({key: {"logical_disks": []}}, f"[] as {key}.logical_disks"),
                ({key: {"logical_disks": ["md0"]}}, f"'md0' as {key}.logical_disks[0]"),
                ({key: {"logical_disks": [{"root_device_hint": "sda", "is_root_volume": True}]}}, "'sda' as"),
                ({key: {"logical_disks": [self.BUILT, self.BUILT]}}, "it can have one root volume"),
            ):
                failed = self.build(kind, name, state, result)
                self.assertIn("failed", failed.provision_state)
                self.assertIn(f"step raid.{name}", failed.last_error)
                self.assertIn(f"its answer has {expected}" if "it can" not in expected else expected, failed.last_error)
                self.assertEqual(({}, {}), (failed.raid_config, failed.properties))

    def test_the_hint_goes_with_the_array_and_one_of_the_operator_stays(self) -> None:
        of_array, of_operator = {"root_device": {"wwn": "0x5"}}, {"root_device": {"serial": "mine"}}
        for before, left in ((of_array, {}), (of_operator, of_operator)):
            columns = {
                "properties": before,
                "raid_config": {"logical_disks": [self.BUILT]},
                "driver_internal_info": {"raid_root_device": {"wwn": "0x5"}},
            }
            result = {"clean_result": None}
            after = self.build("clean", "delete_configuration", states.CLEANING, result, **columns)
            self.assertEqual((None, {}, left), (after.last_error, after.raid_config, after.properties))
            self.assertNotIn("raid_root_device", after.driver_internal_info)


class TestArraysThatAHardwareManagerDeletes(StepsCase):
    """Software RAID through the agent, whose hardware manager deletes arrays in each cleaning."""

    def configure(self) -> None:
        self.conf.set_override("enabled_raid_interfaces", ["agent"])

    def plan(self, **options: int) -> list[tuple[str, float]]:
        for name, priority in options.items():
            self.conf.set_override(name, priority, group="deploy")
        self.agent(step("delete_configuration", 30, "raid"), step("create_configuration", 0, "raid"))
        self.put(
            self.conductor.services.hardware.interface("raid", "agent"), "run_declared", lambda *_all: results.DONE
        )
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        self.node = database.make_node(self.db, provision_state=states.MANAGEABLE, **there)
        after = self.run_flow(self.node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))
        return [(name, priority) for name, priority, _origin in self.ran()]

    def test_its_priority_holds_until_the_operator_says_otherwise(self) -> None:
        self.assertEqual([("raid.delete_configuration", 30)], self.plan())
        self.assertEqual([("raid.delete_configuration", 5)], self.plan(delete_configuration_priority=5))
        self.assertEqual([], self.plan(delete_configuration_priority=0))


class TestCleaning(StepsCase):
    def clean(self, flow: str = "automated_clean", **request: Any) -> models.Node:
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        self.node = database.make_node(self.db, provision_state=states.MANAGEABLE, **there)
        return self.run_flow(self.node, flow, states.CLEANING, **request)

    def test_highest_priority_first_ties_by_interface_0_never(self) -> None:
        for kind, name, priority in (
            ("deploy", "wipe", 10),
            ("bios", "reset", 10),
            ("power", "check", 10),
            ("management", "sync", 10),
            ("raid", "erase", 99),
            ("vendor", "never", 0),
            ("firmware", "verify", 5),
        ):
            self.declare("clean", kind, name, base.clean_step(priority=priority))
        self.clean()
        self.assertEqual(
            ["raid.erase", "power.check", "management.sync", "deploy.wipe", "bios.reset", "firmware.verify"],
            [name for name, _ in self.calls],
        )

    def test_operators_override_priorities(self) -> None:
        for name, priority in (("first", 30), ("second", 20), ("off", 10)):
            self.declare("clean", "bios", name, base.clean_step(priority=priority))
        overrides = {"bios.first": 5, "bios.off": 0}
        self.conf.set_override("clean_step_priority_override", overrides, group="conductor")
        self.clean()
        self.assertEqual(["bios.second", "bios.first"], [name for name, _ in self.calls])

    def test_a_priority_can_be_an_option(self) -> None:
        self.conf.register_opt(cfg.IntOpt("polish_priority", default=7), group="deploy")
        self.declare("clean", "bios", "polish", base.clean_step(base.from_option("deploy", "polish_priority")))
        self.clean()
        self.assertEqual([("bios.polish", 7, "driver")], self.ran())

    def wiping_agent(self, offered: int) -> None:
        """Have an agent with a step of the name of a driver's, which leaves the priority to an option."""
        self.conf.register_opt(cfg.IntOpt("wipe_priority"), group="deploy")
        self.declare("clean", "raid", "wipe", base.clean_step(base.from_option("deploy", "wipe_priority")))
        self.agent(step("wipe", offered, "raid"), step("polish", 10, "raid"))

    def test_the_agents_own_priority_holds_where_the_option_is_unset(self) -> None:
        self.wiping_agent(offered=70)
        polish = ("raid.polish", 10, "agent")
        for option, expected in (
            (None, [("raid.wipe", 70, "driver"), polish]),
            (5, [polish, ("raid.wipe", 5, "driver")]),
            (0, [polish]),
        ):
            self.conf.set_override("wipe_priority", option, group="deploy")
            after = self.clean()
            self.assertEqual((None, expected), (after.last_error, self.ran()))

    def test_an_override_wins_over_the_agents_priority_and_a_priority_in_code_too(self) -> None:
        self.wiping_agent(offered=70)
        self.declare("clean", "raid", "polish", base.clean_step(priority=0))
        self.clean()
        self.assertEqual([("raid.wipe", 70, "driver")], self.ran())
        self.conf.set_override("clean_step_priority_override", {"raid.wipe": 0}, group="conductor")
        self.clean()
        self.assertEqual([], self.ran())

    def test_a_step_that_a_mere_priority_lets_run_names_the_arguments_that_it_needs(self) -> None:
        self.conf.set_override("clean_step_priority_override", {"bios.apply_configuration": 5}, group="conductor")
        failed = self.clean()
        self.assertEqual(states.CLEANFAIL, failed.provision_state)
        self.assertIn("Missing arguments of step bios.apply_configuration: settings", failed.last_error)

    def test_the_step_is_shown_while_it_runs_and_after_it_failed(self) -> None:
        failed = self.clean("manual_clean", clean_steps=[{"interface": "vendor", "step": "fail"}])
        self.assertEqual(("fail", states.CLEANFAIL), (failed.clean_step["step"], failed.provision_state))

    def test_a_hook_runs_when_a_clean_step_has_ended(self) -> None:
        self.declare("clean", "bios", "reset", base.clean_step(priority=10))
        seen: list[Any] = []
        base.post_clean_step_hook("bios", "reset")(lambda task, result: seen.append((task.node.uuid, result)))
        self.addCleanup(base._HOOKS.pop, ("clean", "bios", "reset"))
        self.clean()
        self.assertEqual([(self.node.uuid, None)], seen)

    def changing_agent(self, changes: int) -> None:
        """Replace the agent each time a step needs it, for a number of times."""
        left = [changes]

        def run(_task: Any, _kind: str, one: dict[str, Any]) -> results.Result:
            if one["step"] == "second" and left[0]:
                left[0] -= 1
                raise errors.AgentVersionMismatch("another agent answers")
            self.calls.append((one["step"], {}))
            return results.DONE

        self.agent(step("first", 20, "deploy"), step("second", 10, "deploy"))
        self.put(self.interface("deploy"), "execute_in_band_step", run)

    def test_automated_cleaning_starts_again_with_another_agent(self) -> None:
        self.changing_agent(2)
        after = self.clean()
        self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))
        self.assertEqual(["first", "first", "first", "second"], [name for name, _ in self.calls])
        self.assertEqual(
            ["done", "interrupted", "done", "interrupted", "done", "done"],
            [row.state for row in self.step_runs(self.node) if row.origin == "agent"],
        )

    def test_it_does_not_start_again_for_ever(self) -> None:
        self.changing_agent(100)
        failed = self.clean()
        self.assertEqual(states.CLEANFAIL, failed.provision_state)
        self.assertIn("another agent answers", failed.last_error)
        self.assertEqual(6, len(self.calls))

    def test_manual_cleaning_fails_with_another_agent(self) -> None:
        self.changing_agent(1)
        requested = [{"interface": "deploy", "step": name} for name in ("first", "second")]
        failed = self.clean("manual_clean", clean_steps=requested)
        self.assertEqual((states.CLEANFAIL, True), (failed.provision_state, failed.maintenance))
        self.assertIn("another agent answers", failed.last_error)
        self.assertEqual(["first"], [name for name, _ in self.calls])


class TestWhatTheNodeShows(StepsCase):
    def test_the_plan_the_position_and_the_step_while_it_runs(self) -> None:
        self.assertEqual({}, database.make_node(self.db).deploy_step)
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[step("pause", 120, "vendor", seconds=3600)])
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        now = nodes.get(self.db, node.uuid)
        plan = now.driver_internal_info["deploy_steps"]
        self.assertEqual(["prepare", "pause", "deploy"], [one["step"] for one in plan])
        self.assertEqual(1, now.driver_internal_info["deploy_step_index"])
        self.assertEqual(plan[1], now.deploy_step)

    def test_nothing_is_left_of_it_after_a_success(self) -> None:
        after = self.deploy()
        self.assertEqual({}, after.deploy_step)
        self.assertEqual([], [key for key in after.driver_internal_info if "step" in key])

    def test_a_console_that_was_in_use_is_started_again(self) -> None:
        started: list[str] = []
        self.put(self.interface("console"), "resume_console", lambda task: started.append(task.node.uuid))
        self.deploy()
        self.assertEqual([], started)
        node = database.make_node(self.db, console_enabled=True)
        self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual([node.uuid], started)

    def test_a_deployment_begun_before_steps_were_collected_goes_on_in_the_old_way(self) -> None:
        """Written by a release without steps: the node waits for its agent and has no plan (001)."""
        self.agent(step("scrub", 90, "deploy"))
        self.declare("deploy", "deploy", "boot_instance", base.deploy_step(priority=20))
        self.template("CUSTOM_TUNED", step("juggle", 50))
        node = self.node = database.make_node(
            self.db,
            provision_state=states.DEPLOYWAIT,
            flow="deploy",
            instance_info={"traits": ["CUSTOM_TUNED"]},
            provision_updated_at=clock.now(),
        )
        self.notify(node)
        waits = self.in_state(node, states.DEPLOYWAIT)
        self.assertEqual([], self.step_runs(node))
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        nodes.set_always(self.db, waits.uuid, {**there, "due_at": clock.now()})
        self.notify(node)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        self.assertEqual([("deploy.boot_instance", 20, "driver")], self.ran())
