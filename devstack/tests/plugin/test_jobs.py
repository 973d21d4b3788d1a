"""The samples of jobs for Zuul."""

import pathlib
from typing import Any

import testtools
import yaml

SAMPLES = pathlib.Path(__file__).parents[2] / "zuul" / "jobs.yaml"

_OF_THE_PARENT = ("c-api", "g-api", "n-api", "n-cpu", "ovn-controller", "placement-api", "q-svc", "s-proxy")
"""Some of what the job ``devstack`` enables, from which ``devstack-tempest`` comes."""


class SamplesTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        stanzas = yaml.safe_load(SAMPLES.read_text())
        self._jobs: dict[str, dict[str, Any]] = {one["job"]["name"]: one["job"] for one in stanzas if "job" in one}
        (self._project,) = (one["project"] for one in stanzas if "project" in one)

    def test_the_project_runs_jobs_that_there_are(self) -> None:
        for pipeline in ("check", "gate"):
            self.assertLessEqual(set(self._project[pipeline]["jobs"]), set(self._jobs))

    def test_services_of_the_parent_are_switched_off_by_name(self) -> None:
        # Variables of parent and child are merged: ``base`` says nothing of what the parent names.
        services = self._jobs["ingot-devstack-base"]["vars"]["devstack_services"]
        self.assertEqual(dict.fromkeys(_OF_THE_PARENT, False), {name: services.get(name) for name in _OF_THE_PARENT})

    def test_the_upgrade_has_a_host_and_tests_after_it(self) -> None:
        job = self._jobs["ingot-grenade"]
        self.assertIn("nodeset", job)  # its parent has none
        self.assertIs(True, job["vars"]["devstack_services"]["tempest"])  # the parent's playbook ends with tempest
        self.assertIs(False, job["vars"]["grenade_localrc"]["BASE_RUN_SMOKE"])
