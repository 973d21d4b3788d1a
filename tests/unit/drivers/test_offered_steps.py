"""What agents answer when they are asked for their steps: what is accepted, and how the rest is refused."""

from typing import Any

import testtools

from ingot.drivers.agent import answers

BURN = {"interface": "deploy", "step": "burn", "priority": 5}


def answer(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"clean_steps": {"Manager": list(steps)}, "hardware_manager_version": {"manager": "1"}, **more}


class OfferedStepsTest(testtools.TestCase):
    def test_a_step_has_everything_that_plans_need(self) -> None:
        argsinfo = {"hot": {"description": "How hot.", "required": True}}
        full = {**BURN, "abortable": True, "reboot_requested": True, "argsinfo": argsinfo, "requires_ramdisk": False}
        self.assertEqual(full, answers.read_offer(answer(full), "clean").steps[0])

    def test_what_a_step_does_not_say(self) -> None:
        step = answers.read_offer(answer({"interface": "raid", "step": "x", "priority": 0}), "clean").steps[0]
        quiet = {"priority": 0, "abortable": False, "reboot_requested": False, "argsinfo": None}
        self.assertEqual(
            {"interface": "raid", "step": "x", **quiet, "requires_ramdisk": True},
            step,
        )

    def test_of_two_managers_with_one_step_the_first_wins(self) -> None:
        offered = {"A": [BURN], "B": [{**BURN, "priority": 9}, {**BURN, "interface": "bios"}]}
        found = answers.read_offer(answer(clean_steps=offered), "clean").steps
        self.assertEqual([("deploy", 5), ("bios", 5)], [(step["interface"], step["priority"]) for step in found])

    def test_versions(self) -> None:
        self.assertEqual({"manager": "1"}, answers.read_offer(answer(), "clean").versions)

    def test_what_cannot_be_used_is_named(self) -> None:
        where = "clean_steps.Manager[0]"
        argsinfo = f"{where}.argsinfo of step deploy.burn"
        for offer, expected in (
            (None, "None as result; it must be an object"),
            ({}, "None as clean_steps; it must be an object"),
            ({"clean_steps": []}, "[] as clean_steps; it must be an object"),
            ({"clean_steps": {"Manager": BURN}}, "as clean_steps.Manager; it must be a list"),
            (answer("burn"), f"'burn' as {where}; it must be an object"),
            (answer({"interface": "deploy"}), f"None as {where}.step; it must be the name of a step"),
            (answer({"interface": "deploy", "step": "x" * 256}), f"as {where}.step; it must be the name of a step"),
            (answer({"interface": "deploy", "step": "a\0"}), f"as {where}.step; it must be the name of a step"),
            (answer({**BURN, "step": ""}), f"'' as {where}.step"),
            (answer({"step": "burn"}), f"None as {where}.interface of step burn; it must be one of bios"),
            (answer({**BURN, "interface": "oven"}), "'oven' as"),
            (answer({"interface": "deploy", "step": "burn"}), f"None as {where}.priority of step deploy.burn"),
            (answer({**BURN, "priority": None}), "None as"),
            (answer({**BURN, "priority": "5"}), f"'5' as {where}.priority of step deploy.burn"),
            (answer({**BURN, "priority": True}), "True as"),
            (answer({**BURN, "priority": -1}), "-1 as"),
            (answer({**BURN, "priority": float("nan")}), "nan as"),
            (answer({**BURN, "abortable": "no"}), f"'no' as {where}.abortable of step deploy.burn; it must be true"),
            (answer({**BURN, "reboot_requested": 1}), f"1 as {where}.reboot_requested"),
            (answer({**BURN, "requires_ramdisk": 0}), f"0 as {where}.requires_ramdisk"),
            (answer({**BURN, "argsinfo": ["hot"]}), f"['hot'] as {argsinfo}; it must be an object"),
            (answer({**BURN, "argsinfo": {"hot": "very"}}), f"'very' as {argsinfo}, argument hot"),
            (answer({**BURN, "argsinfo": {"hot": {"required": "x"}}}), f"'x' as {argsinfo}, argument hot, required"),
            (answer(hardware_manager_version=None), "None as hardware_manager_version; it must be an object"),
            ({"clean_steps": {}}, "None as hardware_manager_version"),
            (answer(hardware_manager_version=["1"]), "['1'] as hardware_manager_version"),
        ):
            error = self.assertRaises(answers.Malformed, answers.read_offer, offer, "clean")
            self.assertIn(expected, str(error))

    def test_a_long_answer_is_not_repeated_in_full(self) -> None:
        error = self.assertRaises(answers.Malformed, answers.read_offer, "x" * 10000, "clean")
        self.assertLess(len(str(error)), 300)
