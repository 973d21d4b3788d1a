"""IPMI against a BMC that others wrote: ipmi_sim of the OpenIPMI project (Debian's package openipmi)."""

import shutil
import socket
import subprocess
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fixtures
import testtools

from ingot.common import errors, states
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.vendor import OF_NODE, VendorCall, call_method
from ingot.drivers.ipmi import base, serial_over_lan, session
from ingot.rack import ports, sensors
from tests import patience
from tests.functional.drivers.test_serial_over_lan import ask, read_until
from tests.unit.drivers import fakes

LIMIT = patience.seconds(20)

_CONFIGURATION = """
name "sim"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{directory}/chassis"
  sol "tcp:127.0.0.1:{console}" 115200
  user 2 true "admin" "password" admin 10 none md2 md5 straight
"""

_CHASSIS = """#!/bin/sh
cd {directory}
case "$1" in
get) shift; for key in "$@"; do default=0; [ $key = boot ] && default=none
     echo "$key:$(cat state.$key 2>/dev/null || echo $default)"; done;;
set) echo "$3" > state.$2;;
esac
"""

_MACHINE = """
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x01 0x01
sensor_set_threshold 0x20 0 1 settable 111111 120 42 38 0 3 5
sensor_set_event_support 0x20 0 1 enable scanning per-state {mask} {mask} {mask} {mask}
sensor_set_value 0x20 0 1 {degrees} 0
main_sdr_add 0x20 {record}
sel_add 0x20 0x02 0 0 0 0 0x20 0 4 0x01 1 0x01 0x59 41 38
mc_enable 0x20
"""


class EchoingLine(fixtures.Fixture):
    """The serial line of a machine: says again, in brackets, what is typed."""

    def _setUp(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.addCleanup(self._server.close)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(line,), daemon=True).start()

    @staticmethod
    def _echo(line: socket.socket) -> None:
        with line:
            while data := line.recv(1000):
                line.sendall(b"[" + data + b"]")


class Simulator(fixtures.Fixture):
    """One BMC in a process of ipmi_sim."""

    def __init__(self, degrees: int) -> None:
        super().__init__()
        self._degrees = degrees

    def _setUp(self) -> None:
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)
        line = self.useFixture(EchoingLine())
        self.port = ports.udp(1)
        mask = "000111111000000"
        record = " ".join(f"{byte:#04x}" for byte in sensors.RECORDS[0])
        chassis = self.directory / "chassis"
        chassis.write_text(_CHASSIS.format(directory=self.directory))
        chassis.chmod(0o755)
        configuration, machine = self.directory / "lan.conf", self.directory / "machine.emu"
        configuration.write_text(_CONFIGURATION.format(port=self.port, console=line.port, directory=self.directory))
        machine.write_text(_MACHINE.format(mask=mask, degrees=self._degrees, record=record))
        with (self.directory / "log").open("wb") as log:
            process = subprocess.Popen(
                ["ipmi_sim", "-c", configuration, "-f", machine, "-s", self.directory / "kept"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def boots_from(self) -> str:
        return (self.directory / "state.boot").read_text().strip()


@unittest.skipUnless(shutil.which("ipmi_sim"), "ipmi_sim (Debian's package openipmi) is not installed")
class IPMISimTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.begin(degrees=24)

    def begin(self, degrees: int) -> None:
        self.bmc = self.useFixture(Simulator(degrees))
        info = {
            "ipmi_address": "127.0.0.1",
            "ipmi_port": self.bmc.port,
            "ipmi_username": "admin",
            "ipmi_password": "password",
        }
        conf = fakes.configuration(enabled_hardware_types=["ipmi"], ipmi__command_retry_timeout=5)
        self.task = fakes.MemoryTask(conf, fakes.node(driver="ipmi", driver_info=info))
        deadline = time.monotonic() + LIMIT
        while self.ipmitool("mc", "info").returncode and time.monotonic() < deadline:
            time.sleep(0.1)

    def ipmitool(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Ask the BMC with ipmitool; the simulator has cipher suite 3."""
        address = ["-H", "127.0.0.1", "-p", str(self.bmc.port), "-U", "admin", "-P", "password", "-C", "3"]
        command = ["ipmitool", "-I", "lanplus", "-R", "1", *address, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def finish(self, call: Callable[[Any], Any]) -> None:
        deadline = time.monotonic() + LIMIT
        while not isinstance(answer := call(self.task), results.Done):
            self.assertLess(time.monotonic(), deadline, answer)
            time.sleep(0.1)

    def vendor(self, name: str) -> Any:
        return call_method(self.task.driver.vendor, OF_NODE, self.task, VendorCall(name, "GET", {}))

    def test_power(self) -> None:
        for target, seen in ((states.POWER_ON, "on"), (states.POWER_OFF, "off")):
            self.finish(lambda task, target=target: power_control.change(task, target))
            self.assertIn(f"Power is {seen}", self.ipmitool("power", "status").stdout)

    def test_boot_device(self) -> None:
        for device, seen in (("pxe", "pxe"), ("disk", "default"), ("cdrom", "cdrom"), ("bios", "bios")):
            self.task.driver.management.set_boot_device(self.task, device)
            self.assertEqual(seen, self.bmc.boots_from())

    def test_sensors_and_log_are_what_ipmitool_sees(self) -> None:
        (found,) = self.vendor("get_sensors")
        read = tuple(map(found.get, ("name", "kind", "reading", "health")))
        self.assertEqual(("Inlet Temp", "temperature", 24.0, "OK"), read)
        self.assertIn("24 degrees C", self.ipmitool("sdr", "list").stdout)
        (event,) = self.vendor("get_sel")
        self.assertIn("Upper Critical", self.ipmitool("sel", "elist").stdout)
        self.assertIn("critical", str(event["event"]).lower())

    def test_a_sensor_beyond_a_threshold(self) -> None:
        self.begin(degrees=41)
        (found,) = self.vendor("get_sensors")
        self.assertEqual((41.0, "Warning"), (found["reading"], found["health"]))
        self.assertIn("nc", self.ipmitool("sdr", "list").stdout)

    def test_both_cipher_suites_and_a_wrong_password(self) -> None:
        address = base.read_address(self.task.node.driver_info)
        for suites in ((3,), (17, 3)):
            self.assertTrue(session.call(address._replace(suites=suites), 5, session.Request(0x00, 0x01)))
        wrong = address._replace(password="wrong")
        self.assertRaises(errors.HardwareError, session.call, wrong, 5, session.Request(0x00, 0x01))

    def test_serial_over_lan(self) -> None:
        address = base.read_address(self.task.node.driver_info)
        stream = serial_over_lan.SerialOverLan(address, self.task.conf)
        ask(stream.open())
        self.addCleanup(lambda: ask(stream.close()))
        ask(stream.write(b"hello", 5))
        read_until(stream, b"[hello]")
        ask(stream.send_break(5))
        ask(stream.write(b"x" * 2000, 5))
        said = read_until(stream, b"\xff\xf3")  # how telnet says a break; it comes with what follows
        while said.count(b"x") < 2000:
            said += ask(stream.read())
        self.assertEqual("power off", self.task.driver.power.get_power_state(self.task))
        self.assertEqual(0, self.ipmitool("sol", "deactivate").returncode)
        ask(stream.write(b"whose is it?", 5))
        self.assertIn("taken", str(self.assertRaises(errors.HardwareError, read_until, stream, b"never")))
