"""What a conductor makes of the steps that agents offer: it keeps them with their date, or fails the flow by name."""

from typing import Any

from ingot.common import clock, context, states
from ingot.db import models
from tests.scripted import ScriptedCase
from tests.scripted_hardware import Act

WIPE = {"interface": "deploy", "step": "wipe", "priority": 50}
BEGIN = {
    "clean": ("automated_clean", states.CLEANING),
    "deploy": ("deploy", states.DEPLOYING),
    "service": ("service", states.SERVICING),
}


class OffersCase(ScriptedCase):
    def play(self, kind: str, offer: Any = None, requested: str = "wipe", **agent: Any) -> models.Node:
        """Play a flow to its end.

        :param offer: the steps that the agent offers, if they are not those of the script.
        :param agent: what else is different with the agent.
        """
        self.node = self.machine()
        if offer is not None:
            agent["_offers"] = lambda _kind: offer
        for name, value in agent.items():
            setattr(self.agent(self.node), name, value)
        flow, state = BEGIN[kind]
        request = {"service_steps": [{"interface": "deploy", "step": requested}]} if kind == "service" else {}
        self.accept(self.node, flow, state, **request)
        self.notify_and_wait(self.node)
        return self.take_turns(self.node)


class WhatCannotBeUsed(OffersCase):
    def fails(self, failed: models.Node, *words: str) -> None:
        self.assertIn(failed.provision_state, states.FAILED)
        for word in words:
            self.assertIn(word, failed.last_error)
        self.assertEqual([], self.stage.did)

    def test_a_step_without_one_of_its_keys_fails_every_flow_and_is_named(self) -> None:
        for kind in BEGIN:
            for key in WIPE:
                other = {"interface": "deploy", "step": "polish", "priority": 45}
                typo = {name: value for name, value in WIPE.items() if name != key} | {f"{key}y": 50}
                failed = self.play(kind, [other, typo])
                self.fails(failed, f"None as {kind}_steps.Scripted[1].{key}", "" if key == "step" else "wipe")

    def test_an_answer_without_versions_fails_every_flow(self) -> None:
        for kind in BEGIN:
            self.fails(self.play(kind, [WIPE], managers=None), "None as hardware_manager_version", "must be an object")


class Versions(OffersCase):
    def test_those_of_the_hardware_managers_are_shown_and_stay(self) -> None:
        for kind in BEGIN:
            self.stage.acts = [Act(kind, "deploy", "wipe", way="agent")]
            after = self.play(kind)
            self.assertEqual({"manager": "1"}, after.driver_internal_info["hardware_manager_version"], after.last_error)

    def test_a_mismatch_says_the_word_from_agent_and_conductor(self) -> None:
        for fault in ("upgraded", "replaced"):
            self.stage.acts = [
                Act("deploy", "deploy", "wipe", way="agent", fault=fault, reboot_requested=fault == "replaced")
            ]
            failed = self.play("deploy")
            self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
            self.assertIn("version mismatch", failed.last_error)


class WhatIsListed(OffersCase):
    """``GET /v1/nodes/<id>/cleaning/steps`` of a node whose agent is away."""

    def listed(self) -> list[tuple[str, float, bool]]:
        """Return name, priority, and whether the agent has offered it."""
        answer = self.conductor.endpoint.get_steps(context.admin().to_dict(), node_uuid=self.node.uuid, kind="clean")[
            "result"
        ]
        for one in answer:
            self.assertIn(one["offered_at"], (None, self.offered_at()))
        return [(f"{one['interface']}.{one['step']}", one["priority"], one["offered_at"] is not None) for one in answer]

    def offered_at(self) -> str | None:
        return self.now(self.node).driver_internal_info.get("steps_offered", {}).get("clean", {}).get("at")

    def test_the_steps_last_offered_are_with_their_date(self) -> None:
        self.stage.acts = [
            Act("clean", "deploy", "wipe", 20, way="agent"),
            Act("clean", "deploy", "asked", 0, way="agent"),
            Act("clean", "bios", "reset", 15),
        ]
        before = clock.iso(clock.now())
        cleaned = self.play("clean")
        self.assertEqual((states.AVAILABLE, None), (cleaned.provision_state, cleaned.agent_url))
        self.assertEqual([("deploy.wipe", 20, True), ("bios.reset", 15, False)], self.listed())
        self.assertTrue(before <= str(self.offered_at()) <= str(clock.iso(clock.now())))
        overrides = {"deploy.asked": 30, "deploy.wipe": 0}
        self.conf.set_override("clean_step_priority_override", overrides, group="conductor")
        self.assertEqual([("deploy.asked", 30, True), ("bios.reset", 15, False)], self.listed())

    def test_options_for_erasing_hold_at_once(self) -> None:
        self.stage.acts = [Act("clean", "deploy", "erase_devices", 20, way="agent")]
        self.play("clean")
        for option, expected in ((None, [("deploy.erase_devices", 20, True)]), (0, [])):
            self.conf.set_override("erase_devices_priority", option, group="deploy")
            self.assertEqual(expected, self.listed())

    def test_what_follows_keeps_them_and_the_next_cleaning_replaces_them(self) -> None:
        self.stage.acts = [Act("clean", "deploy", "wipe", 20, way="agent")]
        self.play("clean")
        self.asked(self.node, "deploy", states.DEPLOYING)
        self.take_turns(self.node)
        self.assertEqual([("deploy.wipe", 20, True)], self.listed())
        self.stage.acts = [Act("clean", "deploy", "polish", 5, way="agent")]
        self.asked(self.node, "automated_clean", states.CLEANING)
        self.take_turns(self.node)
        self.assertEqual([("deploy.polish", 5, True)], self.listed())

    def test_of_a_node_that_no_agent_has_been_on_only_the_drivers(self) -> None:
        self.stage.acts = [Act("clean", "deploy", "wipe", 20, way="agent"), Act("clean", "bios", "reset", 15)]
        self.node = self.machine()
        self.assertEqual([("bios.reset", 15, False)], self.listed())
