"""The scripts for grenade: a deployed machine outlives that the last release is replaced by this one."""

import pathlib

import testtools

from tests.gate import environments
from tests.gate.devstack import harness

_CONTRACT = pathlib.Path(__file__).parent / "contract.sh"
_SCRIPTS = environments.ROOT / "devstack" / "upgrade"
_OF_DEVSTACK = ("stackrc", "lib/database", "lib/rpc_backend", "lib/apache", "lib/tls", "lib/keystone")

_BOTH_KNOW = {
    "IRONIC_ENABLED_HARDWARE_TYPES": "ipmi,fake-hardware",
    "IRONIC_ENABLED_MANAGEMENT_INTERFACES": "fake,ipmitool,noop",
    "IRONIC_ENABLED_POWER_INTERFACES": "fake,ipmitool",
}
"""What the last release has, too: a conductor does not start with what it does not know."""


class GrenadeTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self._devstack = self.useFixture(harness.DevStack(_BOTH_KNOW, machines=1))
        self._old = self._devstack.place / "old"
        self._grenade = self._devstack.place / "grenade"
        for name in ("grenaderc", "functions"):
            self._write(self._grenade / name)
        for name in ("functions", *_OF_DEVSTACK):
            self._write(self._devstack.place / "devstack" / name)
        self._gather_old_programs()
        # Both are in a shell more than once, and say the same.
        (self._grenade / "functions").write_text(f"source {_CONTRACT}\n")

    def _gather_old_programs(self) -> None:
        """Make a directory with the services of the last release, and with the rack of this one: it is no service."""
        self._old.mkdir()
        old, new = environments.previous_release(), pathlib.Path(self._devstack.variables["PROGRAMS"])
        for name in ("ingot-api", "ingot-conductor", "ingot-dbsync", "ingot-status"):
            (self._old / name).symlink_to(old / name)
        (self._old / "ingot-rack").symlink_to(new / "ingot-rack")

    def _write(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def _run(self, script: str, *words: str) -> str:
        """Run a script as grenade does."""
        devstack = str(self._devstack.place / "devstack")
        variables = {"GRENADE_DIR": str(self._grenade), "SAVE_DIR": str(self._devstack.place / "save")}
        variables |= dict.fromkeys(("TOP_DIR", "BASE_DEVSTACK_DIR", "TARGET_DEVSTACK_DIR"), devstack)
        variables |= {"BASE_DEVSTACK_BRANCH": "stable/old", "TARGET_DEVSTACK_BRANCH": "master"}
        (self._devstack.place / "save").mkdir(exist_ok=True)
        return self._devstack.run_program("bash", _SCRIPTS / script, *words, **variables)

    def test_what_was_there_is_there_after_an_upgrade(self) -> None:
        devstack = self._devstack
        new = devstack.variables["PROGRAMS"]
        devstack.variables["PROGRAMS"] = str(self._old)
        devstack.stack()
        rack = devstack.processes()["ir-rack"]
        self._run("resources.sh", "early_create")
        self._run("resources.sh", "create")
        self._run("resources.sh", "verify", "pre-upgrade")
        self._run("shutdown.sh")
        self.assertEqual({"ir-rack", "ir-files"}, set(devstack.processes()))
        self._run("resources.sh", "verify_noapi", "pre-upgrade")
        devstack.variables["PROGRAMS"] = new
        self._run("upgrade.sh")
        self.assertEqual({"ir-api", "ir-cond", "ir-rack", "ir-files"}, set(devstack.processes()))
        self.assertEqual(rack, devstack.processes()["ir-rack"])
        self.assertTrue((devstack.place / "save" / "etc.ingot" / "ingot.conf").exists())
        self._run("resources.sh", "verify", "post-upgrade")
        self._run("resources.sh", "destroy")
        (node,) = devstack.connect().baremetal.nodes()
        self.assertEqual("available", node.provision_state)

    def test_what_is_gone_is_noticed(self) -> None:
        devstack = self._devstack
        devstack.stack()
        self._run("resources.sh", "create")
        (node,) = devstack.connect().baremetal.nodes()
        devstack.connect().baremetal.set_node_power_state(node, "power off")
        devstack.connect().baremetal.wait_for_node_power_state(node, "power off")
        said = self.assertRaises(AssertionError, self._run, "resources.sh", "verify", "post-upgrade")
        self.assertIn("should be 'power on', but is 'power off'", str(said))
        said = self.assertRaises(AssertionError, self._run, "resources.sh", "verify_noapi", "post-upgrade")
        self.assertIn("what the machine runs should be 'os'", str(said))
