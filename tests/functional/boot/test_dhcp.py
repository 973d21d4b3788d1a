"""ingot-boot with its dnsmasq: what firmware of each kind is answered, and what strangers and accidents change."""

import os
import pathlib
import secrets
import shutil
import signal
import tempfile
from typing import Any

import sqlalchemy as sa
import testtools

from ingot.common import boot_loaders
from ingot.db import models
from tests import database
from tests.functional.boot import network
from tests.functional.boot.network import Client
from tests.functional.deployment import lab

KNOWN, SIGNED, STRANGER = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:99"
API = f"http://{network.ADDRESS}:6385"
LOADERS = {
    0: "undionly.kpxe",
    6: "snponly-i386.efi",
    7: "snponly.efi",
    9: "snponly.efi",
    11: "snponly-arm64.efi",
    16: f"{API}/boot/loaders/ipxe.efi",
    19: f"{API}/boot/loaders/snponly-arm64.efi",
}
"""By the code of option 93 (IANA, RFC 5970)."""

SILENCE_S = 3.0
"""After which a client that gets no answer is taken for one that is ignored."""


class _BootCase(testtools.TestCase):
    options = ""
    ranges = "10.78.0.50-10.78.0.99/24"

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid():
            self.skipTest("only root has network namespaces of its own")
        self.useFixture(network.Network())
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="ingot-boot-"))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.place.chmod(0o755)  # dnsmasq runs as a user of its own
        for file in boot_loaders.FILES.values():
            (self.place / "lib" / file.path).parent.mkdir(parents=True, exist_ok=True)
            (self.place / "lib" / file.path).write_bytes(b"loader")
        self.db = self.useFixture(database.DatabaseFixture("sqlite")).db
        node = database.make_node(self.db, boot_interface="ipxe")
        database.make_port(self.db, node, address=KNOWN)
        signed = database.make_node(self.db, boot_interface="pxe")
        database.make_port(self.db, signed, address=SIGNED)
        self.node = node
        self.boot = lab.Process(["ingot-boot", "--config-file", self.write()], self.place / "boot.log")
        self.addCleanup(self.boot.stop)
        self.start()

    def write(self, more: str = "") -> str:
        config = self.place / "ingot.conf"
        config.write_text(
            f"""[DEFAULT]
my_ip = {network.ADDRESS}
state_path = {self.place}
[database]
connection = {self.db.engine.url.render_as_string(hide_password=False)}
[deploy]
signed_loader_path = {self.place / "lib"}
[boot_services]
interfaces = {network.CARD}
dhcp_ranges = rack={self.ranges}
ipxe_path = {self.place / "lib"}
refresh_interval = 1
max_leases = 20
{self.options}
{more}
"""
        )
        return str(config)

    def start(self) -> None:
        self.boot.start()
        self.wait_for("DHCP, sockets bound")

    def wait_for(self, text: str, times: int = 1) -> None:
        lab.eventually(lambda: self.log().count(text) >= times, f"{text!r} is logged", lab.PATIENCE, self.log)

    def log(self) -> str:
        return self.boot.log.read_text(errors="replace")

    def dnsmasq(self) -> int:
        """Return the process id of dnsmasq."""
        return int(self.log().rpartition("dnsmasq runs as process ")[2].split()[0])

    def answered(self, mac: str, architecture: int = 7, **more: Any) -> str | None:
        """Return what a machine is to boot; None: it gets no answer."""
        reply = Client(mac, architecture, **more).ask(SILENCE_S)
        return None if reply is None else reply.file


class Answers(_BootCase):
    def test_firmware_of_each_kind_gets_its_loader_and_ipxe_the_first_script(self) -> None:
        for code, expected in LOADERS.items():
            vendor = "HTTPClient" if "http" in expected else "PXEClient"
            reply = Client(KNOWN, code, vendor).ask()
            assert reply is not None
            self.assertEqual((network.ACK, expected), (reply.kind, reply.file), code)
            self.assertTrue(reply.address.startswith("10.78.0."))
            # A firmware that boots by HTTP takes no answer of another class.
            self.assertEqual(vendor == "HTTPClient", reply.options.get(60, b"").startswith(b"HTTPClient"), code)
            self.assertNotIn(3, reply.options)
            self.assertNotIn(6, reply.options)
            self.assertEqual(f"{API}/boot.ipxe", self.answered(KNOWN, code, user_class="iPXE"))
        self.assertEqual("bootx64.efi", self.answered(SIGNED))
        self.assertEqual("undionly.kpxe", self.answered(SIGNED, 0))

    def test_strangers_get_no_answer_and_nodes_one_as_soon_as_they_are_enrolled(self) -> None:
        self.assertIsNone(self.answered(STRANGER))
        known = f"read {self.place / 'boot' / 'machines'}"
        before = self.log().count(known)
        database.make_port(self.db, self.node, address=STRANGER)
        self.wait_for(known, times=before + 1)
        self.assertEqual("snponly.efi", self.answered(STRANGER))
        ports = models.table(models.Port)
        self.db.write(sa.delete(ports).where(ports.c.address == STRANGER))
        self.wait_for(known, times=before + 2)
        self.assertIsNone(self.answered(STRANGER))

    def test_noise_changes_nothing(self) -> None:
        for length in (*range(0, 300, 7), 1200):
            network.send_raw(secrets.token_bytes(length))
            network.send_raw(bytes(236) + b"\x63\x82\x53\x63" + secrets.token_bytes(length))
        before = self.dnsmasq()
        self.assertEqual("snponly.efi", self.answered(KNOWN))
        self.assertEqual(before, self.dnsmasq())

    def test_dnsmasq_is_no_root_and_can_do_nothing_but_dhcp(self) -> None:
        status = pathlib.Path(f"/proc/{self.dnsmasq()}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertNotIn("0", facts["Uid"].split())
        self.assertEqual({"0000000000003400"}, {facts[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")})
        self.assertEqual("1", facts["NoNewPrivs"])


class Accidents(_BootCase):
    def test_a_dnsmasq_that_is_killed_is_started_again_and_none_outlives_its_command(self) -> None:
        first = self.dnsmasq()
        os.kill(first, signal.SIGKILL)
        self.wait_for("dnsmasq runs as process", times=2)
        second = self.dnsmasq()
        self.assertNotEqual(first, second)
        self.assertEqual("snponly.efi", Client(KNOWN, 7).ask().file)  # type: ignore[union-attr]
        self.boot.stop(signal.SIGKILL)
        lab.eventually(lambda: not pathlib.Path(f"/proc/{second}").exists(), "dnsmasq ends", lab.PATIENCE, self.log)

    def test_without_a_database_those_of_before_are_answered(self) -> None:
        self.boot.stop()
        config = self.place / "ingot.conf"
        away = f"sqlite:///{self.place / 'empty.sqlite'}"
        known = self.db.engine.url.render_as_string(hide_password=False)
        config.write_text(config.read_text().replace(known, away))
        self.boot.start()
        self.wait_for("DHCP, sockets bound", times=2)
        self.wait_for("run ingot-dbsync upgrade first")
        self.assertEqual("snponly.efi", self.answered(KNOWN))
        self.assertIsNone(self.answered(STRANGER))
        self.assertEqual(0, self.boot.stop())

    def test_an_orderly_stop_ends_both(self) -> None:
        child = self.dnsmasq()
        self.assertEqual(0, self.boot.stop())
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_options_are_read_again_and_bad_ones_change_nothing(self) -> None:
        self.write("loader = grub")
        self.boot.send(signal.SIGHUP)
        self.wait_for("DHCP, sockets bound", times=2)
        self.assertEqual("bootx64.efi", Client(KNOWN, 7).ask().file)  # type: ignore[union-attr]
        self.write("domain = a b")
        self.boot.send(signal.SIGHUP)
        self.wait_for("DHCP goes on as before")
        self.assertEqual("bootx64.efi", Client(KNOWN, 7).ask().file)  # type: ignore[union-attr]


class Strangers(_BootCase):
    options = "unknown_machines = answer"

    def test_they_cannot_take_more_addresses_than_there_may_be(self) -> None:
        taken = set()
        for number in range(25):
            reply = Client(f"02:00:00:00:00:{number:02x}", 7).ask(SILENCE_S)
            if reply is None or reply.kind != network.ACK:
                break
            taken.add(reply.address)
        self.assertEqual(20, len(taken))


class Beside(_BootCase):
    """Another DHCP server gives the addresses."""

    ranges = "10.78.0.0/24"

    def test_only_what_to_boot_is_added(self) -> None:
        self.assertIsNone(Client(KNOWN).send(network.DISCOVER, SILENCE_S))
        reply = Client(KNOWN, 0).send(network.DISCOVER, 20)
        assert reply is not None
        self.assertEqual(("0.0.0.0", "undionly.kpxe"), (reply.address, reply.file))
        ipxe = Client(KNOWN, 7, user_class="iPXE").send(network.DISCOVER, 20)
        assert ipxe is not None
        self.assertEqual(f"{API}/boot.ipxe", ipxe.file)
        self.assertIsNone(Client(STRANGER, 0).send(network.DISCOVER, SILENCE_S))
