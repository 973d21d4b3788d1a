"""A conductor dies at each of its accesses to the database in turn, before and after it; the next one goes on.

Slower than unit tests may be: some hundred flows run from beginning to end.
"""

import dataclasses
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import testtools

from ingot.common import clock, states
from ingot.db import allocations, listing, models, nodes
from tests import conductor_case, scripted
from tests.random_flows import Story, StoryCase
from tests.scripted_hardware import Act
from tests.unit.conductor import fault_table
from tests.unit.conductor.fault_table import CASES

_MOST = 200
_HOLD = {"interface": "power", "step": "hold", "args": {}, "priority": 60}


@dataclasses.dataclass(frozen=True)
class Row:
    """What is under way while conductors die.

    :param died_in: transient states in which the node is found after a death.
    :param idempotent: whether the steps may be repeated; then every death must be without consequences.
    :param held: whether an operator holds the flow, and lets it go on.
    :param kin: how many child nodes some of the steps run on.
    :param aborted: the number of the reconciliation, of those that find the flow waiting, at which it is aborted.
    """

    flow: str
    died_in: tuple[str, ...]
    idempotent: bool = True
    held: bool = False
    kin: int = 0
    aborted: int | None = None

    def story(self, accesses: int) -> Story:
        kind = str(CASES[self.flow].kind)
        acts = [act for act in self._acts(kind) if act.way in self._ways(kind)]
        request = acts if CASES[self.flow].asks and self.flow != "deploy" else []
        return Story(self.flow, acts, request, None, [accesses], self.kin, self.aborted)

    def _ways(self, kind: str) -> tuple[str, ...]:
        if kind == "verify" or self.kin:
            return "at once", "polling"
        if self.held:
            return ("at once",)
        return ("at once", "waiting") if self.aborted else ("at once", "polling", "waiting", "agent")

    def _acts(self, kind: str) -> list[Act]:
        return [
            Act(kind, "bios", "set", 150, "polling", self.idempotent),
            Act(kind, "raid", "wait", 70, "waiting", self.idempotent),
            Act(kind, "raid", "mirror", 50, "agent"),
            Act(kind, "vendor", "polish", 45, "at once", self.idempotent),
        ]


_CLEANING = (states.CLEANING, states.CLEANWAIT)
_DEPLOYING = (states.DEPLOYING, states.DEPLOYWAIT)
_SERVICING = (states.SERVICING, states.SERVICEWAIT)

ROWS = {
    "verification": Row("verify", (states.VERIFYING,)),
    "automated_cleaning": Row("automated_clean", _CLEANING),
    "manual_cleaning": Row("manual_clean", _CLEANING),
    "manual_cleaning_that_is_held": Row("manual_clean", (*_CLEANING, states.CLEANHOLD), held=True),
    "manual_cleaning_that_is_aborted": Row("manual_clean", _CLEANING, aborted=1),
    "steps_on_child_nodes": Row("manual_clean", (states.CLEANING,), kin=1),
    "deployment": Row("deploy", _DEPLOYING),
    "deployment_with_steps_that_must_not_be_repeated": Row("deploy", _DEPLOYING, idempotent=False),
    "deployment_that_is_held": Row("deploy", (*_DEPLOYING, states.DEPLOYHOLD), held=True),
    "deployment_that_is_aborted": Row("deploy", _DEPLOYING, aborted=1),
    "service": Row("service", _SERVICING, idempotent=False),
    "service_that_is_held": Row("service", (*_SERVICING, states.SERVICEHOLD), held=True),
    "service_that_is_aborted": Row("service", _SERVICING, aborted=1),
    "way_out_of_a_failed_service": Row("leave_service", (states.SERVICING,)),
    "tear_down": Row("delete", (states.DELETING, *_CLEANING)),
    "adoption": Row("adopt", (states.ADOPTING,)),
    "inspection": Row("inspect", (states.INSPECTING, states.INSPECTWAIT)),
    # Also where the agent got the password and has ended, and no record says so.
    "rescue": Row("rescue", (states.RESCUING, states.RESCUEWAIT)),
    "end_of_a_rescue": Row("unrescue", (states.UNRESCUING,)),
}


class TestTable(testtools.TestCase):
    def test_has_every_transient_state_and_every_flow(self) -> None:
        died_in = {state for row in ROWS.values() for state in row.died_in}
        self.assertEqual(states.WORKING | states.WAITING | states.HELD, died_in)
        flows = {row.flow for row in ROWS.values()} | {"for_parent"}  # of the child nodes
        self.assertEqual(set(fault_table.CASES), flows)


class TestEveryAccess(StoryCase):
    def die_everywhere(self, row: Row) -> None:
        """Crash at one access later each time, until the conductor survives to the end."""
        self.row, self.died_in = row, set[str]()
        outcomes: Counter[str] = Counter()
        for accesses in range(1, _MOST):
            story = row.story(accesses)
            end = self.play(story)
            self.check(story, self.now(end), end)
            if row.idempotent and not row.aborted:
                self.assertIsNone(end.last_error, f"killed at access {accesses}")
            outcomes["failed" if end.last_error else "done"] += 1
            if self.lives == 1:
                break
        else:
            raise AssertionError(f"no end after {_MOST} accesses")
        self.assertLessEqual(set(row.died_in), self.died_in)
        if not row.idempotent:  # only deaths in one of the three steps themselves fail the flow
            self.assertGreaterEqual(outcomes["failed"], 3)
            self.assertGreater(outcomes["done"], outcomes["failed"])

    def steps_asked_for(self, story: Story) -> list[dict[str, Any]]:
        first, *others = [*super().steps_asked_for(story), None]
        steps = [first, _HOLD, *others] if self.row.held else [first, *others]
        return [step for step in steps if step]

    def take_turns(self, node: models.Node, *args: Any, **more: Any) -> models.Node:
        """Take turns until the flow ends, and continue what is held."""
        now = super().take_turns(node, *args, **more)
        while now.provision_state in states.HELD and not self.stage.life.dead:
            reached = states.requested_state(now.provision_state, "unhold")
            nodes.set_always(self.db, node.uuid, {"provision_state": reached, "due_at": clock.now()})
            now = super().take_turns(node, *args, **more)
        return now

    def assert_scheduled(self, node: models.Node) -> None:
        found = self.now(node)
        self.died_in.add(found.provision_state)
        if found.provision_state not in states.HELD or found.reservation:  # else it is the operator's turn
            super().assert_scheduled(node)


def _test(row: Row) -> Callable[[TestEveryAccess], None]:
    return lambda case: case.die_everywhere(row)


for _name, _row in ROWS.items():
    setattr(TestEveryAccess, f"test_{_name}", _test(_row))


class TestEveryAccessBesideFlows(scripted.ScriptedCase):
    """Work that is no flow of steps."""

    tls = False

    def die_everywhere(self, key: str, is_done: Callable[[], bool]) -> bool:
        """Run conductors of which the first crashes at one access later each time.

        :param key: of the queue in which the work is done.
        :returns: whether the first has lived to see the end.
        """
        self.accesses += 1
        for lives in range(1, _MOST):
            self.another_conductor()
            if lives == 1:
                self.stage.life.end_after(self.accesses)
            while not self.stage.life.dead:
                if is_done():
                    return lives == 1
                self.turn(key)
        raise AssertionError(f"not done after {_MOST} lives")

    def turn(self, key: str) -> None:
        """Let the conductor sweep and finish what it found."""
        try:
            self.conductor.sweeper.sweep()
        except scripted.Killed:
            return
        self.conductor.queues.submit(key, lambda: None).result(conductor_case.PATIENCE)

    accesses = 0

    def test_power_request(self) -> None:
        lived = False
        while not lived:
            for before, target, after in (
                (states.POWER_OFF, states.POWER_ON, states.POWER_ON),
                (states.POWER_ON, states.REBOOT, states.POWER_ON),
                (states.POWER_ON, states.SOFT_POWER_OFF, states.POWER_OFF),
            ):
                asked = {"power_request": {"target": target}, "target_power_state": after, "due_at": clock.now()}
                node = self.machine(provision_state=states.ACTIVE, power_state=before, **asked)
                lived = self.die_everywhere(node.uuid, lambda uuid=node.uuid: self.is_idle(uuid))
                end = self.now(node)
                self.assertEqual((after, None, None), (end.power_state, end.target_power_state, end.last_error))
                self.free(node)

    def is_idle(self, uuid: str) -> bool:
        node = nodes.get(self.db, uuid)
        return not node.power_request and node.reservation is None

    def test_allocation(self) -> None:
        lived = False
        while not lived:
            machines = [self.machine(resource_class="baremetal") for _ in range(2)]
            wish = str(uuid.uuid4())
            requested = {"uuid": wish, "resource_class": "baremetal", "state": allocations.ALLOCATING}
            allocations.create(self.db, requested)
            lived = self.die_everywhere(f"allocation {wish}", lambda wish=wish: self.is_allocated(wish))
            having = [node.uuid for node in map(self.now, machines) if node.instance_uuid == wish]
            self.assertEqual([listing.get(self.db, allocations.SOURCE, wish).node_uuid], having)
            for node in machines:  # of those that are left over the next one gets none
                nodes.set_always(self.db, node.uuid, {"resource_class": "used"})

    def is_allocated(self, wish: str) -> bool:
        found: models.Node = listing.get(self.db, allocations.SOURCE, wish)
        return found.state == allocations.ACTIVE
