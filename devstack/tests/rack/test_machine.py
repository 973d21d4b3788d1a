"""A machine in this process: power, boot devices and what they survive. (Its BMC is tested from outside.)"""

import http.server
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import testtools

from ingot.rack import ports
from ingot.rack.bmc import boot_flags
from ingot.rack.config import RackConfig, machine_specs
from ingot.rack.loop import LoopThread, Site
from ingot.rack.nvram import BootSetting, Nvram
from ingot.rack.simulated import SimulatedMachine
from tests import disk_images


class BootFlagsTest(testtools.TestCase):
    def test_bytes(self) -> None:
        for setting, expected in (
            (None, (0, 0)),
            (BootSetting("pxe", persistent=False, efi=False), (0x80, 0x04)),
            (BootSetting("disk", persistent=True, efi=True), (0xE0, 0x08)),
        ):
            self.assertEqual(expected, boot_flags(setting))


class NvramTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name, "nvram.json")

    def test_once_is_used_up_and_persistent_stays_over_restarts(self) -> None:
        lasting = BootSetting("disk", persistent=True, efi=True)
        once = BootSetting("pxe", persistent=False, efi=False)
        nvram = Nvram(self.path)
        nvram.store(lasting)
        nvram.store(once)
        self.assertEqual(once, Nvram(self.path).take())
        self.assertEqual([lasting, lasting], [Nvram(self.path).take() for _ in range(2)])

    def test_a_persistent_setting_replaces_both(self) -> None:
        nvram = Nvram(self.path)
        nvram.store(BootSetting("pxe", persistent=False, efi=False))
        nvram.store(BootSetting("disk", persistent=True, efi=False))
        self.assertEqual(BootSetting("disk", persistent=True, efi=False), nvram.take())


class _BootsFromDisk(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"#!ipxe\nsanboot --no-describe --drive 0x80\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Keep messages out of the test's output."""


class MachineTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        quick: dict[str, Any] = {"boot_delay": 0.0, "os_boot_delay": 0.0, "shutdown_delay": 0.0}
        self.port = ports.tcp()
        quick |= {"boot_retry": 0.01, "boot_url": f"http://127.0.0.1:{self.port}/{{mac}}"}
        config = RackConfig(machines=1, state_dir=Path(directory.name), disk_size=16 * 2**20, **quick)
        site = Site(config)
        self.addCleanup(site.close)
        self.loop = LoopThread()
        self.loop.start()
        self.addCleanup(self.loop.stop)
        self.machine = SimulatedMachine(machine_specs(config)[0], site)

    def power(self, action: str) -> bool:
        return self.loop.call(self.machine.power, action)

    def wait_for(self, state: str) -> None:
        deadline = time.monotonic() + 60
        while self.machine.state != state:
            self.assertLess(time.monotonic(), deadline, f"{self.machine.state} {self.machine.reason}")
            time.sleep(0.01)

    def test_it_starts_from_the_disk_that_can(self) -> None:
        self.machine.disks[1].write(0, disk_images.mbr_image())
        self.machine.set_boot_setting("disk", persistent=True, efi=False)
        self.power("on")
        self.wait_for("os")
        self.assertEqual("started from /dev/sdb (mbr)", self.machine.reason)
        self.assertTrue(self.power("soft"))
        self.wait_for("off")

    def test_it_hangs_with_a_reason(self) -> None:
        for device, reason in (("disk", "no disk has a boot sector"), ("cdrom", "boot device cdrom: no medium")):
            self.machine.set_boot_setting(device, persistent=False, efi=False)
            self.power("on")
            self.wait_for("hung")
            self.assertIn(reason, self.machine.reason)
            self.power("off")
            self.assertEqual("off", self.machine.state)

    def test_its_firmware_looks_again_until_there_is_something_to_boot(self) -> None:
        self.machine.disks[0].write(0, disk_images.mbr_image())
        self.machine.set_boot_setting("pxe", persistent=True, efi=False)
        self.power("on")
        while not any("looking again" in line for line in tuple(self.machine.log_lines)):
            time.sleep(0.01)
        server = http.server.HTTPServer(("127.0.0.1", self.port), _BootsFromDisk)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.wait_for("os")

    def test_what_makes_no_sense_when_off(self) -> None:
        self.assertEqual([True, False, False, False], [self.power(a) for a in ("off", "cycle", "reset", "soft")])

    def test_an_ordered_hang_happens_as_often_as_ordered(self) -> None:
        self.machine.disks[0].write(0, disk_images.mbr_image())
        self.machine.set_boot_setting("disk", persistent=True, efi=False)
        self.machine.order_fault("boot_hang", times=1)
        self.power("on")
        self.wait_for("hung")
        self.power("reset")
        self.wait_for("os")
