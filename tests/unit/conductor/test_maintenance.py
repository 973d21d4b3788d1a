"""What conductors do for maintenance and what they leave alone in it: faults beside the holds of users."""

import threading
from typing import Any

from ingot.common import context, errors, states
from ingot.conductor import power
from ingot.db import maintenance, models, node_lists, nodes
from tests import conductor_case, database

FAULT = maintenance.POWER_FAULT
STEP = {"interface": "vendor", "step": "fail", "args": {"message": "no"}, "priority": 0}


def hold(case: conductor_case.ConductorCase, node: models.Node, name: str, scope: str) -> None:
    hold = maintenance.user_hold(context.admin(), "new fan", name, scope)
    maintenance.write_holds(case.db, node.uuid, lambda found: maintenance.add_hold(found, hold))


class PowerFault(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.conf.set_override("power_state_sync_max_retries", 1, group="conductor")
        self.node = database.make_node(self.db, provision_state=states.ACTIVE, power_state=states.POWER_ON)
        self.silent = True
        self.asked = 0
        self.conductor.services.hardware.interface("power", "fake").get_power_state = self.reads  # type: ignore[attr-defined]
        self.synchroniser = power.PowerSynchronizer(self.conductor.services, self.conductor.membership.owns)
        self.addCleanup(self.synchroniser.stop)

    def reads(self, _task: object) -> str:
        self.asked += 1
        if self.silent:
            raise errors.HardwareError(what="The BMC", reason="it is silent")
        return states.POWER_ON

    def rounds(self, number: int) -> models.Node:
        for _round in range(number):
            found = node_lists.list_for_power_sync(self.db, "", ["fake-hardware"])
            self.synchroniser.read([node.uuid for node in found])
            conductor_case.eventually(lambda: not self.synchroniser.running, "all are read")
        return nodes.get(self.db, self.node.uuid)

    def flag(self, node: models.Node) -> tuple[Any, ...]:
        return node.maintenance, node.fault, [one["name"] for one in maintenance.read_holds(node)]

    def test_begins_when_the_bmc_is_unresponsive_and_ends_when_it_answers(self) -> None:
        self.assertEqual((False, None, []), self.flag(self.rounds(1)))
        found = self.rounds(3)
        self.assertEqual((True, FAULT, [FAULT]), self.flag(found))
        self.assertEqual("conductor-1", found.maintenance_holds[0]["conductor"])
        self.assertIn("2 times in a row", found.maintenance_reason)
        self.silent = False
        self.assertEqual((False, None, []), self.flag(self.rounds(1)))

    def test_comes_and_goes_beside_a_hold_that_lets_the_power_be_read(self) -> None:
        hold(self, self.node, "fan", "provision")
        self.assertEqual((True, FAULT, ["fan", FAULT]), self.flag(self.rounds(2)))
        self.silent = False
        found = self.rounds(1)
        self.assertEqual((True, None, ["fan"]), self.flag(found))
        self.assertEqual("new fan", found.maintenance_reason)

    def test_stays_while_a_user_wants_the_machine_left_alone(self) -> None:
        self.rounds(2)
        hold(self, self.node, "fan", "all")
        self.silent, self.asked = False, 0
        self.assertEqual((True, None, [FAULT, "fan"]), self.flag(self.rounds(2)))
        maintenance.write_holds(
            self.db, self.node.uuid, lambda node: maintenance.end_holds(node, lambda one: one["name"] == "fan")
        )
        self.assertEqual(0, self.asked)
        self.assertEqual((False, None, []), self.flag(self.rounds(1)))

    def test_does_not_begin_where_no_conductor_serves_the_node(self) -> None:
        for scope in ("all", "sync"):
            hold(self, self.node, "fan", scope)
            self.rounds(3)
        self.assertEqual((0, ["fan"]), (self.asked, [one["name"] for one in self.rounds(0).maintenance_holds]))


class FaultOfAFlow(conductor_case.ConductorCase):
    def clean(self, node: models.Node, *steps: dict[str, Any]) -> models.Node:
        return self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=list(steps))

    def test_takes_nothing_from_users_and_leaves_them_theirs(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        hold(self, node, "fan", "all")
        failed = self.clean(node, STEP)
        self.assertEqual(["fan", "clean failure"], [one["name"] for one in failed.maintenance_holds])
        self.assertEqual((True, "clean failure"), (failed.maintenance, failed.fault))
        after = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual(["fan"], [one["name"] for one in after.maintenance_holds])
        self.assertEqual((True, None, "new fan"), (after.maintenance, after.fault, after.maintenance_reason))

    def test_and_a_hold_that_comes_while_the_step_runs_stand_together(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        entered, held = threading.Event(), threading.Event()

        def fails(_task: object, **_args: Any) -> None:
            entered.set()
            held.wait(conductor_case.PATIENCE)
            raise errors.HardwareError(what="The disk", reason="it is full")

        self.conductor.services.hardware.interface("vendor", "fake").fail = fails  # type: ignore[attr-defined]
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=[STEP])
        self.notify(node)
        self.assertTrue(entered.wait(conductor_case.PATIENCE))
        hold(self, node, "fan", "all")
        held.set()
        failed = self.settled(node)
        self.assertEqual(["fan", "clean failure"], [one["name"] for one in failed.maintenance_holds])
