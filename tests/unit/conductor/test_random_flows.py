"""Random flows (hypothesis): the order of steps, each of them completed exactly once, and what a crash may change.

The examples are the same at each run. ``INGOT_TEST_EXAMPLES=2000`` tries that many others, and prints how to repeat one
that fails.
"""

import dataclasses
from collections import Counter

import hypothesis
import sqlalchemy as sa
from hypothesis import strategies as some

from ingot.common import context, errors, states
from ingot.db import models, step_lists
from tests import scripted, scripted_hardware
from tests.random_flows import Planned, RequestedStep, Story, StoryCase, _priorities, acts_of, examples, label, stories
from tests.scripted_hardware import Act

TIES = ("power", "management", "deploy", "firmware", "bios", "raid", "boot", "network", "storage", "inspect", "console",
        "rescue", "vendor")  # fmt: skip
"""The documented order of equal priorities, said once more: that of the product is what is tested."""

CORE = {
    "deploy": 100,
    "write_image": 80,
    "prepare_instance_boot": 60,
    "tear_down_agent": 40,
    "switch_to_tenant_network": 30,
    "boot_instance": 20,
}


# Order


@dataclasses.dataclass
class DeployRequest:
    """What driver, options, templates and request ask of a deployment."""

    acts: list[Act]
    options: dict[str, int]
    templates: dict[str, list[RequestedStep]]
    request: list[RequestedStep]

    def promised(self) -> list[Planned]:
        """Return the plan that the specifications promise.

        Request goes over template over option over code, and the highest priority goes first. Equal priorities go by
        interface and then in the requested order.
        """
        chosen = [asked.planned("request") for asked in self.request]
        taken = {label(asked.act) for asked in self.request}
        for name, requests in self.templates.items():
            chosen += [asked.planned(f"template {name}") for asked in requests if label(asked.act) not in taken]
        taken |= {label(asked.act) for requests in self.templates.values() for asked in requests}
        chosen += [planned for planned in self._default() if planned[:2] not in taken]
        running = [planned for planned in chosen if planned[2] > 0]
        return sorted(running, key=lambda planned: (-planned[2], TIES.index(planned[0])))

    def _default(self) -> list[Planned]:
        core: list[Planned] = [("deploy", step, priority, "driver", {}) for step, priority in CORE.items()]
        own: list[Planned] = [
            (*label(act), self.options.get(".".join(label(act)), act.priority), _offers(act), {}) for act in self.acts
        ]
        return [*core, *sorted(own, key=lambda planned: planned[3], reverse=True)]


def _offers(act: Act) -> str:
    return "agent" if act.way == "agent" else "driver"


@some.composite
def drawn_requests(draw: some.DrawFn) -> DeployRequest:
    acts = draw(acts_of("deploy", ("at once", "polling", "waiting", "agent")))
    numbers = iter(range(1000))

    def some_asked(most: int) -> list[RequestedStep]:
        acts_asked = draw(some.lists(some.sampled_from(acts), max_size=most)) if acts else []
        return [
            RequestedStep(act, draw(_priorities(act.way in ("waiting", "agent"))), next(numbers)) for act in acts_asked
        ]

    options = {
        ".".join(label(act)): draw(_priorities(act.way in ("waiting", "agent")))
        for act in acts
        if draw(some.integers(0, 2)) == 0
    }
    return DeployRequest(acts, options, {"CUSTOM_A": some_asked(2), "CUSTOM_B": some_asked(2)}, some_asked(3))


class TestOrder(scripted.ScriptedCase):
    tls = False

    @examples(40)
    @hypothesis.given(drawn_requests())
    def test_a_deployment_runs_what_is_promised(self, drawn: DeployRequest) -> None:
        self.stage.acts, self.stage.did = drawn.acts, []
        self.conf.set_override("deploy_step_priority_override", drawn.options, group="conductor")
        traits = self.make_templates(drawn.templates)
        node = self.machine()
        node = self.machine(instance_info={**node.instance_info, "traits": traits})
        request = {"deploy_steps": [asked.as_step() for asked in drawn.request]}
        plan = self.conductor.endpoint.get_plan(
            context.admin().to_dict(), node_uuid=node.uuid, flow="deploy", request=request
        )["result"]
        self.asked(node, "deploy", states.DEPLOYING, **request)
        end = self.take_turns(node)
        self.assertEqual((states.ACTIVE, None), (end.provision_state, end.last_error))
        ran = [(row.interface, row.step, row.priority, row.origin, row.args) for row in self.step_runs(node)]
        promised = drawn.promised()
        self.assertEqual(promised, ran[1:])
        own = {label(act) for act in drawn.acts}
        self.assertEqual(
            [(*planned[:2], planned[4]) for planned in promised if planned[:2] in own],
            [(interface, step, args) for _node, interface, step, args in self.stage.did],
        )
        shown = [tuple(step[name] for name in ("interface", "step", "priority", "origin", "args"))
                 for step in plan["steps"]]  # fmt: skip
        self.assertEqual([planned for planned in ran if planned[3] != "agent"], shown)

    def make_templates(self, templates: dict[str, list[RequestedStep]]) -> list[str]:
        """Insert the templates that have steps; return their names."""
        with self.db.single() as connection:
            connection.execute(sa.delete(models.table(models.DeployTemplate)))
        for name, requests in templates.items():
            steps = [asked.as_step() for asked in requests]
            if steps:
                step_lists.TEMPLATES.create(self.db, {"name": name, "extra": {}, "steps": steps})
        return [name for name, requests in templates.items() if requests]

    @examples(26)
    @hypothesis.given(acts_of("clean", ("at once", "polling", "agent"), most=7), some.data())
    def test_a_cleaning_runs_by_priority_and_ties_by_interface(self, acts: list[Act], data: some.DataObject) -> None:
        options = {".".join(label(act)): data.draw(_priorities(False)) for act in acts if data.draw(some.booleans())}
        self.conf.set_override("clean_step_priority_override", options, group="conductor")
        self.stage.acts, self.stage.did = acts, []
        own: list[Planned] = [
            (*label(act), options.get(".".join(label(act)), act.priority), _offers(act), {}) for act in acts
        ]
        node = self.machine(provision_state=states.MANAGEABLE)
        self.asked(node, "automated_clean", states.CLEANING)
        self.assertEqual(states.AVAILABLE, self.take_turns(node).provision_state)
        ran = [(row.interface, row.step, row.priority, row.origin, row.args) for row in self.step_runs(node)][1:-1]
        by_driver_first = sorted(own, key=lambda planned: planned[3], reverse=True)
        enabled = [planned for planned in by_driver_first if planned[2] > 0]
        self.assertEqual(sorted(enabled, key=lambda planned: (-planned[2], TIES.index(planned[0]))), ran)

    @examples(40)
    @hypothesis.given(acts_of("clean", ("at once",), most=7), some.data())
    def test_a_tie_within_an_interface_stops_the_conductor(self, acts: list[Act], data: some.DataObject) -> None:
        options = {".".join(label(act)): data.draw(_priorities(False)) for act in acts if data.draw(some.booleans())}
        self.conf.set_override("clean_step_priority_override", options, group="conductor")
        self.stage.acts = acts
        places = Counter((act.interface, options.get(".".join(label(act)), act.priority)) for act in acts)
        ties = [place for place, count in places.items() if count > 1 and place[1] > 0]
        try:
            scripted_hardware.hardware(self.conf, self.stage)
        except errors.ConfigurationError as exc:
            self.assertTrue(ties, exc.message)
            named = [interface for interface, priority in ties if f"{interface} interface" in exc.message]
            self.assertTrue(named, exc.message)
        else:
            self.assertEqual([], ties)


# Completion and crashes


TWO_AGENTS_LOST = Story("rescue", [], [], fails=None, kills=[24, 29], kin=0, abort=None, stops=False)
"""Each of two conductors dies after its agent has got the password and ended."""


class TestCrashes(StoryCase):
    @examples(100)
    @hypothesis.given(stories())
    @hypothesis.example(TWO_AGENTS_LOST)
    def test_a_flow_ends_and_each_step_is_completed_once(self, story: Story) -> None:
        end = self.play(story)
        node = self.now(end)
        self.check(story, node, end)
        if story.fails is None and self.aborted_in is None and all(act.idempotent for act in story.acts):
            self.assertIsNone(end.last_error)

    @examples(53)
    @hypothesis.given(stories())
    def test_conductors_that_are_stopped_hand_over(self, story: Story) -> None:
        story.stops = True
        end = self.play(story)
        self.check(story, self.now(end), end)
        states_of_attempts = {row.state for node in (end, *self.kin) for row in self.step_runs(node)}
        self.assertNotIn("interrupted", states_of_attempts)
        if story.fails is None and self.aborted_in is None:
            self.assertIsNone(end.last_error)
