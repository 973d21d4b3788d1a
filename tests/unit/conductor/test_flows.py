"""Flows on fake hardware, from acceptance to end: what the node, its step runs and its history say."""

import dataclasses
from typing import Any
from unittest import mock

from ingot.common import clock, states
from ingot.db import nodes
from tests import conductor_case, database


def step(name: str, priority: int = 50, interface: str = "vendor", **args: object) -> dict[str, object]:
    return {"interface": interface, "step": name, "priority": priority, "args": args}


class TestFlows(conductor_case.ConductorCase):
    def test_a_node_goes_from_enroll_to_active_and_back_to_available(self) -> None:
        node = database.make_node(self.db, provision_state=states.ENROLL)
        self.assertEqual(states.MANAGEABLE, self.run_flow(node, "verify", states.VERIFYING).provision_state)
        self.assertEqual(states.AVAILABLE, self.run_flow(node, "automated_clean", states.CLEANING).provision_state)
        active = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, None, None), (active.provision_state, active.last_error, active.due_at))
        self.assertEqual({}, active.deploy_step)
        self.assertEqual({}, active.request)
        gone = self.run_flow(node, "delete", states.DELETING)
        self.assertEqual((states.AVAILABLE, None), (gone.provision_state, gone.target_provision_state))
        self.assertEqual(
            ["verify", "verify", "verify", "automated_clean", "automated_clean", "deploy", "deploy", "delete",
             "automated_clean", "automated_clean"],
            [row.flow for row in self.step_runs(node)],
        )  # fmt: skip
        self.assertTrue(all(row.state == "done" for row in self.step_runs(node)))

    def test_steps_run_by_priority_and_step_runs_name_their_origin(self) -> None:
        node = database.make_node(self.db)
        requested = [step("pause", 30, seconds=0), step("apply_configuration", 150, "bios", settings=[])]
        self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=requested)
        ran = [(row.interface, row.step, row.priority, row.origin) for row in self.step_runs(node)]
        self.assertEqual(
            [
                ("deploy", "prepare", 0, "flow"),
                ("bios", "apply_configuration", 150, "request"),
                ("deploy", "deploy", 100, "driver"),
                ("vendor", "pause", 30, "request"),
            ],
            ran,
        )

    def test_a_failing_step_is_named_and_stays_visible(self) -> None:
        node = database.make_node(self.db)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("fail", message="out of luck")])
        self.assertEqual((states.DEPLOYFAIL, states.ACTIVE), (failed.provision_state, failed.target_provision_state))
        self.assertIn("vendor.fail", failed.last_error)
        self.assertIn("out of luck", failed.last_error)
        self.assertEqual("fail", failed.deploy_step["step"])
        self.assertEqual("failed", self.step_runs(node)[-1].state)
        self.assertEqual("ERROR", self.history(node)[-1].severity)
        again = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, None), (again.provision_state, again.last_error))

    def test_a_failed_cleaning_puts_the_node_into_maintenance(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, power_state=states.POWER_ON)
        failed = self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=[step("fail", message="no")])
        self.assertEqual(
            (states.CLEANFAIL, True, "clean failure"), (failed.provision_state, failed.maintenance, failed.fault)
        )
        self.assertEqual(states.MANAGEABLE, failed.target_provision_state)
        self.assertEqual(states.POWER_ON, failed.power_state)

    def test_maintenance_for_a_failed_cleaning_ends_with_a_good_one_and_no_other_does(self) -> None:
        bad = {"clean_steps": [step("fail", message="no")]}
        for fault, automated, kept in (
            ("clean failure", True, False),
            ("clean failure", False, True),  # nothing was cleaned, so nothing is proven
            ("power failure", True, True),
            (None, True, True),
        ):
            with self.subTest(fault=fault, automated=automated):
                node = database.make_node(self.db, provision_state=states.MANAGEABLE)
                failed = self.run_flow(node, "manual_clean", states.CLEANING, **bad)
                nodes.set_always(self.db, node.uuid, {"fault": fault, "automated_clean": automated})
                after = self.run_flow(node, "automated_clean", states.CLEANING)
                self.assertEqual(states.AVAILABLE, after.provision_state)
                expected = (True, failed.maintenance_reason, fault) if kept else (False, None, None)
                self.assertEqual(expected, (after.maintenance, after.maintenance_reason, after.fault))

    def test_manual_cleaning_runs_the_steps_in_the_order_given(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [step("factory_reset", 0, "bios"), step("pause", 0, seconds=0), step("factory_reset", 0, "bios")]
        cleaned = self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.assertEqual((states.MANAGEABLE, None), (cleaned.provision_state, cleaned.target_provision_state))
        self.assertEqual(
            ["prepare_cleaning", "factory_reset", "pause", "factory_reset", "tear_down_cleaning"],
            [row.step for row in self.step_runs(node)],
        )

    def test_a_cleaning_without_ramdisk_boots_none_and_refuses_steps_that_need_it(self) -> None:
        for name, end in (("agent_rattle", states.CLEANFAIL), ("factory_reset", states.MANAGEABLE)):
            with self.subTest(step=name):
                self.conductor.services.hardware.interface("deploy", "fake").prepare_cleaning = self._boots  # type: ignore[attr-defined]
                bios = self.conductor.services.hardware.interface("bios", "fake")
                declared = bios._declared["clean"]
                declared["agent_rattle"] = dataclasses.replace(declared["factory_reset"], requires_ramdisk=True)
                node = database.make_node(self.db, provision_state=states.MANAGEABLE)
                requested = [step(name, 0, "bios")]
                ended = self.run_flow(
                    node, "manual_clean", states.CLEANING, clean_steps=requested, disable_ramdisk=True
                )
                self.assertEqual(end, ended.provision_state, ended.last_error)

    @staticmethod
    def _boots(_task: object) -> None:
        raise AssertionError("a ramdisk was booted")

    def test_an_unknown_step_ends_the_flow_with_what_is_offered(self) -> None:
        node = database.make_node(self.db)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("juggle")])
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("vendor.juggle", failed.last_error)
        self.assertIn("vendor.pause", failed.last_error)

    def test_unknown_and_missing_arguments_are_named(self) -> None:
        node = database.make_node(self.db)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("pause", speed=1)])
        self.assertIn("speed", failed.last_error)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("apply_configuration", 9, "bios")])
        self.assertIn("settings", failed.last_error)

    def test_a_core_step_can_be_disabled_and_not_moved(self) -> None:
        node = database.make_node(self.db)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("deploy", 55, "deploy")])
        self.assertIn("deploy.deploy", failed.last_error)
        self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("deploy", 0, "deploy")])
        self.assertEqual(["prepare"], [row.step for row in self.step_runs(node)])

    def test_a_polling_step_holds_neither_lock_nor_thread(self) -> None:
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[step("pause", seconds=3600)])
        self.notify(node)
        waiting = conductor_case.eventually(
            lambda: nodes.get(self.db, node.uuid).step_state == "polling" and nodes.get(self.db, node.uuid),
            "the step polls",
        )
        self.assertIsNone(waiting.reservation)
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "its thread is free")
        self.assertGreater(waiting.due_at, clock.now())

    def test_automated_cleaning_can_be_off_for_all_or_for_one(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, automated_clean=False)
        self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual([], self.step_runs(node))
        self.conf.set_override("automated_clean", False, group="conductor")
        other = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.assertEqual(states.AVAILABLE, self.run_flow(other, "automated_clean", states.CLEANING).provision_state)
        self.assertEqual([], self.step_runs(other))

    def test_an_abort_that_comes_too_late_is_forgotten(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, abort_requested=True, due_at=clock.now())
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).due_at is None, "it was reconciled")
        after = nodes.get(self.db, node.uuid)
        self.assertEqual((states.ACTIVE, False, None), (after.provision_state, after.abort_requested, after.last_error))


class TestPower(conductor_case.ConductorCase):
    def test_a_power_change_is_done_and_forgotten(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        for target, expected in (
            (states.POWER_ON, states.POWER_ON),
            (states.REBOOT, states.POWER_ON),
            (states.SOFT_POWER_OFF, states.POWER_OFF),
        ):
            asked = {"power_request": {"target": target}, "target_power_state": expected, "due_at": clock.now()}
            nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), asked)
            self.notify(node)
            done = self.settled(node)
            self.assertEqual((expected, None, None), (done.power_state, done.target_power_state, done.due_at))

    def test_a_power_change_does_not_disturb_a_waiting_flow(self) -> None:
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[step("pause", seconds=2)])
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        asked = {"power_request": {"target": states.POWER_ON}, "target_power_state": "power on", "due_at": clock.now()}
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), asked)
        self.notify(node)
        done = self.settled(node)
        self.assertEqual((states.ACTIVE, states.POWER_ON), (done.provision_state, done.power_state))

    def test_a_power_change_that_fails_says_why(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, power_interface="not-enabled")
        asked = {"power_request": {"target": states.POWER_ON}, "target_power_state": "power on", "due_at": clock.now()}
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), asked)
        self.notify(node)
        failed = self.settled(node)
        self.assertIn("not-enabled", failed.last_error)
        self.assertEqual("power", self.history(node)[-1].event_type)

    def test_a_bug_in_a_driver_ends_a_power_change_whatever_it_is(self) -> None:
        def leaves(bug: BaseException) -> Any:
            def start_power_change(task: Any, _target: str) -> None:
                task.set(extra={"not": object()})
                raise bug

            return mock.patch.object(power, "start_power_change", start_power_change)

        power = self.conductor.services.hardware.interface("power", "fake")
        for bug in (SystemExit("out\nof here"), ValueError("half a \ud800 pair")):
            node = database.make_node(self.db, provision_state=states.ACTIVE)
            asked = {"power_request": {"target": states.POWER_ON}, "due_at": clock.now()}
            nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), asked)
            with leaves(bug):
                self.notify(node)
                failed = self.settled(node)
            self.assertIn(f"unexpected {type(bug).__name__}", failed.last_error)
            self.assertNotIn("of here", failed.last_error)
