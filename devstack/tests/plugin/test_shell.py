"""Functions of the plugin that need no services, in a shell with what DevStack promises."""

import pathlib
import subprocess
import sys

import fixtures
import testtools

from ingot.common.conf import start
from ingot.common.conf.ironic import Verdict

DEVSTACK = pathlib.Path(__file__).parents[2]
CONTRACT = DEVSTACK.parent / "tests" / "gate" / "devstack" / "contract.sh"

# Nothing is changed but files of the test's own: what would be is recorded.
_BEFORE = f"""
set -o errexit
source {CONTRACT}
sudo() {{ record sudo "$@"; }}
openstack() {{ record openstack "$@"; }}
source {DEVSTACK}/settings
source {DEVSTACK}/plugin.sh none
mkdir -p "$IRONIC_CONF_DIR"
"""


class PluginCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.place / "calls").touch()

    def run_shell(self, script: str, **localrc: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PLACE": str(self.place),
            "PROGRAMS": str(pathlib.Path(sys.executable).parent),
            "PYTHON": sys.executable,
            "CLIENT": str(self.place),
            "CALLS": str(self.place / "calls"),
            "HOST_IP": "192.0.2.1",
            "KEYSTONE_SERVICE_URI": "http://192.0.2.1/identity",
            "SERVICE_PASSWORD": "secret",
            "MYSQL_URL": "mysql+pymysql://root:secret@127.0.0.1/?charset=utf8",
            "RABBIT_URL": "rabbit://stack:secret@192.0.2.1:5672/",
            "IRONIC_CONF_DIR": str(self.place / "etc"),
            **localrc,
        }
        command = ["bash", "-c", _BEFORE + script]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)

    def succeed(self, script: str, **localrc: str) -> str:
        outcome = self.run_shell(script, **localrc)
        self.assertEqual(0, outcome.returncode, outcome.stdout + outcome.stderr)
        return outcome.stdout

    def calls(self, function: str) -> list[str]:
        lines = (self.place / "calls").read_text().splitlines()
        return [line.removeprefix(function).strip() for line in lines if line.split(" ")[0] == function]


class ConfigurationTest(PluginCase):
    def configure(self, **localrc: str) -> start.Start:
        self.succeed("configure_ingot", **localrc)
        return start.Start("ingot-api", [], [str(self.place / "etc" / "ingot.conf")], logs=False)

    def test_ingot_uses_all_that_is_written_for_it(self) -> None:
        found = self.configure(ENABLED_SERVICES="key,mysql,rabbit,g-api,n-api,n-cpu,q-svc,c-api")
        self.assertEqual([], found.refusals.messages)
        unused = [one for one in found.list_findings() if one.verdict not in (Verdict.RENAMED, Verdict.IGNORED)]
        self.assertEqual([], [str(one) for one in unused])

    def test_an_address_of_ipv6_has_no_brackets(self) -> None:
        found = self.configure(SERVICE_LISTEN_ADDRESS="[::]")
        self.assertEqual([], found.refusals.messages)
        self.assertEqual("::", found.conf.api.host_ip)

    def test_a_strategy_by_which_nobody_could_enroll_is_refused(self) -> None:
        outcome = self.run_shell("configure_ingot", IRONIC_AUTH_STRATEGY="http_basic")
        self.assertEqual(1, outcome.returncode)
        self.assertIn("IRONIC_AUTH_STRATEGY is 'http_basic'", outcome.stderr)


class AccountsTest(PluginCase):
    def test_without_authentication_clients_still_find_the_api_in_the_catalog(self) -> None:
        replaced = "create_service_user() { :; }; get_or_create_service() { :; }; get_or_create_endpoint() { record endpoint $3; }"
        self.succeed(f"{replaced}\ncreate_ingot_accounts", IRONIC_AUTH_STRATEGY="noauth")
        self.assertEqual(["http://192.0.2.1/baremetal"], self.calls("endpoint"))


class CleaningTest(PluginCase):
    def test_a_directory_of_the_system_is_never_removed(self) -> None:
        for directory in ("/", "/opt", "/opt/", "//opt", "opt/stack", "/opt/../etc", ""):
            outcome = self.run_shell(f'remove_ingot_directory "{directory}"')
            self.assertEqual(1, outcome.returncode, directory)
        self.assertEqual([], self.calls("sudo"))

    def test_directories_of_the_plugin_are(self) -> None:
        self.succeed("remove_ingot_directory /etc/ingot")
        self.assertEqual(["rm -rf /etc/ingot"], self.calls("sudo"))
