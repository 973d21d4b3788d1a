"""The life of a QEMU machine, with a program in QEMU's place that does what the test says."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import testtools

from ingot.rack import qemu, qemu_command
from ingot.rack.config import ConfigError, RackConfig, machine_specs
from ingot.rack.faults import FaultError
from ingot.rack.loop import LoopThread, Site

STAND_IN = Path(__file__).with_name("qemu_stand_in.py")


class QemuMachineTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.here = Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = self.here / qemu_command.PROGRAM
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {self.here} "$@"\n')
        program.chmod(0o755)
        variables = self.here / "firmware.fd"
        variables.write_bytes(b"variables")
        path = f"{self.here}{os.pathsep}{os.environ['PATH']}"
        self.enterContext(mock.patch.dict(os.environ, {"PATH": path}))
        for firmware in ("UEFI_CODE", "UEFI_VARIABLES", "SECURE_CODE", "SECURE_VARIABLES"):
            self.enterContext(mock.patch.object(qemu_command, firmware, variables))
        (self.here / "commands").touch()
        self.order({})
        config = RackConfig(
            machines=1, machine_kind="qemu", state_dir=self.here / "rack", disk_size=2**20, agent_base_port=4711
        )
        site = Site(config)
        self.addCleanup(site.close)
        self.loop = LoopThread()
        self.loop.start()
        self.addCleanup(self.loop.stop)
        self.machine = qemu.QemuMachine(machine_specs(config)[0], site)
        self.addCleanup(self.loop.call, self.machine.switch_off)

    def order(self, what: dict[str, Any]) -> None:
        (self.here / "order").write_text(json.dumps(what))

    def power(self, action: str) -> bool:
        return self.loop.call(self.machine.power, action)

    def wait(self, ready: Any) -> None:
        deadline = time.monotonic() + 20
        while not ready():
            self.assertLess(time.monotonic(), deadline, list(self.machine.log_lines))
            time.sleep(0.01)

    def says(self, text: str) -> bool:
        return any(text in line for line in list(self.machine.log_lines))

    def commands(self) -> list[str]:
        return (self.here / "commands").read_text().splitlines()

    def start(self) -> int:
        self.power("on")
        self.wait(lambda: self.says("console: started"))
        return int(self.machine.reason.split()[2].rstrip(","))

    def test_power_is_a_process(self) -> None:
        process = self.start()
        self.assertEqual(("on", True), (self.machine.state, self.machine.powered))
        self.assertTrue(self.power("off"))
        self.assertEqual(("off", False), (self.machine.state, self.machine.powered))
        self.assertRaises(ProcessLookupError, os.kill, process, 0)

    def test_the_power_button_is_for_what_runs_on_it(self) -> None:
        self.start()
        self.power("soft")
        self.wait(lambda: not self.machine.powered)
        self.assertEqual("guest-shutdown", self.machine.reason)
        self.assertEqual("started\n", Path(self.machine.public()["console"]).read_text())

    def test_a_machine_that_switches_itself_off(self) -> None:
        self.order({"reason": "guest-shutdown"})
        self.power("on")
        self.wait(lambda: not self.machine.powered)
        self.assertEqual(1, self.machine.boots)

    def test_a_machine_that_restarts_itself_boots_what_its_bmc_says_then(self) -> None:
        self.order({"reason": "guest-reset"})
        self.machine.set_boot_setting("disk", persistent=True, efi=False)
        self.machine.set_boot_setting("pxe", persistent=False, efi=False)
        self.power("on")
        self.wait(lambda: len(self.commands()) == 2)
        first, second = ("virtio-net-pci,netdev=net0,mac=52:54:00:00:00:00,bootindex=1 " in f"{c} "
                         for c in self.commands())  # fmt: skip
        self.assertEqual((True, False), (first, second))

    def test_a_reset_is_a_new_process(self) -> None:
        self.start()
        self.power("reset")
        self.wait(lambda: len(self.commands()) == 2)
        self.assertEqual((2, True), (self.machine.boots, self.machine.powered))

    def test_the_complaint_of_qemu_is_the_reason(self) -> None:
        self.order({"complains": "disk0: Failed to get lock"})
        self.power("on")
        self.wait(lambda: self.machine.state == "off" and self.machine.boots)
        self.assertEqual("QEMU ended with status 1: disk0: Failed to get lock", self.machine.reason)

    def test_another_process_ends_the_process(self) -> None:
        os.kill(self.start(), 9)
        self.wait(lambda: not self.machine.powered)
        self.assertEqual("QEMU ended with SIGKILL", self.machine.reason)

    def test_an_interrupt_reaches_it(self) -> None:
        self.start()
        self.assertTrue(self.loop.call(self.machine.interrupt))
        self.wait(lambda: self.says("console: NMI received"))

    def test_what_is_typed_reaches_its_console(self) -> None:
        self.assertFalse(self.loop.call(self.machine.feed, b"no machine hears"))
        self.start()
        self.assertTrue(self.loop.call(self.machine.feed, b"who is there?\n"))
        self.power("soft")
        self.wait(lambda: self.says("console: typed: who is there?"))

    def test_variables_of_uefi_are_its_own_and_stay(self) -> None:
        kept = qemu_command.Firmware(self.machine.directory).variables
        self.machine.set_boot_setting("disk", persistent=True, efi=True)
        self.start()
        self.assertEqual(b"variables", kept.read_bytes())
        kept.write_bytes(b"changed")
        self.power("reset")
        self.wait(lambda: len(self.commands()) == 2)
        self.assertEqual(b"changed", kept.read_bytes())

    def test_a_hang_is_a_stopped_processor(self) -> None:
        self.machine.order_fault("boot_hang", times=1)
        self.start()
        self.assertTrue(self.commands()[0].endswith(" -S"))

    def test_faults_of_simulated_machines_are_not_its(self) -> None:
        self.assertRaisesRegex(FaultError, "image_404.*boot_hang", self.machine.order_fault, "image_404")

    def test_it_says_how_its_agent_is_reached_and_where_its_console_is(self) -> None:
        shown = self.machine.public()
        self.assertEqual(
            "ipa-advertise-host=127.0.0.1 ipa-advertise-port=4711 no_timer_check mitigations=off",
            shown["kernel_arguments"],
        )
        self.assertEqual(str(self.machine.directory / "console.log"), shown["console"])

    def test_it_finds_its_boot_script_at_the_host(self) -> None:
        self.start()
        self.assertIn("bootfile=http://10.0.2.2:6385/boot/ipxe/52-54-00-00-00-00,", self.commands()[0])

    def test_a_computer_without_qemu(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": str(self.here / "rack")}):
            self.assertRaisesRegex(
                ConfigError, "qemu needs qemu-system-x86_64.*Debian's packages are",
                qemu.QemuMachine, self.machine.spec, self.machine.site,
            )  # fmt: skip
