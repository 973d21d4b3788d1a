"""The command ingot-boot: what it refuses, what it prints, and how it keeps its child running."""

import io
import pathlib
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import fixtures
import testtools

from ingot.boot import server, settings
from ingot.boot.cmd import boot
from ingot.common import boot_loaders, errors
from tests import command_process, conductor_case
from tests.unit.boot.test_settings import configuration


class CommandTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(command_process.CommandProcess())
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_command(self, *arguments: str, options: str = "") -> tuple[int, str]:
        """Return the exit code, and what is printed."""
        config = self.place / "ingot.conf"
        config.write_text(f"[DEFAULT]\nmy_ip = 10.1.0.1\nstate_path = {self.place}\n[boot_services]\n{options}\n")
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = boot.main(["--config-file", str(config), *arguments])
        return code, said.getvalue()

    def test_lines_for_other_servers_need_no_options_of_its_own(self) -> None:
        for name in ("dnsmasq", "kea", "dhcpd"):
            code, text = self.run_command("print", name)
            self.assertEqual(0, code)
            self.assertIn("http://10.1.0.1:6385/boot.ipxe", text)

    def test_all_that_is_wrong_is_one_message(self) -> None:
        code, text = self.run_command("check", options="routers = x:10.1.0.1")
        self.assertEqual(78, code)
        for name in ("interfaces is not set", "dhcp_ranges is not set", "no network 'x'"):
            self.assertIn(name, text)
        self.assertNotIn("Traceback", text)

    def test_what_dnsmasq_refuses_leaves_the_files_of_the_service(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.boot.server.build_command", lambda _found: ["false"]))
        self.useFixture(fixtures.MonkeyPatch("ingot.common.boot_loaders.find", lambda *_others: {}))
        own = self.place / "boot"
        own.mkdir()
        (own / "dnsmasq.conf").write_text("as it was")
        code, text = self.run_command("run", options="interfaces = lo\ndhcp_ranges = 10.1.0.0/24\nuser = root")
        self.assertEqual(78, code)
        self.assertIn("dnsmasq refuses", text)
        self.assertEqual(["dnsmasq.conf"], [path.name for path in own.iterdir()])
        self.assertEqual("as it was", (own / "dnsmasq.conf").read_text())

    def test_missing_loaders_name_their_package(self) -> None:
        options = f"interfaces = lo\ndhcp_ranges = 10.1.0.0/24\nipxe_path = {self.place}"
        code, text = self.run_command("check", options=options)
        self.assertEqual(78, code)
        self.assertIn("Install Debian's ipxe, or see [boot_services] ipxe_path.", text)


class PreparingTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self, **options: Any) -> settings.Settings:
        return settings.read(configuration(directory=str(self.place / "boot"), user="root", **options))

    def test_a_host_without_dnsmasq_says_what_to_install(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("shutil.which", lambda name, path: None))
        refusal = self.assertRaises(errors.ConfigurationError, server.build_command, self.read())
        self.assertIn("install Debian's dnsmasq-base, util-linux", refusal.message)

    def test_a_directory_that_cannot_be_made_is_named(self) -> None:
        (self.place / "boot").write_text("a file")
        refusal = self.assertRaises(errors.ConfigurationError, server.prepare, self.read(), {})
        self.assertIn("[boot_services] directory", refusal.message)

    def test_files_are_there_for_the_user_of_dnsmasq(self) -> None:
        loader = self.place / "snponly.efi"
        loader.write_bytes(b"MZ")
        found = self.read()
        server.prepare(found, {"snponly.efi": loader})
        self.assertEqual(b"MZ", (found.tftp_root / "snponly.efi").read_bytes())
        self.assertIn("(http,10.1.0.1:6385)/boot/grub/", (found.tftp_root / "grub" / "grub.cfg").read_text())
        another = self.read()._replace(api="http://lb/baremetal")
        server.prepare(another, {})
        self.assertIn("(http,lb)/baremetal/boot/grub/", (found.tftp_root / "grub" / "grub.cfg").read_text())
        for path in (found.directory, found.tftp_root, found.tftp_root / "grub"):
            self.assertEqual(0o755, path.stat().st_mode & 0o777)
        self.assertEqual(0o644, (found.tftp_root / "snponly.efi").stat().st_mode & 0o777)

    def test_leases_are_the_user_s_of_now_and_links_lead_nowhere(self) -> None:
        owners: list[tuple[pathlib.Path, bool]] = []
        self.useFixture(fixtures.MonkeyPatch("os.geteuid", lambda: 0))
        self.useFixture(
            fixtures.MonkeyPatch(
                "os.chown", lambda path, *_ids, follow_symlinks: owners.append((path, follow_symlinks))
            )
        )
        leases = self.read().directory / "leases"
        leases.mkdir(parents=True)
        (leases / "dnsmasq.leases").symlink_to("/etc/shadow")
        server.prepare(self.read(), {})
        self.assertEqual([(leases, False), (leases / "dnsmasq.leases", False)], owners)

    def test_a_check_that_cannot_end_or_start_is_a_refusal(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.boot.server._PATIENCE", 0.01))
        for command in (["sh", "-c", "sleep 60"], ["/no/such/program"]):
            refusal = self.assertRaises(errors.ConfigurationError, server.check, command)
            self.assertIn("cannot check", refusal.message)


class ServerTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.logs = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch("ingot.boot.server._FIRST_PAUSE", 0.01))

    def start(self, script: str) -> server.Server:
        running = server.Server(["sh", "-c", script])
        running.start()
        self.addCleanup(running.stop)
        return running

    def wait_for(self, text: str, times: int = 1) -> None:
        conductor_case.eventually(lambda: self.logs.output.count(text) >= times, f"{text!r} is logged")

    def test_what_ends_is_started_again_after_a_pause(self) -> None:
        self.start("exit 3")
        self.wait_for("dnsmasq has ended with status 3", times=3)

    def test_what_cannot_be_started_is_tried_again(self) -> None:
        running = server.Server(["/no/such/program"])
        running.start()
        self.addCleanup(running.stop)
        self.wait_for("no start: [Errno 2] No such file or directory: '/no/such/program'", times=3)

    def test_what_machines_have_written_is_no_line_of_the_log(self) -> None:
        self.start("printf 'a\\033[31mb\\nc' >&2; exec sleep 60")
        self.wait_for("a?[31mb")

    def test_a_stop_ends_the_child_and_starts_no_other(self) -> None:
        running = self.start("echo up >&2; exec sleep 60")
        self.wait_for("up")
        began = time.monotonic()
        running.stop()
        self.assertLess(time.monotonic() - began, conductor_case.PATIENCE)
        self.assertEqual(1, self.logs.output.count("runs as process"))

    def test_a_restart_needs_no_pause(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.boot.server._FIRST_PAUSE", 3600))
        running = self.start("echo up >&2; exec sleep 60")
        self.wait_for("up")
        running.restart(["sh", "-c", "echo another >&2; exec sleep 60"])
        self.wait_for("another")
        self.assertEqual(2, self.logs.output.count("runs as process"))
        self.assertNotIn("it is started again", self.logs.output)

    def test_a_restart_ends_a_pause_and_hides_no_later_end(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.boot.server._FIRST_PAUSE", 3600))
        running = self.start("exit 3")
        self.wait_for("it is started again in 3600 s")
        running.restart(["sh", "-c", "echo another >&2; exit 4"])
        self.wait_for("another")
        self.wait_for("dnsmasq has ended with status 4")


class TableTest(testtools.TestCase):
    def test_each_loader_of_a_client_is_a_file_of_a_package(self) -> None:
        codes = [code for client in boot_loaders.CLIENTS for code in client.codes]
        self.assertEqual(len(codes), len(set(codes)))
        for client in boot_loaders.CLIENTS:
            self.assertLessEqual(set(client.files.values()), set(boot_loaders.FILES))
            self.assertEqual(client.file(boot_loaders.IPXE), client.file("no such chain"))
