"""ironic-tempest-plugin: its environment, its configuration, a run of its API tests."""

import configparser
import os
import pathlib
import subprocess
from typing import Any

import fixtures
import subunit
import testtools

from tests import patience
from tests.gate import cloud, environments, networking

REQUIREMENTS = tuple((pathlib.Path(__file__).parent / "tempest-requirements.txt").read_text().split())
TESTS = "ironic_tempest_plugin.tests.api"
WORKERS = 2

EXCLUDED = {
    f"{TESTS}.admin.test_nodes.TestNodeGraphicalConsole.test_graphical_console_connection": (
        "It looks at a machine's screen through a noVNC proxy, which is a program beside the API, and Ingot has none. "
        "With Ironic 39 it fails where that proxy does not run."
    ),
}
"""Tests that are not run, with the reason. They count as skipped."""

EXCLUDE = ("--exclude-regex", "|".join(EXCLUDED))
"""Words of tempest's command line that leave them out."""

_PATIENCE_S = round(patience.seconds(60))
"""Of the plugin, for what a node does; and of tempest, for one test."""

INTERFACES = {
    "bios": "fake,no-bios",
    "boot": "fake,ipxe",
    "console": "fake,fake-graphical,no-console",
    "deploy": "fake,direct,ramdisk",
    "firmware": "fake,no-firmware",
    "inspect": "fake,no-inspect,agent",
    "management": "fake,noop,ipmitool",
    "network": "noop,flat",
    "power": "fake,ipmitool",
    "raid": "fake,agent,no-raid",
    "rescue": "fake,agent,no-rescue",
    "vendor": "fake,no-vendor",
}
"""What is enabled, by kind; configured in Ingot and in the plugin."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {
        **{f"enabled_{kind}_interfaces": names for kind, names in INTERFACES.items()},
        "default_network_interface": "noop",
    },
    "conductor": {"automated_clean": False},
}


def build_options(neutron: networking.Neutron) -> dict[str, dict[str, Any]]:
    """Return the options of an Ingot that has this Neutron, as the plugin expects it."""
    return {**_OPTIONS, "neutron": neutron.options()["neutron"]}


class Tempest(fixtures.Fixture):
    """A workspace of tempest, with the administrator of a Keystone."""

    def __init__(self, keystone: cloud.Keystone) -> None:
        super().__init__()
        self._keystone = keystone

    def _setUp(self) -> None:
        self._programs = environments.cached("tempest", *REQUIREMENTS)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._environment = {
            "PATH": f"{self._programs}:{os.defpath}",
            "HOME": str(self.directory),
            "TMPDIR": str(self.directory),  # where it locks what is else shared with the gates of other users
            "LC_ALL": "C.UTF-8",
            "NO_PROXY": "*",
            "OS_TEST_TIMEOUT": str(_PATIENCE_S),
        }
        self._workspace = self.directory / "workspace"
        environments.run(self._programs / "tempest", "init", self._workspace, env=self._environment)
        self._config = self._workspace / "etc" / "tempest.conf"
        parser = configparser.RawConfigParser()
        parser.read_dict(self._configuration())
        with self._config.open("w") as file:
            parser.write(file)

    def _configuration(self) -> dict[str, dict[str, Any]]:
        who = cloud.ADMINISTRATOR
        services = ("ironic_inspector", "nova", "glance", "cinder", "swift", "horizon")
        return {
            "DEFAULT": {"log_dir": self._workspace / "logs", "log_file": "tempest.log"},
            "oslo_concurrency": {"lock_path": self._workspace / "lock"},
            "auth": {
                "use_dynamic_credentials": True,
                "create_isolated_networks": False,
                "admin_username": who,
                "admin_password": cloud.PASSWORD,
                "admin_project_name": who,
                "admin_domain_name": "Default",
            },
            "identity": {"uri_v3": self._keystone.url, "auth_version": "v3", "region": cloud.REGION},
            "service_available": {"ironic": True, "neutron": True, **dict.fromkeys(services, False)},
            "enforce_scope": {"ironic": True},
            "validation": {"run_validation": False},
            "compute": {"build_interval": 1},
            "baremetal": {
                "driver": "fake-hardware",
                "max_microversion": "latest",
                "enabled_drivers": "fake-hardware,ipmi",
                "enabled_hardware_types": "fake-hardware,ipmi",
                **{f"enabled_{kind}_interfaces": names for kind, names in INTERFACES.items()},
                "default_rescue_interface": "fake",
                **{f"{wait}_timeout": _PATIENCE_S for wait in ("deploywait", "power", "active", "unprovision")},
            },
        }

    def run(self) -> list[dict[str, Any]]:
        """Run the tests.

        :returns: of each test what :class:`testtools.StreamToDict` tells, with the name that it has in the source.
        """
        command = [str(self._programs / "tempest"), "run", "--subunit", "--regex", TESTS, *EXCLUDE]
        command += ["--config-file", str(self._config), "--concurrency", str(WORKERS)]
        heard: list[dict[str, Any]] = []
        result = testtools.StreamToDict(heard.append)
        result.startTestRun()
        with subprocess.Popen(
            command, cwd=self._workspace, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as process:
            subunit.ByteStreamToStreamResult(process.stdout, non_subunit_name="tempest").run(result)
        result.stopTestRun()
        # The lists of tests that the workers were given are in the stream too.
        return [{**test, "id": test["id"].split("[")[0]} for test in heard if test["status"] != "exists"]
