"""The examples for curl in the documents do what the documents say."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ingot.api import server
from ingot.rack import ports
from tests import api_case, patience

DOCUMENTS = Path(__file__).parents[3] / "doc/source"
NODE = "rack1-n07"
TAG = re.compile(r'"\d+\.[0-9a-f]+-[0-9a-f]+"')
PREFIX = 'curl() { command curl --fail-with-body "$@"; }; set -o pipefail\n'
"""Makes curl, which ends well whatever the API answers, fail with a request that is refused."""


def list_commands(page: str) -> Iterator[str]:
    """Yield the commands with curl of a page, each on one line."""
    text = (DOCUMENTS / page).read_text().replace("\\\n", " ")
    yield from re.findall(r"^   \$ (curl .*)$", text, re.MULTILINE)


class Examples(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf.set_override("host_ip", "127.0.0.1", group="api")
        self.conf.set_override("port", ports.tcp(), group="api")
        web = server.Server(self.conf, self.http.application)
        web.start()
        self.addCleanup(web.stop)
        self.address = f"http://127.0.0.1:{self.conf.api.port}"
        self.node(name=NODE)

    def run_command(self, command: str) -> str:
        """Return what a command prints, which must end well."""
        environment = {"API": self.address, "PATH": "/usr/bin:/bin"}
        ended = subprocess.run(
            ["bash", "-c", PREFIX + command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=patience.seconds(60),
            check=False,
        )
        self.assertEqual(0, ended.returncode, f"{command}: {ended.stdout} {ended.stderr}")
        return ended.stdout

    def test_that_of_the_api_guide(self) -> None:
        commands = list(list_commands("api.rst"))
        self.assertEqual(2, len(commands))
        printed = self.run_command(commands[0])
        self.assertRegex(printed, TAG)
        (tag,) = TAG.findall(printed)
        self.assertRegex(commands[1], TAG)
        self.run_command(TAG.sub(tag, commands[1]))
        self.assertEqual({"rack": "1"}, self.good("GET", f"/v1/nodes/{NODE}")["extra"])
        self.assertRaises(AssertionError, self.run_command, TAG.sub(tag, commands[1]))  # the tag is another now

    def test_those_of_maintenance(self) -> None:
        commands = list(list_commands("operator/maintenance.rst"))
        self.assertEqual(3, len(commands))
        printed = [self.run_command(command) for command in commands]
        self.assertIn("fan 3 is replaced", printed[1])
        self.assertIs(False, self.good("GET", f"/v1/nodes/{NODE}")["maintenance"])
