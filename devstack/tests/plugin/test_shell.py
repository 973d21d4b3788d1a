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

    def test_a_strategy_that_clouds_of_devstack_have_no_login_for_is_refused(self) -> None:
        outcome = self.run_shell("configure_ingot", IRONIC_AUTH_STRATEGY="http_basic")
        self.assertEqual(1, outcome.returncode)
        self.assertIn("IRONIC_AUTH_STRATEGY is 'http_basic'", outcome.stderr)


class AccountsTest(PluginCase):
    def test_without_authentication_clients_still_find_the_api_in_the_catalog(self) -> None:
        self.succeed("create_ingot_accounts", IRONIC_AUTH_STRATEGY="noauth")
        url = "http://192.0.2.1/baremetal"
        self.assertEqual([f"baremetal gate {url} {url} {url}"], self.calls("get_or_create_endpoint"))


class CleaningTest(PluginCase):
    def test_a_directory_of_the_system_is_never_removed(self) -> None:
        for directory in ("/", "/opt", "/opt/", "//opt", "opt/stack", "/opt/../etc", ""):
            outcome = self.run_shell(f'remove_ingot_directory "{directory}"')
            self.assertEqual(1, outcome.returncode, directory)
        self.assertEqual([], self.calls("sudo"))

    def test_directories_of_the_plugin_are(self) -> None:
        self.succeed("remove_ingot_directory /etc/ingot")
        self.assertEqual(["rm -rf /etc/ingot"], self.calls("sudo"))


class NovaTest(PluginCase):
    """DevStack's Nova is away; what is asked of it is looked at."""

    services = "key,mysql,rabbit,g-api,n-api,n-cpu,q-svc"

    def prepare(self, **localrc: str) -> list[str]:
        replaced = "\n".join(
            f'{name}() {{ record {name} "$@"; }}'
            for name in ("stop_nova_compute", "start_nova_compute", "ingot_machines")
        )
        self.succeed(f"{replaced}\nprepare_ingot_nova", ENABLED_SERVICES=self.services, **localrc)
        return (self.place / "calls").read_text().splitlines()

    def test_without_its_driver_for_bare_metal_nothing_is_done(self) -> None:
        self.assertEqual([], [line for line in self.prepare() if not line.startswith("define_plugin")])

    def test_ovn_is_started_which_devstack_leaves_to_bare_metal(self) -> None:
        script = "init_ovn() { record init_ovn; }; start_ovn() { record start_ovn; }\nstart_ingot_ovn"
        more = {"ENABLED_SERVICES": f"{self.services},ovn-controller", "Q_AGENT": "ovn"}
        self.succeed(script, **more)
        self.assertEqual([], self.calls("init_ovn"))  # DevStack does it
        self.succeed(script, VIRT_DRIVER="ironic", **more)
        self.assertEqual([""], self.calls("init_ovn"))
        self.assertEqual([""], self.calls("start_ovn"))

    def test_a_flavor_is_one_machine_with_its_traits(self) -> None:
        more = {"IRONIC_DEFAULT_RESOURCE_CLASS": "gold-2", "IRONIC_DEFAULT_TRAITS": "CUSTOM_A CUSTOM_B"}
        self.succeed('openstack() { record openstack "$@"; [[ $4 != show ]]; }\ncreate_ingot_flavor', **more)
        shown, created = self.calls("openstack")
        self.assertEqual("--os-cloud devstack-admin flavor show baremetal", shown)
        resources = "resources:CUSTOM_GOLD_2=1 resources:VCPU=0 resources:MEMORY_MB=0 resources:DISK_GB=0"
        words = [*resources.split(), "trait:CUSTOM_A=required", "trait:CUSTOM_B=required"]
        expected = " ".join(f"--property {word}" for word in words)
        size = "--vcpus 1 --ram 3072 --disk 10"
        self.assertEqual(f"--os-cloud devstack-admin flavor create {size} {expected} baremetal", created)

    def test_the_compute_service_begins_anew_before_machines_are_looked_for_in_placement(self) -> None:
        calls = [line.split(" ")[0] for line in self.prepare(VIRT_DRIVER="ironic")]
        self.assertEqual(["stop_nova_compute", "start_nova_compute", "openstack", "ingot_machines"], calls[-4:])
        tracked = "track --placement devstack-admin --resource-class baremetal --timeout 600 --trait CUSTOM_GOLD"
        self.assertEqual([tracked], self.calls("ingot_machines"))
