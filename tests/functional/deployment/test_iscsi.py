"""The conductor writes to disks that agents export: the target is tgtd, what writes is qemu-img."""

import contextlib
import http.server
import pathlib
import threading
import time
from typing import Any

import psutil
import testtools

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran


class SlowServer(http.server.ThreadingHTTPServer):
    """Has one file; sends the beginning, and the rest when it may.

    :ivar begun: whether it is being read. :ivar may: when set, the rest follows.
    """

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        self.begun, self.may = threading.Event(), threading.Event()
        begun, may = self.begun, self.may

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                half = len(content) // 2
                self.wfile.write(content[:half])
                begun.set()
                may.wait(120)
                with contextlib.suppress(OSError):
                    self.wfile.write(content[half:])

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/image.raw"


class IscsiTest(testtools.TestCase):
    def bench(self, portal_port: int = 0, **options: Any) -> tuple[lab.Lab, str]:
        own = {
            "DEFAULT": {"enabled_deploy_interfaces": "direct,iscsi"},
            "deploy": {"url_denied_networks": ""},  # the image is on this host
            "iscsi": {"portal_port": portal_port or ports.tcp(), **options},
        }
        bench = self.useFixture(lab.Lab(options=own))
        uuid = bench.enroll(deploy_interface="iscsi", automated_clean=False)
        bench.make_available(uuid)
        return bench, uuid

    def writers(self, bench: lab.Lab) -> list[psutil.Process]:
        """Return the processes that write for a lab, and those that guard them; others write for other tests."""
        found: list[psutil.Process] = []
        for guard in psutil.process_iter(["cmdline"]):
            words = " ".join(guard.info["cmdline"] or ())
            if "disk_writer" in words and str(bench.directory) in words:
                with contextlib.suppress(psutil.NoSuchProcess):
                    found += [guard, *guard.children()]
        return found

    def runs(self, process: psutil.Process) -> bool:
        """Return whether a process runs: one that has ended may still be listed."""
        try:
            return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def left(self, bench: lab.Lab) -> list[pathlib.Path]:
        return [path for path in bench.directory.glob("**/images/*/*") if path.is_dir()]

    def test_the_conductor_writes_the_image_and_the_agent_adds_the_config_drive(self) -> None:
        bench, uuid = self.bench()
        bench.set_image(uuid)
        bench.user.provision(uuid, "active", configdrive={"meta_data": {"uuid": uuid}})
        bench.reach(uuid, "active")
        self.assertEqual(CORE, ran(bench.step_runs(uuid)))
        self.assertTrue(bench.holds_image(0))
        self.assertIn(uuid.encode(), bench.config_drive(0))
        commands = [one["command"] for one in bench.rack.control.machine("machine-0")["commands"]]
        self.assertIn("iscsi.start_iscsi_target", commands)
        self.assertNotIn("standby.prepare_image", commands)
        self.assertEqual(([], []), (self.writers(bench), self.left(bench)))

    def test_a_conductor_that_is_killed_while_it_writes_takes_the_writer_along_and_begins_again(self) -> None:
        bench, uuid = self.bench()
        server = SlowServer(pathlib.Path(bench.directory, "files", "image.raw").read_bytes())
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        bench.set_image(uuid, image_source=server.url)
        bench.user.provision(uuid, "active")
        bench.eventually(server.begun.is_set, "the image is being fetched")
        bench.eventually(lambda: "fetches the image" in self.explained(bench, uuid), "what is under way is said")
        writers = self.writers(bench)
        self.assertEqual(2, len(writers))
        bench.process.stop(9)
        bench.eventually(lambda: not any(map(self.runs, writers)), "nothing writes without a conductor")
        server.may.set()
        bench.process.start()
        bench.reach(uuid, "active")
        self.assertTrue(bench.holds_image(0))
        commands = [one["command"] for one in bench.rack.control.machine("machine-0")["commands"]]
        self.assertEqual(2, commands.count("iscsi.start_iscsi_target"))
        self.assertEqual(([], []), (self.writers(bench), self.left(bench)))

    def explained(self, bench: lab.Lab, uuid: str) -> str:
        return bench.user.request("GET", f"/ingot/v1/nodes/{uuid}/explanation").text

    def fail(self, bench: lab.Lab, uuid: str) -> str:
        """Deploy; return why that has failed."""
        bench.user.provision(uuid, "active")
        error: str = bench.reach(uuid, "deploy failed")["last_error"]
        self.assertEqual(([], []), (self.writers(bench), self.left(bench)))
        return error

    def test_what_is_wrong_is_said_before_a_byte_is_written(self) -> None:
        bench, uuid = self.bench()
        bench.set_image(uuid, image_os_hash_value="0" * 64)
        self.assertIn("the sha256 of the image is", self.fail(bench, uuid))
        bench.set_image(uuid, image_source=f"{bench.files.url}/nothing.raw")
        self.assertIn("HTTP 404", self.fail(bench, uuid))
        bench.set_image(uuid, image_disk_format="qcow2")
        self.assertIn("it is gpt, and is called qcow2", self.fail(bench, uuid))
        self.assertFalse(bench.holds_image(0))

    def test_what_takes_too_long_is_killed(self) -> None:
        bench, uuid = self.bench(write_timeout=3)
        server = SlowServer(pathlib.Path(bench.directory, "files", "image.raw").read_bytes())
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        bench.set_image(uuid, image_source=server.url)
        began = time.monotonic()
        self.assertIn("it took longer than 3 s", self.fail(bench, uuid))
        self.assertLess(time.monotonic() - began, 60)
