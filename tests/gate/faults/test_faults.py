"""The short version of the fault suite: every kind of fault once, while six machines are deployed and cleaned."""

from typing import Any, ClassVar

import testtools

from tests.gate.faults import scenarios


class _Suffering:
    """The test; the databases, and the seeds of the schedules, are the classes below."""

    backend: ClassVar[str]
    seed: ClassVar[int]

    def test_nothing_is_lost_stuck_or_doubled(self: Any) -> None:
        outcome = scenarios.storm(self, self.backend, scenarios.SHORT, self.seed)

        broken = {name: found for name, found in outcome.broken.items() if found}
        self.assertEqual({}, broken, f"{outcome.facts}\n{outcome.lab.logs()}" if broken else "")
        self.assertEqual(set(scenarios.SHORT.weights), {fault.kind for fault in outcome.faults})


class TestOnMariaDB(_Suffering, testtools.TestCase):
    backend = "mysql"
    seed = 1


class TestOnPostgreSQL(_Suffering, testtools.TestCase):
    backend = "postgresql"
    seed = 2
