"""Random flows: what steps offer, what a deployment asks for, and stories in which conductors die."""

import dataclasses
import os
from collections import Counter
from typing import Any

import hypothesis
from hypothesis import strategies as some

from ingot.common import clock, interfaces, states
from ingot.conductor.flows import FLOWS
from ingot.db import models, nodes
from tests import scripted
from tests.scripted_hardware import Act
from tests.unit.conductor import fault_table

_MORE = int(os.environ.get("INGOT_TEST_EXAMPLES", "0"))


def examples(usual: int) -> hypothesis.settings:
    return hypothesis.settings(
        database=None,
        deadline=None,
        derandomize=not _MORE,
        max_examples=_MORE or usual,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


WITH_AGENT = range(41, 100)

Label = tuple[str, str]
Planned = tuple[str, str, int, str, dict[str, Any]]
"""Interface, step, priority, origin, args."""


@dataclasses.dataclass(frozen=True)
class RequestedStep:
    """A step that a template or request asks for."""

    act: Act
    priority: int
    number: int

    def as_step(self) -> dict[str, Any]:
        args = {"number": self.number}
        return {"interface": self.act.interface, "step": self.act.step, "priority": self.priority, "args": args}

    def planned(self, origin: str) -> Planned:
        return self.act.interface, self.act.step, self.priority, origin, {"number": self.number}


def label(act: Act) -> Label:
    return act.interface, act.step


@some.composite
def acts_of(draw: some.DrawFn, kind: str, ways: tuple[str, ...], most: int = 5, ties: bool = True) -> list[Act]:
    """Draw steps of a kind; those that need the agent stand where a deployment has one.

    :param ties: whether steps of one interface may have one priority.
    """
    found: list[Act] = []
    for number in range(draw(some.integers(0, most))):
        way = draw(some.sampled_from(ways))
        needs_agent = kind == "deploy" and way in ("waiting", "agent")
        interface = draw(some.sampled_from(interfaces.STEP_KINDS if way == "agent" else interfaces.TYPES))
        priority = draw(_priorities(needs_agent))
        if not ties and (interface, priority) in ((act.interface, act.priority) for act in found):
            priority = 0
        repeatable = kind in ("clean", "verify") or way == "agent" or draw(some.booleans())
        found.append(Act(kind, interface, f"s{number}", priority, way, idempotent=repeatable))
    return found


def _priorities(needs_agent: bool) -> some.SearchStrategy[int]:
    """Draw from a few different priorities, so that there are ties."""
    anywhere = (1, 20, 50, 80, 90, 100, 150)
    return some.sampled_from((0, *(number for number in anywhere if not needs_agent or number in WITH_AGENT)))


_FLOWS = tuple(name for name in FLOWS if name not in ("for_parent", "leave_service"))


@dataclasses.dataclass
class Story:
    """A flow and what happens to it.

    :param request: the acts that are asked for, in order; None where the flow chooses.
    :param fails: the act that fails, if any.
    :param kills: the numbers of accesses to the database after which conductors, one after the other, die.
    :param stops: whether they are stopped instead: they end what they do, and hand over.
    :param abort: the number of the reconciliation, of those that find the flow waiting, at which it is aborted.
    :param kin: how many child nodes the steps of the request with even numbers run on.
    """

    flow: str
    acts: list[Act]
    request: list[Act]
    fails: Act | None
    kills: list[int]
    kin: int
    abort: int | None = None
    stops: bool = False

    @property
    def case(self) -> fault_table.Case:
        return fault_table.CASES[self.flow]


_WAYS = {"verify": ("at once", "polling")}


@some.composite
def stories(draw: some.DrawFn) -> Story:
    flow = draw(some.sampled_from(_FLOWS))
    case = fault_table.CASES[flow]
    kin = draw(some.sampled_from((0, 0, 0, 1, 2))) if case.asks and flow != "deploy" else 0
    ways = _WAYS.get(flow, ("at once", "polling") if kin else ("at once", "polling", "waiting", "agent"))
    acts = draw(acts_of(case.kind, ways, ties=False)) if case.kind else []
    request = draw(some.lists(some.sampled_from(acts), max_size=4)) if case.asks and acts else []
    fails = draw(some.sampled_from(acts)) if acts and draw(some.integers(0, 3)) == 0 else None
    kills = draw(some.lists(some.integers(1, 70), max_size=3))
    for act in acts:
        act.abortable = case.kind in ("clean", "service") and draw(some.booleans())
    # The cleaning that follows a tear down is a story of its own.
    abort = draw(some.sampled_from((None, None, 1, 2, 3))) if flow != "delete" else None
    return Story(flow, acts, request, fails, kills, kin, abort)


class StoryCase(scripted.ScriptedCase):
    tls = False

    def play(self, story: Story) -> models.Node:
        """Run the story to its end, with as many conductors as it takes."""
        for act in story.acts:
            act.fault = "raises" if act is story.fails else None
        self.stage.acts, self.stage.did = story.acts, []
        node = self.machine(provision_state=story.case.start, power_state=story.case.power[0])
        self.kin = [self.machine(parent_node=node.uuid, provision_state=states.ACTIVE) for _ in range(story.kin)]
        steps = self.steps_asked_for(story)
        request = {**story.case.request, **({story.case.asks: steps} if story.case.asks else {})}
        self.asked(node, story.flow, story.case.accepted, **request)
        kills, self.lives = iter(story.kills), 0
        self.left = story.abort
        self.aborted_in: Label | None = None
        self.done_before: list[tuple[str, str, str, dict[str, Any]]] = []
        while True:
            self.lives += 1
            self.another_conductor()
            deadline, leaving = next(kills, None), self.conductor.services.leaving
            if deadline:
                self.stage.life.end_after(deadline, leaving.set if story.stops else None)
            self.sweep_for(node)
            now = self.take_turns(node, until=self.time_to_abort)
            if now.flow is not None and self.left == 0:
                self.abort(now)
                now = self.take_turns(node)
            for child in () if self.stage.life.dead else self.kin:
                self.notify_and_wait(child)  # its parent may not wait for it any more
            if not self.stage.life.dead and (now.flow is None or not leaving.is_set()):
                return now
            self.assert_scheduled(node)

    def steps_asked_for(self, story: Story) -> list[dict[str, Any]]:
        steps = [RequestedStep(act, 50, number).as_step() for number, act in enumerate(story.request)]
        for step in steps[::2] if story.kin else []:
            step["execute_on_child_nodes"] = True
        return steps

    def time_to_abort(self, now: models.Node) -> bool:
        if self.left and states.requested_state(now.provision_state, "abort"):
            self.left -= 1
            return self.left == 0
        return False

    def abort(self, now: models.Node) -> None:
        """Write an abort as the API does, without a lock."""
        self.left, self.aborted_in, self.done_before = None, scripted.current(now), list(self.stage.did)
        nodes.set_always(self.db, now.uuid, {"abort_requested": True, "due_at": clock.now()})

    def assert_scheduled(self, node: models.Node) -> None:
        """Assert that a sweep finds each unfinished flow: its node has a lock or a next check."""
        for one in map(self.now, (node, *self.kin)):
            if one.flow is not None:
                self.assertTrue(one.reservation or one.due_at, one.as_dict())

    def check(self, story: Story, node: models.Node, end: models.Node) -> None:
        for one in (node, *self.kin):
            self.free(one)
        well = end.provision_state == story.case.done
        self.assertEqual(story.case.done if well else story.case.failed[0], end.provision_state)
        fragile = {label(act) for act in story.acts if not act.idempotent}
        # What a parent does for steps on its children can be repeated, whatever they are.
        ends = {"done"} if well else {"done", "failed"} if self.aborted_in is None else {"aborted", "failed"}
        self.check_step_runs(node, ends, set() if self.kin else fragile)
        for child in self.kin:
            self.check_step_runs(child, {"done", "failed", "aborted"}, fragile)
        for act in story.acts:
            self.check_act(story, act, well)
        if self.aborted_in is not None:
            self.check_abort(story, end, well)
        elif well:
            self.assertIsNone(end.last_error)
        else:
            self.check_reason(story, end)
        ended = [entry for entry in self.history(node) if entry.event_type == "provisioning"]
        self.assertEqual(2 if well and story.flow == "delete" else 1, len(ended), str([entry.event for entry in ended]))

    def check_step_runs(self, node: models.Node, ends: set[str], fragile: set[Label]) -> None:
        """Check the plan's order: each step has one last attempt, and none is repeated that has ended.

        :param ends: how the last step of a run may have ended.
        :param fragile: steps that must not be repeated.
        """
        step_runs = self.step_runs(node)
        for run in {row.run_id: None for row in step_runs}:
            rows = [row for row in step_runs if row.run_id == run]
            places = [row.step_index for row in rows]
            self.assertEqual(sorted(places), places)
            self.assertEqual(list(range(places[-1] + 1)), sorted(set(places)))
            for place in set(places):
                *lost, last = (row for row in rows if row.step_index == place)
                self.assertEqual(list(range(1, len(lost) + 2)), [row.attempt for row in (*lost, last)])
                self.assertLessEqual({row.state for row in lost}, {"interrupted"})
                self.assertFalse(lost and (last.interface, last.step) in fragile)
                # A service that is aborted goes on, to give the machine back.
                before = {"done"} if self.aborted_in is None else {"done", "aborted"}
                self.assertIn(last.state, ends if place == places[-1] else before)

    def check_act(self, story: Story, act: Act, well: bool) -> None:
        did = Counter((uuid, args.get("number")) for uuid, *step, args in self.stage.did if tuple(step) == label(act))
        if not act.idempotent or act.way == "agent":
            self.assertLessEqual(set(did.values()), {1}, f"{act} ran twice: {self.stage.did}")
        if act.priority == 0 and not any(one is act for one in story.request):
            self.assertEqual(0, did.total())

    def check_abort(self, story: Story, end: models.Node, well: bool) -> None:
        """Check that no step begins after an abort.

        The step that the abort met may end, or be repeated if its conductor died.
        """
        begun = {(interface, step) for _uuid, interface, step, _args in self.stage.did[len(self.done_before) :]}
        self.assertLessEqual(begun, {self.aborted_in})
        if well and story.flow != "service":  # a service goes on, to give the machine back
            last = [row for row in self.step_runs(end) if row.origin != "flow"][-1]
            self.assertEqual(self.aborted_in, (last.interface, last.step), "an abort is too late in the last step only")
        else:
            self.assertRegex(end.last_error, "was aborted|out of luck|not safe to repeat")

    def check_reason(self, story: Story, end: models.Node) -> None:
        """Check that the failed step was to fail, or that its conductor died and it cannot be repeated."""
        if "not safe to repeat" in end.last_error:
            self.assertTrue(story.kills)
            self.assertFalse(all(act.idempotent for act in story.acts))
        else:
            self.assertIsNotNone(story.fails, end.last_error)
            self.assertIn("out of luck", end.last_error)
