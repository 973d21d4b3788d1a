"""A site moves from real Ironic to Ingot and back, by the commands of the page that says how.

Real Ironic of the package index enrolls and deploys a machine of the rack; a fleet of nodes in all states is written by
its own objects. What openstacksdk shows of both sides is compared field by field.
"""

import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fixtures
import testtools

from tests import ironic_database
from tests.functional.deployment import lab
from tests.gate import client, environments
from tests.gate.moving import differences, views
from tests.gate.moving.site import PATIENCE, Site
from tests.gate.pages import shown, typed
from tests.gate.pages.shell import Shell

PAGE = environments.ROOT / "doc" / "source" / "operator" / "move-from-ironic.rst"
NODES = 1000
SAMPLE = 60
"""Nodes whose BIOS settings, firmware, history, inventory and traits are compared: two in each state."""

_PLACES = {
    "/etc/ironic/ironic.conf": "$IRONIC_CONF",
    "/etc/ingot/ingot.conf": "$INGOT_CONF",
    "report.json": "$HOME/report.json",
    "runuser -u ingot -- ": "",
}

MOST_MIB = 300
"""Memory that the import may take, whatever the number of nodes: rows go through it in batches."""


class TestMoving(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.site = self.useFixture(Site())
        self.began = time.monotonic()
        self.views: dict[str, views.View] = {}

    def say(self, what: str) -> None:
        """Print what has been reached, and when."""
        sys.stderr.write(f"moving: {time.monotonic() - self.began:5.1f} s: {what}\n")

    def test_a_site_moves_there_and_back(self) -> None:
        self.site.run("ironic", "ironic-dbsync", "create_schema")
        self.site.start_ironic()
        self.waiting = self.site.enroll(1)
        self.site.begin_to_wait(1, self.waiting)
        self.uuid = self.site.enroll(0)
        self.site.user.provision(self.uuid, "provide")
        self.site.reach(self.uuid, "available")
        self.site.deploy(self.uuid)
        self.say("a machine was deployed by Ironic, the agent of another one waits")
        self.follow(
            {
                "systemctl stop ironic-api ironic-conductor": self.leave_ironic,
                "systemctl start ingot-conductor ingot-api": self.arrive,
                "systemctl stop ingot-api ingot-conductor": self.leave_ingot,
                "systemctl start ironic-conductor ironic-api": self.come_back,
            }
        )

    def follow(self, acts: Mapping[str, Callable[[], None]]) -> None:
        """Type all commands of the page; what a supervisor does is done by methods."""
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        left = dict(acts)
        with Shell(place, self.variables(place)) as shell:
            for command in (one for section in typed.read(PAGE.read_text()) for one in section.commands):
                if command.hidden:  # for the server of the page's own test
                    continue
                if act := left.pop(command.text, None):
                    act()
                    continue
                status, printed = shell.run(self.place(command.text))
                self.assertEqual(command.status, status, f"{command.text}\n{printed}")
                self.assertIsNone(shown.find_difference(command.shown, printed), f"{command.text}\n{printed}")
                self.say(f"{command.text.split(' --')[0]}: {printed.splitlines()[-1][:100]}")
        self.assertEqual({}, left)

    def place(self, command: str) -> str:
        """Return a command of the page as it is typed here: files are elsewhere, and there is no user ``ingot``."""
        for shown_there, here in _PLACES.items():
            command = command.replace(shown_there, here)
        return command

    def variables(self, home: pathlib.Path) -> dict[str, str]:
        """Return what the page's shell finds: its commands, and where the files are."""
        programs = [self.useFixture(client.warm_programs()).directory, client.programs(), lab.HERE]
        return {
            "HOME": str(home),
            "INGOT_CONF": str(self.site.configs["ingot"]),
            "IRONIC_CONF": str(self.site.configs["ironic"]),
            "LC_ALL": "C.UTF-8",
            "NO_PROXY": "*",
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": self.site.url,
            "PATH": ":".join(map(str, (*programs, os.environ["PATH"]))),
        }

    def leave_ironic(self) -> None:
        """Stop Ironic; then write the fleet, which a conductor would begin to work on, and look at all of it."""
        self.site.stop()
        self.assertEqual(self.site.describe_schema(), ironic_database.list_tables())
        self.site.fill(NODES)
        # The machine runs. What a conductor of Ingot believed of this would be forced upon it.
        self.site.execute("ironic", "UPDATE nodes SET power_state = 'power off' WHERE uuid = :uuid", uuid=self.uuid)
        self.look("before", self.site.start_ironic)
        self.say(f"{NODES} nodes in all states were written by Ironic's objects")
        source = str(self.site.configs["ironic"])
        outcome = self.site.run("ingot", "ingot-dbsync", "import-ironic", "--from", source, "--dry-run")
        self.say(f"dry run: {outcome.seconds:.1f} s with the start of the program, {outcome.memory_mib:.0f} MiB")
        self.assertLess(outcome.memory_mib, MOST_MIB)

    def arrive(self) -> None:
        """Compare what users see; start Ingot, which leaves the machine alone."""
        source = str(self.site.configs["ironic"])
        replace = ("--replace", "network_interface=flat:noop")
        outcome = self.site.run("ingot", "ingot-dbsync", "import-ironic", "--from", source, *replace)
        self.assertIn("nothing was written", outcome.output)
        self.look("there", self.site.start_ingot)
        self.check("before", "there", differences.THERE)
        self.site.start_ingot()
        found = lambda: self.site.user.node(self.uuid)["power_state"] == "power on"  # noqa: E731
        lab.eventually(found, "the power state is read", PATIENCE, self.site.logs)
        self.assertEqual("os", self.site.machine_state())
        self.say("the machine runs on, under Ingot")
        node = self.site.user.node(self.waiting)
        self.assertEqual(("clean failed", "agent"), (node["provision_state"], self.site.machine_state(1)))
        before = node["driver_internal_info"]["agent_last_heartbeat"]
        heard = lambda: self.last_heartbeat() > before  # noqa: E731
        lab.eventually(heard, "the waiting agent is heard by Ingot", PATIENCE, self.site.logs)
        self.say("the agent that waits is heard by Ingot, with the token that Ironic gave it")

    def last_heartbeat(self) -> str:
        info = self.site.user.node(self.waiting)["driver_internal_info"]
        return str(info["agent_last_heartbeat"]) if "agent_url" in info else ""

    def leave_ingot(self) -> None:
        """Undeploy the machine, stop Ingot, and look at what it leaves."""
        self.site.user.provision(self.uuid, "deleted")
        self.site.reach(self.uuid, "available")
        self.assertEqual("off", self.site.machine_state())
        self.say("the machine was undeployed by Ingot")
        self.site.rack.control.power(self.site.rack.machines[1]["name"], "off")  # or it calls while views are compared
        self.site.stop()
        self.look("here", self.site.start_ingot)

    def come_back(self) -> None:
        """Compare what users see again; start Ironic, which deploys the machine."""
        self.look("back", self.site.start_ironic)
        self.check("here", "back", differences.BACK)
        self.site.start_ironic()
        self.assertEqual("available", self.site.user.node(self.uuid)["provision_state"])
        self.site.deploy(self.uuid)
        self.say("the machine was deployed by Ironic again")
        self.site.stop()

    def look(self, name: str, start: Callable[[bool], None]) -> None:
        """Keep what an API without a conductor shows, so that nothing changes meanwhile."""
        start(False)
        listed = self.site.user.get(f"/v1/nodes?limit={SAMPLE}")["nodes"]
        self.views[name] = views.look(self.site.url, [node["uuid"] for node in listed])
        self.site.stop()

    def check(self, before: str, after: str, intended: Sequence[views.Difference]) -> None:
        """Compare two views: each difference has its row, and each row its difference."""
        found = list(views.compare(self.views[before], self.views[after]))
        used = set()
        unexpected: list[Any] = []
        for one in found:
            row = next((row for row in intended if row.explains(one)), None)
            if row is None:
                unexpected.append((one.kind, one.ident, one.field, one.before, one.after))
            used.add(row)
        self.assertEqual([], unexpected[:20], json.dumps(unexpected[:20], default=str, indent=1))
        self.assertEqual([], [row.why for row in intended if row not in used])
        rows = sum(map(len, self.views[before].values()))
        self.say(f"{rows} resources compared, {len(found)} differences for {len(intended)} reasons")
