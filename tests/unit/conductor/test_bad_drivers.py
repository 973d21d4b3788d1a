"""Drivers that do what they should not: the flow ends all the same, in one place, and its message says why."""

import asyncio
from collections.abc import Callable
from typing import Any

from ingot.common import states
from ingot.drivers.interfaces.task import Task
from tests import conductor_case, database


class TestBadDrivers(conductor_case.ConductorCase):
    def plug_in(self, kind: str, method: str, function: Callable[..., Any]) -> None:
        """Give the fake interface of a kind another method, as a plug-in might have it."""
        setattr(self.conductor.services.hardware.interface(kind, "fake"), method, function)

    def failed_deployment(self) -> str:
        """Return the error of a deployment, which must have failed."""
        failed = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        return str(failed.last_error)

    def test_odd_exceptions_fail_the_step(self) -> None:
        for odd in (KeyError("colour"), SystemExit(3), asyncio.CancelledError(), RuntimeError("a\0b\ud800c")):
            with self.subTest(odd=repr(odd)):

                def raises(_task: Task, odd: BaseException = odd) -> None:
                    raise odd

                self.plug_in("deploy", "deploy", raises)
                error = self.failed_deployment()
                self.assertIn("deploy.deploy", error)
                self.assertIn(type(odd).__name__, error)

    def test_odd_answers_fail_the_step(self) -> None:
        for odd in ({}, [1], True, "clean", 7):
            with self.subTest(odd=odd):

                def answers(_task: Task, odd: object = odd) -> object:
                    return odd

                self.plug_in("deploy", "deploy", answers)
                self.assertIn(f"deploy.deploy returned {odd!r}", self.failed_deployment())

    def test_a_clean_up_that_fails_too_does_not_keep_the_flow(self) -> None:
        def refuses(_task: Task, *_given: object) -> None:
            raise ValueError("the BMC speaks Latin")

        self.plug_in("deploy", "deploy", refuses)
        self.plug_in("power", "start_power_change", refuses)
        self.assertIn("Latin", self.failed_deployment())

    def test_what_cannot_be_written_fails_the_step(self) -> None:
        def remembers(task: Task) -> None:
            found = {"half": "\ud800", "password": "open sesame"}
            task.set(driver_internal_info={**task.node.driver_internal_info, "found": found})

        self.plug_in("deploy", "deploy", remembers)
        error = self.failed_deployment()
        self.assertIn("unexpected DBError", error)
        self.assertNotIn("UPDATE", error)
        self.assertNotIn("sesame", error)

    def test_an_interface_that_is_not_enabled_here_is_named(self) -> None:
        for flow, state, failed in (
            ("deploy", states.DEPLOYING, states.DEPLOYFAIL),
            ("delete", states.DELETING, states.ERROR),
            ("manual_clean", states.CLEANING, states.CLEANFAIL),
        ):
            with self.subTest(flow=flow):
                node = database.make_node(self.db, deploy_interface="not-enabled")
                ended = self.run_flow(node, flow, state)
                self.assertEqual(failed, ended.provision_state)
                self.assertIn("'not-enabled'", ended.last_error)

    def test_a_step_that_has_run_does_not_run_again_when_the_plan_has_changed(self) -> None:
        calls: list[str] = []

        def resets(_task: Task) -> None:
            calls.append("factory_reset")
            self.conf.set_override("deploy_step_priority_override", {"bios.factory_reset": 120}, group="conductor")

        self.conf.set_override("deploy_step_priority_override", {"bios.factory_reset": 150}, group="conductor")
        self.plug_in("bios", "factory_reset", resets)
        done = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, ["factory_reset"]), (done.provision_state, calls))
