"""Machines of the rack in QEMU, each with a boot sector for an operating system."""

import http.server
import os
import pathlib
import tempfile
import threading
import time
from typing import Any

import testtools

from ingot.rack.process import RackProcess
from tests import patience

PATIENCE_S = patience.seconds(120)

# In 16-bit code: send what follows the code to the serial line, byte by byte until a zero.
_TEXT_AT = 25
_SAY = bytes.fromhex(f"31c0 8ed8 be{_TEXT_AT:02x}7c ac 84c0 7406 baf803 ee ebf5")
_HALT = bytes.fromhex("f4 ebfd")
_RESET = bytes.fromhex("b0fe e664")  # through the keyboard controller, as systems do


def boot_sector(says: str, then: bytes = b"") -> bytes:
    """Return a boot sector that prints something on the serial console, does something and halts."""
    code = (_SAY + then + _HALT).ljust(_TEXT_AT, b"\x90")
    return (code + f"{says}\r\n\0".encode()).ljust(510, b"\0") + b"\x55\xaa"


class MachinesTest(testtools.TestCase):
    def rack(self, **settings: Any) -> RackProcess:
        place = self.enterContext(tempfile.TemporaryDirectory())
        rack = RackProcess(
            place, machine_kind="qemu", machines=1, memory=64, disk_size="16M", bmc_base_port=0, **settings
        )
        rack.start()
        self.addCleanup(rack.stop)
        self.name = rack.machines[0]["name"]
        return rack

    def write(self, rack: RackProcess, disk: int, sector: bytes) -> None:
        with pathlib.Path(rack.control.machine(self.name)["disks"][disk]["path"]).open("r+b") as file:
            file.write(sector)

    def wait_for_text(self, rack: RackProcess, text: str) -> None:
        console = pathlib.Path(rack.control.machine(self.name)["console"])
        rack.control.wait_for(self.name, lambda _: console.exists() and text in console.read_text(), PATIENCE_S)

    def test_a_bios_starts_the_disk_that_can_be_started(self) -> None:
        rack = self.rack()
        self.write(rack, 1, boot_sector("the second disk runs"))
        rack.control.power(self.name, "on")
        self.wait_for_text(rack, "the second disk runs")
        self.assertEqual("on", rack.control.machine(self.name)["state"])
        self.assertEqual("off", rack.control.power(self.name, "off")["state"])

    def test_a_machine_that_restarts_itself_is_on_and_has_booted_again(self) -> None:
        rack = self.rack()
        self.write(rack, 0, boot_sector("going round", _RESET))
        rack.control.power(self.name, "on")
        machine = rack.control.wait_for(self.name, lambda machine: machine["boots"] >= 3, PATIENCE_S)
        self.assertEqual("on", machine["power"])

    def test_once_from_the_network_and_then_from_the_disk(self) -> None:
        asked = []

        class Scripts(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers["User-Agent"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"#!ipxe\nreboot\n")

            def log_message(self, format: str, *args: Any) -> None:
                """Drop what is not read."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripts)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        rack = self.rack(boot_url=f"http://{{host}}:{server.server_port}/boot/ipxe/{{mac}}")
        self.write(rack, 0, boot_sector("the disk runs"))
        rack.control.set_boot_device(self.name, "disk", persistent=True)
        rack.control.set_boot_device(self.name, "pxe")
        rack.control.power(self.name, "on")
        self.wait_for_text(rack, "the disk runs")
        ((path, firmware),) = asked
        self.assertEqual("/boot/ipxe/52-54-00-00-00-00", path)
        self.assertIn("iPXE", firmware)

    def test_machines_do_not_outlive_their_rack(self) -> None:
        rack = self.rack()
        self.write(rack, 0, boot_sector("runs"))
        rack.control.power(self.name, "on")
        self.wait_for_text(rack, "runs")
        process = rack.control.machine(self.name)["reason"].split()[2].rstrip(",")
        os.kill(rack.pid or 0, 9)
        deadline = time.monotonic() + PATIENCE_S
        while self.lives(process):
            self.assertLess(time.monotonic(), deadline, "the machine still runs")
            time.sleep(0.1)

    def lives(self, process: str) -> bool:
        """Return whether a process exists and is not a zombie."""
        try:
            state = pathlib.Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return state not in "ZX"
