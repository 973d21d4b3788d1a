"""A conductor dies at each of its accesses to the database in turn, before and after it; the next one goes on.

Slower than unit tests may be: some hundred flows run from beginning to end.
"""

from collections import Counter

from tests.scripted_hardware import Act
from tests.unit.conductor import fault_table
from tests.unit.conductor.test_random_flows import Story, StoryCase

_MOST = 200


class TestEveryAccess(StoryCase):
    def die_everywhere(self, flow: str, idempotent: bool = True) -> Counter[str]:
        """How the flow ended, for a death at each access until the conductor lives to see the end.

        :param idempotent: whether the steps may be repeated; then every death must be without consequences.
        """
        kind = str(fault_table.CASES[flow].kind)
        acts = [act for act in self.acts(kind, idempotent) if kind != "verify" or act.way in ("at once", "polling")]
        request = acts if fault_table.CASES[flow].asks and flow != "deploy" else []
        outcomes: Counter[str] = Counter()
        for accesses in range(1, _MOST):
            story = Story(flow, acts, request, None, [accesses], 0)
            end = self.play(story)
            self.check(story, self.now(end), end)
            if idempotent:
                self.assertIsNone(end.last_error, f"killed at access {accesses}")
            outcomes["failed" if end.last_error else "done"] += 1
            if self.lives == 1:
                return outcomes
        raise AssertionError(f"no end after {_MOST} accesses")

    @staticmethod
    def acts(kind: str, idempotent: bool) -> list[Act]:
        return [
            Act(kind, "bios", "set", 150, "polling", idempotent),
            Act(kind, "raid", "wait", 70, "waiting", idempotent),
            Act(kind, "raid", "mirror", 50, "agent"),
            Act(kind, "vendor", "polish", 45, "at once", idempotent),
        ]

    def test_verification(self) -> None:
        self.die_everywhere("verify")

    def test_automated_cleaning(self) -> None:
        self.die_everywhere("automated_clean")

    def test_manual_cleaning(self) -> None:
        self.die_everywhere("manual_clean")

    def test_deployment(self) -> None:
        self.die_everywhere("deploy")

    def test_deployment_with_steps_that_must_not_be_repeated(self) -> None:
        self.check_losses(self.die_everywhere("deploy", idempotent=False))

    def test_servicing(self) -> None:
        self.check_losses(self.die_everywhere("service", idempotent=False))

    def test_tear_down(self) -> None:
        self.die_everywhere("delete")

    def test_adoption(self) -> None:
        self.die_everywhere("adopt")

    def test_inspection(self) -> None:
        self.die_everywhere("inspect")

    def test_rescue(self) -> None:
        """Also where the agent was told the password and has ended, and nobody knows."""
        self.die_everywhere("rescue")

    def test_end_of_a_rescue(self) -> None:
        self.die_everywhere("unrescue")

    def check_losses(self, outcomes: Counter[str]) -> None:
        """Only deaths in one of the three steps themselves fail the flow."""
        self.assertGreaterEqual(outcomes["failed"], 3)
        self.assertGreater(outcomes["done"], outcomes["failed"])
