"""Virtual media of machines in QEMU, inserted by Redfish: a firmware starts from them, and they change under it."""

import http.server
import io
import pathlib
import tempfile
import threading
from typing import Any

import pycdlib
import requests
import testtools

from ingot.rack.process import RackProcess
from tests import patience
from tests.gate.real_machine.test_machines import boot_sector

PATIENCE_S = patience.seconds(120)


def boot_image(says: str) -> bytes:
    """Return an ISO that a BIOS starts (El Torito): it says something on the serial line."""
    image = pycdlib.PyCdlib()
    image.new()
    sector = boot_sector(says).ljust(2048, b"\0")
    image.add_fp(io.BytesIO(sector), len(sector), "/BOOT.;1")
    image.add_eltorito("/BOOT.;1", bootcatfile="/BOOT.CAT;1", boot_load_size=4)
    written = io.BytesIO()
    image.write_fp(written)
    image.close()
    return written.getvalue()


class MediaTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.images = self.serve({"/a.iso": boot_image("image A runs"), "/b.iso": boot_image("image B runs")})
        self.rack = RackProcess(
            directory, machine_kind="qemu", machines=1, memory=64, disk_size="16M", bmc_base_port=0, redfish_base_port=0
        )
        self.rack.start()
        self.addCleanup(self.rack.stop)
        (machine,) = self.rack.machines
        self.name, self.face = machine["name"], machine["redfish"]
        self.client = requests.Session()
        self.client.auth, self.client.trust_env = ("admin", "password"), False
        self.client.verify = self.rack.description["redfish_ca_file"]
        self.addCleanup(self.client.close)

    def serve(self, files: dict[str, bytes]) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(files[self.path])

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def send(self, method: str, path: str, body: dict[str, Any]) -> None:
        answer = self.client.request(method, self.face["address"] + self.face["system"] + path, json=body, timeout=30)
        self.assertEqual(204, answer.status_code, answer.text)

    def drive(self, action: str, **body: Any) -> None:
        self.send("POST", f"/VirtualMedia/Cd/Actions/VirtualMedia.{action}", body)

    def start(self) -> None:
        boot = {
            "BootSourceOverrideTarget": "Cd",
            "BootSourceOverrideEnabled": "Once",
            "BootSourceOverrideMode": "Legacy",
        }
        self.send("PATCH", "", {"Boot": boot})
        on = self.rack.control.machine(self.name)["power"] == "on"
        self.send("POST", "/Actions/ComputerSystem.Reset", {"ResetType": "ForceRestart" if on else "On"})

    def wait_for_text(self, text: str) -> None:
        console = pathlib.Path(self.rack.control.machine(self.name)["console"])
        self.rack.control.wait_for(self.name, lambda _: console.exists() and text in console.read_text(), PATIENCE_S)

    def test_a_machine_starts_from_what_is_in_its_drive(self) -> None:
        self.drive("InsertMedia", Image=f"{self.images}/a.iso")
        self.start()
        self.wait_for_text("image A runs")
        self.drive("EjectMedia")
        self.drive("InsertMedia", Image=f"{self.images}/b.iso")  # while it runs
        self.start()
        self.wait_for_text("image B runs")
        self.assertFalse([line for line in self.rack.control.log(self.name) if "QEMU: " in line])
