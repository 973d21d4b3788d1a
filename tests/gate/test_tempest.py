"""The API tests of ironic-tempest-plugin against Ingot with a real Keystone and a real Neutron."""

import collections
from typing import Any

import testtools
from testtools import content

from tests.gate import cloud, networking, tempest

REFERENCE = 493
"""So many of them pass with Ironic 39, configured alike: all but those excluded."""

_OUTCOMES = {"success": "addSuccess", "skip": "addSkip", "fail": "addFailure"}


class TempestTest(testtools.TestCase):
    """Has a test of its own, and tells the result of each test of the plugin as one of ours."""

    def run(self, result: Any = None) -> Any:
        self._heard: list[dict[str, Any]] = []
        outcome = super().run(result)
        for test in self._heard:
            attributes = {name: test[name] for name in ("details", "timestamps")}
            outcome_of = _OUTCOMES.get(test["status"], "addError")  # such as a test that never ended
            testtools.PlaceHolder(test["id"], outcome=outcome_of, **attributes).run(result)
        return outcome

    def test_as_many_pass_as_with_ironic(self) -> None:
        keystone = self.useFixture(cloud.Keystone())
        neutron = self.useFixture(networking.Neutron(keystone))
        self.useFixture(cloud.Ingot(keystone, tempest.build_options(neutron)))
        plugin = self.useFixture(tempest.Tempest(keystone))
        self._heard = [*plugin.run(), *(_not_run(name, reason) for name, reason in tempest.EXCLUDED.items())]
        by_status = collections.defaultdict(set)
        for test in self._heard:
            by_status[test["status"]].add(test["id"])
        passed = by_status.pop("success", set())
        self.assertEqual({"skip": set(tempest.EXCLUDED)}, dict(by_status))
        self.assertGreaterEqual(len(passed), REFERENCE)


def _not_run(name: str, reason: str) -> dict[str, Any]:
    details = {"reason": content.text_content(reason)}
    return {"id": name, "status": "skip", "details": details, "timestamps": [None, None]}
