"""A server that is installed by the guides: what its units do under systemd, and the pages about running it."""

import re
import time
from collections.abc import Callable
from typing import ClassVar

import testtools

from tests import patience
from tests.gate import debian, environments
from tests.gate.pages import shown, typed
from tests.gate.pages.shell import Shell

PAGES = environments.ROOT / "doc/source/operator"
EXAMPLE = environments.ROOT / "packaging/examples/one-rack.conf"
UNITS = environments.ROOT / "packaging/systemd"
MOST_EXPOSED = {
    "ingot.service": 2.0,
    "ingot-api.service": 2.0,
    "ingot-boot.service": 2.5,
    "ingot-conductor.service": 2.0,
    "ingot-dbsync.service": 2.0,
}
"""By unit, what systemd-analyze may say of its exposure: 0 is none, 10 the most."""

PATIENCE = patience.seconds(60)

CONTROLLER = """
[DEFAULT]
host = controller-1
transport_url = fake:/
auth_strategy = http_basic
enabled_hardware_types = redfish
[database]
connection = sqlite:////var/lib/ingot/shared.sqlite
[api]
api_workers = 2
public_endpoint = http://192.0.2.10:6385
[metrics]
conductor_port = 9648
"""
"""As three-controllers.conf, without its servers: an API and a conductor that share a database, and no broker."""

NETWORK_BOOT = """
[boot_services]
interfaces = eth1
dhcp_ranges = rack1=192.0.2.50-192.0.2.250/24
routers = rack1:192.0.2.1
"""

ASK_ALL_THE_TIME = """
for _ in $(seq 60); do
    curl -sS -o /dev/null --max-time 60 http://127.0.0.1:6385/healthcheck || exit 1
    sleep 0.05
done
"""

RACK = """
sed --in-place '/^\\[api\\]/i [conductor]\\nheartbeat_interval = 1\\nheartbeat_timeout = 3\\n' /etc/ingot/ingot.conf
systemctl restart ingot.service || return 1
for name in rack1-u7 rack1-u8; do
    curl -sS --fail -o /dev/null --cacert /etc/ingot/tls/ca.crt --user "admin:$(cat /root/ingot-password)" \
        -H 'X-OpenStack-Ironic-API-Version: latest' -H 'Content-Type: application/json' \
        --data "{\\"driver\\": \\"redfish\\", \\"name\\": \\"$name\\"}" https://192.0.2.10:6385/v1/nodes || return 1
done
sqlite3 /var/lib/ingot/ingot.sqlite "
    UPDATE nodes SET provision_state = 'inspect wait' WHERE name = 'rack1-u8';
    INSERT INTO conductors (hostname, conductor_group, online, heartbeat_at, release, rpc_version, created_at)
        VALUES ('controller-9', '', 0, '2020-01-01 00:00:00', '0.3.0', '1.0', '2020-01-01 00:00:00')"
"""
"""What the page on backups takes for granted: two machines, one of which is being inspected, and a lost conductor."""


class Installed(testtools.TestCase):
    """One server for all tests; each starts what it needs, and stops it."""

    server: ClassVar[debian.Debian]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.server = cls.enterClassContext(debian.Debian())
        cls.server.offer(environments.wheel())
        cls.type("install")
        cls.server.write("/mnt/rack.bash", RACK)
        for unit in ("ingot.service", "ingot-api.service"):  # stuck services are to be found soon
            cls.server.write(f"/etc/systemd/system/{unit}.d/soon.conf", "[Service]\nWatchdogSec=6\nRestartSec=1\n")
        cls.server.run("systemctl", "daemon-reload")
        cls.server.run("systemctl", "disable", "--now", "ingot.service")

    @classmethod
    def type(cls, page: str) -> None:
        """Type those commands of a page, as root, of which it says that they are typed here."""
        place = cls.server.root / "typed" / page
        place.mkdir(parents=True)
        with Shell(place, {"PATH": "/usr/sbin:/usr/bin"}, start=cls.server.enter(), seen_as=f"/typed/{page}") as shell:
            text = (PAGES / f"{page}.rst").read_text()
            for command in typed.read_for(__file__, text):
                status, printed = shell.run(command.text)
                missing = shown.find_difference(command.shown, printed)
                if status != command.status or missing:
                    log = cls.server.ask("journalctl", "--no-pager", "--lines=40")
                    raise AssertionError(f"{page}.rst:{command.line}: {status}, {missing}\n{printed}\n{log}")

    def configure(self, text: str) -> None:
        self.server.write("/etc/ingot/ingot.conf", text)
        self.server.run("systemd-tmpfiles", "--create")

    def start(self, *units: str) -> None:
        """Start units, which are ready then, and stop them after the test."""
        self.addCleanup(self.server.run, "systemctl", "reset-failed")
        self.addCleanup(self.server.run, "systemctl", "stop", *units)
        self.server.run("systemctl", "start", *units, timeout=patience.seconds(120))

    def run_as_service(self, *command: str) -> str:
        return self.server.run("runuser", "-u", "ingot", "--", *command)

    def show(self, unit: str, name: str) -> str:
        return self.server.run("systemctl", "show", unit, f"--property={name}", "--value").strip()

    def said(self, unit: str) -> str:
        """Return what a unit has logged."""
        return self.server.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")

    def eventually(self, check: Callable[[], object], what: str) -> None:
        until = time.monotonic() + PATIENCE
        while not check():
            if time.monotonic() > until:
                raise AssertionError(f"{what}\n{self.server.ask('journalctl', '--no-pager', '--lines=60')}")
            time.sleep(0.2)

    # Pages

    def test_the_page_on_tls(self) -> None:
        files = [f"/etc/ingot/tls/{name}" for name in ("ca.crt", "api.crt", "api.key")]
        self.server.run("rm", *files)  # of the page on installing
        self.type("tls")
        for file in files:
            self.run_as_service("test", "-r", file)

    def test_the_page_on_firewalls(self) -> None:
        self.addCleanup(self.server.run, "nft", "delete", "table", "inet", "ingot")
        self.type("firewall")
        self.server.run("nft", "--file", "/etc/ingot.nft")  # once more

    def test_the_page_on_images_of_the_agent(self) -> None:
        self.server.offer_agent()
        self.type("agent-images")
        self.server.run("test", "-s", "/srv/images/server/initrd.img")

    def test_the_page_on_backups(self) -> None:
        self.configure(EXAMPLE.read_text())
        self.addCleanup(self.server.run, "systemctl", "stop", "ingot.service")
        self.type("backup")

    # Units

    def test_units_are_valid_and_confined(self) -> None:
        units = sorted(path.name for path in UNITS.glob("ingot*"))
        self.assertEqual("", self.server.run("systemd-analyze", "verify", *units))
        for unit, most in MOST_EXPOSED.items():
            judged = self.server.run("systemd-analyze", "security", "--no-pager", unit)
            found = re.search(r"Overall exposure level for \S+: ([\d.]+)", judged)
            assert found is not None
            self.assertLessEqual(float(found[1]), most, judged)
        self.assertEqual(set(MOST_EXPOSED), {unit for unit in units if unit.endswith(".service")})

    def test_one_server(self) -> None:
        self.configure(EXAMPLE.read_text())
        self.assertEqual("750 root ingot", self.server.run("stat", "--format=%a %U %G", "/etc/ingot").strip())
        self.start("ingot.service")
        ask = ("curl", "-sS", "--cacert", "/etc/ingot/tls/ca.crt", "https://192.0.2.10:6385/healthcheck")
        parts = self.server.run(*ask).splitlines()
        self.assertEqual("OK", parts[0])
        self.assertEqual(set(), {"conductor: OK", "database: OK", "message bus: OK"} - set(parts))
        refused = self.server.run(*ask[:-1], "-o/dev/null", "-w%{http_code}", "https://192.0.2.10:6385/v1/nodes")
        self.assertEqual("401", refused)
        self.assertIn("ingot_", self.server.run("curl", "-sS", "http://127.0.0.1:9638/metrics"))
        self.server.run("systemctl", "reload", "ingot.service")
        self.eventually(lambda: "certificate of the API was read again" in self.said("ingot.service"), "it reloads")
        self.server.run("kill", "-STOP", self.show("ingot.service", "MainPID"))
        self.eventually(lambda: self.show("ingot.service", "NRestarts") == "1", "the watchdog ends what is stuck")
        self.eventually(lambda: self.show("ingot.service", "ActiveState") == "active", "it runs again")
        self.server.run("systemctl", "stop", "ingot.service")
        self.assertEqual("success", self.show("ingot.service", "Result"))

    def test_options_to_be_corrected_are_no_reason_to_start_again(self) -> None:
        self.configure("[DEFAULT]\nauth_strategy = no-such\n")
        self.assertRaises(AssertionError, self.start, "ingot.service")
        self.assertEqual(["78", "0"], [self.show("ingot.service", name) for name in ("ExecMainStatus", "NRestarts")])
        self.assertIn("no-such", self.said("ingot.service"))

    def test_a_controller(self) -> None:
        self.configure(CONTROLLER)
        self.run_as_service("ingot-dbsync", "add_key")
        self.start("ingot-dbsync.service", "ingot-api.socket", "ingot-api.service", "ingot-conductor.service")
        self.assertIn("OK", self.server.run("curl", "-sS", "http://127.0.0.1:9648/healthcheck"))
        self._restart_without_a_refusal()
        self._freeze_a_worker()
        self._kill_the_conductor()

    def _restart_without_a_refusal(self) -> None:
        """Restart the API while clients ask all the time: their connections wait in the socket of systemd."""
        self.server.write("/root/ask", ASK_ALL_THE_TIME)
        self.addCleanup(self.server.run, "systemctl", "stop", "clients.service")
        self.server.run("systemd-run", "--unit=clients", "--property=RemainAfterExit=yes", "sh", "/root/ask")
        self.server.run("systemctl", "restart", "ingot-api.service", timeout=PATIENCE)
        self.eventually(lambda: self.show("clients.service", "SubState") != "running", "clients end")
        self.assertEqual("exited", self.show("clients.service", "SubState"), self.said("clients.service"))

    def _freeze_a_worker(self) -> None:
        """Freeze one process of the API: the supervisor replaces it, and the service goes on."""
        supervisor = self.show("ingot-api.service", "MainPID")
        worker, *others = self.server.run("pgrep", "--parent", supervisor).split()
        self.assertEqual(1, len(others))
        self.server.run("kill", "-STOP", worker)
        self.eventually(lambda: "has sent no keepalive" in self.said("ingot-api.service"), "it is killed")
        self.eventually(lambda: len(self.server.ask("pgrep", "--parent", supervisor).split()) == 2, "it is replaced")
        self.assertEqual(supervisor, self.show("ingot-api.service", "MainPID"))

    def _kill_the_conductor(self) -> None:
        """Kill the conductor: its witness tells the others before systemd starts another one."""
        unit = "ingot-conductor.service"
        self.server.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
        self.eventually(lambda: "has died; the others take over" in self.said(unit), "its witness notes the death")
        self.eventually(lambda: self.show(unit, "NRestarts") == "1", "it starts again")
        self.eventually(lambda: self.show(unit, "SubState") == "running", "it is ready again")
        self.assertRegex(self.run_as_service("ingot-conductor", "list"), r"controller-1 .*\bonline")

    def test_the_boot_services(self) -> None:
        self.configure(f"{EXAMPLE.read_text()}\n{NETWORK_BOOT}")
        self.server.run("ip", "link", "add", "eth1", "type", "bridge")
        self.addCleanup(self.server.run, "ip", "link", "delete", "eth1")
        self.server.run("ip", "link", "set", "eth1", "up")
        self.start("ingot.service")
        self.addCleanup(self.server.run, "systemctl", "disable", "--now", "ingot-boot.service")
        self.type("boot-services")
        (dnsmasq,) = self.server.run("pgrep", "dnsmasq").split()
        status = self.server.run("cat", f"/proc/{dnsmasq}/status")
        self.assertRegex(status, r"Uid:\s+(?!0\b)")
        self.assertRegex(status, r"CapEff:\s+0000000000003400\b")
        self.assertRegex(self.server.run("ss", "--udp", "--listening", "--numeric"), r":67\b")

    def test_logs_in_files_are_rotated(self) -> None:
        self.server.run("cp", "/opt/ingot/share/ingot/logrotate/ingot", "/etc/logrotate.d/ingot")
        self.server.write("/var/log/ingot/ingot.log", "a line\n", 0o640)
        self.server.run("chown", "ingot:ingot", "/var/log/ingot/ingot.log")
        self.server.run("logrotate", "--force", "/etc/logrotate.d/ingot")
        self.assertEqual("a line\n", self.server.read("/var/log/ingot/ingot.log.1"))
