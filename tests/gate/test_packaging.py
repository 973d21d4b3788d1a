"""Ingot as systemd runs it: units on a Debian that has booted, of the image that the container file makes."""

import re
import time
from collections.abc import Callable
from typing import ClassVar

import testtools

from tests import patience
from tests.gate import containers, debian, environments

FILE = "packaging/container/Containerfile"
MOST_EXPOSED = {"ingot.service": 2.0, "ingot-api.service": 2.0, "ingot-conductor.service": 2.0}
MOST_EXPOSED |= {"ingot-boot.service": 2.5, "ingot-dbsync.service": 2.0}
"""By unit, what systemd-analyze may say of its exposure: 0 is none, 10 the most."""

PATIENCE = patience.seconds(60)
SHARED = "/opt/ingot/share/ingot"

TLS = """
mkdir -p /etc/ingot/tls && cd /etc/ingot/tls
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=ca -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ingot -keyout api.key -out api.csr
printf 'subjectAltName = IP:192.0.2.10, IP:127.0.0.1' > api.ext
openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 800 -extfile api.ext -out api.crt
cp ca.crt bmc-ca.crt
"""
"""What the page "TLS" has, in short."""

USERS = "import bcrypt; print('admin:' + bcrypt.hashpw(b'admin', bcrypt.gensalt(4)).decode())"

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

ASK_ALL_THE_TIME = """
for _ in $(seq 100); do
    curl -sS -o /dev/null --max-time 30 http://127.0.0.1:6385/healthcheck || exit 1
    sleep 0.05
done
"""


class Units(testtools.TestCase):
    """One server for all tests; each starts what it needs, and stops it."""

    server: ClassVar[debian.Debian]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        store = cls.enterClassContext(containers.Store())
        store.add_base()
        store.build(environments.ROOT, FILE, debian.wheels(), "localhost/ingot")
        cls.store = store
        cls.server = cls.enterClassContext(debian.Debian(store.mount(store.create("localhost/ingot"))))
        run = cls.server.run
        run("userdel", "ingot")  # on a server, systemd-sysusers makes the user
        for folder in ("systemd/system", "sysusers.d", "tmpfiles.d"):
            run("sh", "-c", f"install -D -m 0644 -t /etc/{folder} {SHARED}/{folder.partition('/')[0]}/*")
        run("systemd-sysusers")
        run("ip", "address", "add", "192.0.2.10/24", "dev", "lo")
        run("sh", "-ec", TLS)
        cls.server.write("/etc/ingot/htpasswd", run("/opt/ingot/bin/python", "-c", USERS))
        run("chown", "-R", "ingot:ingot", "/var/lib/ingot", "/var/log/ingot", "/run/ingot")
        cls.hasten("ingot.service", "ingot-api.service")

    @classmethod
    def hasten(cls, *units: str) -> None:
        """Have stuck services found soon."""
        for unit in units:
            cls.server.write(f"/etc/systemd/system/{unit}.d/soon.conf", "[Service]\nWatchdogSec=6\nRestartSec=1\n")
        cls.server.run("systemctl", "daemon-reload")

    def configure(self, text: str) -> None:
        self.server.write("/etc/ingot/ingot.conf", text)
        self.server.run("systemd-tmpfiles", "--create")

    def start(self, *units: str) -> None:
        """Start units, which are ready then, and stop them after the test."""
        self.addCleanup(self.server.run, "systemctl", "reset-failed")
        self.addCleanup(self.server.run, "systemctl", "stop", *units)
        self.server.run("systemctl", "start", *units, timeout=patience.seconds(120))

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

    def test_what_is_installed_is_valid_and_confined(self) -> None:
        units = sorted(path.name for path in (environments.ROOT / "packaging/systemd").glob("ingot*"))
        self.assertEqual("", self.server.run("systemd-analyze", "verify", *units))
        for unit, most in MOST_EXPOSED.items():
            judged = self.server.run("systemd-analyze", "security", "--no-pager", unit)
            found = re.search(r"Overall exposure level for \S+: ([\d.]+)", judged)
            assert found is not None
            self.assertLessEqual(float(found[1]), most, judged)
        self.assertEqual(set(MOST_EXPOSED), {unit for unit in units if unit.endswith(".service")})

    def test_one_rack(self) -> None:
        self.configure((environments.ROOT / "packaging/examples/one-rack.conf").read_text())
        self.assertEqual("750 root ingot", self.server.run("stat", "--format=%a %U %G", "/etc/ingot").strip())
        self.start("ingot.service")
        ask = ("curl", "-sS", "--cacert", "/etc/ingot/tls/ca.crt", "https://192.0.2.10:6385/healthcheck")
        self.assertEqual(
            {"OK", "conductor: OK", "database: OK", "message bus: OK"}, set(self.server.run(*ask).splitlines())
        )
        refused = self.server.run(*ask[:-1], "-o/dev/null", "-w%{http_code}", "https://192.0.2.10:6385/v1/nodes")
        self.assertEqual("401", refused)
        self.server.run("systemctl", "reload", "ingot.service")
        self.eventually(lambda: "certificate of the API was read again" in self.said("ingot.service"), "it reloads")
        self.assertIn("ingot_", self.server.run("curl", "-sS", "http://127.0.0.1:9638/metrics"))
        before = self.show("ingot.service", "MainPID")
        self.server.run("kill", "-STOP", before)
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
        self.server.run("runuser", "-u", "ingot", "--", "/opt/ingot/bin/ingot-dbsync", "add_key")
        self.start("ingot-dbsync.service", "ingot-api.socket", "ingot-api.service", "ingot-conductor.service")
        self.assertIn("OK", self.server.run("curl", "-sS", "http://127.0.0.1:9648/healthcheck"))
        self._restart_without_a_refusal()
        self._stop_a_worker()
        self._kill_the_conductor()

    def _restart_without_a_refusal(self) -> None:
        """Restart the API while clients ask all the time: their connections wait in the socket of systemd."""
        self.server.write("/root/ask", ASK_ALL_THE_TIME)
        self.server.run("systemd-run", "--unit=clients", "--property=RemainAfterExit=yes", "sh", "/root/ask")
        self.server.run("systemctl", "restart", "ingot-api.service", timeout=PATIENCE)
        self.eventually(lambda: self.show("clients", "SubState") != "running", "clients end")
        self.assertEqual("exited", self.show("clients", "SubState"), self.said("clients"))

    def _stop_a_worker(self) -> None:
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
        self.server.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "ingot-conductor.service")
        self.eventually(lambda: "has died; the others take over" in self.said("ingot-conductor.service"), "it is noted")
        self.eventually(lambda: self.show("ingot-conductor.service", "NRestarts") == "1", "it starts again")
        self.eventually(lambda: self.show("ingot-conductor.service", "SubState") == "running", "it is ready again")
        listed = self.server.run("runuser", "-u", "ingot", "--", "/opt/ingot/bin/ingot-conductor", "list")
        self.assertRegex(listed, "controller-1 .* online")

    def test_the_firewall_lets_this_host_and_no_stranger_in(self) -> None:
        file = f"{SHARED}/nftables/ingot.nft"
        self.server.run("nft", "--check", "--file", file)
        for _twice in range(2):
            self.server.run("nft", "--file", file)
        self.addCleanup(self.server.run, "nft", "delete", "table", "inet", "ingot")
        rules = self.server.run("nft", "list", "table", "inet", "ingot")
        for part in ("policy drop", "tcp dport 6385 accept", "udp dport { 67, 69, 4011 } accept"):
            self.assertIn(part, rules)

    def test_logs_in_files_are_rotated(self) -> None:
        self.server.run("cp", f"{SHARED}/logrotate/ingot", "/etc/logrotate.d/ingot")
        self.server.write("/var/log/ingot/ingot.log", "a line\n", 0o640)
        self.server.run("chown", "ingot:ingot", "/var/log/ingot/ingot.log")
        self.server.run("logrotate", "--force", "/etc/logrotate.d/ingot")
        self.assertEqual("a line\n", self.server.read("/var/log/ingot/ingot.log.1"))
