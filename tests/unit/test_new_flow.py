"""A new flow touches three files: proven by adding one to a copy of the product, as a developer would.

The copy gets the verb ``polish``: states and transitions, the conductor's record of the flow, the API's record of the
verb. Then a process of its own asks for it, has a conductor run it on fake hardware, and sees it refused elsewhere.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import fixtures
import testtools

from ingot.api.web import versions

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("api", "common", "conductor", "db", "drivers", "rpcapi")

EDITS = (
    ("common/states.py", 'VERIFYING = "verifying"\n', 'POLISHING = "polishing"\nPOLISHFAIL = "polish failed"\n'),
    (
        "common/states.py",
        "TRANSITIONS: dict[str, dict[str, str]] = {\n",
        '    POLISHING: {"done": MANAGEABLE, "fail": POLISHFAIL},\n    POLISHFAIL: {"manage": MANAGEABLE},\n',
    ),
    ("common/states.py", "    MANAGEABLE: {", '"polish": POLISHING, '),
    ("common/states.py", "    **dict.fromkeys((INSPECTFAIL, ", "POLISHING, POLISHFAIL, "),
    ("common/states.py", "WORKING = frozenset((", "POLISHING, "),
    ("common/states.py", "FAILED = frozenset((", "POLISHFAIL, "),
    (
        "conductor/flows.py",
        "    for flow in (\n",
        '        Flow(name="polish", title="Polishing", running=states.POLISHING, done_event="done", '
        'first=(_VERIFY_POWER,), advice="Polish it again."),\n',
    ),
    (
        "api/nodes/verbs.py",
        "    for verb in (\n",
        f'        Verb(name="polish", event="polish", since={versions.MAX}, flow="polish", plan="polish", '
        "refuse=(_refuse_in_maintenance,)),\n",
    ),
)
"""File, what stands there, and what is added after it."""

USE = """
import unittest

from ingot.api.web import versions
from ingot.common import states
from ingot.db import nodes
from tests import api_case, conductor_case


class Polish(conductor_case.ConductorCase, api_case.ApiCase):
    def test_runs_from_the_request_to_its_end(self) -> None:
        self.bus.serve("conductor-1", self.conductor.endpoint)
        uuid = self.node()["uuid"]
        url = f"/v1/nodes/{uuid}/states/provision"
        self.assertIn("polish", self.refused(400, "PUT", url, {"target": "polish"}))  # from enroll it leads nowhere
        nodes.set_always(self.db, uuid, {"provision_state": states.MANAGEABLE})
        self.refused(406, "PUT", url, {"target": "polish"}, f"1.{versions.MAX - 1}")
        self.good("PUT", f"/v1/nodes/{uuid}/maintenance", {"reason": "wet"})
        self.assertIn("wet", self.refused(400, "PUT", url, {"target": "polish"}))
        self.good("DELETE", f"/v1/nodes/{uuid}/maintenance")
        plan = self.good("GET", f"/ingot/v1/nodes/{uuid}/plan?flow=polish")
        self.assertEqual(["verify_power"], [step["step"] for step in plan["steps"]])
        self.good("PUT", url, {"target": "polish"})
        node = self.settled(nodes.get(self.db, uuid))
        self.assertEqual((states.MANAGEABLE, None), (node.provision_state, node.last_error))
        ran = [(run.flow, run.step, run.state) for run in self.step_runs(node)]
        self.assertEqual([("polish", "verify_power", "done")], ran)


unittest.main(argv=["polish"])
"""


class NewFlow(testtools.TestCase):
    def test_touches_three_files_and_runs(self) -> None:
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        product = folder / "ingot"
        for package in PACKAGES:
            shutil.copytree(ROOT / package, product / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, after, added in EDITS:
            text = (product / name).read_text()
            self.assertEqual(1, text.count(after), f"{name}: {after}")
            (product / name).write_text(text.replace(after, after + added))
        self.assertEqual(3, len({name for name, _after, _added in EDITS}))
        environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-W", "ignore", "-c", USE]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
